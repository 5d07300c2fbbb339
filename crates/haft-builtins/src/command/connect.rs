//! `connect`: the internal tool through which the policy judges, asks about and records a command's connection like every call.

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use haft::context::CallContext;
use haft::error::ToolError;
use haft::permission::{Condition, Effect, Permission};
use haft::policy::address::{check_host, socket_host, socket_path};
use haft::result::ToolResult;
use haft::spec::{CallPhrases, NameError, Risk, ToolSpec};
use haft::tool::{Depth, Intent, Tool, TypedTool};
use haft::untrusted::ConnectionContent;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::COMMANDS;
use crate::describe::{builtin, writes};
use crate::files::sha256;
use crate::proxy::LoginUse;
use crate::proxy::{ConnectionAccess, ConnectionRefusal, RequestLine};
use crate::web::http::OpenAddresses;
use crate::web::target::WebUrl;

/// The tool's name.
pub(crate) const CONNECT: &str = "connect";

/// Maximum length of the command line in a request, in bytes, and of the program's name, in characters.
pub(super) const MAX_COMMAND_LINE: usize = 2_000;

/// The call of a command to connect, and how the user sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandCall<'a> {
    pub(crate) context: &'a CallContext,
    pub(crate) line: &'a str,
    /// The line with the call's variables and folder: what the user approves.
    pub(crate) whole: &'a str,
    pub(crate) program: &'a str,
    /// Whether the call sets variables, which can make any program do something else.
    pub(crate) sets_variables: bool,
}

/// Returns the command for a request: a long one is truncated and gets the digest of the whole, so that its approval does not
/// cover another command with the same beginning.
pub(super) fn stated(command: &str) -> String {
    let end = command.floor_char_boundary(MAX_COMMAND_LINE);
    if end == command.len() {
        return command.to_owned();
    }
    let digest = sha256(command.as_bytes());
    format!("{}… (sha256 {digest})", &command[..end])
}

/// What `connect` takes. Only a command's own network writes it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConnectInput {
    /// The program that the command line starts, for the person who decides.
    #[serde(default)]
    pub(crate) program: String,
    /// The host that it connects to.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: u16,
    /// The private addresses that the host's name leads to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub(crate) leads_to: Vec<IpAddr>,
    /// The request, if those at this host are judged one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<RequestInput>,
    /// The other hosts of the same registry, which such a program asks, too: one decision covers all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) also: Vec<OtherHost>,
    /// The login that is used there, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) login: Option<LoginInput>,
    /// What the connections can carry: `anything`, `nothing_back` (to where the run read something), `nothing`. Guards look at it.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "String")]
    pub(crate) carries: ConnectionContent,
    /// The command line.
    #[serde(default)]
    pub(crate) command: String,
    /// The command itself, which may have ended by the time of the decision. No command has an empty name: it only explains a verdict.
    #[serde(default)]
    pub(crate) task: String,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A request of a command, without its headers and its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestInput {
    /// The method.
    pub(crate) method: String,
    /// `http` or `https`.
    pub(crate) scheme: String,
    /// The path and the query.
    pub(crate) target: String,
    /// The size of the content, in bytes; absent if the request does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<u64>,
}

impl From<&RequestLine> for RequestInput {
    fn from(line: &RequestLine) -> Self {
        Self {
            method: line.method.clone(),
            scheme: line.scheme.clone(),
            target: line.target.clone(),
            body: line.body,
        }
    }
}

impl From<&RequestInput> for RequestLine {
    fn from(input: &RequestInput) -> Self {
        Self {
            method: input.method.clone(),
            scheme: input.scheme.clone(),
            target: input.target.clone(),
            body: input.body,
        }
    }
}

/// A login of the host that a command uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoginInput {
    /// What it is for: `https:HOST`, `ssh:HOST`, `git`.
    pub(crate) purpose: String,
    /// Which credential or key it is.
    pub(crate) by: String,
}

impl From<&LoginUse> for LoginInput {
    fn from(login: &LoginUse) -> Self {
        Self {
            purpose: login.purpose.clone(),
            by: login.by.clone(),
        }
    }
}

impl LoginInput {
    /// Returns the permission to use it.
    pub(super) fn permission(&self) -> Permission {
        Permission {
            effect: Effect::Sign {
                purpose: self.purpose.clone(),
                by: self.by.clone(),
            },
            // Nobody can say what a login at an unknown server leads to.
            risk: if self.purpose.ends_with(":?") {
                Risk::Critical
            } else {
                Risk::High
            },
        }
    }
}

/// A host at the same port.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OtherHost {
    /// The host.
    pub(crate) host: String,
    /// The private addresses that its name leads to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub(crate) leads_to: Vec<IpAddr>,
}

impl ConnectInput {
    fn places(&self) -> impl Iterator<Item = ConnectionTarget> {
        let port = self.port;
        let first = ConnectionTarget {
            host: self.host.clone(),
            port,
            leads_to: self.leads_to.clone(),
            request: self.request.as_ref().map(RequestLine::from),
        };
        let other = move |other: &OtherHost| ConnectionTarget {
            leads_to: other.leads_to.clone(),
            ..ConnectionTarget::named(other.host.clone(), port)
        };
        std::iter::once(first).chain(self.also.iter().map(other))
    }
}

/// What `connect` gives.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ConnectData {
    /// `HOST:PORT`, with the private addresses that were agreed to.
    pub(crate) connected: Vec<String>,
    /// The login that was agreed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) login: Option<LoginInput>,
}

/// A host and port, with the private addresses that the host resolves to, if it was looked up, and the request there, if it is judged by
/// itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ConnectionTarget {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) leads_to: Vec<IpAddr>,
    pub(super) request: Option<RequestLine>,
}

/// Maximum length of a request's path in a refusal, in bytes.
const MAX_SHOWN_TARGET: usize = 120;

impl ConnectionTarget {
    /// Creates a place whose host was not looked up.
    pub(super) fn named(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
            leads_to: Vec::new(),
            request: None,
        }
    }

    /// Creates the place of a unix socket of the host.
    pub(super) fn of_socket(path: &str) -> Self {
        Self::named(socket_host(path), 0)
    }

    /// Returns true if the place is a unix socket.
    pub(super) fn is_socket(&self) -> bool {
        socket_path(&self.host).is_some()
    }

    /// Returns the place as rules and refusals write it.
    pub(super) fn written(&self) -> String {
        if self.is_socket() {
            return self.host.clone();
        }
        format!("{}:{}", self.host, self.port)
    }

    /// Returns the URL of the request, or the place if no request is known.
    fn url(&self) -> String {
        let Some(line) = &self.request else {
            return self.written();
        };
        let place = match (&*line.scheme, self.port) {
            ("http", 80) | ("https", 443) => self.host.clone(),
            _ => self.written(),
        };
        format!("{}://{place}{}", line.scheme, line.target)
    }

    /// Returns the place as refusals show it, with the request.
    pub(super) fn describe_use(&self) -> String {
        let Some(line) = &self.request else {
            return self.written();
        };
        let end = line.target.floor_char_boundary(MAX_SHOWN_TARGET);
        let more = if end < line.target.len() { "…" } else { "" };
        let (method, target) = (&line.method, &line.target[..end]);
        format!("{} for {method} {target}{more}", self.written())
    }

    /// Creates the place that a client's target names, with the private addresses that it resolves to.
    pub(super) fn of(target: &WebUrl, leads_to: Vec<IpAddr>) -> Self {
        Self {
            leads_to,
            ..Self::named(target.host().trim_end_matches('.'), target.port())
        }
    }

    /// Returns the place as a target for the client.
    pub(super) fn target(&self) -> Result<WebUrl, ConnectionRefusal> {
        let target = WebUrl::of_connection("https", &self.host, self.port);
        target.map_err(|why| ConnectionRefusal::Unclear(why.to_string()))
    }

    /// Returns true if the place is known to be private: by its name, its address, or the addresses of its name.
    pub(super) fn is_private(&self) -> bool {
        check_host(&self.host).is_err() || !self.leads_to.is_empty()
    }

    /// Returns the permission to connect to the place.
    pub(super) fn permission(&self) -> Permission {
        Permission {
            effect: Effect::Connect {
                url: self.url(),
                host: self.host.clone(),
                method: self.request.as_ref().map(|line| line.method.clone()),
                leads_to: self.leads_to.clone(),
            },
            risk: if self.is_private() {
                Risk::Critical
            } else {
                Risk::High
            },
        }
    }

    /// Returns the access that an approval of the place grants.
    pub(super) fn granted(&self) -> ConnectionAccess {
        if !self.is_private() {
            return ConnectionAccess::Public;
        }
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let literal = host.parse().ok().as_ref().map(IpAddr::to_canonical);
        let shown = self.leads_to.iter().copied().chain(literal).collect();
        ConnectionAccess::Private(OpenAddresses::These(shown))
    }
}

impl fmt::Display for ConnectionTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = &self.request {
            write!(f, "{} ", line.method)?;
        }
        f.write_str(&self.url())?;
        for (nth, address) in self.leads_to.iter().enumerate() {
            let before = if nth == 0 { " at " } else { ", " };
            write!(f, "{before}{address}")?;
        }
        Ok(())
    }
}

/// The commands that may ask about connections, by their names in requests. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenCommands(Arc<Mutex<HashSet<String>>>);

impl OpenCommands {
    pub(super) fn add(&self, task: &str) {
        self.0.lock().insert(task.to_owned());
    }

    pub(super) fn remove(&self, task: &str) {
        self.0.lock().remove(task);
    }

    pub(super) fn has(&self, task: &str) -> bool {
        self.0.lock().contains(task)
    }
}

/// The tool `connect`.
#[derive(Debug)]
pub(super) struct Connect(pub(super) OpenCommands);

impl Connect {
    pub(super) fn tool(open: OpenCommands) -> Result<Arc<dyn Tool>, NameError> {
        Self(open).into_tool()
    }
}

impl TypedTool for Connect {
    const NAME: &'static str = CONNECT;
    const DESCRIPTION: &'static str = "Let a running command connect to a host.";
    type Input = ConnectInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = writes(builtin::<ConnectData>(spec, COMMANDS), Risk::Safe);
        ToolSpec {
            concurrency_safe: true,
            phrases: CallPhrases {
                waits: "waits for the user's approval of a connection",
                undone: "the connection was not made",
                in_doubt: "the connection may have been made",
            },
            ..spec
        }
    }

    fn intent(&self, input: &Self::Input, depth: Depth) -> Result<Intent, ToolError> {
        let places = input.places().map(|place| place.permission());
        let places = places.chain(input.login.iter().map(LoginInput::permission));
        // A saved rule covers every command; a session grant covers only one, because of its condition.
        let stated = &[
            "program", "host", "port", "leads_to", "request", "also", "login", "carries",
            "command", "task",
        ];
        Ok(Intent::of(places.collect::<Vec<_>>())
            .with_stated(stated)
            .with_conditions(depth, || {
                let request = input.request.as_ref().map(RequestLine::from);
                let body = request.map(|line| Condition::new("body", line.body_size()));
                let command = Condition::new("command", input.command.clone());
                std::iter::once(command).chain(body).collect()
            }))
    }

    async fn run(&self, input: Self::Input, _: &CallContext) -> Result<ToolResult, ToolError> {
        let connected: Vec<String> = input.places().map(|place| place.to_string()).collect();
        let places = connected.join(", ");
        if self.0.has(&input.task) {
            let summary = format!("{} connects to {places}", input.program);
            let login = input.login;
            let data = ConnectData { connected, login };
            return Ok(ToolResult::data(&data)?.with_summary(summary));
        }
        let message = format!(
            "`{}` has ended: it made no connection to {places}, and this decision has no effect on it",
            input.program
        );
        Err(ToolError::conflict(message).with_advice("run the command again"))
    }
}
