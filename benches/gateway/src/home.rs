//! A home of haft with servers behind it: added to the settings, pinned, and allowed by a rule.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mcp::processor;
use mcp::server::{CALLS, Server};
use tempfile::TempDir;

/// A home, and the folder in which haft starts.
pub(crate) struct Home {
    program: PathBuf,
    folder: TempDir,
    /// A rule for the tool of each server.
    rules: RefCell<Vec<String>>,
    trusted: bool,
}

impl Home {
    /// With `trusted`, haft believes the servers' annotations, so that a read-only call needs no record on the disk before it.
    pub(crate) fn new(program: &Path, trusted: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Self {
            program: program.to_owned(),
            folder,
            rules: RefCell::default(),
            trusted,
        };
        for part in ["home", "work", "config/haft"] {
            fs::create_dir_all(home.folder.path().join(part)).expect("a folder");
        }
        home
    }

    /// Adds a server at this URL.
    pub(crate) fn add_url(&self, name: &str, url: &str) {
        self.add(name, &format!("url = {url:?}\n"));
    }

    /// Adds this program as a server in the jail.
    pub(crate) fn add_command(&self, name: &str, program: &Path) {
        let program = program.canonicalize().expect("the program is there");
        let folder = program.parent().expect("in a folder");
        let mut text = String::new();
        let _in_memory = writeln!(text, "command = {program:?}\nargs = [\"stdio\"]");
        let _in_memory = writeln!(text, "sandbox.read = [{folder:?}]");
        self.add(name, &text);
    }

    fn add(&self, name: &str, text: &str) {
        let file = self.folder.path().join("config/haft/config.toml");
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .expect("the settings");
        writeln!(
            file,
            "[mcp.servers.{name}]\ntrusted = {}\n{text}",
            self.trusted
        )
        .expect("the settings");
        let mut pin = Command::new(&self.program);
        pin.args(["mcp", "pin", name, "--yes", "--home"]);
        pin.arg(self.folder.path().join("home"));
        pin.env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        pin.current_dir(self.folder.path().join("work"));
        let pinned = pin.stdin(Stdio::null()).output().expect("haft starts");
        assert!(pinned.status.success(), "haft mcp pin {name}: {pinned:?}");
        self.rules.borrow_mut().push(format!("{name}.echo"));
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = processor::server(&self.program);
        command.args(words).args(["-c", CALLS]);
        command.arg("-c");
        command.arg(format!("policy.allow={:?}", self.rules.borrow()));
        command.arg("--home").arg(self.folder.path().join("home"));
        command.current_dir(self.folder.path().join("work"));
        command.env("CI", "1");
        command.env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        command
    }

    /// Starts haft over HTTP, with policy and audit as shipped, but without tokens, since the peers have none either.
    pub(crate) fn serve(&self) -> Server {
        Server::start(self.command(&["serve", "--no-auth", "--http", "127.0.0.1:0"]))
    }

    /// Returns haft over stdio.
    pub(crate) fn stdio(&self) -> Command {
        self.command(&["serve", "--stdio"])
    }
}
