//! `ToolCall`: a request to run a tool, and who makes it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Deserializer, Serialize};

use crate::clock;
use crate::spec::MAX_NAME;
use crate::text::hex;

mod short;

use short::ShortText;

/// The id of a call within its run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct CallId(ShortText);

/// The id of a run: the life of a session, and its archive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RunId(Arc<str>);

macro_rules! id {
    ($name:ident) => {
        impl $name {
            /// Creates an id from this text, unchecked.
            pub fn new(id: impl Into<Arc<str>>) -> Self {
                Self(id.into().into())
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                self.0.as_ref()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from).map(Self::new)
            }
        }
    };
}

id!(CallId);
id!(RunId);

impl CallId {
    /// Returns the id of the nth call made within this one: `call-1.3`. A journal uses it to find the call's lines in the run's
    /// record.
    pub fn nth_within(&self, number: u64) -> Self {
        Self::new(format!("{}.{number}", self.0.as_str()))
    }

    /// Returns the id of a run's nth call.
    pub fn numbered(number: u64) -> Self {
        // Without `format!`: every call gets an id, and formatting would take a twentieth of a call's cost.
        const ID_PREFIX: &[u8; 5] = b"call-";
        let mut text = [0; ID_PREFIX.len() + 20];
        let (mut first, mut left) = (text.len(), number);
        loop {
            first -= 1;
            text[first] = b'0' + u8::try_from(left % 10).unwrap_or_default();
            left /= 10;
            if left == 0 {
                break;
            }
        }
        first -= ID_PREFIX.len();
        text[first..first + ID_PREFIX.len()].copy_from_slice(ID_PREFIX);
        Self(ShortText::of(
            std::str::from_utf8(&text[first..]).unwrap_or_default(),
        ))
    }
}

impl RunId {
    /// Generates an id that sorts by time: `20261121-221530-` and eight random hex digits.
    pub fn generate() -> Self {
        let now = clock::rfc3339(clock::now());
        let digits: String = now.chars().filter(char::is_ascii_digit).take(14).collect();
        let (day, time) = digits.split_at_checked(8).unwrap_or((&digits, ""));
        let mut random = [0; 4];
        if getrandom::fill(&mut random).is_err() {
            // Without a random source, a counter keeps ids of the same process distinct.
            random = FALLBACK_SEED.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        }
        Self(format!("{day}-{time}-{}", hex(&random)).into())
    }
}

static FALLBACK_SEED: AtomicU32 = AtomicU32::new(0);

/// The origin of a call; the only difference between entry points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The host program or a user at the command line.
    Host,
    /// A model's reply.
    Model,
    /// A script or a tool, through a nested call.
    Chain,
    /// An MCP client: a model's reply, as far as haft knows.
    Mcp,
    /// A prompt that the user chose in an MCP client.
    Prompt,
    /// A coding agent's own tool, as its hook reports it: the agent runs it, not haft.
    Hook,
}

impl Origin {
    /// Returns the word used in outcomes and audit lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Model => "model",
            Self::Chain => "chain",
            Self::Mcp => "mcp",
            Self::Prompt => "prompt",
            Self::Hook => "hook",
        }
    }
}

/// The principal that a session runs for; every audit line names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "StoredPrincipal", into = "StoredPrincipal")]
pub struct Principal {
    /// The organisation; `local` on a single user's machine.
    pub tenant: Arc<str>,
    /// The user or service.
    pub subject: Arc<str>,
}

impl Principal {
    /// Creates a principal of this tenant.
    pub fn new(tenant: impl Into<Arc<str>>, subject: impl Into<Arc<str>>) -> Self {
        Self {
            tenant: tenant.into(),
            subject: subject.into(),
        }
    }

    /// Creates a principal of this machine, with tenant `local`.
    pub fn local(subject: impl Into<Arc<str>>) -> Self {
        Self::new("local", subject)
    }
}

/// The stored form of a principal.
#[derive(Serialize, Deserialize)]
struct StoredPrincipal {
    tenant: String,
    subject: String,
}

impl From<StoredPrincipal> for Principal {
    fn from(named: StoredPrincipal) -> Self {
        Self::new(named.tenant, named.subject)
    }
}

impl From<Principal> for StoredPrincipal {
    fn from(principal: Principal) -> Self {
        Self {
            tenant: principal.tenant.as_ref().to_owned(),
            subject: principal.subject.as_ref().to_owned(),
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.subject)
    }
}

/// A request to run a tool. The arguments are the bytes that came in; code that needs values parses them.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The caller's id for the call; the executor generates one if absent.
    pub id: Option<CallId>,
    /// The tool's name as written; one that is too long for a tool name is cut and ends with `…`.
    pub name: String,
    /// The arguments as JSON text; an empty text means `{}`.
    pub arguments: String,
    /// The call's origin.
    pub origin: Origin,
}

impl ToolCall {
    /// Creates a call by the host.
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let mut name = name.into();
        if name.len() > MAX_NAME {
            // No tool has such a name, and every answer and record of the call would repeat it.
            name.truncate(name.floor_char_boundary(MAX_NAME));
            name.push('…');
        }
        Self {
            id: None,
            name,
            arguments: arguments.into(),
            origin: Origin::Host,
        }
    }

    /// Sets the origin.
    pub fn from_origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Sets the caller's own id.
    pub fn with_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = Some(CallId::new(id));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::CallId;

    #[test]
    fn calls_are_numbered_in_decimal() {
        for number in [1, 9, 10, 123, 10_000, u64::MAX] {
            let expect = format!("call-{number}");
            assert_eq!(CallId::numbered(number).as_str(), expect);
        }
    }
}
