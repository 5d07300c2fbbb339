//! `DecisionWait`: how long a call waits for a decision, and what happens to it afterwards.

use std::time::Duration;

use crate::approval::ApprovalRequest;
use crate::executor::early_end::EarlyEnd;
use crate::session::{Session, WaitMode};

/// Checks whether an approval still holds for the waiting call; called before the decision is claimed.
pub(in crate::executor) type ApprovalCheck<'a> =
    dyn Fn(&ApprovalRequest) -> Result<(), EarlyEnd> + Sync + 'a;

/// What happens to a call that gets no decision while it waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::executor) enum WaitFallback {
    /// The call is denied.
    Deny,
    /// The call is suspended if the inbox is durable, and denied otherwise.
    Suspend,
    /// The request is withdrawn, whatever ends the wait.
    Withdraw,
}

/// How long to wait, and what happens afterwards.
#[derive(Clone, Copy)]
pub(in crate::executor) struct DecisionWait<'a> {
    /// Maximum wait.
    pub(in crate::executor) limit: Duration,
    /// Do not wait at all: the operator finds the request in the inbox.
    pub(in crate::executor) at_once: bool,
    /// Wait even if no approver of this process can answer.
    pub(in crate::executor) alone: bool,
    /// What happens to the call after the wait.
    pub(in crate::executor) then: WaitFallback,
    /// Another process makes the call: it claims a decision that is there at once.
    pub(in crate::executor) ahead: bool,
    /// Checks whether an approval holds.
    pub(in crate::executor) fits: &'a ApprovalCheck<'a>,
}

impl<'a> DecisionWait<'a> {
    /// Returns the wait that this session is configured for.
    pub(in crate::executor) fn of(session: &Session, fits: &'a ApprovalCheck<'a>) -> Self {
        let wait_mode = session.wait_mode();
        Self {
            limit: session.limits().approval_timeout,
            at_once: wait_mode == WaitMode::SuspendAtOnce,
            alone: wait_mode != WaitMode::WhileAsked,
            then: match wait_mode {
                WaitMode::WhileAsked | WaitMode::WaitThenSuspend | WaitMode::SuspendAtOnce => {
                    WaitFallback::Suspend
                }
                WaitMode::WaitThenWithdraw => WaitFallback::Withdraw,
                _ => WaitFallback::Deny,
            },
            ahead: false,
            fits,
        }
    }

    /// Sets whether the call is asked about ahead, for another process that makes it.
    pub(in crate::executor) fn ahead(self, ahead: bool) -> Self {
        Self { ahead, ..self }
    }

    /// Returns the wait for the answer to a question that the tool waits for at most this long. No answer within that time is an answer,
    /// too; a session that waits less waits as for an approval.
    pub(in crate::executor) fn for_answer(
        session: &Session,
        limit: Duration,
        fits: &'a ApprovalCheck<'a>,
    ) -> Self {
        let wait = Self::of(session, fits);
        if limit > wait.limit {
            return wait;
        }
        let then = match wait.then {
            WaitFallback::Suspend => WaitFallback::Deny,
            then => then,
        };
        Self {
            limit,
            then,
            ..wait
        }
    }
}
