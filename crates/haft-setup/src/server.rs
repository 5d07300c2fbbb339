//! `NewServer`: an MCP server, with the text of its table in haft's settings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use toml::Value;

use crate::literal;

/// The table of haft's settings that contains the servers.
pub const SERVERS: &str = "mcp.servers";

/// How a new server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerTarget {
    /// As a process.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its variables.
        env: BTreeMap<String, String>,
        /// The folder that it starts in.
        cwd: Option<String>,
    },
    /// At an address that speaks Streamable HTTP.
    Address {
        /// The URL.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
    },
}

/// A server to add to the settings.
#[derive(Debug, Clone, PartialEq)]
pub struct NewServer {
    /// Its name; its tools are named `NAME.tool`.
    pub name: String,
    /// How it is reached.
    pub reach: ServerTarget,
    /// Whether its tools are offered once they are pinned.
    pub enabled: bool,
    /// Whether the hints of its tools are trusted.
    pub trusted: bool,
    /// How long it may take to start, in seconds.
    pub connect_timeout: Option<f64>,
    /// How long a call may take, in seconds.
    pub call_timeout: Option<f64>,
    /// Whether a jailed process has unrestricted network access.
    pub network: bool,
    /// Folders that a jailed process may read.
    pub read: Vec<String>,
    /// Folders that a jailed process may write to.
    pub write: Vec<String>,
}

impl NewServer {
    /// Returns a server with default settings.
    pub fn new(name: impl Into<String>, reach: ServerTarget) -> Self {
        Self {
            name: name.into(),
            reach,
            enabled: true,
            trusted: false,
            connect_timeout: None,
            call_timeout: None,
            network: false,
            read: Vec::new(),
            write: Vec::new(),
        }
    }

    /// Returns its settings: keys in its table, in order.
    fn pairs(&self) -> Vec<(&'static str, String)> {
        let text = |text: &String| Value::String(text.clone()).to_string();
        let list = |items: &[String]| {
            let items: Vec<String> = items.iter().map(text).collect();
            format!("[{}]", items.join(", "))
        };
        let mut pairs = Vec::new();
        let mut say = |key, value: Option<String>| pairs.extend(value.map(|value| (key, value)));
        let some = |items: &[String]| (!items.is_empty()).then(|| list(items));
        match &self.reach {
            ServerTarget::Command {
                program,
                args,
                env,
                cwd,
            } => {
                say("command", Some(text(program)));
                say("args", some(args));
                say("env", table(env));
                say("cwd", cwd.as_ref().map(text));
            }
            ServerTarget::Address { url, headers } => {
                say("url", Some(text(url)));
                say("headers", table(headers));
            }
        }
        say("enabled", (!self.enabled).then(|| "false".to_owned()));
        say("trusted", self.trusted.then(|| "true".to_owned()));
        let seconds = |seconds: f64| Value::Float(seconds).to_string();
        say("connect_timeout_s", self.connect_timeout.map(seconds));
        say("call_timeout_s", self.call_timeout.map(seconds));
        say(
            "sandbox.network",
            self.network.then(|| "\"host\"".to_owned()),
        );
        say("sandbox.read", some(&self.read));
        say("sandbox.write", some(&self.write));
        pairs
    }

    /// Returns its table as text for a settings file.
    pub fn text(&self) -> String {
        let mut out = format!("[{SERVERS}.{}]\n", self.name);
        for (key, value) in self.pairs() {
            // Writing to a `String` cannot fail.
            let _ = writeln!(out, "{key} = {value}");
        }
        out
    }

    /// Returns the table for the screen: a value that holds a secret is not shown.
    pub fn shown_text(&self) -> String {
        let mask = |pairs: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            let masked =
                |(name, value): (&String, &String)| (name.clone(), literal::masked(name, value));
            pairs.iter().map(masked).collect()
        };
        let reach = match &self.reach {
            ServerTarget::Command {
                program,
                args,
                env,
                cwd,
            } => {
                // `--token VALUE`: the word before names the value.
                let names = std::iter::once("").chain(args.iter().map(String::as_str));
                let each = args.iter().zip(names);
                let args = each.map(|(arg, name)| match arg.split_once('=') {
                    Some((flag, value)) if flag.starts_with('-') => {
                        format!("{flag}={}", literal::masked(flag, value))
                    }
                    _ if name.starts_with('-') => literal::masked(name, arg),
                    _ => literal::masked("", arg),
                });
                ServerTarget::Command {
                    program: program.clone(),
                    args: args.collect(),
                    env: mask(env),
                    cwd: cwd.clone(),
                }
            }
            ServerTarget::Address { url, headers } => ServerTarget::Address {
                url: literal::masked("", url),
                headers: mask(headers),
            },
        };
        let shown = Self {
            reach,
            ..self.clone()
        };
        shown.text()
    }

    /// Returns the same as command-line options (`-c`), to check whether they are valid.
    pub fn options(&self) -> Vec<String> {
        let pairs = self.pairs().into_iter();
        pairs
            .map(|(key, value)| format!("{SERVERS}.{}.{key}={value}", self.name))
            .collect()
    }
}

fn table(pairs: &BTreeMap<String, String>) -> Option<String> {
    let text = |text: &String| Value::String(text.clone()).to_string();
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let pair = |(name, value): (&String, &String)| {
        let is_bare = !name.is_empty() && name.bytes().all(plain);
        let name = if is_bare { name.clone() } else { text(name) };
        format!("{name} = {}", text(value))
    };
    let pairs: Vec<String> = pairs.iter().map(pair).collect();
    (!pairs.is_empty()).then(|| format!("{{ {} }}", pairs.join(", ")))
}
