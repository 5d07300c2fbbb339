//! A run resumed in another process: answered calls are not run again, approved ones run, unknown ones are reported.

use std::sync::Arc;

use haft::approval::ApprovalId;
use haft::approval::inbox::{RequestEnding, RequestStatus, WaitingCalls as _};
use haft::session::WaitMode;
use haft::{Decision, Executor, Policy, Profile, RunId, Session};
use haft_agent::conversation::{ConversationEntry, FileConversation, MemoryConversation};
use haft_agent::testing::ScriptedModel;
use haft_agent::{Agent, AgentError, Conversation, RunEnd};

use crate::support::{Durable, Log, last_answers, text, tools};

/// Starts a process: an executor and a session over the same inbox, run and conversation as the others.
async fn process(
    model: &ScriptedModel,
    log: &Log,
    inbox: &Arc<Durable>,
    conversation: &Arc<dyn Conversation>,
) -> Agent {
    let executor = executor(Policy::workspace(), inbox);
    of_executor(model, log, executor, conversation).await
}

fn executor(policy: Policy, inbox: &Arc<Durable>) -> Executor {
    let inbox: Arc<dyn haft::approval::inbox::WaitingCalls> = inbox.clone();
    Executor::new(policy).with_inbox(inbox)
}

async fn of_executor(
    model: &ScriptedModel,
    log: &Log,
    executor: Executor,
    conversation: &Arc<dyn Conversation>,
) -> Agent {
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
        let RunEnd::Suspended(waiting) = first.run("go").await.unwrap().end else {
            panic!("not suspended");
        };
        assert_eq!(waiting[0].tool, "risky");
        // Later calls wait, too.
        assert_eq!(log.words(), [r#"plain {"n":1}"#]);
        assert!(matches!(first.run("more").await, Err(AgentError::Open(2))));
        drop(first);

        let mut second = process(&model, &log, &inbox, &file).await;
        let end = second.resume().await.unwrap().end;
        assert_eq!(
            end,
            RunEnd::Suspended(waiting.clone()),
            "nothing was decided"
        );

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
        let begun = |entry: &ConversationEntry| matches!(entry, ConversationEntry::Begun(_));
        let answered =
            |entry: &ConversationEntry| matches!(entry, ConversationEntry::Answered { .. });
        let before = &entries[..cut];
        if !before
            .iter()
            .any(|entry| matches!(entry, ConversationEntry::Turn { .. }))
        {
            continue;
        }
        let log = Log::default();
        let model = ScriptedModel::new().says("ok");
        let kept: Arc<dyn Conversation> = Arc::new(MemoryConversation::of(before.to_vec()));
        let mut agent = process(&model, &log, &inbox, &kept).await;
        assert_eq!(agent.resume().await.unwrap().end, RunEnd::Done, "{cut}");
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
    let RunEnd::Suspended(waiting) = agent.run("go").await.unwrap().end else {
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
    let answered = |entry: &ConversationEntry| matches!(entry, ConversationEntry::Answered { .. });
    entries.truncate(entries.iter().position(answered).unwrap());
    assert!(matches!(entries.last(), Some(ConversationEntry::Begun(_))));
    let model = ScriptedModel::new().says("ok");
    let kept: Arc<dyn Conversation> = Arc::new(MemoryConversation::of(entries));
    let mut again = process(&model, &log, &inbox, &kept).await;
    again.resume().await.unwrap();
    assert_eq!(log.words().len(), 1);
    // The inbox has the outcome.
    assert_eq!(text(&last_answers(&model)[0]), r#"{"n":1}"#);
}

/// What becomes of a request while no process has its run.
#[derive(Debug, Clone, Copy)]
enum Became {
    RanElsewhere,
    Approved,
    Denied,
    Expired,
    Withdrawn,
    Pending,
    Gone,
}

impl Became {
    async fn happen(self, log: &Log, inbox: &Arc<Durable>, id: &ApprovalId) {
        let decide = |decision| async move { inbox.decide(id, &decision).await.unwrap() };
        match self {
            Self::RanElsewhere => {
                decide(Decision::approve("ann", "test")).await;
                let session = Session::builder(Arc::new(tools(log)))
                    .resume(RunId::new("run-1"), 0)
                    .build()
                    .unwrap();
                let executor = executor(Policy::workspace(), inbox);
                executor.resume(&session, id).await.unwrap();
            }
            Self::Approved => _ = decide(Decision::approve("ann", "test")).await,
            Self::Denied => _ = decide(Decision::deny("ann", "test")).await,
            Self::Expired => inbox.end(id, RequestEnding::Expired, "").await.unwrap(),
            Self::Withdrawn => inbox.end(id, RequestEnding::Withdrawn, "").await.unwrap(),
            Self::Pending | Self::Gone => {}
        }
    }
}

#[tokio::test]
async fn what_became_of_a_request_holds_whatever_the_rules_say_since() {
    use RequestStatus::{Denied, Done, Expired, Withdrawn};
    let risky = r#"{"n":1}"#;
    // Whether a rule allows the call now, how often it has run in the end, the answer, and the request.
    for (became, allowed, ran, says, status) in [
        (Became::RanElsewhere, false, 1, risky, Some(Done)),
        (Became::RanElsewhere, true, 1, risky, Some(Done)),
        (Became::Approved, false, 1, risky, Some(Done)),
        (Became::Approved, true, 1, risky, Some(Done)),
        (Became::Denied, false, 0, "ann said no", Some(Denied)),
        (Became::Denied, true, 0, "ann said no", Some(Denied)),
        (Became::Expired, false, 0, "nobody decided", Some(Expired)),
        (Became::Expired, true, 0, "nobody decided", Some(Expired)),
        (
            Became::Withdrawn,
            false,
            0,
            "was withdrawn",
            Some(Withdrawn),
        ),
        (Became::Pending, true, 1, risky, Some(Withdrawn)),
        (Became::Gone, false, 0, "may have run", None),
    ] {
        let row = format!("{became:?} {allowed}");
        let (log, mut inbox) = (Log::default(), Arc::new(Durable::default()));
        let kept: Arc<dyn Conversation> = Arc::new(MemoryConversation::new());
        let model = ScriptedModel::new()
            .calls([("a", "risky", risky)])
            .says("done")
            .says("more");
        let mut agent = process(&model, &log, &inbox, &kept).await;
        let RunEnd::Suspended(waiting) = agent.run("go").await.unwrap().end else {
            panic!("not suspended");
        };
        let id = ApprovalId::new(waiting[0].approval.clone());
        became.happen(&log, &inbox, &id).await;
        if matches!(became, Became::Gone) {
            inbox = Arc::new(Durable::default());
        }
        for _ in 0..3 {
            let policy = Policy::builder(Profile::Workspace);
            let policy = if allowed {
                policy.allow("risky")
            } else {
                policy
            };
            let executor = executor(policy.build().unwrap(), &inbox);
            let mut agent = of_executor(&model, &log, executor, &kept).await;
            let finished = agent.resume().await.unwrap();
            assert_eq!(
                (&finished.end, &*finished.text),
                (&RunEnd::Done, "done"),
                "{row}"
            );
        }
        assert_eq!(log.words().len(), ran, "{row}: {:?}", log.words());
        let answer = text(&last_answers(&model)[0]);
        assert!(answer.contains(says), "{row}: {answer}");
        let stored = inbox.get(&id).await.unwrap();
        assert_eq!(stored.map(|stored| stored.status), status, "{row}");
    }
}

#[tokio::test]
async fn a_request_that_its_process_filed_and_did_not_live_to_note_is_the_call_s() {
    for decided in [false, true] {
        let (log, inbox) = (Log::default(), Arc::new(Durable::default()));
        let kept: Arc<dyn Conversation> = Arc::new(MemoryConversation::new());
        let model = ScriptedModel::new()
            .calls([("a", "risky", r#"{"n":1}"#)])
            .says("done");
        let mut agent = process(&model, &log, &inbox, &kept).await;
        agent.run("go").await.unwrap();
        let mut entries = kept.entries().await.unwrap();
        let Some(ConversationEntry::Suspended { approval, .. }) = entries.pop() else {
            panic!("not suspended");
        };
        if decided {
            let id = ApprovalId::new(approval);
            Became::RanElsewhere.happen(&log, &inbox, &id).await;
        }
        let kept: Arc<dyn Conversation> = Arc::new(MemoryConversation::of(entries));
        let mut again = process(&model, &log, &inbox, &kept).await;
        let end = again.resume().await.unwrap().end;
        assert_eq!(end == RunEnd::Done, decided, "{end:?}");
        assert_eq!(log.words().len(), usize::from(decided));
        if decided {
            assert_eq!(text(&last_answers(&model)[0]), r#"{"n":1}"#);
        }
    }
}
