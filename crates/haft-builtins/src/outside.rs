//! `Outside`: what the tools of another program do, stated for the policy. Nothing confines them.
//!
//! In a jail a command sees the workspace and nothing of the user's, so its words say little of the harm that it can do. Here they must
//! say all of it. What leads out of the workspace, or cannot be known, is an effect of its own that a person is asked about; and a
//! command runs unasked only where its program and all of its options are known ([`CommandLine::uses`]), or a rule names it.

use std::path::{Path, PathBuf};

use haft::error::ToolError;
use haft::permission::{Effect, PathClaim, Permission};
use haft::policy::address::check_host;
use haft::policy::{CommandLine, How, Target, Use, Uses};
use haft::spec::Risk;
use haft::workspace::Workspace;
use url::Url;

use crate::command::{Commands, RunCommandInput, git};

mod below;
mod effects;
mod pattern;
mod places;
mod spot;

use effects::Effects;
use places::Bases;

/// What the tools of another program do, stated for the policy: nothing confines them.
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
    /// Over this workspace; `~` is the home folder of the user that this process runs as.
    pub fn new(workspace: Workspace) -> Self {
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        Self { workspace, home }
    }

    /// The same, for which `~` is another folder.
    pub fn with_home(self, home: Option<PathBuf>) -> Self {
        Self { home, ..self }
    }

    /// The folder that a call runs in, as rules see it: relative to the workspace's root, absolute elsewhere. It belongs into the call's
    /// argument `cwd`, where the policy looks for it.
    ///
    /// # Errors
    /// It cannot be known where that is.
    pub fn folder(&self, cwd: Option<&str>) -> Result<String, ToolError> {
        let folder = places::start(self, cwd);
        folder.ok_or_else(|| {
            let cwd: String = cwd.unwrap_or_default().chars().take(200).collect();
            ToolError::invalid_arguments(format!("cwd: {cwd:?} is no folder that can be known"))
                .with_advice("give an absolute path")
        })
    }

    /// What a command line does that the program hands to a shell.
    ///
    /// # Errors
    /// The line is empty.
    pub fn line(&self, command: &str, cwd: Option<&str>) -> Result<Vec<Permission>, ToolError> {
        let line = Commands::line(&RunCommandInput::of_line(command))?;
        Ok(match &line.parts[..] {
            [part] if line.writes.is_empty() && line.reads.is_empty() => match part.argv.as_deref()
            {
                Some(words) => self.words(line.clone(), words, cwd),
                None => self.stated(line, cwd),
            },
            _ => self.stated(line, cwd),
        })
    }

    /// What a command does that the program starts without a shell.
    ///
    /// # Errors
    /// There is no program among the words.
    pub fn argv(&self, words: &[String], cwd: Option<&str>) -> Result<Vec<Permission>, ToolError> {
        let line = Commands::line(&RunCommandInput::of_argv(words))?;
        Ok(self.words(line, words, cwd))
    }

    /// A command of these words alone. One that only hands a text to a shell (`bash -lc TEXT`, as some programs start all of theirs)
    /// does what the text does.
    fn words(&self, line: CommandLine, words: &[String], cwd: Option<&str>) -> Vec<Permission> {
        let Some(text) = handed(words).filter(|text| !text.trim().is_empty()) else {
            return self.stated(line, cwd);
        };
        let shell = line.runs(false, false).map(|one| match one.risk {
            Risk::Critical => one,
            _ => one.at(Risk::Safe),
        });
        shell
            .chain(self.stated(CommandLine::new(text), cwd))
            .collect()
    }

    /// Reading a file, or listing a folder.
    ///
    /// # Errors
    /// The path is empty.
    pub fn read(&self, path: &str, cwd: Option<&str>) -> Result<Permission, ToolError> {
        let all = self.file(path, cwd, How::Reads)?;
        // Reading one path in one folder is one effect.
        Ok(all.into_iter().next().unwrap_or_else(|| unknown(path)))
    }

    /// Reading all files below a folder, as a search does.
    ///
    /// # Errors
    /// The path is empty.
    pub fn search(&self, path: &str, cwd: Option<&str>) -> Result<Vec<Permission>, ToolError> {
        let first = self.read(path, cwd)?;
        let mut effects = self.effects(Bases::at(places::start(self, cwd)));
        effects.add(&Use::of_path(path, How::ReadsBelow { follows: false }));
        Ok(effects.with(first))
    }

    /// Writing a file, or taking it away. A file that has other names is written under all of them, which is an effect of its own.
    ///
    /// # Errors
    /// The path is empty.
    pub fn change(
        &self,
        path: &str,
        cwd: Option<&str>,
        removes: bool,
    ) -> Result<Vec<Permission>, ToolError> {
        let all = self.file(path, cwd, if removes { How::Moves } else { How::Writes })?;
        Ok(if all.is_empty() {
            vec![unknown(path)]
        } else {
            all
        })
    }

    /// Reading what a URL gives. One of a file (`file:///…`) reads that file.
    ///
    /// # Errors
    /// It is no URL.
    pub fn fetch(&self, url: &str) -> Result<Permission, ToolError> {
        let text = url.trim();
        let whole = if text.contains("://") || text.starts_with("data:") {
            text.to_owned()
        } else {
            // As a person writes it.
            format!("https://{text}")
        };
        let parsed = Url::parse(&whole).map_err(|error| {
            let shown: String = text.chars().take(200).collect();
            ToolError::invalid_arguments(format!("url: {shown:?} is no URL: {error}"))
        })?;
        if parsed.scheme() == "file" {
            return self.read(parsed.path(), None);
        }
        Ok(match parsed.host_str() {
            Some(host) => connection(&whole, host),
            None => unknown(&whole),
        })
    }

    fn file(&self, path: &str, cwd: Option<&str>, how: How) -> Result<Vec<Permission>, ToolError> {
        if path.is_empty() {
            return Err(ToolError::invalid_arguments("path is empty"));
        }
        let mut effects = self.effects(Bases::at(places::start(self, cwd)));
        effects.add_file(&Use::of_path(path, how));
        Ok(effects.done())
    }

    fn effects(&self, bases: Bases) -> Effects<'_> {
        Effects::new(self, bases)
    }

    /// What the parts of a line do, and its redirections.
    fn stated(&self, mut line: CommandLine, cwd: Option<&str>) -> Vec<Permission> {
        let uses = line.uses();
        let start = places::start(self, cwd);
        // A command in another folder uses what lies there, named or not.
        let elsewhere = match start.as_deref() {
            Some(folder) if folder.starts_with('/') => {
                Some(Permission::read(away(Path::new(folder))).at(Risk::High))
            }
            Some(_) => None,
            None => Some(unknown(cwd.unwrap_or_default())),
        };
        let mut bases = Bases::at(start);
        for (part, uses) in line.parts.iter().zip(&uses) {
            bases.follow(self, part, uses);
        }
        let quiet = |part, uses: &Uses| !uses.git || self.git_is_quiet(&bases, part);
        for (part, uses) in line.parts.iter_mut().zip(&uses) {
            let understood = uses.understood && quiet(part.argv.as_deref(), uses);
            let least = if understood { Risk::Safe } else { Risk::High };
            // What would be critical stays so.
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
            effects.add(&redirected(target, How::Writes));
        }
        for target in &line.reads {
            effects.add(&redirected(target, How::Reads));
        }
        let runs = line.runs(false, false);
        runs.chain(elsewhere).chain(effects.done()).collect()
    }

    /// Does git, started in these folders without the settings that a jail adds, run no program that the workspace names?
    fn git_is_quiet(&self, bases: &Bases, argv: Option<&[String]>) -> bool {
        bases.are_root() && git::is_quiet_alone(&self.workspace, argv)
    }
}

/// The text that is handed to a shell, where nothing but that is done.
fn handed(words: &[String]) -> Option<&str> {
    let [shell, option, text] = words else {
        return None;
    };
    let shell = shell.strip_prefix("/usr").unwrap_or(shell);
    let shell = shell.strip_prefix("/bin/").unwrap_or(shell);
    let plain = matches!(shell, "bash" | "sh" | "zsh") && matches!(&**option, "-c" | "-lc");
    plain.then_some(text)
}

/// The target of a redirection.
fn redirected(target: &Target, how: How) -> Use {
    // Behind `>!` some shells read the name of a file.
    if (target.known && !target.path.starts_with('!')) || target.path.starts_with('~') {
        Use::of_path(&target.path, how)
    } else {
        Use::unknown(&target.path, how)
    }
}

/// What cannot be told: a person is asked, whatever rules say of files.
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

/// A path that is not in the workspace.
fn away(path: &Path) -> PathClaim {
    PathClaim::plain(path.to_string_lossy())
}

/// Connecting to a host.
fn connection(url: &str, host: &str) -> Permission {
    Permission {
        effect: Effect::connect(url, host.to_ascii_lowercase()),
        risk: Risk::High,
    }
}

/// The same for a word of a command. What answers at a private address may be a server that the user develops: it is asked about.
fn connected(url: &str) -> Permission {
    let parsed = Url::parse(url).ok();
    let host = parsed.as_ref().and_then(Url::host_str);
    match host {
        Some(host) if check_host(host).is_ok() => connection(url, host),
        _ => unknown(url),
    }
}
