//! Calls that waited for a decision: the inbox says what became of each, and the conversation follows it. None is asked about or run twice.
//!
//! A call that ran elsewhere gets its outcome; one with a decision that no process has acted on runs with it; one whose request is
//! still pending is made again.

use haft::approval::inbox::{InboxError, RequestStatus, StoredApproval};
use haft::approval::{ApprovalId, ApprovalRequest, Choice};
use haft::{Outcome, Status};
use serde::Deserialize;

use crate::agent::calls::{CallPlan, RunnableCall};
use crate::agent::{Agent, AgentError};
use crate::conversation::AnswerText;
use crate::end::WaitingCall;

impl Agent {
    /// Plans a call that has not begun. A call that waited for a decision follows its request, whatever the current
    /// rules say: it takes the outcome if it ran elsewhere, and the decision otherwise.
    pub(super) async fn plan_asked(&mut self, ready: RunnableCall) -> Result<CallPlan, AgentError> {
        let Some(id) = self.approval_of(ready.place) else {
            return Ok(CallPlan::Run(ready));
        };
        match self.stored(&id).await {
            Ok(Some(stored)) => self.by_request(ready, &stored).await,
            Ok(None) => {
                let why = format!(
                    "unknown: this call waited for approval {id}, which haft no longer has, so that it may have run. It was not run now. \
                     Look at what it would have changed before you make it again."
                );
                self.answer_only(&ready, AnswerText::error(why)).await
            }
            // The inbox cannot be read, so haft cannot know whether the call ran: it keeps waiting.
            Err(_) => Ok(CallPlan::Waits(self.waiting(&ready, &id).await)),
        }
    }

    /// Returns the request that the call waited for. If another process is running the call, waits for its end first,
    /// unless the user stops the calls.
    async fn stored(&self, id: &ApprovalId) -> Result<Option<StoredApproval>, InboxError> {
        let stored = self.executor.inbox().get(id).await?;
        let runs = |stored: &StoredApproval| {
            // A script's call is not waited for: the script runs again from its journal and finds it there.
            stored.status == RequestStatus::Running && stored.request.parent.is_none()
        };
        if !stored.as_ref().is_some_and(runs) {
            return Ok(stored);
        }
        let ended = self.control.calls();
        tokio::select! {
            then = self.executor.wait_while_running(&self.session, id) => then,
            () = ended.cancelled() => Ok(stored),
        }
    }

    /// Returns the approval request that the call waits or waited for.
    pub(super) fn approval_of(&self, place: usize) -> Option<ApprovalId> {
        let slot = self.history.open()?.slots.get(place)?;
        Some(ApprovalId::new(slot.approval.clone()?))
    }

    async fn by_request(
        &mut self,
        mut ready: RunnableCall,
        stored: &StoredApproval,
    ) -> Result<CallPlan, AgentError> {
        let request = &stored.request;
        if let Some(decision) = &stored.decision
            && matches!(decision.choice, Choice::Deny { stop: true, .. })
        {
            self.session
                .end_by_denial(&decision.by, request.tool.as_str());
        }
        let is_part = is_of_part(&ready, request);
        // The call's own outcome says more than that a part of it was denied: it is made again, and finds the denial.
        let goes_on = is_part && request.run == *self.session.run();
        if goes_on && stored.status == RequestStatus::Denied {
            return Ok(CallPlan::Run(ready));
        }
        if let Some(outcome) = self.outcome_of(&ready, stored) {
            self.deliver(stored).await;
            self.tell_call(&ready);
            self.settle(&ready, &outcome).await?;
            return Ok(CallPlan::Settled);
        }
        // A script runs again from its journal, and a question is asked again: both find what was decided.
        if request.parent.is_some() || request.is_question() {
            return Ok(CallPlan::Run(ready));
        }
        match stored.status {
            RequestStatus::Approved | RequestStatus::Denied | RequestStatus::Answered
                if !stored.claimed =>
            {
                ready.decided = Some(request.id.clone());
                Ok(CallPlan::Run(ready))
            }
            RequestStatus::Running if is_part => {
                Ok(CallPlan::Waits(self.waiting(&ready, &request.id).await))
            }
            // It is made again: if rules still ask about it, it finds this request; if they decide it, the executor
            // withdraws the request.
            RequestStatus::Pending if stored.is_open() => Ok(CallPlan::Run(ready)),
            RequestStatus::Running => Ok(CallPlan::Run(ready)),
            status => {
                if status == RequestStatus::InDoubt {
                    self.deliver(stored).await;
                }
                let answer = AnswerText::error(over(&ready, stored));
                self.answer_only(&ready, answer).await
            }
        }
    }

    /// Returns the call's outcome if its request has it. The request of a script's call can have the outcome of that call alone, which is
    /// not the script's.
    pub(super) fn outcome_of(
        &self,
        ready: &RunnableCall,
        stored: &StoredApproval,
    ) -> Option<Outcome> {
        let text = stored.outcome.as_deref()?;
        if stored.request.parent.is_some() && !is_of(text, &ready.call.name) {
            return None;
        }
        let outcome = Outcome::from_stored(
            text,
            self.session.run().clone(),
            ready.id(),
            &ready.call.name,
        )?;
        // What it asked about may have been a part of it.
        let outcome = outcome.into_outer();
        // One that only says that the call waits for this very request is not its result.
        let is_own = outcome.status == Status::Suspended
            && outcome.approval.as_deref() == Some(stored.request.id.as_str());
        (!is_own).then_some(outcome)
    }

    /// Records that the conversation has the outcome, so that no other client gets it as the outcome of a call of its
    /// own.
    pub(super) async fn deliver(&self, stored: &StoredApproval) {
        let request = &stored.request;
        let call = request.parent.as_ref().unwrap_or(&request.call);
        let delivered = self.executor.inbox().deliver(&request.id).await;
        if let Err(error) = delivered {
            tracing::warn!(%error, id = %request.id, "note that an outcome was delivered");
        }
        let ended = self.executor.inbox();
        let ended = ended.end_suspended(&request.run, call, None).await;
        if let Err(error) = ended {
            tracing::warn!(%error, %call, "forget a suspended call");
        }
    }

    /// Returns the call as one that waits for this request.
    pub(super) async fn waiting(&self, ready: &RunnableCall, id: &ApprovalId) -> WaitingCall {
        let stored = self.executor.inbox().get(id).await.ok().flatten();
        WaitingCall {
            call: ready.id(),
            tool: ready.call.name.clone(),
            approval: id.to_string(),
            is_decided: stored.is_some_and(|stored| stored.status != RequestStatus::Pending),
        }
    }

    async fn answer_only(
        &mut self,
        ready: &RunnableCall,
        answer: AnswerText,
    ) -> Result<CallPlan, AgentError> {
        self.tell_call(ready);
        self.answer(ready, answer, None).await?;
        Ok(CallPlan::Settled)
    }
}

/// Returns whether a request is about a part of this call and not about the call itself: a command's changes. Those of a script's calls
/// name the script.
fn is_of_part(ready: &RunnableCall, request: &ApprovalRequest) -> bool {
    request.parent.is_none() && !request.is_question() && request.call != ready.id()
}

/// Returns the answer to a call whose request is over without an outcome. A call of which only a part was asked about has run.
pub(super) fn over(ready: &RunnableCall, stored: &StoredApproval) -> String {
    let id = &stored.request.id;
    let is_part = is_of_part(ready, &stored.request);
    let why = stored.why.as_deref().map(|why| format!(": {why}"));
    let why = why.unwrap_or_default();
    match stored.status {
        RequestStatus::Pending | RequestStatus::Expired if is_part => format!(
            "denied: nobody decided in time about what the command changed (approval {id}). {ON_COPY} Make the same call again to ask again."
        ),
        RequestStatus::Pending | RequestStatus::Expired => {
            format!("denied: nobody decided about this call in time (approval {id}); nothing ran")
        }
        RequestStatus::Withdrawn if is_part => format!(
            "cancelled: the request for approval of what the command changed was withdrawn ({id}{why}). {ON_COPY}"
        ),
        RequestStatus::Withdrawn => format!(
            "cancelled: the request for approval of this call was withdrawn ({id}{why}); nothing ran. If the call is still needed, make it again."
        ),
        RequestStatus::Denied => {
            let decision = stored.decision.as_ref();
            let by = decision.map_or("the user", |decision| &decision.by);
            let message = match decision.map(|decision| &decision.choice) {
                Some(Choice::Deny { message, .. }) => message.as_deref(),
                _ => None,
            };
            let detail = message.map_or_else(String::new, |message| format!(": {message}"));
            let part = if is_part {
                format!(". {ON_COPY}")
            } else {
                String::new()
            };
            format!("denied: {by} said no{detail}{part}")
        }
        _ if is_part => format!(
            "unknown: the command ran on a copy of the workspace. Its changes were approved ({id}), and haft was stopped while it applied \
             them, so that some of them may be in the workspace and others not. They were not applied again. Look at these files before \
             you run the command again."
        ),
        _ => format!(
            "unknown: the call was approved ({id}) and the run was interrupted while it ran, so that it may have run. It was not run \
             again. Look at what it would have changed before you make it again."
        ),
    }
}

/// The sentence about a command whose changes were not applied.
const ON_COPY: &str = "The command has run, on a copy of the workspace: what needed approval is not in the workspace.";

/// Returns whether a stored outcome is of this tool.
fn is_of(outcome: &str, tool: &str) -> bool {
    #[derive(Deserialize)]
    struct OutcomeTool {
        tool: String,
    }
    serde_json::from_str::<OutcomeTool>(outcome).is_ok_and(|named| named.tool == tool)
}
