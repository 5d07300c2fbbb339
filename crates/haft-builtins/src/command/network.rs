//! `CommandNetwork`: what commands reach over the network, and where packages for them are kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::error::ToolError;
use haft::spec::Risk;
use haft_sandbox::{CommandSpec, Guard, Mounts, Network, OUTLET_ADDRESS, Running};

use crate::command::packages;
use crate::proxy::{Proxy, Refusals};

/// What commands reach over the network, and the packages they see. The default reaches nothing.
#[derive(Debug, Clone, Default)]
pub struct CommandNetwork {
    mode: Mode,
    /// Where packages of this workspace were installed, or will be.
    packages: Option<PathBuf>,
}

#[derive(Debug, Clone, Default)]
enum Mode {
    #[default]
    None,
    AllowList(Proxy),
    Install(Proxy, PathBuf),
    Full,
}

impl CommandNetwork {
    /// The hosts that this proxy's list allows, and nothing else.
    pub fn allow_list(proxy: Proxy) -> Self {
        Self::of(Mode::AllowList(proxy))
    }

    /// The same for programs that install packages: they run in this folder in place of the workspace, which they
    /// do not see.
    pub fn install(proxy: Proxy, packages: PathBuf) -> Self {
        Self::of(Mode::Install(proxy, packages))
    }

    /// All that this machine reaches, its own services included.
    pub fn full() -> Self {
        Self::of(Mode::Full)
    }

    fn of(mode: Mode) -> Self {
        Self {
            mode,
            packages: None,
        }
    }

    /// The same, with the packages of this folder in sight, where it exists.
    pub fn with_packages(mut self, folder: PathBuf) -> Self {
        self.packages = Some(folder);
        self
    }

    /// Reaches nothing.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.mode, Mode::None)
    }

    /// The word in settings.
    pub fn word(&self) -> &'static str {
        match self.mode {
            Mode::None => "none",
            Mode::AllowList(_) => "allow-list",
            Mode::Install(..) => "install",
            Mode::Full => "full",
        }
    }

    /// What it means, in a line for a person.
    pub fn meaning(&self) -> String {
        match &self.mode {
            Mode::None => "commands reach nothing".to_owned(),
            Mode::AllowList(proxy) => format!(
                "commands reach {} hosts of sandbox.allow_hosts",
                proxy.hosts()
            ),
            Mode::Install(proxy, folder) => format!(
                "commands reach {} hosts of package registries and run in {} without the workspace",
                proxy.hosts(),
                folder.display()
            ),
            Mode::Full => "commands reach whatever this machine does; each is critical".to_owned(),
        }
    }

    /// What commands reach, whole: an approval of a command holds for exactly this.
    pub(crate) fn reach(&self) -> String {
        match &self.mode {
            Mode::None => "none".to_owned(),
            Mode::AllowList(proxy) => format!("only {}", proxy.allowed()),
            Mode::Install(proxy, folder) => format!(
                "only {}; runs in {} without the workspace",
                proxy.allowed(),
                folder.display()
            ),
            Mode::Full => "everything that this machine reaches".to_owned(),
        }
    }

    /// The least risk of any command, whatever it runs.
    pub(crate) fn least_risk(&self) -> Risk {
        match self.mode {
            Mode::None => Risk::Safe,
            Mode::AllowList(_) | Mode::Install(..) => Risk::High,
            Mode::Full => Risk::Critical,
        }
    }

    /// The folder that commands run in where that is not the workspace.
    pub(crate) fn instead(&self) -> Option<&Path> {
        match &self.mode {
            Mode::Install(_, folder) => Some(folder),
            _ => None,
        }
    }

    /// The folder of packages, made where it is absent; the only place such a command writes.
    pub(crate) fn packages_folder(folder: &Path) -> Result<PathBuf, ToolError> {
        use std::os::unix::fs::DirBuilderExt;
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .and_then(|()| folder.canonicalize());
        made.map_err(|error| {
            let message = format!("make the folder of packages {}: {error}", folder.display());
            ToolError::unavailable(message).for_operator("XDG_CACHE_HOME chooses another place")
        })
    }

    /// Connects what is to be started. What the caller set in its environment stays.
    pub(crate) fn connect(&self, spec: &mut CommandSpec, workspace: &Path) -> Connected {
        let mut connected = Connected {
            mode: self.word(),
            refusals: None,
        };
        if let Mode::AllowList(proxy) | Mode::Install(proxy, _) = &self.mode {
            let (outlet, refusals) = proxy.outlet();
            spec.network = Network::Outlet(outlet);
            connected.refusals = Some(refusals);
            for (name, value) in proxy_variables() {
                spec.env.entry(name.into()).or_insert(value.into());
            }
        }
        if matches!(self.mode, Mode::Full) {
            spec.network = Network::Host;
        }
        if matches!(self.mode, Mode::Install(..)) {
            packages::installing(spec);
        } else if let Some(folder) = self.packages.as_deref().and_then(|f| f.canonicalize().ok()) {
            let offline = matches!(self.mode, Mode::None);
            show(&mut spec.mounts, &folder, workspace);
            packages::installed(spec, &folder, offline);
        }
        connected
    }
}

/// Shows a folder to be read, never changed.
fn show(mounts: &mut Mounts, folder: &Path, workspace: &Path) {
    match folder.strip_prefix(workspace) {
        Ok(inside) => mounts.guards.push(Guard::protect_dir(inside)),
        Err(_) => mounts.read_only.push(folder.to_owned()),
    }
}

/// How programs are told of the proxy. One that does not listen reaches nothing.
fn proxy_variables() -> impl Iterator<Item = (&'static str, String)> {
    let named = [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ];
    let named = named.map(|name| (name, format!("http://{OUTLET_ADDRESS}")));
    let none = ["NO_PROXY", "no_proxy"].map(|name| (name, String::new()));
    // Node's own client asks for the proxy only so.
    let node = [("NODE_USE_ENV_PROXY", "1".to_owned())];
    named.into_iter().chain(none).chain(node)
}

/// How one command was connected.
#[derive(Debug, Clone)]
pub(crate) struct Connected {
    mode: &'static str,
    refusals: Option<Arc<Refusals>>,
}

impl Connected {
    /// How the command is confined, its network included where it has one.
    pub(crate) fn strength(&self, running: &Running) -> String {
        match self.mode {
            "none" => running.strength().word().to_owned(),
            mode => format!("{}, network {mode}", running.strength()),
        }
    }

    /// The setting that would allow the first of what was refused, for the person who runs haft.
    pub(crate) fn would_allow(&self) -> Option<String> {
        self.refusals.as_ref()?.would_allow()
    }

    /// What was refused so far.
    pub(crate) fn refused(&self) -> Vec<String> {
        let refusals = self.refusals.as_ref();
        refusals
            .map(|refusals| refusals.lines())
            .unwrap_or_default()
    }
}
