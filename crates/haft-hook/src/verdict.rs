//! `HookVerdict`: what haft decides about a call; `HookReply`: what the agent reads.

use serde::Serialize;
use serde_json::value::RawValue;

/// What haft decides about a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum HookVerdict {
    /// The agent does what it would do without a hook.
    NoOpinion,
    /// The call runs, without a question to the user if the agent lets a hook say so.
    Allow {
        /// The input to run with instead; see [`rewrite_line`](crate::rewrite_line). If the agent cannot change the input, the call is
        /// denied.
        input: Option<Box<RawValue>>,
    },
    /// The agent asks its user. If the agent cannot, the call is denied.
    Ask {
        /// Why, for the user.
        reason: String,
    },
    /// The call does not run.
    Deny {
        /// Why, for the model and the user.
        reason: String,
    },
}

/// What `haft hook` prints and how it exits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HookReply {
    /// Nothing, or one JSON object.
    pub stdout: String,
    /// Nothing, or a text.
    pub stderr: String,
    /// The exit code: 0, or 2 to block the call.
    pub exit: u8,
}

impl HookReply {
    /// No output and exit code 0.
    pub(crate) fn silent() -> Self {
        Self::default()
    }

    /// One JSON object and exit code 0.
    pub(crate) fn json<T: Serialize>(answer: &T) -> Self {
        match serde_json::to_string(answer) {
            Ok(stdout) => Self {
                stdout,
                ..Self::default()
            },
            // No answer of this crate fails to serialize. If one did, exit code 2 would deny with every agent that reads exit codes.
            Err(error) => Self::block(&format!("haft could not write its answer: {error}")),
        }
    }

    /// Exit code 2 and the reason on standard error.
    pub(crate) fn block(reason: &str) -> Self {
        Self {
            stdout: String::new(),
            stderr: reason.to_owned(),
            exit: 2,
        }
    }
}
