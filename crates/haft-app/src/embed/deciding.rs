//! `Deciding`: a function of the program's as the approver.

use haft::approval::{Answer, ApprovalRequest, Approver, Decision};
use haft::future::BoxFuture;

/// Answers each request by a function. Questions to a person are not for it.
pub(super) struct Deciding<F>(pub(super) F);

impl<F> Approver for Deciding<F>
where
    F: Fn(&ApprovalRequest) -> Decision + Send + Sync,
{
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Answer> {
        let answer = if request.is_question() {
            Answer::Nobody
        } else {
            Answer::Decided(self.0(request))
        };
        Box::pin(async { answer })
    }
}
