//! `Settlement`: what a call owes when it has ended: the decision that it acts on, and the note by which it is found again.

use crate::approval::ApprovalRequest;
use crate::approval::inbox::InboxError;
use crate::executor::ask::ClaimedDecision;
use crate::executor::call_result::CallResult;
use crate::executor::claim::Claimed;
use crate::executor::exit::OpenCall;
use crate::executor::journaled::{JournaledCall, KeptEnd};
use crate::result::{Outcome, Status};

/// A decision that a call is resumed with.
pub(super) enum Ticket {
    /// It says no, or what the tool would have said: claimed already, for it holds whatever became of the call.
    Claimed(Box<ClaimedDecision>),
    /// It says yes, to what the request shows and nothing else: claimed once the call was compared with that.
    Approved(Box<ApprovalRequest>),
}

/// The decision that a call acts on and what is kept of the call; the stages fill it, and it is settled once the call is closed.
/// Dropping it says that the call was cancelled.
#[derive(Default)]
pub(super) struct Settlement {
    /// What was decided before the call came in: it is resumed.
    ticket: Option<Ticket>,
    /// The decision that the call acts on, to be finished with its outcome.
    claimed: Option<Claimed>,
    /// Why the inbox did not let it have that decision.
    refused: Option<InboxError>,
    /// By what it is found when it is made again, where it may be suspended.
    pub(super) kept: Option<JournaledCall>,
}

impl Settlement {
    /// That of a call which is resumed with a decision.
    pub(super) fn with_ticket(ticket: Ticket) -> Self {
        Self {
            ticket: Some(ticket),
            ..Self::default()
        }
    }

    /// Whether the call is resumed with a decision.
    pub(super) fn has_ticket(&self) -> bool {
        self.ticket.is_some()
    }

    /// Takes the decision that the call is resumed with, once.
    pub(super) fn take_ticket(&mut self) -> Option<Ticket> {
        self.ticket.take()
    }

    /// The call acts on this decision.
    pub(super) fn claim(&mut self, claimed: Claimed) {
        self.claimed = Some(claimed);
    }

    /// The inbox did not let the call have its decision.
    pub(super) fn refuse(&mut self, error: InboxError) {
        self.refused = Some(error);
    }

    /// Why the inbox did not let it have its decision, if it did not.
    pub(super) fn take_refusal(&mut self) -> Option<InboxError> {
        self.refused.take()
    }

    /// Whether anything is owed when the call has ended.
    pub(super) fn is_owing(&self) -> bool {
        self.claimed.is_some()
            || self.kept.is_some()
            || matches!(self.ticket, Some(Ticket::Claimed(_)))
    }

    /// Closes the call, and tells the inbox how it ended where it acted on a decision; `delivered` says whether the client hears
    /// it with that.
    pub(super) async fn settle(
        self,
        open: &mut OpenCall<'_>,
        end: CallResult,
        delivered: bool,
    ) -> Outcome {
        // A call that was stopped before its decision was looked at has had its turn, too; an approval is not used up by that.
        let unused = match self.ticket {
            Some(Ticket::Claimed(taken)) => Some(taken.claimed),
            Some(Ticket::Approved(_)) | None => None,
        };
        let claimed = self.claimed.or(unused);
        let (parts, session) = (open.parts(), open.session());
        let kept_end = KeptEnd {
            heard: delivered,
            resumable: open.nest().is_resumable(),
        };
        let mut outcome = open.close(end);
        if let Some(kept) = self.kept {
            let left = kept_end.resumable && outcome.status != Status::Suspended;
            session.at_work().note_resumable(&outcome.call, left);
            kept.ended(parts, session, &mut outcome, kept_end).await;
        }
        if let Some(claimed) = claimed {
            claimed.finish(&outcome, delivered).await;
        }
        outcome
    }
}
