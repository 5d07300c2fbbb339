//! `Caller`: the program that made a call, where it can be asked and told things while the call runs.
//!
//! What is asked and what comes back is raw JSON in the words of the Model Context Protocol, so that a call relayed for another
//! server loses nothing of either.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{ErrorKind, ToolError};
use crate::future::BoxFuture;
use crate::opaque::opaque_debug;

/// What a caller can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestKind {
    /// To have its user fill in a form.
    Form,
    /// To have its user open an address.
    Url,
    /// To have its model complete a message.
    Sampling,
    /// Which folders it works in.
    Roots,
}

impl RequestKind {
    /// The method that asks it.
    pub fn method(self) -> &'static str {
        match self {
            Self::Form | Self::Url => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// The capability by which a caller says that it can be asked.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Form | Self::Url => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }

    /// What a request of this method and with these params asks; none where it is nothing that callers can be asked.
    pub fn of(method: &str, params: &RawValue) -> Option<Self> {
        #[derive(Deserialize)]
        struct Mode<'a> {
            #[serde(borrow, default)]
            mode: Option<&'a RawValue>,
        }
        Some(match method {
            "sampling/createMessage" => Self::Sampling,
            "roots/list" => Self::Roots,
            // A list would be read as a struct, too.
            "elicitation/create" if params.get().starts_with('{') => {
                let mode = serde_json::from_str::<Mode<'_>>(params.get()).ok()?.mode;
                match mode.map(RawValue::get) {
                    None | Some("\"form\"") => Self::Form,
                    Some("\"url\"") => Self::Url,
                    Some(_) => return None,
                }
            }
            _ => return None,
        })
    }
}

/// A request to a caller.
#[derive(Debug, Clone)]
pub struct CallerRequest {
    /// What it asks.
    pub kind: RequestKind,
    /// The name it is known by among the requests of its call, where the protocol names them; one is made where there is none.
    pub name: Option<String>,
    /// The params as they go out: an object.
    pub params: Box<RawValue>,
}

impl CallerRequest {
    /// A request with these params.
    pub fn new(kind: RequestKind, params: Box<RawValue>) -> Self {
        Self {
            kind,
            name: None,
            params,
        }
    }

    /// The same under this name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// Why a caller gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallerError {
    /// It has not said that it can be asked this.
    #[error("the client cannot be asked: it did not declare the capability `{}`", .0.capability())]
    Unsupported(RequestKind),
    /// It refused, with this error object.
    #[error("the client refused {}: {error}", .kind.method())]
    Refused {
        /// What was asked.
        kind: RequestKind,
        /// Its error as it came.
        error: Box<RawValue>,
    },
    /// It went away, or the call ended first.
    #[error("the client went away before it answered {}", .0.method())]
    Gone(RequestKind),
    /// It did not answer in time.
    #[error("the client did not answer {} in time", .0.method())]
    Late(RequestKind),
    /// Too many calls or bytes wait for answers of clients.
    #[error("the client cannot be asked {} now: too much waits for answers of clients", .0.method())]
    Busy(RequestKind),
}

impl From<CallerError> for ToolError {
    fn from(error: CallerError) -> Self {
        let (kind, advice) = match &error {
            CallerError::Unsupported(_) => (
                ErrorKind::Unavailable,
                "call it from a client that declares the capability",
            ),
            CallerError::Refused { .. } => (ErrorKind::Failed, "the client's error says why"),
            CallerError::Gone(_) => (ErrorKind::Cancelled, "call again to ask again"),
            CallerError::Late(_) => (ErrorKind::Timeout, "call again to ask again"),
            CallerError::Busy(_) => (ErrorKind::Unavailable, "call again in a moment"),
        };
        Self::new(kind, error.to_string()).with_advice(advice)
    }
}

/// How grave a log message is (RFC 5424), mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words of RFC 5424 say it")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    /// All levels, mildest first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// The level of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

/// The program that made a call.
///
/// A host sets it on the session ([`Session::with_caller`](crate::session::Session::with_caller)); a tool reaches it by
/// [`CallContext::caller`](crate::context::CallContext::caller), which bounds each request in time and counts the wait as a
/// person's, not the tool's.
pub trait Caller: Send + Sync + 'static {
    /// Whether it said that it can be asked this.
    fn can(&self, kind: RequestKind) -> bool;

    /// All that it said it can do, as it came: an object.
    fn capabilities(&self) -> Option<Box<RawValue>> {
        None
    }

    /// Asks, and waits for the result as it comes. Dropping the future ends the request.
    fn ask(&self, request: CallerRequest) -> BoxFuture<'_, Result<Box<RawValue>, CallerError>>;

    /// Whether it wants log messages of this level.
    fn wants_log(&self, level: LogLevel) -> bool {
        let _ = level;
        false
    }

    /// Passes on a log message: the params of `notifications/message` as they go out. Must not wait; one that is not wanted, or
    /// that finds no room, is dropped.
    fn log(&self, level: LogLevel, params: Box<RawValue>) {
        let _ = (level, params);
    }
}

opaque_debug!(Caller);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_known_by_its_method_and_mode() {
        for (method, params, expect) in [
            ("roots/list", "{}", Some(RequestKind::Roots)),
            ("sampling/createMessage", "{}", Some(RequestKind::Sampling)),
            (
                "elicitation/create",
                r#"{"message":"m"}"#,
                Some(RequestKind::Form),
            ),
            (
                "elicitation/create",
                r#"{"mode":"form"}"#,
                Some(RequestKind::Form),
            ),
            (
                "elicitation/create",
                r#"{"mode":"url"}"#,
                Some(RequestKind::Url),
            ),
            ("elicitation/create", r#"{"mode":"telepathy"}"#, None),
            ("elicitation/create", "[]", None),
            ("tools/call", "{}", None),
        ] {
            let params = RawValue::from_string(params.to_owned()).unwrap();
            assert_eq!(
                RequestKind::of(method, &params),
                expect,
                "{method} {params}"
            );
        }
    }

    #[test]
    fn the_words_of_levels_are_read_back_and_rise() {
        for level in LogLevel::ALL {
            assert_eq!(LogLevel::parse(level.as_str()), Some(level));
            let json = serde_json::to_string(&level).unwrap();
            assert_eq!(json, format!("\"{}\"", level.as_str()));
        }
        assert_eq!(LogLevel::parse("loud"), None);
        assert!(LogLevel::ALL.is_sorted());
    }
}
