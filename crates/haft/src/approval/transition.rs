//! `transition`: the life of a call that waits for a decision, in one place: its request, and what it owes to the call that
//! waits for it or ended suspended on it. Every store takes its steps from this function, within one atomic step of its own; a table in the
//! tests of `haft-store` checks all stores against it, and `tests/it/waiting.rs` searches every order of events.
//!
//! ```text
//! pending ──approve──► approved ──claim──► running ──finish──► done
//!    │                    └─void──► withdrawn  └ its process is gone: in_doubt ──finish──► done
//!    ├─deny──► denied      ├─answer──► answered      a claim leaves these two as they are, and is made once
//!    └─expire──► expired   └─withdraw──► withdrawn
//!
//! The call that waits: none ──suspend──► own ──collect: the outcome of the request's call is delivered to its client──► none
//!                        └──suspend──► within ──return──► ended ──collect: its own outcome is──► none
//! ```

use crate::approval::Choice;
use crate::approval::status::{RequestEnding, RequestStatus};

/// The state of a waiting call: the part of its row that events change, without the texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallState {
    /// The status of its request.
    pub status: RequestStatus,
    /// Whether the decision was claimed.
    pub claimed: bool,
    /// Whether the outcome of the request's call is stored.
    pub has_outcome: bool,
    /// Whether a client has received that outcome.
    pub delivered: bool,
    /// The call that ended suspended on the request.
    pub caller: CallerState,
}

/// The state of the call that ended suspended on a request. If several did, each has a state of its own, and no event of one
/// changes that of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerState {
    /// There is none, or nothing is owed to its client any more.
    None,
    /// The outcome of the request's call is its own.
    Own,
    /// The request's call is nested in it: a script, which has an outcome of its own.
    Within,
    /// Such a call has ended, and its outcome is stored until its client collects it.
    Ended,
}

/// An event in the life of a waiting call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitingEvent {
    /// A user approves the request.
    Approve,
    /// A user denies it.
    Deny,
    /// A user answers it.
    Answer,
    /// A process claims it, to run the call.
    Claim,
    /// The call that ran on it ends.
    Finish {
        /// Whether the client receives the outcome now.
        delivered: bool,
    },
    /// A client receives the outcome of the call that ran on it.
    Deliver,
    /// It ends without a call.
    End(RequestEnding),
    /// The process that claimed it exits before the call has ended.
    Exit,
    /// A call is about to wait for the request, or ends suspended on it.
    Suspend {
        /// Whether the request's call is nested in it.
        within: bool,
    },
    /// A suspended call ends, or its client is back with it in its own run.
    Return {
        /// Whether its client receives the outcome now, or nobody ever will. Otherwise the outcome of a call that the request's call is
        /// nested in is stored; any other has none of its own.
        heard: bool,
    },
    /// A client makes a suspended call again and collects what is owed to it. While the request is unsettled, that is nothing yet.
    Collect,
}

impl From<&Choice> for WaitingEvent {
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

/// Returns the state of a waiting call after an event. An ending that does not apply, the end of a call that did not run, and a
/// second delivery leave it unchanged.
///
/// # Errors
/// [`TransitionError`] for a decision about a request that is not pending, and for a claim before the decision, after an undecided end,
/// or after another claim.
pub fn transition(state: CallState, event: WaitingEvent) -> Result<CallState, TransitionError> {
    let mut after = state;
    match event {
        WaitingEvent::Approve => after.status = state.decided(RequestStatus::Approved)?,
        WaitingEvent::Deny => after.status = state.decided(RequestStatus::Denied)?,
        WaitingEvent::Answer => after.status = state.decided(RequestStatus::Answered)?,
        WaitingEvent::Claim => {
            after.status = state.claim()?;
            after.claimed = true;
        }
        WaitingEvent::Finish { delivered } => {
            after.status = state.finished();
            after.has_outcome = true;
            after.delivered |= delivered;
        }
        WaitingEvent::Deliver => after.delivered = true,
        WaitingEvent::End(ending) if state.status == ending.applies_to() => {
            after.status = ending.status();
        }
        WaitingEvent::Exit if state.status == RequestStatus::Running => {
            after.status = RequestStatus::InDoubt;
        }
        WaitingEvent::End(_) | WaitingEvent::Exit => {}
        WaitingEvent::Collect if state.caller == CallerState::Own && !state.is_unsettled() => {
            after.delivered |= state.has_undelivered();
            after.caller = CallerState::None;
        }
        WaitingEvent::Suspend { .. } | WaitingEvent::Return { .. } | WaitingEvent::Collect => {
            after.caller = state.caller.after(event);
        }
    }
    Ok(after)
}

/// Returns every state of a request in which a store may find a row and in which the event is not refused, each with the state after
/// it. A statement that applies an event is made from this table. `InDoubt` is no stored status: such a row is stored as running.
pub fn steps(event: WaitingEvent) -> Vec<(CallState, CallState)> {
    let stored = RequestStatus::ALL.into_iter();
    let stored = stored.filter(|status| *status != RequestStatus::InDoubt);
    let flags = [false, true];
    let states = stored.flat_map(|status| {
        flags.into_iter().flat_map(move |claimed| {
            flags.into_iter().map(move |delivered| CallState {
                claimed,
                delivered,
                ..CallState::of(status)
            })
        })
    });
    let step = |state| transition(state, event).ok().map(|after| (state, after));
    states.filter_map(step).collect()
}

impl CallState {
    /// Returns the state of a request of this status that nothing else has happened to.
    pub fn of(status: RequestStatus) -> Self {
        Self {
            status,
            claimed: false,
            has_outcome: false,
            delivered: false,
            caller: CallerState::None,
        }
    }

    /// Returns whether the request ended without a call, so that there never will be an outcome.
    pub fn is_over(self) -> bool {
        matches!(
            self.status,
            RequestStatus::Expired | RequestStatus::Withdrawn
        )
    }

    /// Returns whether the request answers an identical call; otherwise a new request is stored.
    pub fn answers_again(self) -> bool {
        match self.status {
            RequestStatus::Pending
            | RequestStatus::Approved
            | RequestStatus::Running
            | RequestStatus::InDoubt
            | RequestStatus::Denied => true,
            RequestStatus::Answered | RequestStatus::Done => !self.delivered,
            RequestStatus::Expired | RequestStatus::Withdrawn => false,
        }
    }

    /// Returns whether the request is undecided, or its decision not carried out yet.
    pub fn is_unsettled(self) -> bool {
        match self.status {
            RequestStatus::Pending | RequestStatus::Approved | RequestStatus::Running => true,
            RequestStatus::Denied | RequestStatus::Answered => !self.claimed,
            RequestStatus::Done
            | RequestStatus::Expired
            | RequestStatus::Withdrawn
            | RequestStatus::InDoubt => false,
        }
    }

    /// Returns whether no client has received how the request's call ended: with an outcome, or so that nobody knows whether it ran.
    pub fn has_undelivered(self) -> bool {
        (self.has_outcome || self.status == RequestStatus::InDoubt) && !self.delivered
    }

    /// Returns whether a client that makes the suspended call again receives an outcome now.
    pub fn owes_outcome(self) -> bool {
        match self.caller {
            CallerState::Ended => true,
            CallerState::Own => !self.is_unsettled() && self.has_undelivered(),
            CallerState::None | CallerState::Within => false,
        }
    }

    fn decided(self, to: RequestStatus) -> Result<RequestStatus, TransitionError> {
        match self.status {
            RequestStatus::Pending => Ok(to),
            _ => Err(TransitionError::Settled),
        }
    }

    fn claim(self) -> Result<RequestStatus, TransitionError> {
        match self.status {
            RequestStatus::Pending => Err(TransitionError::Undecided),
            RequestStatus::Expired | RequestStatus::Withdrawn => Err(TransitionError::Settled),
            RequestStatus::Approved if !self.claimed => Ok(RequestStatus::Running),
            RequestStatus::Denied | RequestStatus::Answered | RequestStatus::Done
                if !self.claimed =>
            {
                Ok(self.status)
            }
            _ => Err(TransitionError::Claimed),
        }
    }

    fn finished(self) -> RequestStatus {
        match self.status {
            RequestStatus::Running | RequestStatus::InDoubt => RequestStatus::Done,
            status => status,
        }
    }
}

impl CallerState {
    fn after(self, event: WaitingEvent) -> Self {
        match (event, self) {
            (WaitingEvent::Suspend { within: true }, _) => Self::Within,
            (WaitingEvent::Suspend { within: false }, _) => Self::Own,
            (WaitingEvent::Return { heard: false }, Self::Within | Self::Ended) => Self::Ended,
            (WaitingEvent::Return { heard: true }, _) | (WaitingEvent::Collect, Self::Ended) => {
                Self::None
            }
            _ => self,
        }
    }
}
