//! `Outside`: states for the policy what the tools of another program do. Nothing confines them.
//!
//! In a jail a command sees the workspace and nothing of the user's, so its words say little about the harm that it can do. Here they
//! must say everything. What leads out of the workspace, or cannot be known, is a separate effect that the user is asked about. A
//! command runs without asking only if its program and all of its options are known ([`CommandLine::uses`]), or a rule names it.

use std::path::{Path, PathBuf};

use haft::error::ToolError;
use haft::permission::{Effect, PathClaim, Permission};
use haft::policy::address::check_host;
use haft::policy::{CommandLine, CommandUses, PathAccess, PathUse, RedirectTarget, reads_alike};
use haft::spec::Risk;
use haft::workspace::Workspace;
use url::Url;

use crate::command::{Commands, RunCommandInput, git};

mod below;
mod effects;
mod gets;
mod pattern;
mod places;
mod spelling;
mod spot;

use effects::CallEffects;
use places::PathBases;

/// States the effects of another program's tools, which nothing confines, for the policy.
///
/// ```
/// use haft::policy::{JudgedCall, Policy};
/// use haft::permission::Verdict;
/// use haft::workspace::Workspace;
/// use haft_builtins::outside::Outside;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// let outside = Outside::new(Workspace::open(dir.path())?);
/// let stated = outside.line("cat README.md && cat ~/.ssh/id_rsa", None)?;
/// assert!(stated.iter().any(|one| one.effect.kind() == "read" && one.effect.value().ends_with("/.ssh/id_rsa")));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Outside {
    workspace: Workspace,
    home: Option<PathBuf>,
}

impl Outside {
    /// Creates it for this workspace; `~` is the home folder of the user who runs this process.
    pub fn new(workspace: Workspace) -> Self {
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        Self { workspace, home }
    }

    /// Sets the folder that `~` stands for.
    pub fn with_home(self, home: Option<PathBuf>) -> Self {
        Self { home, ..self }
    }

    /// Returns the root of the workspace, from which the effects' relative paths start.
    pub fn root(&self) -> &Path {
        self.workspace.root()
    }

    /// Returns the workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Returns the folder that a call runs in, as rules see it: relative to the workspace's root, or absolute outside of it. Put it in
    /// the call's argument `cwd`, where the policy looks for it.
    ///
    /// # Errors
    /// If the folder cannot be determined.
    pub fn folder(&self, cwd: Option<&str>) -> Result<String, ToolError> {
        let folder = places::start(self, cwd);
        folder.ok_or_else(|| {
            let cwd: String = cwd.unwrap_or_default().chars().take(200).collect();
            ToolError::invalid_arguments(format!(
                "cwd: {cwd:?} is not a folder that haft can determine"
            ))
            .with_advice("give an absolute path")
        })
    }

    /// Returns the effects of a command line that the program passes to a shell.
    ///
    /// # Errors
    /// If the line is empty.
    pub fn line(&self, command: &str, cwd: Option<&str>) -> Result<Vec<Permission>, ToolError> {
        let line = Commands::line(&RunCommandInput::from_line(command))?;
        let moved = self.moves(&line, command, cwd);
        let mut effects = match (moved, &line.parts[..]) {
            (Some(effects), _) => effects,
            (None, [part]) if line.writes.is_empty() && line.reads.is_empty() => {
                match part.argv.as_deref() {
                    Some(words) => self.words(line.clone(), words, cwd),
                    None => self.stated(line, cwd),
                }
            }
            _ => self.stated(line, cwd),
        };
        effects.extend(ambiguity(command));
        Ok(effects)
    }

    /// Returns the effects of a command that the program starts without a shell.
    ///
    /// # Errors
    /// If the words name no program.
    pub fn argv(&self, words: &[String], cwd: Option<&str>) -> Result<Vec<Permission>, ToolError> {
        let line = Commands::line(&RunCommandInput::of_argv(words))?;
        Ok(self.words(line, words, cwd))
    }

    /// Returns the effects of a command of these words. One that only passes a text to a shell (`bash -lc TEXT`, as some programs start
    /// all of their commands) has the effects of the text.
    fn words(&self, line: CommandLine, words: &[String], cwd: Option<&str>) -> Vec<Permission> {
        let Some(text) = shell_script(words).filter(|text| !text.trim().is_empty()) else {
            return self.stated(line, cwd);
        };
        // Only bash itself is known to read the text as the policy does.
        let is_bash = words.first().is_some_and(|shell| shell.ends_with("bash"));
        let differs = ambiguity(text).filter(|_| !is_bash);
        let shell = line.runs(false, false).map(|one| match one.risk {
            Risk::Critical => one,
            _ => one.at(Risk::Safe),
        });
        shell
            .chain(self.stated(CommandLine::new(text), cwd))
            .chain(differs)
            .collect()
    }

    /// Returns the effect of reading a file or listing a folder. A path that programs read in different ways has an unknown effect if
    /// it leads to different files.
    ///
    /// # Errors
    /// If the path is empty.
    pub fn read(&self, path: &str, cwd: Option<&str>) -> Result<Permission, ToolError> {
        let all = self.file(path, cwd, PathAccess::Reads)?;
        Ok(match <[Permission; 1]>::try_from(all) {
            Ok([one]) => one,
            Err(_) => unknown(path),
        })
    }

    /// Returns the effects of reading all files below a folder, as a search does.
    ///
    /// # Errors
    /// If the path is empty.
    pub fn search(&self, path: &str, cwd: Option<&str>) -> Result<Vec<Permission>, ToolError> {
        let named = self.file(path, cwd, PathAccess::Reads)?;
        let mut effects = self.effects(PathBases::at(places::start(self, cwd)));
        for path in spelling::readings(path) {
            effects.add(&PathUse::of_path(
                &path,
                PathAccess::ReadsBelow { follows: false },
            ));
        }
        Ok(effects.with(named))
    }

    /// Returns the effects of writing or removing a file. Writing a file with other names changes all of them, which is a separate effect.
    ///
    /// # Errors
    /// If the path is empty.
    pub fn change(
        &self,
        path: &str,
        cwd: Option<&str>,
        removes: bool,
    ) -> Result<Vec<Permission>, ToolError> {
        let all = self.file(
            path,
            cwd,
            if removes {
                PathAccess::Moves
            } else {
                PathAccess::Writes
            },
        )?;
        Ok(if all.is_empty() {
            vec![unknown(path)]
        } else {
            all
        })
    }

    /// Returns the effect of reading a URL. A `file:///…` URL reads that file.
    ///
    /// # Errors
    /// If it is not a URL.
    pub fn fetch(&self, url: &str) -> Result<Permission, ToolError> {
        let text = url.trim();
        let whole = if text.contains("://") || text.starts_with("data:") {
            text.to_owned()
        } else {
            // As users write it.
            format!("https://{text}")
        };
        let parsed = Url::parse(&whole).map_err(|error| {
            let shown: String = text.chars().take(200).collect();
            ToolError::invalid_arguments(format!("url: {shown:?} is not a URL: {error}"))
        })?;
        if parsed.scheme() == "file" {
            return match spelling::file_path(&whole) {
                Some(path) => self.read(&path, None),
                None => Ok(unknown(&whole)),
            };
        }
        Ok(match parsed.host_str() {
            Some(host) => Permission {
                effect: Effect::get(&whole, host.to_ascii_lowercase()),
                risk: Risk::High,
            },
            None => unknown(&whole),
        })
    }

    fn file(
        &self,
        path: &str,
        cwd: Option<&str>,
        how: PathAccess,
    ) -> Result<Vec<Permission>, ToolError> {
        if path.is_empty() {
            return Err(ToolError::invalid_arguments("path is empty"));
        }
        let mut effects = self.effects(PathBases::at(places::start(self, cwd)));
        for path in spelling::readings(path) {
            effects.add_file(&PathUse::of_path(&path, how));
        }
        Ok(effects.done())
    }

    fn effects(&self, bases: PathBases) -> CallEffects<'_> {
        CallEffects::new(self, bases)
    }

    /// Returns the effects of a line's parts and redirections.
    fn stated(&self, mut line: CommandLine, cwd: Option<&str>) -> Vec<Permission> {
        let uses = line.uses();
        let start = places::start(self, cwd);
        // A command in another folder uses files there, named or not.
        let elsewhere = match start.as_deref() {
            Some(folder) if folder.starts_with('/') => {
                Some(Permission::read(outside_claim(Path::new(folder))).at(Risk::High))
            }
            Some(_) => None,
            None => Some(unknown(cwd.unwrap_or_default())),
        };
        let mut bases = PathBases::at(start);
        for (part, uses) in line.parts.iter().zip(&uses) {
            bases.follow(self, part, uses);
        }
        let quiet = |part, uses: &CommandUses| !uses.git || self.git_is_quiet(&bases, part);
        for (part, uses) in line.parts.iter_mut().zip(&uses) {
            let understood = uses.understood && quiet(part.argv.as_deref(), uses);
            let least = if understood { Risk::Safe } else { Risk::High };
            // A critical part stays critical.
            part.risk = if part.risk == Risk::Critical {
                Risk::Critical
            } else {
                least
            };
        }
        let mut effects = self.effects(bases);
        let looped = line.looped();
        for one in uses.iter().flat_map(|uses| &uses.paths).chain(&looped) {
            effects.add(one);
        }
        for target in &line.writes {
            effects.add(&redirection_use(target, PathAccess::Writes));
        }
        for target in &line.reads {
            effects.add(&redirection_use(target, PathAccess::Reads));
        }
        let found = gets::with_methods(&line, effects.done());
        let runs = line.runs(false, false);
        runs.chain(elsewhere).chain(found).collect()
    }

    /// Returns the effects of a line that only changes the folder, step by step, each only if the one before succeeded (`cd a && cd ..`).
    /// `None` if it is another line, or leads out of the workspace or to where is not known.
    fn moves(
        &self,
        line: &CommandLine,
        command: &str,
        cwd: Option<&str>,
    ) -> Option<Vec<Permission>> {
        let steps = places::steps(line, command)?;
        let mut base = places::start(self, cwd).filter(|base| !base.starts_with('/'))?;
        let mut line = line.clone();
        let mut stated = Vec::new();
        for (part, step) in line.parts.iter_mut().zip(steps) {
            part.risk = Risk::Safe;
            let mut effects = self.effects(PathBases::at(Some(base.clone())));
            effects.add(&step);
            stated.extend(effects.done());
            base = places::inner_folder(self, &base, &step.path)?;
        }
        Some(line.runs(false, false).chain(stated).collect())
    }

    /// Returns true if git, in these folders and without the jail's settings, runs no program that the workspace names.
    fn git_is_quiet(&self, bases: &PathBases, argv: Option<&[String]>) -> bool {
        bases.are_root() && git::is_quiet_alone(&self.workspace, self.home.as_deref(), argv)
    }
}

/// Returns the text passed to a shell, if the command does nothing else.
fn shell_script(words: &[String]) -> Option<&str> {
    let [shell, option, text] = words else {
        return None;
    };
    let shell = shell.strip_prefix("/usr").unwrap_or(shell);
    let shell = shell.strip_prefix("/bin/").unwrap_or(shell);
    let plain = matches!(shell, "bash" | "sh" | "zsh") && matches!(&**option, "-c" | "-lc");
    plain.then_some(text)
}

/// Returns the use of a redirection's target.
fn redirection_use(target: &RedirectTarget, how: PathAccess) -> PathUse {
    // Some shells read a file name after `>!`.
    if (target.known && !target.path.starts_with('!')) || target.path.starts_with('~') {
        PathUse::of_path(&target.path, how)
    } else {
        PathUse::unknown(&target.path, how)
    }
}

/// Returns the effect of a line that the agent's shell may read differently: the policy judges it as bash reads it.
fn ambiguity(line: &str) -> Option<Permission> {
    (!reads_alike(line)).then(|| unknown(&format!("{line} (shells may read it differently)")))
}

/// Returns the permission for an unknown effect: the user is asked, whatever rules say about files.
fn unknown(value: &str) -> Permission {
    let effect = Effect::Other {
        kind: "using what is not known before it runs:".to_owned(),
        value: value.to_owned(),
    };
    Permission {
        effect,
        risk: Risk::High,
    }
}

/// Returns the claim of a path outside the workspace.
fn outside_claim(path: &Path) -> PathClaim {
    PathClaim::plain(path.to_string_lossy())
}

/// Returns the permission to connect to a host, whatever a command sends there.
fn connection(url: &str, host: &str) -> Permission {
    Permission {
        effect: Effect::connect(url, host.to_ascii_lowercase()),
        risk: Risk::High,
    }
}

/// Returns the permission for a URL in a command. A private address may be a server that the user develops, so the user is asked.
fn connect_permission(url: &str) -> Permission {
    let parsed = Url::parse(url).ok();
    let host = parsed.as_ref().and_then(Url::host_str);
    match host {
        Some(host) if check_host(host).is_ok() => connection(url, host),
        _ => unknown(url),
    }
}
