//! `Settlement`: what a call owes at its end: the outcome of a claimed decision, and the note for when it is made again.

use crate::approval::ApprovalRequest;
use crate::approval::inbox::InboxError;
use crate::executor::ask::ClaimedDecision;
use crate::executor::call_result::OutcomeContent;
use crate::executor::claim::RequestClaim;
use crate::executor::exit::OpenCall;
use crate::executor::noted::{NotedCall, NotedEnd};
use crate::result::{Outcome, Status};

/// A decision that a call is resumed with.
pub(super) enum ResumeDecision {
    /// A denial, or an answer in place of the tool. Claimed already: it holds whatever happens to the call.
    Claimed(Box<ClaimedDecision>),
    /// An approval of exactly what the request shows. Claimed once the call matches the request.
    Approved(Box<ApprovalRequest>),
}

/// The decision that a call acts on, and its note. The stages fill it in, and it is settled once the call is closed.
/// Dropping it reports the call as cancelled.
#[derive(Default)]
pub(super) struct Settlement {
    /// The decision that the call is resumed with.
    ticket: Option<ResumeDecision>,
    /// The claimed decision that the call acts on, to be finished with its outcome.
    claimed: Option<RequestClaim>,
    /// Why the inbox refused the claim.
    refused: Option<InboxError>,
    /// The note by which the call is found when it is made again, if it can be.
    noted_call: Option<NotedCall>,
}

impl Settlement {
    /// Creates the settlement of a call that is resumed with a decision.
    pub(super) fn with_ticket(ticket: ResumeDecision) -> Self {
        Self {
            ticket: Some(ticket),
            ..Self::default()
        }
    }

    /// Returns whether the call is resumed with a decision.
    pub(super) fn has_ticket(&self) -> bool {
        self.ticket.is_some()
    }

    /// Takes the decision that the call is resumed with, once.
    pub(super) fn take_ticket(&mut self) -> Option<ResumeDecision> {
        self.ticket.take()
    }

    /// Notes the claimed decision that the call acts on.
    pub(super) fn claim(&mut self, claimed: RequestClaim) {
        self.claimed = Some(claimed);
    }

    /// Returns whether the call acts on a decision that it has claimed.
    pub(super) fn has_claimed(&self) -> bool {
        self.claimed.is_some()
    }

    /// Sets its note, in place of an earlier one.
    pub(super) fn note(&mut self, call: NotedCall) {
        if let Some(earlier) = self.noted_call.replace(call) {
            earlier.replace();
        }
    }

    /// Returns whether it has a note.
    pub(super) fn is_noted(&self) -> bool {
        self.noted_call.is_some()
    }

    /// Notes that the inbox refused the claim.
    pub(super) fn refuse(&mut self, error: InboxError) {
        self.refused = Some(error);
    }

    /// Takes the reason why the inbox refused the claim, if it did.
    pub(super) fn take_refusal(&mut self) -> Option<InboxError> {
        self.refused.take()
    }

    /// Returns whether anything must be settled when the call has ended.
    pub(super) fn needs_settling(&self) -> bool {
        self.claimed.is_some()
            || self.noted_call.is_some()
            || matches!(self.ticket, Some(ResumeDecision::Claimed(_)))
    }

    /// Closes the call and, if it acted on a decision, stores its outcome in the inbox. `delivered` tells whether the client receives
    /// the outcome now.
    pub(super) async fn settle(
        self,
        open: &mut OpenCall<'_>,
        end: OutcomeContent,
        delivered: bool,
    ) -> Outcome {
        // A call that stopped before it looked at its decision uses up a denial or answer, but not an approval.
        let unused = match self.ticket {
            Some(ResumeDecision::Claimed(taken)) => Some(taken.claimed),
            Some(ResumeDecision::Approved(_)) | None => None,
        };
        let claimed = self.claimed.or(unused);
        let session = open.session();
        // A noted client collects the outcome together with the note: until then it is owed, should this process die.
        let noted = open.nest().outermost().repeat().noted.clone();
        let owed = claimed.as_ref().zip(noted).is_some_and(|(claimed, noted)| {
            delivered && !noted.within && noted.approval == *claimed.id()
        });
        let kept_end = NotedEnd {
            heard: delivered,
            resumable: open.nest().is_resumable(),
        };
        let mut outcome = open.close(end);
        if let Some(claimed) = claimed {
            claimed.finish(&outcome, delivered && !owed).await;
        }
        if let Some(kept) = self.noted_call {
            let left = kept_end.resumable && outcome.status != Status::Suspended;
            session.at_work().note_resumable(&outcome.call, left);
            kept.ended(session, &mut outcome, kept_end).await;
        }
        outcome
    }
}
