//! `ClientError`: why a server gave no answer.

use std::time::Duration;

use haft::error::ToolError;
use haft::text::clip;
use haft_http::body::BodyError;
use haft_http::connections::SendError;
use haft_http::waits::Wait;
use serde_json::value::RawValue;

/// Why a server gave no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// It could not be reached or started.
    #[error("reach the server: {0}")]
    Unreachable(String),
    /// The arguments of a call are not a JSON object; nothing was sent.
    #[error("the arguments are not a JSON object: {0}")]
    Arguments(String),
    /// It disconnected; the request may have been executed.
    #[error("the server closed the connection{}", after(.said))]
    Closed {
        /// The end of its error output.
        said: String,
    },
    /// It did not respond in time; the request may have been executed.
    #[error("no answer{} within {} s{}", to(.method), .limit.as_secs_f32(), after(.said))]
    Late {
        /// The method of the request.
        method: String,
        /// The time limit.
        limit: Duration,
        /// The end of its error output.
        said: String,
    },
    /// It responded with a protocol error.
    #[error("the server answers {message} ({code})")]
    Refused {
        /// The JSON-RPC error code.
        code: i64,
        /// The message, truncated.
        message: String,
        /// The error's data as JSON, if any.
        data: Option<String>,
    },
    /// A task that it created for a call ended with a protocol error.
    #[error("{error}")]
    TaskFailed {
        /// The error as in a response.
        error: Box<ClientError>,
        /// The whole error: a JSON object.
        whole: Box<RawValue>,
    },
    /// Its response is invalid.
    #[error("the server's answer is not understood: {0}")]
    Malformed(String),
    /// Its response exceeds the limit.
    #[error("the server's answer is over {0} bytes")]
    TooLong(usize),
    /// It speaks no revision that haft supports.
    #[error("the server speaks {0}, which haft does not")]
    Revision(String),
    /// It requires credentials, or refuses those it got.
    #[error("the server answers HTTP {status}: it requires other credentials{}", after(.challenge))]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// Its `WWW-Authenticate` header.
        challenge: String,
    },
    /// Signing in failed.
    #[error("signing in failed: {0}")]
    SignIn(String),
    /// It responded with another HTTP status.
    #[error("the server answers HTTP {status}{}", after(.body))]
    Http {
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// Its session is over; nothing was executed.
    #[error("the server has ended the session")]
    SessionOver,
}

impl From<SendError> for ClientError {
    fn from(error: SendError) -> Self {
        let said = error.to_string();
        match error {
            SendError::Unreachable(_) | SendError::Late(Wait::Connect) => Self::Unreachable(said),
            SendError::Closed(_) | SendError::Late(_) => Self::Closed { said },
        }
    }
}

impl From<BodyError> for ClientError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLong(longest) => Self::TooLong(longest),
            BodyError::Broken(_) | BodyError::Late(_) => Self::Closed {
                said: error.to_string(),
            },
        }
    }
}

/// Names the request that had no answer; the user asked for the connection, so that one needs no name.
fn to(method: &str) -> String {
    match method {
        "connect" => String::new(),
        method => format!(" to {method}"),
    }
}

fn after(message: &str) -> String {
    let message = message.trim();
    if message.is_empty() {
        return String::new();
    }
    format!(": {}", clip(message, 600))
}

impl ClientError {
    /// Creates an error with the server's own words, truncated to a length that every client can take.
    pub(crate) fn refused(code: i64, message: &str, data: Option<&str>) -> Self {
        Self::Refused {
            code,
            message: clip(message, 1000).into_owned(),
            data: data.map(|data| clip(data, 4000).into_owned()),
        }
    }

    /// Returns whether nothing of the request can have been executed, so that it may be repeated.
    pub fn is_before_effect(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_) | Self::SessionOver | Self::Arguments(_)
        )
    }

    /// Converts an error from before a call was sent: nothing can have been executed.
    pub(crate) fn before_call(self) -> Self {
        match self {
            Self::Closed { .. } | Self::Late { .. } => Self::Unreachable(self.to_string()),
            other => other,
        }
    }

    /// Converts to the failure of a call to one of the server's tools.
    pub fn into_tool_error(self, server: &str) -> ToolError {
        let message = format!("{server}: {self}");
        match self {
            Self::TaskFailed { error, .. } => error.into_tool_error(server),
            Self::Unreachable(_) | Self::SessionOver | Self::Revision(_) | Self::SignIn(_) => {
                ToolError::unavailable(message)
            }
            Self::Unauthorized { .. } => ToolError::unavailable(message).for_operator(format!(
                "`haft mcp login {server}` signs in; where the server wants a key, it goes into mcp.servers.{server}.headers"
            )),
            // JSON-RPC's code for invalid params.
            Self::Arguments(_) | Self::Refused { code: -32602, .. } => {
                ToolError::invalid_arguments(message)
            }
            Self::Closed { .. } | Self::Late { .. } => ToolError::failed(message)
                .with_advice("the call may have run anyway: check before you make it again"),
            Self::Malformed(_) | Self::TooLong(_) => ToolError::failed(message)
                .with_advice("the server answered, so the call may have run: check before you make it again"),
            _ => ToolError::failed(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use haft::error::ErrorKind;

    use super::*;

    #[test]
    fn what_failed_before_a_call_was_sent_cannot_have_been_done() {
        let late = || ClientError::Late {
            method: "connect".to_owned(),
            limit: Duration::from_secs(5),
            said: String::new(),
        };
        let closed = || ClientError::Closed {
            said: "out of disk".to_owned(),
        };
        for error in [late(), closed()] {
            let said = error.to_string();
            let before = error.before_call().into_tool_error("docs");
            assert_eq!(before.kind(), ErrorKind::Unavailable);
            assert!(before.message().contains(&said), "{before}");
            assert_eq!(before.advice(), None);
        }
        for error in [late(), closed()] {
            let error = error.into_tool_error("docs");
            let advice = error.advice().unwrap_or_default();
            assert!(advice.contains("may have run anyway"), "{advice}");
        }
        let denied = ClientError::Malformed("x".to_owned()).before_call();
        assert!(matches!(denied, ClientError::Malformed(_)));
    }
}
