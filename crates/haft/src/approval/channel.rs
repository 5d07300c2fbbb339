//! `channel`: an approver whose requests the embedding program receives from a queue and answers.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::approval::{ApprovalRequest, Approver, ApproverReply, Decision};
use crate::future::BoxFuture;

/// Creates an approver and the queue of its requests. The queue holds at most `capacity` requests (at least one); a call whose
/// request finds it full waits for room, as it would for the answer.
///
/// ```
/// use haft::{Decision, Executor, Policy, Session, ToolCall, ToolRegistry, approval, tool};
///
/// /// Close an account.
/// #[tool(risk = "high")]
/// fn close(account: String) -> String {
///     format!("closed {account}")
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (approver, mut requests) = approval::channel(8);
/// tokio::spawn(async move {
///     while let Some(pending) = requests.next().await {
///         // Show `pending.request()` and wait for a click.
///         pending.decide(Decision::approve("ann", "chat"));
///     }
/// });
/// let executor = Executor::new(Policy::workspace()).with_approver(approver);
/// let session = Session::new(ToolRegistry::new().with(close)?);
/// let outcome = executor.execute(&session, ToolCall::new("close", r#"{"account":"a"}"#)).await;
/// assert_eq!(outcome.text(), "closed a");
/// # Ok(()) }
/// ```
pub fn channel(capacity: usize) -> (ChannelApprover, RequestReceiver) {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    (ChannelApprover { sender }, RequestReceiver { receiver })
}

/// Asks by putting requests into a queue. Clones share it.
#[derive(Debug, Clone)]
pub struct ChannelApprover {
    sender: mpsc::Sender<PendingRequest>,
}

impl Approver for ChannelApprover {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let pending = PendingRequest {
                request: Arc::new(request.clone()),
                answer,
            };
            // If the queue or the request is dropped, there is no one to answer.
            if self.sender.send(pending).await.is_err() {
                return ApproverReply::Nobody;
            }
            answered.await.unwrap_or(ApproverReply::Nobody)
        })
    }
}

/// The queue of an approver's requests, oldest first.
#[derive(Debug)]
pub struct RequestReceiver {
    receiver: mpsc::Receiver<PendingRequest>,
}

impl RequestReceiver {
    /// Returns the next request that is not withdrawn; `None` once all executors that use the approver are dropped. Dropping the
    /// future loses nothing.
    pub async fn next(&mut self) -> Option<PendingRequest> {
        loop {
            let pending = self.receiver.recv().await?;
            if !pending.is_withdrawn() {
                return Some(pending);
            }
        }
    }
}

/// A pending request. Dropping it without an answer means that no one can be asked.
#[derive(Debug)]
pub struct PendingRequest {
    request: Arc<ApprovalRequest>,
    answer: oneshot::Sender<ApproverReply>,
}

impl PendingRequest {
    /// Returns the request; an `Arc`, so that it can be kept beside the pending request.
    pub fn request(&self) -> &Arc<ApprovalRequest> {
        &self.request
    }

    /// Decides the request. Returns false if it is withdrawn or was decided elsewhere.
    pub fn decide(self, decision: Decision) -> bool {
        self.answer.send(ApproverReply::Decided(decision)).is_ok()
    }

    /// Suspends the call, if the inbox outlives the process; the request stays there to be decided.
    pub fn suspend(self) -> bool {
        self.answer.send(ApproverReply::Later).is_ok()
    }

    /// Returns whether the call no longer waits: it was cancelled or timed out, or the request was decided elsewhere.
    pub fn is_withdrawn(&self) -> bool {
        self.answer.is_closed()
    }

    /// Completes when the call no longer waits.
    pub async fn withdrawn(&mut self) {
        self.answer.closed().await;
    }
}
