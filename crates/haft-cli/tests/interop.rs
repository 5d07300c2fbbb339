//! Real clients against the real server: Python `mcp` 2.x in both modes, `mcp` 1.30, the npm inspector; over stdio and HTTP.
//!
//! `make needs` installs them below `HAFT_NEEDS`; without it each is skipped with a message.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests start real programs, say what they skip, and stop where they cannot go on"
)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

const HAFT: &str = env!("CARGO_BIN_EXE_haft");

/// Creates a workspace with the file that the clients look for.
fn scene() -> tempfile::TempDir {
    let scene = tempfile::tempdir().unwrap();
    fs::create_dir_all(scene.path().join("ws")).unwrap();
    fs::write(scene.path().join("ws/hello.txt"), "hello\na needle here\n").unwrap();
    scene
}

/// Returns a program below `HAFT_NEEDS`, if installed.
fn need(path: &str) -> Option<PathBuf> {
    let found = std::env::var_os("HAFT_NEEDS").map(|needs| Path::new(&needs).join(path));
    let found = found.filter(|program| program.exists());
    if found.is_none() {
        eprintln!("SKIPPED: {path} is not below HAFT_NEEDS; `make needs` installs it");
    }
    found
}

/// Returns the command of a program in the scene's environment.
fn command(scene: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", scene)
        .env("HAFT_HOME", scene.join("home"))
        .env("XDG_CONFIG_HOME", scene.join("config"))
        // No server is left running in the background.
        .env("CI", "1")
        .current_dir(scene.join("ws"));
    command
}

/// `haft serve` over HTTP with a profile; killed when dropped.
struct Server {
    child: Child,
    url: String,
    token: String,
}

impl Server {
    fn start(scene: &Path, profile: &str, more: &[&str]) -> Self {
        let mut command = command(scene, Path::new(HAFT));
        command
            .args([
                "serve",
                "--http",
                "127.0.0.1:0",
                "--json",
                "--profile",
                profile,
            ])
            .args(more);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut ready)
            .unwrap();
        let ready: Value = serde_json::from_str(&ready).unwrap();
        let token = fs::read_to_string(ready["token_file"].as_str().unwrap()).unwrap();
        Self {
            child,
            url: ready["mcp"].as_str().unwrap().to_owned(),
            token: token.trim().to_owned(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// With `read-only` the client's write is denied, with `trusted` it succeeds; everything else works with both.
const PROFILES: [(&str, &str); 2] = [("read-only", "denied"), ("trusted", "ok")];

fn python(needed: &str, script: &str) {
    let Some(python) = need(needed) else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../haft-mcp/tests/clients")
        .join(script);
    for (profile, write) in PROFILES {
        for http in [false, true] {
            let scene = scene();
            let server = http.then(|| Server::start(scene.path(), profile, &[]));
            let mut client = command(scene.path(), &python);
            client.arg(&script).env("HAFT_EXPECT_WRITE", write);
            match &server {
                Some(server) => client.args(["http", &server.url, &server.token]),
                None => client.args(["stdio", HAFT, "serve", "--stdio", "--profile", profile]),
            };
            let output = client.output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "{} http={http} {profile}\n{said}\n{errors}",
                script.display()
            );
            assert!(said.lines().count() >= 4, "{said}");
        }
    }
}

#[test]
fn the_python_client_2_lists_reads_greps_and_writes_as_policy_allows() {
    python("mcp2/bin/python", "python_mcp2.py");
}

#[test]
fn the_python_client_1_lists_reads_greps_and_writes_as_policy_allows() {
    python("mcp1/bin/python", "python_mcp1.py");
}

/// Tests clients that can ask their user: in the console, or with a form if the settings trust them.
fn person(needed: &str, eras: &[&str]) {
    let Some(python) = need(needed) else { return };
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../haft-mcp/tests/clients/python_elicit.py");
    let scene = scene();
    let trusted = ["-c", "mcp.trusted_clients=[\"trusted\"]"];
    let server = Server::start(scene.path(), "workspace", &trusted);
    let operator = fs::read_to_string(scene.path().join("home/operator-token")).unwrap();
    let api = server.url.replace("/mcp", "/api/v1");
    let output = command(scene.path(), &python)
        .arg(&script)
        .args([&api, &server.url, &server.token, operator.trim()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    for era in eras {
        for (name, there) in [
            ("approved", true),
            ("denied", false),
            ("form", true),
            ("no-form", false),
        ] {
            let file = scene.path().join(format!("ws/{name}-{era}.txt"));
            let text = fs::read_to_string(file).ok();
            let expect = there.then_some("by a person\n");
            assert_eq!(text.as_deref(), expect, "{name} {era}\n{said}");
        }
    }
}

#[test]
fn the_python_client_2_asks_its_person_in_both_eras() {
    person("mcp2/bin/python", &["2026-07-28", "legacy"]);
}

#[test]
fn the_python_client_1_asks_its_person() {
    person("mcp1/bin/python", &["1-30"]);
}

/// Calls one method with the inspector's command line.
fn inspect(scene: &Path, inspector: &Path, method: &[&str], target: &[&str]) -> Value {
    let mut client = command(scene, Path::new("node"));
    // The program or address precedes its options; additional options, and a program's own arguments after `--`, follow.
    let client = client.arg(inspector).arg(target[0]);
    let client = client.arg("--method").args(method).args(&target[1..]);
    let output = client.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {method:?}\n{said}\n{errors}"))
}

#[test]
fn the_inspector_lists_reads_greps_and_writes_as_policy_allows() {
    let cli = "node/node_modules/@modelcontextprotocol/inspector-cli/build/index.js";
    let Some(inspector) = need(cli) else { return };
    for (profile, write) in PROFILES {
        for http in [false, true] {
            let scene = scene();
            let server = http.then(|| Server::start(scene.path(), profile, &[]));
            let token = server.as_ref().map(|server| &*server.token);
            let token = format!("Authorization: Bearer {}", token.unwrap_or_default());
            let target = match &server {
                Some(server) => vec![server.url.as_str(), "--header", &token],
                None => vec![HAFT, "--", "serve", "--stdio", "--profile", profile],
            };
            let ask = |method: &[&str]| inspect(scene.path(), &inspector, method, &target);
            let call = |tool: &str, arguments: &[&str]| {
                let mut method = vec!["tools/call", "--tool-name", tool];
                method.extend(
                    arguments
                        .iter()
                        .flat_map(|argument| ["--tool-arg", argument]),
                );
                ask(&method)
            };
            let listed = ask(&["tools/list"]);
            assert!(listed["tools"].as_array().unwrap().len() >= 8, "{listed}");
            assert!(
                call("read_file", &["path=hello.txt"])
                    .to_string()
                    .contains("a needle here")
            );
            assert!(
                call("grep_files", &["pattern=needle"])
                    .to_string()
                    .contains("hello.txt")
            );
            let written = call("write_file", &["path=new.txt", "content=by the inspector"]);
            assert_eq!(
                written["isError"].as_bool().unwrap_or(false),
                write == "denied",
                "{written}"
            );
            assert_eq!(scene.path().join("ws/new.txt").exists(), write == "ok");
        }
    }
}
