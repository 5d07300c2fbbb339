//! `AsyncApprover`: an approver written with `async fn`.

use std::future::Future;

use crate::approval::{ApprovalRequest, Approver, ApproverReply, Decision};
use crate::future::BoxFuture;

/// An approver written with `async fn`. Everything that implements it is an [`Approver`].
///
/// ```
/// use haft::approval::AsyncApprover;
/// use haft::{ApproverReply, ApprovalRequest, Decision, Executor, Policy, Risk};
///
/// struct Chat;
///
/// impl AsyncApprover for Chat {
///     async fn ask(&self, request: &ApprovalRequest) -> ApproverReply {
///         if request.risk < Risk::Critical {
///             return Decision::approve("ann", "chat").into();
///         }
///         ApproverReply::Nobody
///     }
/// }
///
/// let executor = Executor::new(Policy::workspace()).with_approver(Chat);
/// ```
pub trait AsyncApprover: Send + Sync {
    /// Asks and waits for the answer: see [`Approver::ask`].
    fn ask(&self, request: &ApprovalRequest) -> impl Future<Output = ApproverReply> + Send;

    /// Returns a decision made without asking: see [`Approver::automatic`].
    fn automatic(&self, request: &ApprovalRequest) -> Option<Decision> {
        let _ = request;
        None
    }

    /// Notifies the approver of a request whose call is suspended: see [`Approver::notify`].
    fn notify(&self, request: &ApprovalRequest) -> impl Future<Output = ()> + Send {
        let _ = request;
        async {}
    }
}

impl<T: AsyncApprover> Approver for T {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        Box::pin(AsyncApprover::ask(self, request))
    }

    fn automatic(&self, request: &ApprovalRequest) -> Option<Decision> {
        AsyncApprover::automatic(self, request)
    }

    fn notify<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        Box::pin(AsyncApprover::notify(self, request))
    }
}
