//! `FunctionApprover`: a function of the program as an approver.

use haft::approval::{ApprovalRequest, Approver, ApproverReply, Decision};
use haft::future::BoxFuture;

/// Decides each request with a function. Does not answer questions to the user.
pub(super) struct FunctionApprover<F>(pub(super) F);

impl<F> Approver for FunctionApprover<F>
where
    F: Fn(&ApprovalRequest) -> Decision + Send + Sync,
{
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        let answer = if request.is_question() {
            ApproverReply::Nobody
        } else {
            ApproverReply::Decided(self.0(request))
        };
        Box::pin(async { answer })
    }
}

#[cfg(test)]
mod tests {
    use haft::approval::{Choice, Decision};
    use haft::call::{Principal, ToolCall};
    use haft::result::Status;
    use haft::tool;

    use crate::embed::{Haft, Standard};

    /// Close an account.
    #[tool(risk = "high")]
    fn close(account: String) -> String {
        format!("closed {account}")
    }

    #[tokio::test]
    async fn a_function_decides_about_calls_and_answers_no_question() {
        let decide = |arguments: &str| {
            if !arguments.contains("root") {
                return Decision::approve("olga", "rules");
            }
            let deny = Choice::Deny {
                message: Some("not that one".to_owned()),
                stop: false,
            };
            Decision::new(deny, "olga".to_owned(), "rules".to_owned())
        };
        let haft = Haft::builder()
            .tool(close)
            .standard(Standard::QUESTIONS)
            .decide(move |request| decide(&request.arguments))
            .build()
            .unwrap();
        let run = haft.run(Principal::local("ann")).await.unwrap();
        let question =
            r#"{"title":"One","questions":[{"id":"which","type":"text","text":"Which?"}]}"#;
        let calls = [
            ("close", r#"{"account":"ann"}"#),
            ("close", r#"{"account":"root"}"#),
            ("ask_user", question),
        ];
        let calls = calls.map(|(tool, arguments)| ToolCall::new(tool, arguments));
        let outcomes = run.call_all(calls.into()).await;
        assert_eq!(outcomes[0].to_model(), "closed ann");
        assert_eq!(outcomes[1].status, Status::Denied);
        assert!(outcomes[1].to_model().contains("not that one"));
        assert_eq!(outcomes[2].to_model(), "not answered: which");
        let id = run.id().clone();
        run.finish().await.unwrap();
        let calls = haft.calls(&id).await.unwrap();
        assert_eq!(calls[0]["decided_by"], "olga", "{calls:?}");
        haft.shut_down().await;
    }
}
