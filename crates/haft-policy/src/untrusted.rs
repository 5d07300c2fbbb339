//! Untrusted content: what a run has read that strangers may have written.
//!
//! A page, an issue or a server's answer can tell a model what to do. That cannot be distinguished from what the user wants, so a run
//! that has read such content is permanently marked with its source: whatever the model says afterwards may follow from it. The
//! guard [`UntrustedContent`](crate::UntrustedContent) judges by these marks.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::address::port_of;
use crate::sign_purpose::place_of;
use haft_types::permission::{BUDGET_EFFECT, Effect, PROPOSED_RULE, Permission};
use haft_types::spec::ToolSpec;

mod links;
pub(crate) mod origin;

pub use links::{SeenLinks, link_hash, links_in};

/// Maximum number of sources that a run distinguishes; beyond that, it only notes that there were more.
const MAX_SOURCES: usize = 64;
/// The origin of what commands read, and the recipient of what they send, where they reach a network that is not judged by connection.
pub const COMMAND: &str = "command";
/// The origin of the workspace's files, where they are not trusted.
pub const WORKSPACE: &str = "workspace";
/// The argument by which haft's own tool for the connections of commands says what a connection can carry: a [`ConnectionContent`].
pub const CARRIES: &str = "carries";
/// Maximum length of a label, in bytes.
const MAX_LABEL: usize = 300;

/// What a connection of a command can carry to where it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionContent {
    /// Anything that the command has.
    #[default]
    Anything,
    /// Nothing new back to where the run read something.
    NothingBack,
    /// Nothing of the run's, wherever it leads: see [`content_of_fetch`](crate::content_of_fetch).
    Nothing,
}

impl ConnectionContent {
    /// Reads the value of the argument [`CARRIES`].
    pub(crate) fn of(arguments: &Value) -> Self {
        let said = arguments.get(CARRIES);
        said.and_then(|said| Self::deserialize(said).ok())
            .unwrap_or_default()
    }
}

/// The source of untrusted content: its origin, which destinations are compared with, and a label for the user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UntrustedSource {
    origin: String,
    label: String,
}

impl UntrustedSource {
    fn new(origin: String, label: impl Into<String>) -> Self {
        let mut label = label.into();
        label.truncate(label.floor_char_boundary(MAX_LABEL));
        Self { origin, label }
    }

    /// Parses a recorded source; a text without an origin is its own origin.
    pub fn recorded(text: &str) -> Self {
        let (origin, label) = text.split_once(": ").unwrap_or((text, text));
        Self::new(origin.to_owned(), label)
    }

    /// Returns the origin: `host NAME` (with `:PORT` unless it is 443), `server NAME`, `tool NAME` or `command`; `many` for all beyond the
    /// first 64.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the source for what a host answers to this tool.
    pub fn of_host(host: &str, url: &str, tool: &str) -> Self {
        Self::new(
            origin::of_host(host, port_of(url)),
            format!("{url} by {tool}"),
        )
    }

    /// Returns the source for what a command reads from one of the hosts that settings let all commands reach.
    pub fn of_command(host: &str) -> Self {
        Self::new(COMMAND.to_owned(), format!("{host} by a command"))
    }

    /// Whether a recipient, in the form of an origin, is the same party. A site is the same with and without `www.`, and the hosts of a
    /// package registry are one party; another port is not.
    pub fn is_of(&self, recipient: &str) -> bool {
        origin::is_same_party(&self.origin, recipient)
    }

    /// Whether it is a package registry that strangers cannot read: what commands get there is installed rather than read.
    pub fn is_registry(&self) -> bool {
        origin::registry_of(&self.origin).is_some()
    }

    /// Returns the text for the user: the URL and the tool that read it, the host that a command reached, or the tool's
    /// name.
    pub fn label(&self) -> &str {
        &self.label
    }
}

/// The form in a run's record: the origin, a colon and the label.
impl fmt::Display for UntrustedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.label)
    }
}

/// The sources of a run, shared by all of its calls.
#[derive(Debug, Default)]
pub struct UntrustedSources(Mutex<SourceList>);

#[derive(Debug, Default)]
struct SourceList {
    all: Arc<[UntrustedSource]>,
    /// How many of them a record holds.
    recorded: usize,
}

impl UntrustedSources {
    /// Returns all sources so far.
    pub fn all(&self) -> Arc<[UntrustedSource]> {
        Arc::clone(&self.0.lock().all)
    }

    /// Notes sources that the records of the run hold already.
    pub fn restore(&self, recorded: Vec<UntrustedSource>) {
        let others = self.all().len();
        self.note(recorded);
        let mut noted = self.0.lock();
        // What was noted before is in no record of the run.
        noted.recorded = if others == 0 { noted.all.len() } else { 0 };
    }

    /// Returns the sources for the record of a call: those noted since the call began, when there were `before`, and those that no
    /// record holds yet, such as what a background command read between two calls.
    pub fn take_for_record(&self, before: usize) -> Vec<UntrustedSource> {
        let mut noted = self.0.lock();
        let from = before.min(noted.recorded);
        noted.recorded = noted.all.len();
        noted.all.iter().skip(from).cloned().collect()
    }

    /// Notes sources that were read; they are never removed.
    pub fn note(&self, new: impl IntoIterator<Item = UntrustedSource>) {
        let mut new = new.into_iter().peekable();
        if new.peek().is_none() {
            return;
        }
        let mut noted = self.0.lock();
        let mut all = noted.all.to_vec();
        for source in new {
            if all.iter().any(|known| known.origin == source.origin) {
                continue;
            }
            if all.len() == MAX_SOURCES {
                all.push(UntrustedSource::new("many".to_owned(), "many other places"));
            }
            if all.len() > MAX_SOURCES {
                break;
            }
            all.push(source);
        }
        noted.all = all.into();
    }
}

/// Returns the sources of a call's result, if strangers may have written it.
pub fn sources(spec: &ToolSpec, permissions: &[Permission]) -> Vec<UntrustedSource> {
    let tool = spec.name.as_str();
    let mut sources = Vec::new();
    for permission in permissions {
        match &permission.effect {
            Effect::Connect { url, host, .. } => {
                sources.push(UntrustedSource::of_host(host, url, tool));
            }
            Effect::Other { kind, value } if kind == SERVER_EFFECT && spec.open_world => {
                sources.push(UntrustedSource::new(format!("server {value}"), tool));
            }
            _ => {}
        }
    }
    if sources.is_empty() && spec.open_world {
        sources.push(UntrustedSource::new(format!("tool {tool}"), tool));
    }
    sources
}

/// Whether a call reads what strangers may have written: whether it has [`sources`].
pub(crate) fn reads_untrusted(spec: &ToolSpec, permissions: &[Permission]) -> bool {
    let connects = |permission: &Permission| matches!(permission.effect, Effect::Connect { .. });
    spec.open_world || permissions.iter().any(connects)
}

/// The recipient that an effect itself could send data to, outside the workspace; effects of commands and files are judged differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recipient<'a> {
    /// The host of a connection, and its port.
    Host { name: &'a str, port: Option<u16> },
    /// A server behind haft.
    Server(&'a str),
    /// Whatever is behind a tool.
    Tool(&'a str),
}

/// The same form as the origin of a source, so that the two can be compared.
impl fmt::Display for Recipient<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match self {
            Self::Host { name, port } => return f.write_str(&origin::of_host(name, *port)),
            Self::Server(name) => ("server", name),
            Self::Tool(name) => ("tool", name),
        };
        write!(f, "{kind} {name}")
    }
}

/// Returns the recipient that an effect of a call could send data to; `None` if it sends nothing.
pub(crate) fn recipient<'a>(
    spec: &'a ToolSpec,
    permissions: &[Permission],
    effect: &'a Effect,
) -> Option<Recipient<'a>> {
    match effect {
        Effect::Connect { url, host, .. } => Some(Recipient::Host {
            name: host,
            port: port_of(url),
        }),
        // Whoever wrote what was read may want the login used.
        Effect::Sign { purpose, .. } => place_of(purpose).map(|(name, port)| Recipient::Host {
            name,
            port: Some(port),
        }),
        Effect::Other { kind, .. } if kind == PROPOSED_RULE || kind == BUDGET_EFFECT => None,
        Effect::Other { kind, value } if kind == SERVER_EFFECT => {
            spec.open_world.then_some(Recipient::Server(value))
        }
        Effect::Other { .. } => Some(Recipient::Tool(spec.name.as_str())),
        Effect::Call => {
            let stated = |permission: &Permission| {
                matches!(
                    permission.effect,
                    Effect::Connect { .. } | Effect::Other { .. }
                )
            };
            let unstated = spec.open_world && !permissions.iter().any(stated);
            unstated.then_some(Recipient::Tool(spec.name.as_str()))
        }
        _ => None,
    }
}

/// The kind of effect ([`Effect::Other`]) of calls to a server's tools; its value is the server's name.
pub const SERVER_EFFECT: &str = "server";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_read_back_as_it_was_recorded() {
        let source =
            UntrustedSource::new("host evil.example".to_owned(), "https://evil.example/a: b");
        assert_eq!(UntrustedSource::recorded(&source.to_string()), source);
    }

    #[test]
    fn sources_are_bounded_and_none_is_forgotten() {
        let sources = UntrustedSources::default();
        for n in 0..MAX_SOURCES + 10 {
            sources.note([UntrustedSource::new(format!("host {n}"), "x")]);
        }
        let all = sources.all();
        assert_eq!(all.len(), MAX_SOURCES + 1);
        assert_eq!(all.last().map(UntrustedSource::origin), Some("many"));
    }
}
