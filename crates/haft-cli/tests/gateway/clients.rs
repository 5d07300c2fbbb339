//! The clients, each of which calls every server over one of its transports.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::scene::{HAFT, Scene, Server, need};

/// A client: its name in tables, its program, and the script that it runs; both below `HAFT_NEEDS` if they are not ours.
pub(super) struct Client {
    pub(super) name: &'static str,
    program: &'static str,
    script: &'static str,
}

/// The command line of the inspector, one process per call.
const INSPECTOR: &str = "node/node_modules/@modelcontextprotocol/inspector-cli/build/index.js";

const SDK: &str = "node/node_modules/@modelcontextprotocol/sdk";

pub(super) const CLIENTS: [Client; 5] = [
    Client {
        name: "Python `mcp` 2.3",
        program: "mcp2/bin/python",
        script: "python_calls.py",
    },
    Client {
        name: "Python `mcp` 1.30",
        program: "mcp1/bin/python",
        script: "python_calls.py",
    },
    Client {
        name: "fastmcp 4.2",
        program: "fastmcp/bin/python",
        script: "python_calls.py",
    },
    Client {
        name: "TypeScript SDK 1.32",
        program: SDK,
        script: "typescript_calls.mjs",
    },
    Client {
        name: "inspector 0.17",
        program: INSPECTOR,
        script: "",
    },
];

impl Client {
    pub(super) fn is_installed(&self) -> bool {
        need(self.program).is_some()
    }

    /// Makes all calls, to the given server, or to a `haft serve --stdio` of its own.
    pub(super) fn uses_every_server(&self, scene: &Scene, server: Option<&Server>) {
        let transport = server.map_or("stdio", |_| "http");
        let calls = scene.calls(&format!("{} {transport}", self.name));
        if self.script.is_empty() {
            let inspector = need(self.program).unwrap();
            for call in &calls {
                inspect(&inspector, scene, server, call);
            }
            return;
        }
        let mut command = self.command(scene);
        match server {
            Some(server) => command.args(["http", &server.url, &server.token]),
            None => command.args(["stdio", HAFT, "serve", "--stdio"]),
        };
        let text = Value::from(calls.clone()).to_string();
        let output = command.env("HAFT_CALLS", text).output().unwrap();
        let seen = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let name = self.name;
        assert!(
            output.status.success() && seen.lines().count() == calls.len(),
            "{name} over {transport}\n{seen}\n{errors}"
        );
    }

    /// Returns its program with its script.
    fn command(&self, scene: &Scene) -> Command {
        let program = match self.program {
            SDK => PathBuf::from("node"),
            python => need(python).unwrap(),
        };
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../haft-mcp/tests/clients");
        let mut command = scene.command(&program);
        command.arg(scripts.join(self.script));
        if let Some(needs) = std::env::var_os("HAFT_NEEDS") {
            command.env("HAFT_NODE", Path::new(&needs).join("node"));
        }
        command
    }
}

/// Makes one call with the inspector's command line.
fn inspect(inspector: &Path, scene: &Scene, server: Option<&Server>, call: &Value) {
    let (tool, text) = (call[0].as_str().unwrap(), call[2].as_str().unwrap());
    let mut command = scene.command(Path::new("node"));
    command.arg(inspector);
    // The address or program precedes its options; the program's own arguments follow `--`.
    command.arg(server.map_or(HAFT, |server| &server.url));
    command.args(["--method", "tools/call", "--tool-name", tool]);
    for (name, value) in call[1].as_object().unwrap() {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        command.args(["--tool-arg", &format!("{name}={value}")]);
    }
    match server {
        Some(server) => {
            let token = format!("Authorization: Bearer {}", server.token);
            command.args(["--header", &token])
        }
        None => command.args(["--", "serve", "--stdio"]),
    };
    let output = command.output().unwrap();
    let seen = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && seen.contains(text),
        "the inspector, {tool}: {seen}{errors}"
    );
}
