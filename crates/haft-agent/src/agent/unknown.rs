//! Calls that were about to run when their process exited: the model is told what is known of them; none runs twice.

use haft::approval::inbox::{RequestFilter, RequestStatus, StoredApproval};
use haft::approval::listing;
use haft::spec::Suspension;
use haft::{ErrorKind, Outcome};

use crate::agent::calls::RunnableCall;
use crate::agent::{Agent, AgentError, waited_calls};
use crate::conversation::{AnswerText, ConversationEntry};

/// The answer to a call of which nothing is known but that it was about to run.
pub(crate) const MAY_HAVE_RUN: &str = "unknown: the run was interrupted while this call was under way, so that it may have run. It was not run again. \
     Look at what it would have changed before you make it again.";

/// Maximum number of requests of a run that are looked through for a call's own.
const MAX_REQUESTS: usize = 100_000;

impl Agent {
    /// Settles a call that was started in a process that has exited.
    pub(super) async fn settle_unknown(&mut self, ready: RunnableCall) -> Result<(), AgentError> {
        let stored = self.request_of(&ready).await;
        if let Some(stored) = &stored
            && (stored.request.parent.is_none() || self.outcome_of(&ready, stored).is_some())
        {
            return self.settle_decided(&ready, stored).await;
        }
        if let Some(outcome) = self.recovered(&ready).await {
            self.settle(&ready, &outcome).await?;
            return Ok(());
        }
        if let Some(stored) = &stored {
            return self.settle_decided(&ready, stored).await;
        }
        self.tell_call(&ready);
        self.answer(&ready, AnswerText::error(MAY_HAVE_RUN), None)
            .await
    }

    /// Returns the approval request of the call: the one that it was suspended with before it was started, or one that
    /// its process filed but did not live to record in the conversation.
    async fn request_of(&self, ready: &RunnableCall) -> Option<StoredApproval> {
        let inbox = self.executor.inbox();
        if let Some(id) = self.approval_of(ready.place) {
            return inbox.get(&id).await.ok().flatten();
        }
        let filter = RequestFilter {
            tenant: self.session.principal().tenant.to_string(),
            run: Some(self.session.run().clone()),
            limit: MAX_REQUESTS,
            ..RequestFilter::default()
        };
        let mut own = None;
        let keep = |stored: StoredApproval| {
            let request = &stored.request;
            if request.call == ready.id() && request.parent.is_none() {
                own = Some(stored);
            }
        };
        listing::each(&**inbox, filter, keep).await.ok()?;
        own
    }

    /// Settles a call with an approval request: the inbox knows whether it ran. If it did not, it counts as pending again.
    async fn settle_decided(
        &mut self,
        ready: &RunnableCall,
        stored: &StoredApproval,
    ) -> Result<(), AgentError> {
        let id = stored.request.id.as_str();
        if let Some(outcome) = self.outcome_of(ready, stored) {
            self.deliver(stored).await;
            self.tell_call(ready);
            self.settle(ready, &outcome).await?;
            return Ok(());
        }
        match stored.status {
            // Rules may have allowed the call since, so a withdrawn request does not tell whether it ran.
            RequestStatus::Withdrawn => {
                self.tell_call(ready);
                self.answer(ready, AnswerText::error(MAY_HAVE_RUN), None)
                    .await
            }
            RequestStatus::Running | RequestStatus::InDoubt | RequestStatus::Done => {
                self.tell_call(ready);
                self.deliver(stored).await;
                let answer = AnswerText::error(waited_calls::over(ready, stored));
                self.answer(ready, answer, None).await
            }
            // It did not run: it is made again, and finds the same request.
            _ => self.note(ConversationEntry::Suspended {
                place: ready.place,
                approval: id.to_owned(),
            }),
        }
    }

    /// Returns the outcome of a call that keeps a journal, recovered from it; `None` for every other call.
    async fn recovered(&self, ready: &RunnableCall) -> Option<Outcome> {
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
