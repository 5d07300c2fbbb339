//! Runs a call, with the decision about it if there is one.

use haft::approval::ApprovalId;
use haft::approval::inbox::RequestEnding;
use haft::{CallId, Executor, Outcome, Session, Status, ToolCall};

/// Runs a call; one that was decided acts on its decision, whatever the rules say now.
pub(super) async fn run(
    executor: &Executor,
    session: &Session,
    call: ToolCall,
    decided: Option<ApprovalId>,
) -> Outcome {
    let Some(id) = decided else {
        return executor.execute(session, call).await;
    };
    let (name, own) = (call.name.clone(), call.id.clone());
    match executor.resume(&session.continuing(), &id).await {
        Ok(outcome) => {
            // If the call no longer does what the request showed, the model is told so, and no other process may run it
            // later.
            let why = format!("its call has ended without it: {}", outcome.summary);
            let ended = executor.inbox().end(&id, RequestEnding::Void, &why).await;
            if let Err(error) = ended {
                tracing::warn!(%error, %id, "end a request that no longer applies");
            }
            outcome
        }
        // Another process acts on the decision: this call waits for it.
        Err(error) => {
            let own = own.unwrap_or_else(|| CallId::new(""));
            let mut outcome = Outcome::new(session.run().clone(), own, &name, Status::Suspended);
            outcome.summary = error.to_string();
            outcome.approval = Some(id.to_string());
            outcome
        }
    }
}
