//! A run resumed in another process: answered calls are not run again, approved ones run, unknown ones are reported.

use std::sync::Arc;

use haft::approval::ApprovalId;
use haft::approval::inbox::Inbox as _;
use haft::session::WaitMode;
use haft::{Decision, Executor, Policy, RunId, Session};
use haft_agent::conversation::{Entry, FileConversation, MemoryConversation};
use haft_agent::testing::ScriptedModel;
use haft_agent::{Agent, AgentError, Conversation, End};

use crate::support::{Durable, Log, last_answers, text, tools};

/// Starts a process: an executor and a session over the same inbox, run and conversation as the others.
async fn process(
    model: &ScriptedModel,
    log: &Log,
    inbox: &Arc<Durable>,
    conversation: &Arc<dyn Conversation>,
) -> Agent {
    let inbox: Arc<dyn haft::approval::inbox::Inbox> = inbox.clone();
    let executor = Executor::new(Policy::workspace()).with_inbox(inbox);
    let session = Session::builder(Arc::new(tools(log)))
        .resume(RunId::new("run-1"), 0)
        .with_wait_mode(WaitMode::SuspendAtOnce)
        .build()
        .unwrap();
    let agent = Agent::new(model.clone(), executor, session);
    agent.keep_in(Arc::clone(conversation)).await.unwrap()
}

fn in_file() -> (tempfile::TempDir, Arc<dyn Conversation>) {
    let home = tempfile::tempdir().unwrap();
    let file = FileConversation::open(home.path().join("conversation.jsonl")).unwrap();
    (home, Arc::new(file))
}

#[tokio::test]
async fn a_suspended_run_goes_on_after_the_decision_and_nothing_runs_twice() {
    for approve in [true, false] {
        let (log, inbox) = (Log::default(), Arc::new(Durable::default()));
        let (_home, file) = in_file();
        let model = ScriptedModel::new()
            .calls([
                ("a", "plain", r#"{"n":1}"#),
                ("b", "risky", r#"{"n":2}"#),
                ("c", "plain", r#"{"n":3}"#),
            ])
            .says("done");
        let mut first = process(&model, &log, &inbox, &file).await;
        let End::Suspended(waiting) = first.run("go").await.unwrap().end else {
            panic!("not suspended");
        };
        assert_eq!(waiting[0].tool, "risky");
        // Later calls wait, too.
        assert_eq!(log.words(), [r#"plain {"n":1}"#]);
        assert!(matches!(first.run("more").await, Err(AgentError::Open(2))));
        drop(first);

        let mut second = process(&model, &log, &inbox, &file).await;
        let end = second.resume().await.unwrap().end;
        assert_eq!(end, End::Suspended(waiting.clone()), "nothing was decided");

        let id = ApprovalId::new(waiting[0].approval.clone());
        let decision = if approve {
            Decision::approve("ann", "test")
        } else {
            Decision::deny("ann", "test").with_message("not this one")
        };
        inbox.decide(&id, &decision).await.unwrap();
        let mut third = process(&model, &log, &inbox, &file).await;
        assert_eq!(third.resume().await.unwrap().text, "done");
        let mut ran = vec![r#"plain {"n":1}"#, r#"plain {"n":3}"#];
        if approve {
            ran.insert(1, r#"risky {"n":2}"#);
        }
        assert_eq!(log.words(), ran);
        let answers = last_answers(&model);
        let ids: Vec<&str> = answers
            .iter()
            .map(|answer| answer.call.id.as_str())
            .collect();
        assert_eq!(ids, ["a", "b", "c"]);
        assert_eq!(answers[1].is_error, !approve);
        assert_eq!(text(&answers[1]).contains("not this one"), !approve);
    }
}

#[tokio::test]
async fn a_call_that_may_have_run_is_told_as_such_and_not_run_again() {
    let (log, inbox) = (Log::default(), Arc::new(Durable::default()));
    let model = ScriptedModel::new()
        .calls([
            ("a", "plain", r#"{"n":1}"#),
            ("b", "plain", r#"{"n":2}"#),
            ("c", "plain", r#"{"n":3}"#),
        ])
        .says("first")
        .says("second");
    let whole: Arc<dyn Conversation> = Arc::new(MemoryConversation::new());
    process(&model, &log, &inbox, &whole)
        .await
        .run("go")
        .await
        .unwrap();
    let entries = whole.entries().await.unwrap();
    // The process exits between each two entries.
    for cut in 1..entries.len() - 1 {
        let begun = |entry: &Entry| matches!(entry, Entry::Begun(_));
        let answered = |entry: &Entry| matches!(entry, Entry::Answered { .. });
        let before = &entries[..cut];
        if !before
            .iter()
            .any(|entry| matches!(entry, Entry::Turn { .. }))
        {
            continue;
        }
        let log = Log::default();
        let model = ScriptedModel::new().says("ok");
        let kept: Arc<dyn Conversation> = Arc::new(MemoryConversation::of(before.to_vec()));
        let mut agent = process(&model, &log, &inbox, &kept).await;
        assert_eq!(agent.resume().await.unwrap().end, End::Done, "{cut}");
        let begun = before.iter().filter(|entry| begun(entry)).count();
        let done = before.iter().filter(|entry| answered(entry)).count();
        assert_eq!(log.words().len(), 3 - begun, "{cut}: {:?}", log.words());
        let answers = last_answers(&model);
        let unknown = answers
            .iter()
            .filter(|answer| text(answer).starts_with("unknown: "))
            .count();
        assert_eq!(unknown, begun - done, "{cut}");
        assert_eq!(answers.len(), 3);
    }
}

#[tokio::test]
async fn an_approved_call_whose_process_ended_is_never_run_again() {
    let (log, inbox) = (Log::default(), Arc::new(Durable::default()));
    let kept: Arc<dyn Conversation> = Arc::new(MemoryConversation::new());
    let model = ScriptedModel::new()
        .calls([("a", "risky", r#"{"n":1}"#)])
        .says("done");
    let mut agent = process(&model, &log, &inbox, &kept).await;
    let End::Suspended(waiting) = agent.run("go").await.unwrap().end else {
        panic!("not suspended");
    };
    let id = ApprovalId::new(waiting[0].approval.clone());
    inbox
        .decide(&id, &Decision::approve("ann", "test"))
        .await
        .unwrap();
    agent.resume().await.unwrap();
    assert_eq!(log.words().len(), 1);
    // The answer was lost with the process: everything up to the start of the approved call is recorded.
    let mut entries = kept.entries().await.unwrap();
    let answered = |entry: &Entry| matches!(entry, Entry::Answered { .. });
    entries.truncate(entries.iter().position(answered).unwrap());
    assert!(matches!(entries.last(), Some(Entry::Begun(_))));
    let model = ScriptedModel::new().says("ok");
    let kept: Arc<dyn Conversation> = Arc::new(MemoryConversation::of(entries));
    let mut again = process(&model, &log, &inbox, &kept).await;
    again.resume().await.unwrap();
    assert_eq!(log.words().len(), 1);
    // The inbox has the outcome.
    assert_eq!(text(&last_answers(&model)[0]), r#"{"n":1}"#);
}
