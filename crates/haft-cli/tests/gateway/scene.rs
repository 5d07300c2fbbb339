//! A workspace with every server behind haft: seven in the jail, four at addresses, all of them pinned.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{fs, thread};

use serde_json::{Value, json};

use crate::addressed::Addressed;

pub(super) const HAFT: &str = env!("CARGO_BIN_EXE_haft");

/// A server that is a process: its program below `HAFT_NEEDS`, its argument, additional settings, and a call of one of its tools with
/// a text in its result. `WS` is replaced by the workspace, `PAGE` by the address of a page, `WHO` by the client.
struct Row {
    name: &'static str,
    program: &'static str,
    argument: &'static str,
    more: &'static str,
    tool: &'static str,
    arguments: &'static str,
    text: &'static str,
}

const EVERYTHING: Row = Row {
    name: "everything",
    program: "servers-node/node_modules/.bin/mcp-server-everything",
    argument: "",
    more: "",
    tool: "echo",
    arguments: r#"{"message":"through haft"}"#,
    text: "through haft",
};

const SERVERS: [Row; 7] = [
    EVERYTHING,
    Row {
        name: "filesystem",
        program: "servers-node/node_modules/.bin/mcp-server-filesystem",
        argument: "WS",
        tool: "read_text_file",
        arguments: r#"{"path":"WS/hello.txt"}"#,
        text: "a needle here",
        ..EVERYTHING
    },
    Row {
        name: "memory",
        program: "servers-node/node_modules/.bin/mcp-server-memory",
        more: "env = { MEMORY_FILE_PATH = \"/tmp/memory.json\" }\n",
        tool: "create_entities",
        // An existing entity is not created again: each client has its own.
        arguments: r#"{"entities":[{"name":"WHO","entityType":"tool","observations":["a gateway"]}]}"#,
        text: "a gateway",
        ..EVERYTHING
    },
    Row {
        name: "sequential-thinking",
        program: "servers-node/node_modules/.bin/mcp-server-sequential-thinking",
        tool: "sequentialthinking",
        arguments: r#"{"thought":"one","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}"#,
        text: "thoughtNumber",
        ..EVERYTHING
    },
    Row {
        name: "git",
        program: "servers/bin/mcp-server-git",
        tool: "git_log",
        arguments: r#"{"repo_path":"WS"}"#,
        text: "the first one",
        ..EVERYTHING
    },
    Row {
        name: "time",
        program: "servers/bin/mcp-server-time",
        tool: "convert_time",
        arguments: r#"{"source_timezone":"UTC","time":"12:00","target_timezone":"Asia/Tokyo"}"#,
        text: "21:00",
        ..EVERYTHING
    },
    Row {
        name: "fetch",
        program: "servers/bin/mcp-server-fetch",
        argument: "--allow-private-ips",
        // Without it the jail has no network.
        more: "sandbox.network = \"host\"\n",
        tool: "fetch",
        arguments: r#"{"url":"PAGE"}"#,
        text: "a page of this machine",
    },
];

/// A server from the clients' view: how haft reaches it, and the call that each client makes of it.
pub(super) struct Target {
    pub(super) server: &'static str,
    /// `stdio`, `http` or `sse`.
    pub(super) by: &'static str,
    pub(super) tool: &'static str,
    pub(super) arguments: String,
    pub(super) text: &'static str,
}

/// Returns a program below `HAFT_NEEDS`, if installed.
pub(super) fn need(path: &str) -> Option<PathBuf> {
    let found = std::env::var_os("HAFT_NEEDS").map(|needs| Path::new(&needs).join(path));
    let found = found.filter(|program| program.exists());
    if found.is_none() {
        eprintln!("SKIPPED: {path} is not below HAFT_NEEDS; `make needs` installs it");
    }
    found
}

/// Returns the address of a page, served while this process runs.
fn page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A connection without a request does not matter.
            let _gone = answer(stream);
        }
    });
    format!("http://{address}/page")
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let wanted = lines.next().transpose()?.unwrap_or_default();
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    let (status, body) = if wanted.contains("/page") {
        ("200 OK", "a page of this machine")
    } else {
        ("404 Not Found", "")
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// Adds the settings of a server that is a process, if installed.
fn add(row: &Row, ws: &str, page: &str, settings: &mut String) -> Option<Target> {
    let program = need(row.program)?;
    let needs = std::env::var("HAFT_NEEDS").unwrap();
    // A Node script is behind a link with another name; a virtual environment's program is used where it is.
    let script = program
        .canonicalize()
        .ok()
        .filter(|real| real.extension().is_some_and(|ending| ending == "js"));
    let mut words: Vec<String> = match script {
        Some(script) => vec!["node".to_owned(), script.display().to_string()],
        None => vec![program.display().to_string()],
    };
    words.extend((!row.argument.is_empty()).then(|| row.argument.replace("WS", ws)));
    let (command, args) = words.split_first().unwrap();
    let read = [needs.as_str(), ws];
    let Row { name, more, .. } = row;
    let _ = writeln!(
        settings,
        "[mcp.servers.{name}]\ncommand = {command:?}\nargs = {args:?}\nsandbox.read = {read:?}\n{more}"
    );
    Some(Target {
        server: name,
        by: "stdio",
        tool: row.tool,
        arguments: row.arguments.replace("WS", ws).replace("PAGE", page),
        text: row.text,
    })
}

/// The workspace, with the installed servers.
pub(super) struct Scene {
    folder: tempfile::TempDir,
    pub(super) targets: Vec<Target>,
    /// They run until the scene is dropped.
    _addressed: Vec<Addressed>,
}

impl Scene {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let ws = root.join("ws");
        fs::create_dir_all(root.join("config/haft")).unwrap();
        fs::create_dir(&ws).unwrap();
        fs::write(ws.join("hello.txt"), "hello\na needle here\n").unwrap();
        let addressed = Addressed::all();
        let (mut settings, path, page) = (String::new(), ws.to_str().unwrap(), page());
        let jailed = SERVERS.iter();
        let jailed = jailed.filter_map(|row| add(row, path, &page, &mut settings));
        let mut targets: Vec<_> = jailed.collect();
        targets.extend(addressed.iter().map(|server| server.add_to(&mut settings)));
        let rules = targets.iter().map(|target| format!("{}.*", target.server));
        let rules: Vec<_> = rules.collect();
        let _ = writeln!(
            settings,
            "[policy]\nuntrusted_content = \"off\"\nallow = {rules:?}"
        );
        fs::write(root.join("config/haft/config.toml"), settings).unwrap();
        let scene = Self {
            folder,
            targets,
            _addressed: addressed,
        };
        scene.commit();
        scene.pin();
        scene
    }

    /// Creates the repository that the server `git` reports on.
    fn commit(&self) {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b.example"];
        for args in [
            &["init", "-q"][..],
            &["add", "."],
            &["commit", "-qm", "the first one"],
        ] {
            let mut git = self.command(Path::new("git"));
            assert!(git.args(who).args(args).status().unwrap().success());
        }
    }

    fn pin(&self) {
        for target in &self.targets {
            self.haft(&["mcp", "pin", target.server, "--yes", "--json"]);
        }
        let listed = self.haft(&["mcp", "list", "--json"]);
        for target in &self.targets {
            let mut listed = listed.as_array().unwrap().iter();
            let listed = listed.find(|listed| listed["name"] == target.server);
            assert_eq!(listed.unwrap()["transport"], target.by, "{listed:?}");
        }
    }

    /// Returns the calls of a client: the tool's name, its arguments, and a text in the result.
    pub(super) fn calls(&self, who: &str) -> Vec<Value> {
        let calls = self.targets.iter().map(|target| {
            let arguments = target.arguments.replace("WHO", who);
            let arguments: Value = serde_json::from_str(&arguments).unwrap();
            json!([
                format!("{}.{}", target.server, target.tool),
                arguments,
                target.text
            ])
        });
        calls.collect()
    }

    /// Returns the command of a program in the scene's environment.
    pub(super) fn command(&self, program: &Path) -> Command {
        let root = self.folder.path();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", root)
            .env("HAFT_HOME", root.join("home"))
            .env("XDG_CONFIG_HOME", root.join("config"))
            // No server is left running in the background.
            .env("CI", "1")
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

/// `haft serve` over HTTP; killed when dropped.
pub(super) struct Server {
    child: Child,
    pub(super) url: String,
    pub(super) token: String,
}

impl Server {
    pub(super) fn start(scene: &Scene) -> Self {
        let mut command = scene.command(Path::new(HAFT));
        command.args(["serve", "--http", "127.0.0.1:0", "--json"]);
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
