//! A home folder with an agent's settings, a folder to work in, a hook that records its events, and a model that makes one call.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use haft_scripted::{Scenario, ScenarioServer};
use serde_json::Value;

pub(crate) const HAFT: &str = env!("CARGO_BIN_EXE_haft");

/// The text of a denial that the model reads.
pub(crate) const REASON: &str = "Bash(echo *)";

/// The rules' verdict on the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Deny,
    Allow,
    /// No rule matches: the user must be asked, by the agent if it can.
    Ask,
}

impl Answer {
    pub(crate) const ALL: [Self; 3] = [Self::Deny, Self::Allow, Self::Ask];
}

/// Returns a program below `HAFT_NEEDS`, if installed.
pub(crate) fn need(path: &str) -> Option<PathBuf> {
    let found = std::env::var_os("HAFT_NEEDS").map(|needs| Path::new(&needs).join(path));
    let found = found.filter(|program| program.exists());
    if found.is_none() {
        eprintln!(
            "SKIPPED: {path} is not below HAFT_NEEDS; `HAFT_AGENTS=1 make needs` installs it"
        );
    }
    found
}

pub(crate) struct Lab {
    root: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Lab {
    /// While haft installs itself, `PATH` leads to the built binary; while an agent runs, to a script that records each event first.
    pub(crate) fn new(answer: Answer) -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home", "work", "real", "hook", "seen"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        symlink(HAFT, root.path().join("real/haft")).unwrap();
        let hook = root.path().join("hook/haft");
        let seen = root.path().join("seen");
        fs::write(&hook, script(&seen)).unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let lab = Self { root, runtime };
        lab.write(".config/haft/config.toml", settings(answer));
        lab
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path("home").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    /// Returns the command of a program in the folder, without any of this machine's settings.
    pub(crate) fn command(&self, program: &Path, args: &[&str]) -> Command {
        self.put(&self.path("hook/haft"));
        self.command_with(program, args, "hook")
    }

    /// Puts another program at the full path by which agents' settings find haft.
    fn put(&self, program: &Path) {
        let place = self.path("real/haft");
        fs::remove_file(&place).unwrap();
        symlink(program, &place).unwrap();
    }

    /// Returns the command of a program beside the built binary, without a record of events. Unlike [`haft`](Self::haft), it may be
    /// started while an agent runs.
    pub(crate) fn plain_command(&self, program: &Path, args: &[&str]) -> Command {
        self.command_with(program, args, "real")
    }

    /// Runs the built binary while an agent runs.
    pub(crate) fn plain_haft(&self, args: &[&str]) -> Output {
        ended(self.plain_command(Path::new(HAFT), args))
    }

    fn command_with(&self, program: &Path, args: &[&str], bin: &str) -> Command {
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", self.path(bin).display());
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path("home"))
            .env("CI", "1")
            .env("NO_COLOR", "1")
            // Copilot unpacks itself into its cache, 235 MB: once is enough.
            .env(
                "XDG_CACHE_HOME",
                std::env::temp_dir().join("haft-agents-cache"),
            )
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the built binary, to which `PATH` leads.
    pub(crate) fn haft(&self, args: &[&str]) -> Output {
        self.put(Path::new(HAFT));
        ended(self.command_with(Path::new(HAFT), args, "real"))
    }

    /// Runs it with an agent's program on `PATH`.
    pub(crate) fn haft_beside(&self, program: &Path, args: &[&str]) -> Output {
        self.put(Path::new(HAFT));
        let mut command = self.command_with(Path::new(HAFT), args, "real");
        let path = format!(
            "{}:{}:{}",
            self.path("real").display(),
            program.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        command.env("PATH", path);
        ended(command)
    }

    /// Starts a model that makes one call and ends when it has its result.
    pub(crate) fn model(&self, tool: &str, arguments: &str) -> ScenarioServer {
        let text = format!(
            "title = \"One call\"\nend = \"all done\"\nasides = []\n\n[[turns]]\nsay = [{{ call = {{ tool = \"{tool}\", id = \"one\", arguments = {arguments} }} }}]\n\n[[turns]]\nsay = [{{ text = \"all done\" }}]\n"
        );
        self.serve(Scenario::from_toml(&text).unwrap())
    }

    /// Starts a model that follows a scenario.
    pub(crate) fn serve(&self, scenario: Scenario) -> ScenarioServer {
        let started = haft_scripted::serve(scenario);
        self.runtime.block_on(started).unwrap()
    }

    /// Returns the runs that haft recorded.
    pub(crate) fn runs(&self) -> Vec<Value> {
        let listed = self.haft(&["runs", "list", "--json"]);
        serde_json::from_slice(&listed.stdout).unwrap()
    }

    /// Returns the events that the hook received.
    pub(crate) fn events(&self) -> Vec<String> {
        let files = fs::read_dir(self.path("seen")).unwrap();
        files
            .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
            .collect()
    }

    /// Returns whether the agent's tool ran.
    pub(crate) fn made(&self) -> bool {
        self.path("work/made.txt").exists()
    }
}

/// Returns a script that records the event and then runs haft's own hook.
fn script(seen: &Path) -> String {
    let seen = seen.display();
    format!("#!/bin/sh\ncat > '{seen}/'$$\nexec '{HAFT}' \"$@\" < '{seen}/'$$\n")
}

/// Returns haft's settings for a verdict on the call. No server is left running in the background.
fn settings(answer: Answer) -> &'static str {
    match answer {
        Answer::Deny => {
            "console.start = \"never\"\n[hook]\nwrap = \"none\"\n[policy]\ndeny = [\"Bash(echo *)\"]\n"
        }
        Answer::Allow => {
            "console.start = \"never\"\n[hook]\nwrap = \"none\"\n[policy]\nprofile = \"trusted\"\nallow = [\"Bash(echo *)\", \"Edit(/**)\"]\n"
        }
        // The agents run without a user, so nothing is answered, and a hook that asks in haft's inbox must not wait long.
        Answer::Ask => {
            "console.start = \"never\"\n[hook]\nwrap = \"none\"\nask = \"agent\"\nwait_s = 1\n"
        }
    }
}

/// Runs a command to its end.
pub(crate) fn ended(mut command: Command) -> Output {
    command.spawn().unwrap().wait_with_output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
