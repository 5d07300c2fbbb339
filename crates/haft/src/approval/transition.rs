//! `transition`: the life cycle of a request, in one place. Every inbox follows it: the one in memory calls it, the databases
//! express it in SQL, and a table in the tests of `haft-store` checks all of them against it.
//!
//! ```text
//! pending ──approve──► approved ──claim──► running ──finish──► done
//!    │                    └─void──► withdrawn  └ its process is gone: in_doubt ──finish──► done
//!    ├─deny──► denied      ├─answer──► answered      a claim leaves these two as they are, and is made once
//!    └─expire──► expired   └─withdraw──► withdrawn
//! ```

use crate::approval::Choice;
use crate::approval::inbox::{InboxError, RequestEnding, RequestStatus, StoredApproval};

/// An event in the life of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestEvent {
    /// A user approves it.
    Approve,
    /// A user denies it.
    Deny,
    /// A user answers it.
    Answer,
    /// A process claims it, to run the call.
    Claim {
        /// Whether it was claimed before.
        again: bool,
    },
    /// The call that ran on it ends.
    Finish,
    /// It ends without a call.
    End(RequestEnding),
}

impl From<&Choice> for RequestEvent {
    fn from(choice: &Choice) -> Self {
        match choice {
            Choice::Approve { .. } => Self::Approve,
            Choice::Deny { .. } => Self::Deny,
            Choice::Answer { .. } => Self::Answer,
        }
    }
}

/// Why an event is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransitionError {
    /// The request is not decided yet.
    Undecided,
    /// The request was decided, or ended undecided.
    Settled,
    /// The request was claimed before.
    Claimed,
}

impl TransitionError {
    /// Returns the error for a request in this state.
    pub fn error(self, entry: &StoredApproval) -> InboxError {
        let id = entry.request.id.clone();
        // An approval that was void says nothing about how the request ended.
        let is_over = matches!(
            entry.status,
            RequestStatus::Withdrawn | RequestStatus::Expired
        );
        let decision = entry.decision.as_ref().filter(|_| !is_over);
        match (self, decision) {
            (Self::Undecided, _) => InboxError::Open(id),
            (Self::Claimed, _) => InboxError::Claimed(id),
            (Self::Settled, Some(decision)) => InboxError::Decided {
                id,
                status: entry.status,
                by: decision.by.clone(),
            },
            (Self::Settled, None) => InboxError::Over {
                id,
                status: entry.status,
                why: entry.why.clone(),
            },
        }
    }
}

/// Returns the status of a request after an event. An ending that does not apply, and the end of a call that did not run, leave
/// the status unchanged.
///
/// # Errors
/// [`TransitionError`] for a decision about a request that is not pending, and for a claim before the decision, after an undecided end,
/// or after another claim.
pub fn transition(
    status: RequestStatus,
    event: RequestEvent,
) -> Result<RequestStatus, TransitionError> {
    use RequestStatus::{
        Answered, Approved, Denied, Done, Expired, InDoubt, Pending, Running, Withdrawn,
    };
    let decided = |to| match status {
        Pending => Ok(to),
        _ => Err(TransitionError::Settled),
    };
    match event {
        RequestEvent::Approve => decided(Approved),
        RequestEvent::Deny => decided(Denied),
        RequestEvent::Answer => decided(Answered),
        RequestEvent::Claim { again } => match status {
            Pending => Err(TransitionError::Undecided),
            Expired | Withdrawn => Err(TransitionError::Settled),
            Approved if !again => Ok(Running),
            Denied | Answered | Done if !again => Ok(status),
            _ => Err(TransitionError::Claimed),
        },
        RequestEvent::Finish if matches!(status, Running | InDoubt) => Ok(Done),
        RequestEvent::End(ending) if status == ending.applies_to() => Ok(ending.status()),
        RequestEvent::Finish | RequestEvent::End(_) => Ok(status),
    }
}
