//! Runs the built `haft` in folders of its own, without any of this machine's settings.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A workspace, a home and a user's settings folder that no other test uses.
pub(crate) struct Lab {
    root: TempDir,
    /// Variables in addition to the usual ones.
    more: Vec<(&'static str, OsString)>,
}

/// The result of one run of the binary.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["work", "home", "config"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        let more = Vec::new();
        Self { root, more }
    }

    /// Sets a variable for every command of this lab.
    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.more.push((name, value.into()));
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work").canonicalize().unwrap()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home").canonicalize().unwrap()
    }

    /// Writes a file of the workspace.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        write(&self.work().join(name), text)
    }

    /// Writes the user's settings.
    pub(crate) fn user_settings(&self, text: &str) -> PathBuf {
        write(&self.root.path().join("config/haft/config.toml"), text)
    }

    /// Creates a program in a folder of its own and returns the folder; the script finds its log file as `$NOTE`.
    pub(crate) fn program_folder(&self, name: &str, script: &str) -> PathBuf {
        let folder = self.root.path().canonicalize().unwrap().join("bin");
        let note = self.note();
        let text = format!("#!/bin/sh\nNOTE='{}'\n{script}\n", note.display());
        let file = write(&folder.join(name), &text);
        std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        folder
    }

    /// Returns the file in which programs of this lab record their arguments.
    pub(crate) fn note(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("note")
    }

    /// Returns the command, ready to be changed or started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_haft"), args)
    }

    /// Returns the command with a limit of open files.
    pub(crate) fn limited(&self, args: &[&str], files: usize) -> Command {
        let script = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        let mut all = vec!["-c", &script, env!("CARGO_BIN_EXE_haft")];
        all.extend(args);
        self.program("sh", &all)
    }

    /// Returns a program in the folder, with the environment of the binary's runs.
    #[expect(
        clippy::disallowed_methods,
        reason = "the test starts the binary under test"
    )]
    pub(crate) fn program(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.path())
            .env("HAFT_HOME", self.home())
            .env("XDG_CONFIG_HOME", self.root.path().join("config"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if args.contains(&"serve") {
            // No server is left running in the background by a test about something else.
            command.env("CI", "1");
        }
        command.envs(self.more.iter().cloned());
        command
    }

    /// Runs it to its end with nothing on stdin.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ended(self.command(args).spawn().unwrap())
    }

    /// Runs it to its end with this on stdin.
    pub(crate) fn run_with(&self, args: &[&str], stdin: &str) -> Ran {
        let mut child = self.command(args).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // A command that fails early does not read its stdin.
        let _ = pipe.write_all(stdin.as_bytes());
        drop(pipe);
        ended(child)
    }
}

/// Waits for a child and returns its result.
pub(crate) fn ended(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ran {
    /// Returns the JSON document on stdout; there must be nothing else.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}\nstdout: {}\nstderr: {}", self.stdout, self.stderr))
    }
}

fn write(path: &Path, text: &str) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    path.to_owned()
}
