//! What haft decides about a call, and the reply that an agent reads.

use serde::Serialize;
use serde_json::value::RawValue;

/// What is decided about a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Verdict {
    /// The agent does what it would do without a hook.
    NoOpinion,
    /// The call runs, where the agent lets a hook say so without asking its user.
    Allow {
        /// What it runs with instead; see [`rewritten`](crate::rewritten). An agent that cannot do that denies the call.
        input: Option<Box<RawValue>>,
    },
    /// The agent asks its user. An agent that cannot do that denies the call.
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
pub struct Reply {
    /// Nothing, or one JSON object.
    pub stdout: String,
    /// Nothing, or a text.
    pub stderr: String,
    /// The exit code.
    pub exit: u8,
}

impl Reply {
    /// Says nothing.
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
            // No answer of this crate fails to serialize; were one to, exit code 2 denies with every agent that reads codes.
            Err(error) => Self::blocked(&format!("haft could not write its answer: {error}")),
        }
    }

    /// Exit code 2 and the reason on standard error.
    pub(crate) fn blocked(reason: &str) -> Self {
        Self {
            stdout: String::new(),
            stderr: reason.to_owned(),
            exit: 2,
        }
    }
}
