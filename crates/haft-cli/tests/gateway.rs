//! Real clients through haft to real servers: five clients, seven servers of both eras in the jail and two behind addresses, over
//! stdio, Streamable HTTP and HTTP+SSE.
//!
//! `make needs` installs both; what is not below `HAFT_NEEDS` is skipped and named.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests start real programs, say what they skip, and stop where they cannot go on"
)]

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

#[path = "gateway/addressed.rs"]
mod addressed;

use addressed::Addressed;

const HAFT: &str = env!("CARGO_BIN_EXE_haft");

/// A server: its name in settings, its program below `HAFT_NEEDS`, arguments, further settings, and a call of one of its tools
/// with what its result holds. `WS` stands for the workspace.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    (&'static str, &'static str, &'static str),
);

const SERVERS: [Row; 7] = [
    (
        "everything",
        "servers-node/node_modules/.bin/mcp-server-everything",
        "",
        "",
        ("echo", r#"{"message":"through haft"}"#, "through haft"),
    ),
    (
        "files",
        "servers-node/node_modules/.bin/mcp-server-filesystem",
        "WS",
        "",
        (
            "read_text_file",
            r#"{"path":"WS/hello.txt"}"#,
            "a needle here",
        ),
    ),
    (
        "memory",
        "servers-node/node_modules/.bin/mcp-server-memory",
        "",
        "env = { MEMORY_FILE_PATH = \"/tmp/memory.json\" }\n",
        (
            "create_entities",
            r#"{"entities":[{"name":"haft","entityType":"tool","observations":["a gateway"]}]}"#,
            "a gateway",
        ),
    ),
    (
        "thinking",
        "servers-node/node_modules/.bin/mcp-server-sequential-thinking",
        "",
        "",
        (
            "sequentialthinking",
            r#"{"thought":"one","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}"#,
            "thoughtNumber",
        ),
    ),
    (
        "git",
        "servers/bin/mcp-server-git",
        "",
        "",
        ("git_log", r#"{"repo_path":"WS"}"#, "the first one"),
    ),
    (
        "time",
        "servers/bin/mcp-server-time",
        "",
        "",
        (
            "convert_time",
            r#"{"source_timezone":"UTC","time":"12:00","target_timezone":"Asia/Tokyo"}"#,
            "21:00",
        ),
    ),
    (
        "fetch",
        "servers/bin/mcp-server-fetch",
        "",
        "",
        // The jail reaches nothing: the server says so.
        ("fetch", r#"{"url":"http://127.0.0.1:9/"}"#, "127.0.0.1:9"),
    ),
];

/// A program below `HAFT_NEEDS`, if it was installed.
fn need(path: &str) -> Option<PathBuf> {
    let found = std::env::var_os("HAFT_NEEDS").map(|needs| Path::new(&needs).join(path));
    let found = found.filter(|program| program.exists());
    if found.is_none() {
        eprintln!("SKIPPED: {path} is not below HAFT_NEEDS; `make needs` installs it");
    }
    found
}

/// A workspace with servers behind haft, all of them pinned.
struct Scene {
    folder: tempfile::TempDir,
    calls: Value,
    addressed: Vec<Addressed>,
}

/// The settings of the servers that are installed, and a call of each.
fn servers(ws: &Path, addressed: &[Addressed]) -> (String, Vec<Value>) {
    let ws = ws.to_str().unwrap();
    let (mut settings, mut calls, mut rules) = (String::new(), Vec::new(), Vec::new());
    for (name, program, argument, more, (tool, arguments, text)) in SERVERS {
        let Some(program) = need(program) else {
            continue;
        };
        let needs = std::env::var("HAFT_NEEDS").unwrap();
        // A script of Node's lies behind a link of another name; a virtual environment's program is where it stands.
        let script = program
            .canonicalize()
            .ok()
            .filter(|real| real.extension().is_some_and(|ending| ending == "js"));
        let mut words: Vec<String> = match script {
            Some(script) => vec!["node".to_owned(), script.display().to_string()],
            None => vec![program.display().to_string()],
        };
        words.extend((!argument.is_empty()).then(|| argument.replace("WS", ws)));
        let (command, args) = words.split_first().unwrap();
        let read = [needs.as_str(), ws];
        let _ = writeln!(
            settings,
            "[mcp.servers.{name}]\ncommand = {command:?}\nargs = {args:?}\nsandbox.read = {read:?}\n{more}"
        );
        rules.push(format!("{name}.*"));
        let arguments: Value = serde_json::from_str(&arguments.replace("WS", ws)).unwrap();
        calls.push(json!([format!("{name}.{tool}"), arguments, text]));
    }
    for server in addressed {
        calls.push(server.add_to(&mut settings));
        rules.push(format!("{}.*", server.name));
    }
    let _ = writeln!(settings, "[policy]\nallow = {rules:?}");
    (settings, calls)
}

impl Scene {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let ws = root.join("ws");
        fs::create_dir_all(root.join("config/haft")).unwrap();
        fs::create_dir(&ws).unwrap();
        fs::write(ws.join("hello.txt"), "hello\na needle here\n").unwrap();
        let addressed = Addressed::all();
        let (settings, calls) = servers(&ws, &addressed);
        fs::write(root.join("config/haft/config.toml"), settings).unwrap();
        let count = calls.len();
        let calls = Value::from(calls);
        let scene = Self {
            folder,
            calls,
            addressed,
        };
        let git = |args: &[&str]| {
            let who = ["-c", "user.name=a", "-c", "user.email=a@b.example"];
            let ran = scene
                .command(Path::new("git"))
                .args(who)
                .args(args)
                .output();
            assert!(ran.unwrap().status.success());
        };
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-qm", "the first one"]);
        let listed = scene.haft(&["mcp", "list", "--json"]);
        for server in listed.as_array().unwrap() {
            let name = server["name"].as_str().unwrap();
            scene.haft(&["mcp", "pin", name, "--yes", "--json"]);
        }
        let listed = scene.haft(&["mcp", "list", "--json"]);
        for server in &scene.addressed {
            let mut listed = listed.as_array().unwrap().iter();
            let listed = listed.find(|listed| listed["name"] == server.name).unwrap();
            assert_eq!(listed["transport"], server.transport, "{listed}");
        }
        (count > 0).then_some(scene)
    }

    /// A program in the scene's environment.
    fn command(&self, program: &Path) -> Command {
        let root = self.folder.path();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", root)
            .env("HAFT_HOME", root.join("home"))
            .env("XDG_CONFIG_HOME", root.join("config"))
            // No server is left in the background.
            .env("CI", "1")
            .env("HAFT_CALLS", self.calls.to_string())
            .current_dir(root.join("ws"));
        command
    }

    fn haft(&self, args: &[&str]) -> Value {
        let ran = self.command(Path::new(HAFT)).args(args).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{args:?}: {stderr}");
        serde_json::from_slice(&ran.stdout).unwrap()
    }
}

/// `haft serve` over HTTP; ended when dropped.
struct Server {
    child: Child,
    url: String,
    token: String,
}

impl Server {
    fn start(scene: &Scene, more: &[&str]) -> Self {
        let mut command = scene.command(Path::new(HAFT));
        command
            .args(["serve", "--http", "127.0.0.1:0", "--json"])
            .args(more);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut ready = String::new();
        let mut output = BufReader::new(child.stdout.as_mut().unwrap());
        output.read_line(&mut ready).unwrap();
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

/// A client that reads its calls from the environment makes them over both transports.
fn client(program: &str, script: &str) {
    let program = match program {
        "node" => {
            need("node/node_modules/@modelcontextprotocol/sdk").map(|_| PathBuf::from("node"))
        }
        python => need(python),
    };
    let (Some(program), Some(scene)) = (program, Scene::new()) else {
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../haft-mcp/tests/clients")
        .join(script);
    for http in [false, true] {
        let server = http.then(|| Server::start(&scene, &[]));
        let mut command = scene.command(&program);
        command.arg(&script);
        if let Some(needs) = std::env::var_os("HAFT_NEEDS") {
            command.env("HAFT_NODE", Path::new(&needs).join("node"));
        }
        match &server {
            Some(server) => command.args(["http", &server.url, &server.token]),
            None => command.args(["stdio", HAFT, "serve", "--stdio"]),
        };
        let output = command.output().unwrap();
        let seen = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "http={http}\n{seen}\n{errors}");
        let count = scene.calls.as_array().unwrap().len();
        assert_eq!(seen.lines().count(), count, "{seen}");
    }
}

#[test]
fn the_python_client_2_uses_every_server() {
    client("mcp2/bin/python", "python_calls.py");
}

#[test]
fn the_python_client_1_uses_every_server() {
    client("mcp1/bin/python", "python_calls.py");
}

#[test]
fn the_typescript_client_uses_every_server() {
    client("node", "typescript_calls.mjs");
}

#[test]
fn the_inspector_uses_every_server() {
    let cli = "node/node_modules/@modelcontextprotocol/inspector-cli/build/index.js";
    let (Some(inspector), Some(scene)) = (need(cli), Scene::new()) else {
        return;
    };
    // Its command line has no way to send a token.
    let server = Server::start(&scene, &["--no-auth"]);
    for call in scene.calls.as_array().unwrap() {
        let (tool, text) = (call[0].as_str().unwrap(), call[2].as_str().unwrap());
        let mut command = scene.command(Path::new("node"));
        command.arg(&inspector).arg(&server.url);
        command.args(["--method", "tools/call", "--tool-name", tool]);
        for (name, value) in call[1].as_object().unwrap() {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            command.args(["--tool-arg", &format!("{name}={value}")]);
        }
        let output = command.output().unwrap();
        let seen = String::from_utf8_lossy(&output.stdout);
        assert!(
            seen.contains(text),
            "{tool}: {seen}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
