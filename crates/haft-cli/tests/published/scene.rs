//! `Scene`: a workspace beside what must stay as it is, with haft's state and settings in folders of its own.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A user's machine: `work` is the workspace, `outside` belongs to the user alone.
pub(crate) struct Scene(TempDir);

impl Scene {
    /// `settings` are the user's, besides a profile under which much runs unasked and a user who approves nothing.
    pub(crate) fn new(settings: &str) -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        for folder in ["work", "outside", "home", "config/haft"] {
            std::fs::create_dir_all(scene.at(folder)).unwrap();
        }
        let base = "approval.mode = \"deny\"\nhook.wrap = \"jail\"\nhook.ask = \"haft\"\n";
        std::fs::write(
            scene.at("config/haft/config.toml"),
            format!("{base}{settings}"),
        )
        .unwrap();
        scene
    }

    /// Returns a path of the scene.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    /// Writes a file of the scene.
    pub(crate) fn file(&self, path: &str, text: &str) -> PathBuf {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns the text of a file, if there is one.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.at(path)).ok()
    }

    /// Returns the binary in the workspace, with no other environment than the scene's.
    pub(crate) fn haft(&self, args: &[&str]) -> Command {
        self.program(Path::new(env!("CARGO_BIN_EXE_haft")), args)
    }

    /// Returns a program likewise.
    #[expect(clippy::disallowed_methods, reason = "real programs are run")]
    pub(crate) fn program(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.at("home"))
            .env("HAFT_HOME", self.at("home/state"))
            .env("XDG_CONFIG_HOME", self.at("config"))
            // No server is left running in the background.
            .env("CI", "1")
            .current_dir(self.at("work"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs git in the workspace, as the user.
    pub(crate) fn git(&self, args: &[&str]) {
        let identity = ["-c", "user.name=u", "-c", "user.email=u@example.org"];
        let output = self
            .program(Path::new("git"), &[&identity, args].concat())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            output_text(&output)
        );
    }
}

/// Runs a command to its end with this on standard input.
pub(crate) fn run(mut command: Command, input: &str) -> Output {
    let mut child = command.spawn().unwrap();
    // A command that fails early does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// Returns what a command printed, for messages.
pub(crate) fn output_text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{} {out}{err}", output.status)
}

/// Returns whether this machine has a jail; says so if not.
pub(crate) fn has_jail() -> bool {
    let scene = Scene::new("");
    let output = run(scene.haft(&["doctor", "--json"]), "");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let strength = report["sandbox"]["strength"].as_str().unwrap().to_owned();
    let enough = matches!(&*strength, "full" | "no-proc");
    if !enough {
        eprintln!("SKIPPED: the jail's strength here is {strength}");
    }
    enough
}
