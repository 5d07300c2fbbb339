//! What commands see besides the workspace, from settings and from this machine: toolchains, folders, variables.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_builtins::command::{CommandSurroundings, DeniedFolders};
use haft_builtins::gpg_agent::GpgAgent;
use haft_builtins::host_sockets::HostSockets;
use haft_builtins::ssh_agent::SshAgent;
use haft_sandbox::{Places, ToolchainSearch, Toolchains};

use crate::config::{Settings, ValueOrigin, typed};
use crate::own_program::own_program;
use crate::problem::Problem;
use crate::site::Site;
use crate::wiring::certificates;
use crate::wiring::policy::PolicyInputs;

/// Variables that affect every program; settings cannot set them for commands.
const RESERVED_VARIABLES: &[&str] = &["HOME", "PATH", "TMPDIR"];

/// Returns the folders of `sandbox.write` that a jail may show, without those inside the workspace or inside one another.
pub(crate) fn written(
    at: &Site,
    settings: &Settings,
    ground: &PolicyInputs,
    places: &Places,
) -> Result<Vec<PathBuf>, Problem> {
    let check = PathCheck {
        at,
        ground,
        places,
        key: "sandbox.write",
        changed: true,
    };
    let mut folders = check.all(settings)?;
    folders.sort();
    folders.dedup_by(|next, kept| next.starts_with(kept));
    Ok(folders)
}

/// Returns the folders that jailed MCP servers write to, each with its server's name: nothing in them is started outside a jail.
pub(crate) fn written_by_servers<'s>(
    at: &Site,
    settings: &'s Settings,
) -> impl Iterator<Item = (&'s str, PathBuf)> {
    let home = at.environment.folder("HOME");
    let lists = settings.iter().filter_map(|(path, entry)| match path {
        [mcp, servers, name, sandbox, write]
            if [&**mcp, servers, sandbox, write] == ["mcp", "servers", "sandbox", "write"] =>
        {
            Some((name.as_str(), entry.value.as_array()?))
        }
        _ => None,
    });
    let texts = lists.flat_map(|(name, list)| {
        let texts = list.iter().filter_map(toml::Value::as_str);
        texts.map(move |text| (name, text))
    });
    texts.map(move |(name, text)| match (text.strip_prefix("~/"), &home) {
        (Some(rest), Some(home)) => (name, home.join(rest)),
        _ => (name, PathBuf::from(text)),
    })
}

/// Returns everything that commands see; `write` is the result of [`written`].
pub(crate) fn surroundings(
    at: &Site,
    settings: &Settings,
    ground: &PolicyInputs,
    places: &Places,
    write: Vec<PathBuf>,
) -> Result<CommandSurroundings, Problem> {
    let check = |key| PathCheck {
        at,
        ground,
        places,
        key,
        changed: false,
    };
    let mut read = check("sandbox.read").all(settings)?;
    let path = check("sandbox.path").all(settings)?;
    read.extend(path.iter().cloned());
    let certificates = certificates::variables(&at.environment, places);
    read.extend(certificates.files);
    let env = variables(settings)?;
    read.retain(|folder| !write.iter().any(|write| folder.starts_with(write)));
    read.sort();
    read.dedup();
    let seen: Vec<&Path> = read.iter().chain(&write).map(PathBuf::as_path).collect();
    let sockets = sockets(&check("sandbox.sockets"), settings, &seen)?;
    Ok(CommandSurroundings {
        toolchains: Arc::new(toolchains(at, ground, places)),
        read,
        write,
        path,
        env,
        certificates: certificates.all,
        own_certificates: certificates.own,
        sockets,
        agent: agent(at, settings),
        gpg: gpg(at, settings, places),
    })
}

/// Returns the sockets of `sandbox.sockets`. One that commands must not reach, could replace, or see with these folders is an error at its position.
fn sockets(
    check: &PathCheck<'_>,
    settings: &Settings,
    seen: &[&Path],
) -> Result<HostSockets, Problem> {
    let mut paths = Vec::new();
    for (value, source) in settings.items(check.key) {
        let path = check.path(value.as_str().unwrap_or_default(), source)?;
        let refuse = |why: &str| {
            let problem = check.problem(source, &path, why);
            problem.advise("name the socket of a service, for example \"/run/postgresql\"")
        };
        if let Some(why) = HostSockets::refusal(&path) {
            return Err(refuse(&why));
        }
        let real = path.canonicalize();
        let real = real.as_deref().unwrap_or(&path);
        if check.places.may_change(&path) || check.places.may_change(real) {
            return Err(refuse(
                "lies in a folder that commands may change: they could put another in its place",
            ));
        }
        if check.places.concerns_own(real) {
            return Err(refuse("holds, or lies in, what is haft's own"));
        }
        let system = ["/usr", "/etc", "/proc", "/sys", "/dev"].map(Path::new);
        let mut seen = seen.iter().chain(&system);
        if seen.any(|folder| path.starts_with(folder) || real.starts_with(folder)) {
            return Err(refuse(
                "lies in a folder that commands see as it is on this machine, where haft cannot put a socket of its own",
            ));
        }
        let is_socket = |kind: std::fs::FileType| kind.is_socket() || kind.is_dir();
        if real
            .metadata()
            .is_ok_and(|about| !is_socket(about.file_type()))
        {
            return Err(refuse("is neither a socket nor a folder of sockets"));
        }
        paths.push(path);
    }
    Ok(HostSockets::new(paths))
}

/// Returns the user's gpg-agent, if gpg is installed.
fn gpg(at: &Site, settings: &Settings, places: &Places) -> Option<GpgAgent> {
    if settings.get(typed::GPG_AGENT) != "auto" {
        return None;
    }
    let path = OsStr::new(at.environment.get("PATH").unwrap_or_default());
    let find = |name| places.program(name, path)?.ok();
    let variables = at.environment.iter();
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Some(GpgAgent::new(
        find("gpg")?,
        find("gpgconf")?,
        variables.collect(),
        places.clone(),
    ))
}

/// Returns the user's ssh-agent, if one runs.
fn agent(at: &Site, settings: &Settings) -> Option<SshAgent> {
    if settings.get(typed::SSH_AGENT) != "auto" {
        return None;
    }
    let own = at
        .environment
        .folder("HOME")
        .map(|home| home.join(".ssh/known_hosts"));
    Some(SshAgent {
        socket: at.environment.folder("SSH_AUTH_SOCK")?,
        known_hosts: own
            .into_iter()
            .chain(["/etc/ssh/ssh_known_hosts".into()])
            .collect(),
    })
}

/// Returns the user's toolchains, without those that a deny rule names.
fn toolchains(at: &Site, ground: &PolicyInputs, places: &Places) -> Toolchains {
    let search = ToolchainSearch {
        home: at.environment.folder("HOME"),
        variables: at
            .environment
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        workspace: Some(at.workspace.clone()),
    };
    let mut found = Toolchains::find(places, &search);
    let denials = ground.policy.denials();
    let denied = DeniedFolders::new(&denials, &at.workspace);
    found.leave_out(|path| denied.contain(path, false).then(|| DENIED.to_owned()));
    found
}

/// Why commands do not see a folder.
const DENIED: &str = "is, or holds, what a deny rule names";

/// How the paths of one key are checked.
pub(super) struct PathCheck<'a> {
    pub(super) at: &'a Site,
    pub(super) ground: &'a PolicyInputs,
    pub(super) places: &'a Places,
    pub(super) key: &'a str,
    pub(super) changed: bool,
}

impl PathCheck<'_> {
    /// Returns the canonical paths that exist, except those in the workspace, which commands see anyway; one that must not be shown is an
    /// error at its position.
    fn all(&self, settings: &Settings) -> Result<Vec<PathBuf>, Problem> {
        let mut paths = self.with_workspace(settings)?;
        paths.retain(|path| !path.starts_with(self.ground.workspace.root()));
        Ok(paths)
    }

    /// Returns the same, including those in the workspace.
    pub(super) fn with_workspace(&self, settings: &Settings) -> Result<Vec<PathBuf>, Problem> {
        let mut paths = Vec::new();
        let denials = self.ground.policy.denials();
        let denied = DeniedFolders::new(&denials, &self.at.workspace);
        for (value, source) in settings.items(self.key) {
            let path = self.path(value.as_str().unwrap_or_default(), source)?;
            // The same settings may serve several machines: `haft doctor` lists what is missing here.
            if !path.exists() {
                continue;
            }
            let refuse = |why: String| self.problem(source, &path, &why);
            let real = self
                .places
                .check_shown(&path, self.changed)
                .map_err(|refused| refuse(refused.why))?;
            if self.changed && !real.is_dir() {
                return Err(refuse("is not a folder".to_owned()));
            }
            if let Some(folder) = self.programs_in(&real) {
                let why = "is, or holds, a folder of programs that run outside the jail";
                return Err(refuse(format!("{why} ({})", folder.display())));
            }
            if [&path, &real]
                .iter()
                .any(|name| denied.contain(name, self.changed))
            {
                return Err(refuse(DENIED.to_owned()));
            }
            if !paths.contains(&real) {
                paths.push(real);
            }
        }
        Ok(paths)
    }

    /// Returns the folder in haft's own `PATH`, or of haft itself, that commands could change, or create, along with this one.
    fn programs_in(&self, real: &Path) -> Option<PathBuf> {
        if !self.changed {
            return None;
        }
        let path = self.at.environment.get("PATH").unwrap_or_default();
        let own = own_program();
        let own = own.as_deref().and_then(Path::parent).map(Path::to_owned);
        let mut folders = std::env::split_paths(path).chain(own);
        let changed = Places::declared([], [real.to_owned()]);
        folders.find(|folder| changed.may_change(folder))
    }

    fn path(&self, written: &str, source: &ValueOrigin) -> Result<PathBuf, Problem> {
        let home = || self.at.environment.folder("HOME");
        let path = match written.strip_prefix("~/").map(|rest| (rest, home())) {
            Some((rest, Some(home))) => home.join(rest),
            _ => PathBuf::from(written),
        };
        if path.is_absolute() {
            return Ok(path);
        }
        Err(self.problem(source, &path, "is not an absolute path"))
    }

    fn problem(&self, source: &ValueOrigin, path: &Path, why: &str) -> Problem {
        let what = format!("`{}`: `{}` {why}", self.key, path.display());
        let problem = Problem::settings(what)
            .advise("name the exact folder that commands need, for example \"~/data/fixtures\"");
        match &source.place {
            Some(place) => problem.at(place.clone()),
            None => problem,
        }
    }
}

/// Returns the configured paths that this machine does not have.
pub(crate) fn absent(at: &Site, settings: &Settings) -> Vec<PathBuf> {
    let keys = [
        "sandbox.read",
        "sandbox.write",
        "sandbox.path",
        "sandbox.sockets",
    ];
    let paths = keys.iter().flat_map(|key| as_named(at, settings, key));
    paths.filter(|path| !path.exists()).collect()
}

/// Returns the folders of `sandbox.write`, unchecked.
pub(crate) fn written_as_named(at: &Site, settings: &Settings) -> Vec<PathBuf> {
    as_named(at, settings, "sandbox.write").collect()
}

/// Returns the paths of a list.
fn as_named<'s>(
    at: &Site,
    settings: &'s Settings,
    key: &'s str,
) -> impl Iterator<Item = PathBuf> + use<'s> {
    let home = at.environment.folder("HOME");
    settings
        .items(key)
        .into_iter()
        .filter_map(move |(value, _)| {
            let text = value.as_str()?;
            Some(match (text.strip_prefix("~/"), &home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => PathBuf::from(text),
            })
        })
}

fn variables(settings: &Settings) -> Result<BTreeMap<String, String>, Problem> {
    let Some(entry) = settings.entry(&["sandbox", "env"]) else {
        return Ok(BTreeMap::default());
    };
    let table = entry.value.as_table().into_iter().flatten();
    table
        .map(|(name, value)| {
            let value = value.as_str().unwrap_or_default();
            let wrong = name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
            if wrong || RESERVED_VARIABLES.contains(&name.as_str()) {
                let what = format!("`sandbox.env`: {name:?} cannot be set for commands");
                let advice =
                    "`sandbox.path` adds folders of programs; HOME and TMPDIR are the jail's own";
                return Err(Problem::settings(what).advise(advice));
            }
            Ok((name.clone(), value.to_owned()))
        })
        .collect()
}
