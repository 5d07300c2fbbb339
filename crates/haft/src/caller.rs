//! `Caller`: the program that made a call, if it can be asked and sent messages while the call runs.
//!
//! Requests and results are raw JSON as the Model Context Protocol defines it, so that a call relayed for another server loses
//! nothing of either.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{ErrorKind, ToolError};
use crate::future::BoxFuture;
use haft_types::opaque_debug;

/// A kind of request to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestKind {
    /// Ask its user to fill in a form.
    Form,
    /// Ask its user to open a URL.
    Url,
    /// Ask its model to complete a message.
    Sampling,
    /// Ask for the folders it works in.
    Roots,
}

impl RequestKind {
    /// Returns the protocol method of the request.
    pub fn method(self) -> &'static str {
        match self {
            Self::Form | Self::Url => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// Returns the capability by which a caller declares support for it.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Form | Self::Url => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }

    /// Returns the kind of a request with this method and these params; `None` if callers do not accept it.
    pub fn of(method: &str, params: &RawValue) -> Option<Self> {
        #[derive(Deserialize)]
        struct ElicitationParams<'a> {
            #[serde(borrow, default)]
            mode: Option<&'a RawValue>,
        }
        Some(match method {
            "sampling/createMessage" => Self::Sampling,
            "roots/list" => Self::Roots,
            // serde would also parse a list as a struct.
            "elicitation/create" if params.get().starts_with('{') => {
                let mode = serde_json::from_str::<ElicitationParams<'_>>(params.get())
                    .ok()?
                    .mode;
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
    /// The kind of request.
    pub kind: RequestKind,
    /// Its name among the requests of its call, if the protocol names them; generated if absent.
    pub name: Option<String>,
    /// The params as sent: an object.
    pub params: Box<RawValue>,
}

impl CallerRequest {
    /// Creates a request with these params.
    pub fn new(kind: RequestKind, params: Box<RawValue>) -> Self {
        Self {
            kind,
            name: None,
            params,
        }
    }

    /// Sets the name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// Why a caller did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallerError {
    /// The caller did not declare support for the request.
    #[error("the client cannot be asked: it did not declare the capability `{}`", .0.capability())]
    Unsupported(RequestKind),
    /// The caller refused, with this error object.
    #[error("the client refused {}: {error}", .kind.method())]
    Refused {
        /// The kind of request.
        kind: RequestKind,
        /// Its error, unchanged.
        error: Box<RawValue>,
    },
    /// The caller disconnected, or the call ended first.
    #[error("the client went away before it answered {}", .0.method())]
    Gone(RequestKind),
    /// The caller did not answer in time.
    #[error("the client did not answer {} in time", .0.method())]
    Late(RequestKind),
    /// Too many calls or bytes are waiting for answers of clients.
    #[error("the client cannot be asked {} now: too many questions to clients are pending", .0.method())]
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

/// The severity of a log message (RFC 5424), lowest first.
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
    /// All levels, lowest first.
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

    /// Returns the word used on the wire.
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

    /// Returns the level with this name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

/// The program that made a call.
///
/// A host sets it on the session ([`Session::with_caller`](crate::session::Session::with_caller)); a tool accesses it through
/// [`CallContext::caller`](crate::context::CallContext::caller), which limits the time of each request and counts the wait as the
/// user's time, not the tool's.
pub trait Caller: Send + Sync + 'static {
    /// Returns whether it declared support for this kind of request.
    fn can(&self, kind: RequestKind) -> bool;

    /// Returns all capabilities that it declared, unchanged: an object.
    fn capabilities(&self) -> Option<Box<RawValue>> {
        None
    }

    /// Sends a request and waits for the raw result. Dropping the future ends the request.
    fn ask(&self, request: CallerRequest) -> BoxFuture<'_, Result<Box<RawValue>, CallerError>>;

    /// Returns whether it wants log messages of this level.
    fn wants_log(&self, level: LogLevel) -> bool {
        let _ = level;
        false
    }

    /// Forwards a log message: the params of `notifications/message` as sent. Must not wait; a message that is not wanted, or finds no
    /// room, is dropped.
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
