//! Questions to the user, which a program answers.

use super::*;

#[tokio::test]
async fn an_answer_is_kept_where_the_tool_that_asked_is_missing() {
    let folder = scene();
    let with = |standard| {
        on(folder.path())
            .standard(standard)
            .when_asked(PendingCallMode::Suspend)
            .build()
            .unwrap()
    };
    let haft = with(Standard::QUESTIONS);
    let question =
        r#"{"title":"One","questions":[{"id":"which","type":"text","text":"Which one?"}]}"#;
    let asked = call(&haft, ToolCall::new("ask_user", question)).await;
    assert_eq!(asked.status, Status::Suspended, "{asked:?}");
    let id = approval(&asked);
    haft.approvals().decide(&id, chosen()).await.unwrap();
    haft.shut_down().await;

    let without = with(Standard::FILES);
    let refused = without.resume(&id).await.unwrap_err();
    assert!(refused.to_string().contains("ask_user"), "{refused}");
    without.shut_down().await;

    let again = with(Standard::QUESTIONS);
    let outcome = again.resume(&id).await.unwrap();
    assert!(outcome.is_ok(), "{outcome:?}");
    again.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_keeps_no_other_call_of_its_run_waiting() {
    let folder = scene();
    let (approver, mut requests) = channel(4);
    let haft = on(folder.path())
        .standard(Standard::QUESTIONS | Standard::FILES)
        .approver(approver)
        .build()
        .unwrap();
    let run = haft.run(ann()).await.unwrap();
    let question = r#"{"title":"One","questions":[{"id":"which","type":"text","text":"Which?"}]}"#;
    let asks = run.call(ToolCall::new("ask_user", question));
    let others = async {
        let asked = requests.next().await.unwrap();
        let write = ToolCall::new("write_file", r#"{"path":"new.txt","content":"x"}"#);
        let approves = async {
            let pending = requests.next().await.unwrap();
            assert!(pending.decide(Decision::approve("ann", "chat")));
        };
        let (written, ()) = tokio::join!(run.call(write), approves);
        assert!(written.is_ok(), "{written:?}");
        assert!(asked.decide(chosen()));
    };
    let (answered, ()) = tokio::join!(asks, others);
    assert!(answered.is_ok(), "{answered:?}");
    assert!(answered.to_model().contains("which"), "{answered:?}");
    drop(run);
    haft.shut_down().await;
}

/// A person's answer to the question `which`.
fn chosen() -> Decision {
    let answers = r#"{"which":"a"}"#.into();
    Decision::new(
        Choice::Answer { answers },
        "ann".to_owned(),
        "chat".to_owned(),
    )
}
