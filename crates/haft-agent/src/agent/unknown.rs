//! Calls that were about to run when their process exited: the model is told what is known of them; none runs twice.

use haft::approval::ApprovalId;
use haft::approval::inbox::{RequestStatus, StoredApproval};
use haft::spec::Suspension;
use haft::{ErrorKind, Outcome};

use crate::agent::calls::Ready;
use crate::agent::{Agent, AgentError};
use crate::answers;
use crate::conversation::{AnswerText, Entry};

impl Agent {
    /// Settles a call that was started in a process that has exited.
    pub(super) async fn settle_unknown(&mut self, ready: Ready) -> Result<(), AgentError> {
        if let Some(stored) = self.request_of(ready.place).await {
            return self.settle_decided(&ready, &stored);
        }
        if let Some(outcome) = self.recovered(&ready).await {
            self.settle(&ready, &outcome)?;
            return Ok(());
        }
        self.tell_call(&ready);
        let answer = AnswerText::error(
            "unknown: the run was interrupted while this call was under way, so that it may have run. It was not run again. Look at what \
             it would have changed before you make it again.",
        );
        self.answer(&ready, answer, None)
    }

    /// Returns the approval request that the call waited for before it was started, if it still exists.
    async fn request_of(&self, place: usize) -> Option<StoredApproval> {
        let slot = self.history.open()?.slots.get(place)?;
        let id = ApprovalId::new(slot.approval.clone()?);
        self.executor.inbox().get(&id).await.ok().flatten()
    }

    /// Settles a call with an approval request: the inbox knows whether it ran. If it did not, it counts as pending again.
    fn settle_decided(&mut self, ready: &Ready, stored: &StoredApproval) -> Result<(), AgentError> {
        let id = stored.request.id.as_str();
        match (stored.status, stored.outcome.as_deref()) {
            (_, Some(text)) => {
                let run = self.session.run().clone();
                let outcome = Outcome::from_stored(text, run, ready.id(), &ready.call.name);
                self.tell_call(ready);
                if let Some(outcome) = outcome.as_ref().filter(|_| ready.is_step) {
                    return self.stepped(ready, outcome);
                }
                let answer = outcome.as_ref().map(answers::of);
                let answer = answer.unwrap_or_else(|| {
                    AnswerText::error("unknown: the call has run, but its outcome cannot be read")
                });
                self.answer(ready, answer, outcome.as_ref())
            }
            (RequestStatus::Running | RequestStatus::InDoubt, None) => {
                self.tell_call(ready);
                let text = format!(
                    "unknown: the call was approved ({id}) and the run was interrupted while it ran, so that it may have run. It was not \
                     run again. Look at what it would have changed before you make it again."
                );
                self.answer(ready, AnswerText::error(text), None)
            }
            // It did not run: it is made again, and finds the same request.
            _ => self.note(Entry::Suspended {
                place: ready.place,
                approval: id.to_owned(),
            }),
        }
    }

    /// Returns the outcome of a call that keeps a journal, recovered from it; `None` for every other call.
    async fn recovered(&self, ready: &Ready) -> Option<Outcome> {
        let tools = self.session.tools();
        let spec = tools.entry(&ready.call.name)?.spec();
        if spec.suspension != Suspension::Within || !self.session.is_resumed() {
            return None;
        }
        self.tell_call(ready);
        let outcome = self.executor.recover(&self.session, ready.call.clone());
        let outcome = outcome.await;
        let kind = outcome.error.as_ref().map(|error| error.kind);
        (kind != Some(ErrorKind::Conflict)).then_some(outcome)
    }
}
