//! haft as users have it: a server process with a home of its own, and MCP sessions with it.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::http::{Reply, ask, header};

/// Where haft, its home and the workspace are.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) program: PathBuf,
    pub(crate) folder: PathBuf,
}

impl Place {
    /// Returns the workspace.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// Returns a command of haft's.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let home = self.folder.join("home");
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .current_dir(self.work())
            .env("HOME", &home)
            .env("HAFT_HOME", home.join("state"))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env("CI", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Writes the user's settings.
    pub(crate) fn set(&self, text: &str) -> io::Result<()> {
        let folder = self.folder.join("home/.config/haft");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("config.toml"), text)
    }
}

/// A running server.
pub(crate) struct Haft {
    child: Child,
    address: String,
    token: String,
    operator: String,
}

impl Haft {
    /// Starts it and waits until it listens.
    pub(crate) fn start(place: &Place) -> io::Result<Self> {
        let mut command = place.command(&["serve", "--http", "127.0.0.1:0", "--json"]);
        let log = fs::File::create(place.folder.join("haft.log"))?;
        let mut child = command.stderr(log).spawn()?;
        let mut line = String::new();
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        BufReader::new(output).read_line(&mut line)?;
        let ready: Value = serde_json::from_str(&line).map_err(|_| {
            let said = fs::read_to_string(place.folder.join("haft.log")).unwrap_or_default();
            io::Error::other(format!("haft does not start: {line}{said}"))
        })?;
        let read = |name: &str| {
            let path = Path::new(ready[name].as_str().unwrap_or_default());
            fs::read_to_string(path).map(|text| text.trim().to_owned())
        };
        Ok(Self {
            address: ready["address"].as_str().unwrap_or_default().to_owned(),
            token: read("token_file")?,
            operator: read("operator_token_file")?,
            child,
        })
    }

    /// Asks haft's API as its operator.
    pub(crate) fn operator(&self) -> Operator {
        Operator {
            address: self.address.clone(),
            token: self.operator.clone(),
        }
    }
}

impl Drop for Haft {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The person who decides, as haft's API knows it.
#[derive(Debug, Clone)]
pub(crate) struct Operator {
    address: String,
    token: String,
}

impl Operator {
    /// Sends a request and returns the document.
    pub(crate) fn ask(&self, line: &str, body: &str) -> io::Result<Value> {
        let headers = format!("Authorization: Bearer {}\r\n", self.token);
        let reply = ask(&self.address, line, &headers, body)?;
        Ok(serde_json::from_str(&reply.body)?)
    }

    /// Accepts all memories that wait for it.
    pub(crate) fn accept_memories(&self) -> io::Result<()> {
        let all = self.ask("GET /api/v1/memory?state=candidate", "")?;
        let all = all
            .as_array()
            .or_else(|| all["memories"].as_array())
            .cloned();
        for memory in all.unwrap_or_default() {
            let id = memory["id"].as_str().unwrap_or_default();
            self.ask(&format!("POST /api/v1/memory/{id}/accept"), "{}")?;
        }
        Ok(())
    }
}

/// An MCP session.
pub(crate) struct Session {
    address: String,
    headers: String,
    calls: usize,
}

impl Session {
    /// Connects as a client of this name.
    pub(crate) fn connect(haft: &Haft, client: &str) -> io::Result<Self> {
        let mut session = Self {
            address: haft.address.clone(),
            headers: format!(
                "Authorization: Bearer {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
                haft.token
            ),
            calls: 0,
        };
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": client, "version": "1"},
        }});
        let reply = session.send(&hello)?;
        let id = header(&reply.head, "mcp-session-id").unwrap_or_default();
        session.headers += &format!("Mcp-Session-Id: {id}\r\n");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        session.send(&ready)?;
        Ok(session)
    }

    fn send(&self, message: &Value) -> io::Result<Reply> {
        ask(
            &self.address,
            "POST /mcp",
            &self.headers,
            &message.to_string(),
        )
    }

    /// Makes a call; returns whether it succeeded, and what the model reads of it.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> io::Result<(bool, String)> {
        self.calls += 1;
        let id = self.calls;
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        let reply = self.send(&call)?;
        let lines = reply.body.lines();
        let messages = lines.map(|line| line.strip_prefix("data:").unwrap_or(line));
        let answer = messages
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find(|message| message["id"] == id)
            .ok_or_else(|| {
                io::Error::other(format!("no answer: {} {}", reply.status, reply.body))
            })?;
        let result = &answer["result"];
        let is_good =
            result["isError"] == false || answer["error"].is_null() && result["isError"].is_null();
        let blocks = result["content"].as_array().into_iter().flatten();
        let mut text: String = blocks
            .filter_map(|block| block["text"].as_str())
            .fold(String::new(), |all, one| all + one + "\n");
        if answer["error"].is_object() {
            text += &answer["error"].to_string();
        }
        Ok((is_good, text))
    }
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> io::Result<()> {
    let mut child = command.spawn()?;
    let mut said = String::new();
    if let Some(mut output) = child.stderr.take() {
        output.read_to_string(&mut said)?;
    }
    if child.wait()?.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?} failed: {said}")))
}
