//! Untrusted content: what a run has read that strangers may have written.
//!
//! A page, an issue, an answer of a server can tell a model what to do. Nothing can tell that apart from what the user wants, so a run
//! that has read such content is marked with where it came from, for good: what a model says after that may follow from it.
//! The guard [`UntrustedContent`](crate::policy::UntrustedContent) judges by it.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::permission::{BUDGET_EFFECT, Effect, PROPOSED_RULE, Permission};
use crate::spec::ToolSpec;

/// Most sources that a run keeps apart; of those beyond, only that there were more is kept.
const MOST: usize = 64;
/// Most bytes of a label.
const LABEL: usize = 300;

/// Where untrusted content came from: its origin, which is what a destination is compared with, and what a person is shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UntrustedSource {
    origin: String,
    label: String,
}

impl UntrustedSource {
    fn new(origin: String, label: impl Into<String>) -> Self {
        let mut label = label.into();
        label.truncate(label.floor_char_boundary(LABEL));
        Self { origin, label }
    }

    /// One as it was recorded; a text without an origin is its own.
    pub fn recorded(text: &str) -> Self {
        let (origin, label) = text.split_once(": ").unwrap_or((text, text));
        Self::new(origin.to_owned(), label)
    }

    /// `host NAME`, `server NAME` or `tool NAME`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The page's address, or the tool's name.
    pub fn label(&self) -> &str {
        &self.label
    }
}

/// As it stands in a run's record: the origin, a colon and the label.
impl fmt::Display for UntrustedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.label)
    }
}

/// The sources of a run, shared by all of its calls.
#[derive(Debug, Default)]
pub(crate) struct Sources(Mutex<Arc<[UntrustedSource]>>);

impl Sources {
    /// All of them.
    pub(crate) fn all(&self) -> Arc<[UntrustedSource]> {
        Arc::clone(&self.0.lock())
    }

    /// Notes what was read; none is ever taken back.
    pub(crate) fn note(&self, new: impl IntoIterator<Item = UntrustedSource>) {
        let mut new = new.into_iter().peekable();
        if new.peek().is_none() {
            return;
        }
        let mut sources = self.0.lock();
        let mut all = sources.to_vec();
        for source in new {
            if all.iter().any(|known| known.origin == source.origin) {
                continue;
            }
            if all.len() == MOST {
                all.push(UntrustedSource::new("many".to_owned(), "many other places"));
            }
            if all.len() > MOST {
                break;
            }
            all.push(source);
        }
        *sources = all.into();
    }
}

/// Where a call's result may come from, if strangers may have written it.
pub(crate) fn sources(spec: &ToolSpec, permissions: &[Permission]) -> Vec<UntrustedSource> {
    let tool = spec.name.as_str();
    let mut sources = Vec::new();
    for permission in permissions {
        match &permission.effect {
            Effect::Connect { url, host, .. } => {
                sources.push(UntrustedSource::new(
                    format!("host {host}"),
                    format!("{url} by {tool}"),
                ));
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

/// To whom an effect could carry something, out of the workspace and by itself: what a command or a file does is judged otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recipient<'a> {
    /// The host of a connection.
    Host(&'a str),
    /// A server behind haft.
    Server(&'a str),
    /// Whoever is behind a tool.
    Tool(&'a str),
}

/// As the origin of a source is written, so that both can be compared.
impl fmt::Display for Recipient<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match self {
            Self::Host(name) => ("host", name),
            Self::Server(name) => ("server", name),
            Self::Tool(name) => ("tool", name),
        };
        write!(f, "{kind} {name}")
    }
}

/// To whom an effect of a call could carry something; `None` where it sends nothing.
pub(crate) fn recipient<'a>(
    spec: &'a ToolSpec,
    permissions: &[Permission],
    effect: &'a Effect,
) -> Option<Recipient<'a>> {
    match effect {
        Effect::Connect { host, .. } => Some(Recipient::Host(host)),
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

/// The kind of the effect that a call of a server's tool has ([`Effect::Other`]); its value is the server's name.
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
        let sources = Sources::default();
        for n in 0..MOST + 10 {
            sources.note([UntrustedSource::new(format!("host {n}"), "x")]);
        }
        let all = sources.all();
        assert_eq!(all.len(), MOST + 1);
        assert_eq!(all.last().map(UntrustedSource::origin), Some("many"));
    }
}
