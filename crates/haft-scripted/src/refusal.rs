//! `ProviderError`: why a request is refused, in the provider's format.

use haft_wire::Dialect;
use serde_json::{Value, json};

/// The error response to a request.
#[derive(Debug, Clone)]
pub(crate) struct ProviderError {
    /// The HTTP status.
    pub(crate) status: u16,
    /// What is wrong.
    pub(crate) message: String,
    /// The place of the error, as OpenAI gives it.
    pub(crate) param: Option<String>,
    /// OpenAI's error code.
    pub(crate) code: Option<&'static str>,
    /// The provider's error type, if it is not the usual one for the status.
    pub(crate) kind: Option<String>,
}

impl ProviderError {
    /// Creates an error for a request that the provider considers invalid.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    /// Creates an error with this status.
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            param: None,
            code: None,
            kind: None,
        }
    }

    /// Creates an error for a request that does not match the scenario: no provider would give it.
    pub(crate) fn scenario(message: impl std::fmt::Display) -> Self {
        Self::invalid(format!("scenario: {message}"))
    }

    /// Sets the place in the request.
    pub(crate) fn at(self, param: impl Into<String>) -> Self {
        Self {
            param: Some(param.into()),
            ..self
        }
    }

    /// Sets OpenAI's code.
    pub(crate) fn code(self, code: &'static str) -> Self {
        Self {
            code: Some(code),
            ..self
        }
    }

    /// Returns the body of the response.
    pub(crate) fn body(&self, dialect: Dialect) -> Value {
        let kind = self.kind.as_deref();
        let kind = kind.unwrap_or_else(|| word(dialect, self.status));
        let message = &self.message;
        match dialect {
            Dialect::OpenAiChat | Dialect::OpenAiResponses => {
                json!({"error": {"message": message, "type": kind, "param": self.param, "code": self.code}})
            }
            Dialect::Anthropic => json!({
                "type": "error",
                "error": {"type": kind, "message": message},
                "request_id": "req_scripted",
            }),
            Dialect::Gemini => {
                json!({"error": {"code": self.status, "message": message, "status": kind}})
            }
        }
    }
}

/// Returns the provider's error type for a status.
fn word(dialect: Dialect, status: u16) -> &'static str {
    match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiResponses => match status {
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        },
        Dialect::Anthropic => match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        },
        Dialect::Gemini => match status {
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 | 529 => "UNAVAILABLE",
            504 => "DEADLINE_EXCEEDED",
            500.. => "INTERNAL",
            _ => "INVALID_ARGUMENT",
        },
    }
}
