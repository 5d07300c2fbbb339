//! Why what an agent sent is no event.

use crate::agent::Agent;

/// What is wrong with the bytes that an agent sent. The call is to be denied: [`refusal`](crate::refusal) says it in the agent's way.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// More bytes than one event may have.
    #[error(
        "the event has {size} bytes, more than the {limit} that haft reads; make the tool's input smaller"
    )]
    TooLarge {
        /// Its size, in bytes.
        size: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// It is not UTF-8.
    #[error("the event is not UTF-8 (byte {0}); check what runs between the agent and `haft hook`")]
    NotUtf8(usize),
    /// It is not one JSON object.
    #[error(
        "the event is not a JSON object: {0}; check what runs between the agent and `haft hook`"
    )]
    NotJson(String),
    /// Two readers could read it in two ways.
    #[error("{agent} sent `{member}` in a form that haft refuses: {reason}")]
    Ambiguous {
        /// Who sent it.
        agent: Agent,
        /// The member.
        member: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A member that every event has is missing, or is of another type.
    #[error(
        "the event of {agent} lacks `{member}` ({expected}); this version of {agent} may be newer than haft: update haft"
    )]
    Missing {
        /// Who sent it.
        agent: Agent,
        /// The member.
        member: &'static str,
        /// What it should be: `a text`, `an object`.
        expected: &'static str,
    },
}
