//! `ReadError`: why haft could not read an event.

use crate::agent::Agent;

/// What is wrong with the bytes that an agent sent. The call must be denied; [`refusal`](crate::refusal) does so in the agent's form.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It has more bytes than an event may have.
    #[error(
        "the event has {size} bytes, more than the {limit} that haft reads; make the tool's input smaller"
    )]
    TooLarge {
        /// Its size, in bytes.
        size: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// It is not UTF-8; up to this byte it is.
    #[error("the event is not UTF-8 (byte {0}); check what runs between the agent and `haft hook`")]
    NotUtf8(usize),
    /// It is not one JSON object; why.
    #[error(
        "the event is not a JSON object: {0}; check what runs between the agent and `haft hook`"
    )]
    NotJson(String),
    /// Two readers could read it differently.
    #[error("{agent} sent `{member}` in a form that haft refuses: {reason}")]
    Ambiguous {
        /// The agent that sent it.
        agent: Agent,
        /// The member's name, shortened if it is long.
        member: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A required member is missing or has another type.
    #[error(
        "the event of {agent} lacks `{member}` ({expected}); this version of {agent} may be newer than haft: update haft"
    )]
    Missing {
        /// The agent that sent it.
        agent: Agent,
        /// The member's name.
        member: &'static str,
        /// What it should be: `a text`, `an object`.
        expected: &'static str,
    },
}
