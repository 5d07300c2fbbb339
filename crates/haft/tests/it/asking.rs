//! Calls of an embedding program that wait for an approval: withdrawn, reported back, resumed once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft::approval::inbox::{
    InboxError, RequestEnding, RequestFilter, RequestStatus, WaitingCalls,
};
use haft::approval::memory::MemoryInbox;
use haft::approval::{ApprovalId, ApprovalScope};
use haft::error::ErrorKind;
use haft::policy::{RuleSet, RuleText};
use haft::testing::{ScriptedApprover, TestTool};
use haft::{
    Decision, Executor, Policy, Risk, RunLimits, Session, Status, ToolCall, ToolRegistry,
    ToolResult,
};

/// Returns a tool of risk high that counts its runs.
fn counting() -> (ToolRegistry, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let tool = TestTool::with_body(
        haft::ToolSpec {
            risk: Risk::High,
            ..TestTool::echo("count")
        },
        move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Ok(ToolResult::text("ran")) })
        },
    );
    let registry = ToolRegistry::new();
    registry.add_all([tool.arc()]).unwrap();
    (registry, runs)
}

/// An approver that never answers: the decision comes through the inbox.
#[derive(Debug)]
struct Silent;

impl haft::Approver for Silent {
    fn ask<'a>(
        &'a self,
        _: &'a haft::ApprovalRequest,
    ) -> haft::future::BoxFuture<'a, haft::ApproverReply> {
        Box::pin(std::future::pending())
    }
}

async fn all(inbox: &MemoryInbox) -> Vec<haft::approval::inbox::StoredApproval> {
    let filter = RequestFilter {
        tenant: "local".into(),
        limit: 100,
        ..RequestFilter::default()
    };
    inbox.list(&filter).await.unwrap()
}

/// Waits for the first request and returns its id.
async fn waiting(inbox: &MemoryInbox) -> ApprovalId {
    let mut changes = inbox.changes();
    loop {
        if let Some(entry) = all(inbox).await.first() {
            return entry.request.id.clone();
        }
        let _ = changes.recv().await;
    }
}

/// Waits until the request is withdrawn and checks that it can no longer be decided.
pub(crate) async fn withdrawn(inbox: &dyn WaitingCalls, id: &ApprovalId) {
    let mut changes = inbox.changes();
    while inbox.get(id).await.unwrap().unwrap().status != RequestStatus::Withdrawn {
        let _ = changes.recv().await;
    }
    let late = inbox.decide(id, &Decision::approve("ann", "test")).await;
    assert!(matches!(late, Err(InboxError::Over { .. })), "{late:?}");
}

fn call() -> ToolCall {
    ToolCall::new("count", r#"{"a":1}"#)
}

/// A call that waits for an approval.
struct PendingCall {
    runs: Arc<AtomicUsize>,
    inbox: Arc<MemoryInbox>,
    executor: Executor,
    session: Session,
    call: tokio::task::JoinHandle<haft::Outcome>,
    id: ApprovalId,
}

async fn start_pending_call() -> PendingCall {
    let (tools, runs) = counting();
    let inbox = Arc::new(MemoryInbox::new());
    let executor = Executor::new(Policy::workspace())
        .with_approver(Silent)
        .with_inbox(Arc::clone(&inbox) as _);
    let session = Session::new(tools);
    let call = {
        let (executor, session) = (executor.clone(), session.clone());
        tokio::spawn(async move { executor.execute(&session, call()).await })
    };
    let id = waiting(&inbox).await;
    PendingCall {
        runs,
        inbox,
        executor,
        session,
        call,
        id,
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_or_cancelled_while_it_waits_is_withdrawn() {
    for cancels in [false, true] {
        let PendingCall {
            runs,
            inbox,
            session,
            call: asked,
            id,
            ..
        } = start_pending_call().await;
        if cancels {
            session.cancel();
            let outcome = asked.await.unwrap();
            assert_eq!(outcome.status, Status::Cancelled);
            assert_eq!(outcome.error.unwrap().advice, None, "it is not forbidden");
        } else {
            asked.abort();
            assert!(asked.await.is_err());
        }
        withdrawn(&*inbox, &id).await;
        assert_eq!(runs.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn a_call_that_is_made_again_under_other_rules_withdraws_its_request() {
    let rule = || vec![RuleText::new("count")];
    let allows = RuleSet {
        allow: rule(),
        ..RuleSet::default()
    };
    let denies = RuleSet {
        deny: rule(),
        ..RuleSet::default()
    };
    for (rules, status, ran, why) in [
        (allows, Status::Ok, 1, "count allows it now"),
        (denies, Status::Denied, 0, "count denies it now"),
    ] {
        let PendingCall {
            runs,
            inbox,
            executor,
            session,
            call: asked,
            id,
        } = start_pending_call().await;
        executor.replace_policy(Policy::workspace().with_rules(rules).unwrap());
        let again = executor.execute(&session, call()).await;
        assert_eq!(again.status, status, "{why}");
        withdrawn(&*inbox, &id).await;
        let kept = inbox.get(&id).await.unwrap().unwrap().why.unwrap();
        assert!(kept.contains(why), "{kept}");
        assert_eq!(asked.await.unwrap().status, Status::Cancelled, "{why}");
        assert_eq!(runs.load(Ordering::SeqCst), ran, "{why}");
    }
}

#[tokio::test]
async fn u6_what_ends_an_asked_call_is_advised_by_its_cause() {
    let PendingCall {
        inbox,
        call: asked,
        id,
        ..
    } = start_pending_call().await;
    inbox.end(&id, RequestEnding::Withdrawn, "").await.unwrap();
    let error = asked.await.unwrap().error.unwrap();
    assert_eq!(error.kind, ErrorKind::Cancelled);
    let again = "nothing ran; if the call is still needed, call again to request approval again";
    assert_eq!(error.advice.as_deref(), Some(again));
    let (tools, executor) = (counting().0, Executor::new(Policy::workspace()));
    let error = executor.execute(&Session::new(tools), call()).await.error;
    let error = error.unwrap();
    assert_eq!(error.kind, ErrorKind::Denied);
    let instead = error.advice.unwrap();
    assert!(instead.starts_with("do it another way"), "{instead}");
}

#[tokio::test]
async fn of_many_that_resume_a_decided_call_one_runs_it() {
    let PendingCall {
        runs,
        inbox,
        executor,
        session,
        call: asked,
        id,
    } = start_pending_call().await;
    let open = executor.resume(&session, &id).await;
    assert!(matches!(open, Err(InboxError::Open(_))), "{open:?}");
    let yes = Decision::approve("ann", "test");
    inbox.decide(&id, &yes).await.unwrap();
    let again = inbox.decide(&id, &yes).await;
    assert!(
        matches!(again, Err(InboxError::Decided { .. })),
        "{again:?}"
    );
    let resumed = (0..50).map(|_| {
        let (executor, session, id) = (executor.clone(), session.clone(), id.clone());
        tokio::spawn(async move { executor.resume(&session, &id).await.is_ok() })
    });
    let mut ran = 0;
    for one in resumed.collect::<Vec<_>>() {
        ran += usize::from(one.await.unwrap());
    }
    // Either a resumer or the waiting call runs the tool; the call gets the outcome in both cases.
    assert!(ran <= 1);
    assert_eq!(asked.await.unwrap().text(), "ran");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_is_chosen_for_good_holds_at_once_in_other_sessions() {
    let (tools, runs) = counting();
    let tools = Arc::new(tools);
    let always = Decision::approve("ann", "test")
        .hold_for(ApprovalScope::Always)
        .with_rule("count");
    let approver = ScriptedApprover::new([always.into()]);
    let asked = Arc::clone(&approver.asked);
    let executor = Executor::new(Policy::workspace()).with_approver(approver);
    for _ in 0..2 {
        let session = Session::builder(Arc::clone(&tools) as _).build().unwrap();
        let outcome = executor.execute(&session, call()).await;
        assert_eq!(outcome.status, Status::Ok, "{:?}", outcome.error);
    }
    assert_eq!((asked.lock().len(), runs.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_decides_about_is_denied_with_the_id_and_what_to_do() {
    let (tools, runs) = counting();
    let inbox = Arc::new(MemoryInbox::new());
    let executor = Executor::new(Policy::workspace())
        .with_approver(Silent)
        .with_inbox(Arc::clone(&inbox) as _);
    let limits = RunLimits {
        approval_timeout: Duration::from_secs(30),
        ..RunLimits::default()
    };
    let session = Session::builder(Arc::new(tools))
        .with_limits(limits)
        .build()
        .unwrap();
    let outcome = executor.execute(&session, call()).await;
    assert_eq!(outcome.status, Status::Denied);
    let error = outcome.error.unwrap();
    let id = all(&inbox).await[0].request.id.to_string();
    assert!(
        error.message.contains("30 s") && error.message.contains(&id),
        "{error:?}"
    );
    assert!(error.advice.unwrap().contains("call again"));
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

/// An approver that lets a call wait for a minute only.
#[derive(Debug)]
struct Impatient;

const PATIENCE: Duration = Duration::from_secs(60);

impl haft::Approver for Impatient {
    fn ask<'a>(
        &'a self,
        _: &'a haft::ApprovalRequest,
    ) -> haft::future::BoxFuture<'a, haft::ApproverReply> {
        Box::pin(std::future::pending())
    }

    fn wait_limit(&self, _: &haft::ApprovalRequest, _: bool) -> Option<Duration> {
        Some(PATIENCE)
    }
}

#[tokio::test]
async fn a_request_states_how_long_its_call_really_waits() {
    use haft::session::WaitMode;
    let minutes = |minutes: i128| minutes * 60_000_000_000;
    let week = minutes(7 * 24 * 60);
    for (mode, inner, expires, waits) in [
        (WaitMode::WaitThenDeny, false, minutes(5), None),
        (WaitMode::WaitThenSuspend, false, week, Some(minutes(1))),
        (WaitMode::WhileAsked, false, week, Some(minutes(1))),
        // It is useless once it stops waiting, as a command's connection is.
        (WaitMode::WaitThenSuspend, true, minutes(1), None),
    ] {
        let (tools, _) = counting();
        let outer = TestTool::with_body(TestTool::echo("outer"), |_, context| {
            Box::pin(async move {
                let never = std::future::pending();
                let outcome = context.call_internal_now("count", r#"{"a":1}"#, never);
                Ok(ToolResult::text(outcome.await.text()))
            })
        });
        tools.add_all([outer.arc()]).unwrap();
        let (internal, _) = counting();
        let inbox = Arc::new(MemoryInbox::new());
        let executor = Executor::new(Policy::workspace())
            .with_internal_tools(Arc::new(internal))
            .with_approver(Impatient)
            .with_inbox(Arc::clone(&inbox) as _);
        let session = Session::builder(Arc::new(tools)).with_wait_mode(mode);
        let session = session.build().unwrap();
        let made = if inner {
            ToolCall::new("outer", "{}")
        } else {
            call()
        };
        let asked = tokio::spawn(async move { executor.execute(&session, made).await });
        waiting(&inbox).await;
        let request = all(&inbox).await.remove(0).request;
        asked.abort();
        let after = |time: i128| time - request.created;
        assert_eq!(after(request.expires), expires, "{mode:?} {inner}");
        assert_eq!(request.waits_until.map(after), waits, "{mode:?} {inner}");
        assert_eq!(request.ends_with_the_wait(), waits.is_none());
    }
}

#[tokio::test]
async fn an_answer_that_was_claimed_by_a_process_that_exited_goes_to_the_call_that_waits_too() {
    let pending = start_pending_call().await;
    let (inbox, id) = (&pending.inbox, &pending.id);
    let answers = r#"{"text":"42"}"#.to_owned();
    let answer = Decision::new(haft::approval::Choice::Answer { answers }, "ann", "test");
    // In memory nothing waits: the call sees both at once, and no outcome ever comes from the process that claimed the answer.
    inbox.decide(id, &answer).await.unwrap();
    inbox.claim(id).await.unwrap();
    let outcome = pending.call.await.unwrap();
    assert!(outcome.text().contains("42"), "{outcome:?}");
    assert_eq!(pending.runs.load(Ordering::SeqCst), 0);
}

/// The clock only moves on while every task waits: a call that looks at the inbox without a pause would stop it.
#[tokio::test(start_paused = true)]
async fn a_call_whose_time_is_over_while_another_process_runs_it_waits_for_the_outcome_without_a_spin()
 {
    let pending = start_pending_call().await;
    let (inbox, id) = (&pending.inbox, &pending.id);
    let approval = Decision::approve("ann", "test");
    inbox.decide(id, &approval).await.unwrap();
    inbox.claim(id).await.unwrap();
    // slow on purpose: the clock is paused, and the hour passes at once if every task waits.
    tokio::time::sleep(Duration::from_hours(1)).await;
    let outcome = r#"{"v":1,"status":"ok","ok":true,"summary":"ran elsewhere"}"#;
    inbox.finish(id, outcome, false).await.unwrap();
    let outcome = pending.call.await.unwrap();
    assert_eq!(outcome.status, Status::Ok, "{outcome:?}");
    assert_eq!(pending.runs.load(Ordering::SeqCst), 0);
}
