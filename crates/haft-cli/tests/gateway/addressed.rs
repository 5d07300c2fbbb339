//! Servers at an address: over Streamable HTTP, and over the HTTP+SSE of 2024-11-05.

use std::fmt::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::scene::{Target, need};

/// A server to start.
struct Row {
    /// Its name in settings.
    name: &'static str,
    /// The transport by which it is reached.
    transport: &'static str,
    /// The program, below `HAFT_NEEDS` if it is not Node, and the file that it runs.
    program: &'static str,
    file: &'static str,
    /// The path of its address, and the word that selects the transport.
    path: &'static str,
    kind: &'static str,
}

const EVERYTHING: &str =
    "servers-node/node_modules/@modelcontextprotocol/server-everything/dist/index.js";

const EVERYTHING_HTTP: Row = Row {
    name: "everything-http",
    transport: "http",
    program: "node",
    file: EVERYTHING,
    path: "/mcp",
    kind: "streamableHttp",
};

const PYTHON_HTTP: Row = Row {
    name: "python-http",
    transport: "http",
    program: "mcp1/bin/python",
    file: "python_server.py",
    path: "/mcp",
    kind: "streamable-http",
};

const SERVERS: [Row; 4] = [
    EVERYTHING_HTTP,
    Row {
        name: "everything-sse",
        transport: "sse",
        path: "/sse",
        kind: "sse",
        ..EVERYTHING_HTTP
    },
    PYTHON_HTTP,
    Row {
        name: "python-sse",
        transport: "sse",
        path: "/sse",
        kind: "sse",
        ..PYTHON_HTTP
    },
];

/// A running server; killed when dropped.
pub(super) struct Addressed {
    child: Child,
    pub(super) name: &'static str,
    pub(super) transport: &'static str,
    url: String,
}

impl Drop for Addressed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Addressed {
    /// Starts the installed ones, and waits until each one answers.
    pub(super) fn all() -> Vec<Self> {
        SERVERS.iter().filter_map(Self::start).collect()
    }

    fn start(row: &Row) -> Option<Self> {
        let Row {
            name,
            transport,
            program,
            file,
            path,
            kind,
        } = row;
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../haft-mcp/tests/clients");
        let mut command = match *program {
            "node" => {
                let mut command = Command::new("node");
                command.arg(need(file)?);
                command
            }
            python => {
                let mut command = Command::new(need(python)?);
                command.arg(clients.join(file));
                command
            }
        };
        command
            .arg(kind)
            .arg(port.to_string())
            .env("PORT", port.to_string());
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Self {
            child: command.spawn().unwrap(),
            name,
            transport,
            url: format!("http://127.0.0.1:{port}{path}"),
        };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "{name} ended: {ended:?}");
            std::thread::yield_now();
        }
        Some(server)
    }

    /// Adds its settings, and returns a call of its tool.
    pub(super) fn add_to(&self, settings: &mut String) -> Target {
        let Self { name, url, .. } = self;
        let _ = writeln!(settings, "[mcp.servers.{name}]\nurl = {url:?}");
        Target {
            server: name,
            by: self.transport,
            tool: "echo",
            arguments: r#"{"message": "over the wire"}"#.to_owned(),
            text: "over the wire",
        }
    }
}
