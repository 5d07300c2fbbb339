//! Calls that wait for an approval in an inbox that outlives the process: nothing hangs, and no approval is wasted.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft::approval::inbox::{RequestStatus, StoredApproval, WaitingCalls};
use haft::approval::{ApprovalId, Decision};
use haft::bounds::CallerClass;
use haft::call::RunId;
use haft::error::ErrorKind;
use haft::permission::{Condition, Effect, Permission};
use haft::policy::{Profile, RuleSet};
use haft::session::{SessionBuilder, WaitMode};
use haft::testing::{ScriptedApprover, TestTool};
use haft::toolset::view::{ToolSettings, ToolsetExt};
use haft::{
    Executor, Outcome, Policy, Principal, Risk, RunLimits, Session, Status, ToolCall, ToolRegistry,
    ToolResult, ToolSpec, Toolset,
};
use haft_store::sqlite::SqliteInbox;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;

/// Far longer than anything here takes, and far shorter than the limit of a wait.
const SOON: Duration = Duration::from_secs(60);

fn spec() -> ToolSpec {
    ToolSpec {
        risk: Risk::High,
        ..TestTool::echo("count")
    }
}

/// Returns a tool of risk high that counts its runs, and the count.
fn counting(
    tool: impl Fn(TestTool) -> TestTool,
    spec: ToolSpec,
) -> (ToolRegistry, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let made = TestTool::with_body(spec, move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(ToolResult::text("ran")) })
    });
    let registry = ToolRegistry::new();
    registry.add_all([tool(made).arc()]).unwrap();
    (registry, runs)
}

/// Returns a policy without rules over a folder.
fn over(root: &str) -> Policy {
    let builder = Policy::builder(Profile::Workspace);
    builder.workspace_root(Path::new(root)).build().unwrap()
}

fn workspace() -> Policy {
    over("/w")
}

fn plain() -> (ToolRegistry, Arc<AtomicUsize>) {
    counting(|tool| tool, spec())
}

fn call() -> ToolCall {
    ToolCall::new("count", r#"{"a":1}"#)
}

fn session(tools: impl Toolset + 'static) -> SessionBuilder {
    Session::builder(Arc::new(tools)).with_principal(Principal::local("ann"))
}

async fn soon(executor: &Executor, session: &Session) -> Outcome {
    let outcome = timeout(SOON, executor.execute(session, call())).await;
    // A call that waited for an answer would exceed this.
    outcome.unwrap()
}

#[tokio::test]
async fn e4_without_an_approver_a_call_is_suspended_at_once() {
    let home = tempfile::tempdir().unwrap();
    let inbox: Arc<dyn WaitingCalls> = Arc::new(SqliteInbox::new(home.path()));
    let alone = || Executor::new(workspace()).with_inbox(Arc::clone(&inbox));
    // No approver, and one that says that it reaches nobody.
    for executor in [alone(), alone().with_approver(ScriptedApprover::default())] {
        let (tools, runs) = plain();
        let session = session(tools).build().unwrap();
        let outcome = soon(&executor, &session).await;
        assert_eq!(outcome.status, Status::Suspended, "{:?}", outcome.error);
        let id = ApprovalId::new(outcome.approval.unwrap());
        let entry = inbox.get(&id).await.unwrap().unwrap();
        assert_eq!(
            (entry.status, entry.attended),
            (RequestStatus::Pending, false)
        );
        // The request stays pending: a later decision is about this very call.
        let yes = Decision::approve("bob", "test");
        inbox.decide(&id, &yes).await.unwrap();
        let outcome = executor.resume(&session, &id).await.unwrap();
        assert_eq!(
            (outcome.status, runs.load(Ordering::SeqCst)),
            (Status::Ok, 1)
        );
    }
    // A host that wants to wait for others says so.
    let (tools, _) = plain();
    let limits = RunLimits {
        approval_timeout: Duration::from_millis(1),
        ..RunLimits::default()
    };
    let waiting = session(tools)
        .with_limits(limits)
        .with_wait_mode(WaitMode::WaitThenDeny)
        .build()
        .unwrap();
    assert_eq!(soon(&alone(), &waiting).await.status, Status::Denied);
}

/// A call that was suspended in a run and has been approved.
struct Approved {
    inbox: Arc<dyn WaitingCalls>,
    id: ApprovalId,
    run: RunId,
    _home: tempfile::TempDir,
}

impl Approved {
    async fn new(tools: impl Toolset + 'static) -> Self {
        let home = tempfile::tempdir().unwrap();
        let inbox: Arc<dyn WaitingCalls> = Arc::new(SqliteInbox::new(home.path()));
        let executor = Executor::new(workspace()).with_inbox(Arc::clone(&inbox));
        let session = session(tools).build().unwrap();
        let outcome = soon(&executor, &session).await;
        let id = ApprovalId::new(outcome.approval.unwrap());
        let yes = Decision::approve("bob", "test");
        inbox.decide(&id, &yes).await.unwrap();
        Self {
            inbox,
            id,
            run: session.run().clone(),
            _home: home,
        }
    }

    async fn entry(&self) -> StoredApproval {
        self.inbox.get(&self.id).await.unwrap().unwrap()
    }

    async fn resume(&self, policy: Policy, session: SessionBuilder) -> Outcome {
        let executor = Executor::new(policy).with_inbox(Arc::clone(&self.inbox));
        let session = session.resume(self.run.clone(), 1).build().unwrap();
        executor.resume(&session, &self.id).await.unwrap()
    }
}

/// Asserts that resuming the call elsewhere fails with this error.
async fn refused(policy: Policy, elsewhere: SessionBuilder, kind: ErrorKind, says: &str) {
    let (tools, runs) = plain();
    let tools = Arc::new(tools);
    let approved = Approved::new(Arc::clone(&tools)).await;
    let outcome = approved.resume(policy, elsewhere).await;
    let error = outcome.error.unwrap();
    assert_eq!(error.kind, kind, "{error:?}");
    assert!(error.message.contains(says), "{error:?} lacks {says}");
    let entry = approved.entry().await;
    assert_eq!(
        (entry.status, entry.claimed),
        (RequestStatus::Approved, false),
        "{says}"
    );
    assert_eq!(
        (entry.outcome, runs.load(Ordering::SeqCst)),
        (None, 0),
        "{says}"
    );
    // If the call is again the one that was shown, the approval holds.
    let right = session(Arc::clone(&tools));
    let outcome = approved.resume(workspace(), right).await;
    assert_eq!(outcome.status, Status::Ok, "{says}: {:?}", outcome.error);
    assert_eq!(approved.entry().await.status, RequestStatus::Done);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn e3_p9_a_resumed_call_is_compared_before_its_approval_is_claimed() {
    let other = |change: fn(TestTool) -> TestTool| session(counting(change, spec()).0);
    let conflict = ErrorKind::Conflict;
    let bob = || session(plain().0).with_principal(Principal::local("bob"));
    refused(workspace(), bob(), conflict, "it was requested for").await;
    let (elsewhere, tools) = (over("/elsewhere"), session(plain().0));
    refused(elsewhere, tools, conflict, "/elsewhere").await;
    let described = ToolSpec {
        description: "does something else".to_owned(),
        ..spec()
    };
    let described = session(counting(|tool| tool, described).0);
    refused(workspace(), described, conflict, "the tool changed").await;
    let effects = other(|tool| {
        let effect = Effect::Other {
            kind: "pay".to_owned(),
            value: "100".to_owned(),
        };
        let risk = Risk::High;
        tool.wanting(vec![Permission { effect, risk }])
    });
    refused(workspace(), effects, conflict, "pay 100").await;
    let weaker = other(|tool| tool.under(vec![Condition::new("sandbox", "none")]));
    refused(workspace(), weaker, conflict, "sandbox").await;
    let riskier = session(
        counting(
            |tool| tool,
            ToolSpec {
                risk: Risk::Critical,
                ..spec()
            },
        )
        .0,
    );
    refused(workspace(), riskier, conflict, "risk").await;
    // P10: a call that cannot run here at all uses nothing up either.
    let nothing = session(ToolRegistry::new());
    refused(workspace(), nothing, ErrorKind::NotFound, "no tool").await;
    let denied = RuleSet {
        deny: vec!["count".into()],
        ..RuleSet::default()
    };
    let denied = workspace().with_rules(denied).unwrap();
    let here = session(plain().0);
    refused(denied, here, ErrorKind::Denied, "deny rule").await;
}

#[tokio::test]
async fn p16_bound_values_are_kept_as_written_and_compared() {
    let bound = |value: &str, written: Option<&str>| {
        let spec = ToolSpec {
            input_schema: Arc::new(json!({
                "type": "object",
                "properties": {"a": {"type": "integer"}, "key": {"type": "string"}},
                "required": ["key"], "additionalProperties": false
            })),
            ..spec()
        };
        let (tools, runs) = counting(|tool| tool, spec);
        let map = |text: &str| json!({ "key": text }).as_object().unwrap().clone();
        let settings = ToolSettings {
            bind: map(value),
            bind_written: written.map(map),
            ..ToolSettings::default()
        };
        let view = tools.configured([("count".to_owned(), settings)].into(), None);
        (Arc::new(view.unwrap()), runs)
    };
    let reference = Some("${env:KEY}");
    let (tools, runs) = bound("swordfish", reference);
    let approved = Approved::new(Arc::clone(&tools)).await;
    let request = approved.entry().await.request;
    let json = serde_json::to_string(&request).unwrap();
    assert!(!json.contains("swordfish"), "{json}");
    assert_eq!(request.bound["key"], "${env:KEY}");
    // Without a written form a value is sealed: it is not shown, and another value counts as different.
    let (sealed, _) = bound("swordfish", None);
    let hidden = Approved::new(sealed).await.entry().await.request;
    assert!(
        !serde_json::to_string(&hidden)
            .unwrap()
            .contains("swordfish")
    );
    let outcome = approved
        .resume(workspace(), session(bound("x", Some("${env:OTHER}")).0))
        .await;
    let error = outcome.error.unwrap();
    assert!(error.message.contains("the settings fill in"), "{error:?}");
    assert_eq!(approved.entry().await.status, RequestStatus::Approved);
    let outcome = approved.resume(workspace(), session(tools)).await;
    assert_eq!(outcome.status, Status::Ok, "{:?}", outcome.error);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

fn numbered(number: usize) -> ToolCall {
    ToolCall::new("count", json!({ "a": number }).to_string())
}

#[tokio::test]
async fn aw2_however_many_runs_clients_open_the_inbox_has_room_for_others() {
    let home = tempfile::tempdir().unwrap();
    let inbox: Arc<dyn WaitingCalls> = Arc::new(SqliteInbox::new(home.path()));
    let executor = Executor::new(Policy::workspace()).with_inbox(Arc::clone(&inbox));
    let opened_by = |class| session(plain().0).with_class(class).build().unwrap();
    for _ in 0..50 {
        let run = opened_by(CallerClass::Client);
        let calls = (0..100).map(|number| executor.execute(&run, numbered(number)));
        let outcomes = futures_util::future::join_all(calls).await;
        let suspended = |outcome: &Outcome| outcome.status == Status::Suspended;
        assert!(outcomes.iter().all(suspended), "{:?}", outcomes[0].error);
    }
    let one_more = opened_by(CallerClass::Client);
    let refused = executor.execute(&one_more, numbered(0)).await;
    let error = refused.error.as_ref().unwrap();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(
        error.message.contains("or 5000 or 256 MiB of all clients"),
        "{}",
        error.message
    );
    let own = opened_by(CallerClass::Operator);
    let outcome = executor.execute(&own, numbered(0)).await;
    assert_eq!(outcome.status, Status::Suspended, "{:?}", outcome.error);
}

#[tokio::test]
async fn aw3_long_requests_of_clients_leave_room_for_short_ones_and_for_the_operators() {
    let home = tempfile::tempdir().unwrap();
    let inbox: Arc<dyn WaitingCalls> = Arc::new(SqliteInbox::new(home.path()));
    let executor = Executor::new(Policy::workspace()).with_inbox(Arc::clone(&inbox));
    let opened_by = |class| session(plain().0).with_class(class).build().unwrap();
    let client = opened_by(CallerClass::Client);
    let first = executor.execute(&client, numbered(0)).await;
    let known = inbox.get(&ApprovalId::new(first.approval.unwrap())).await;
    let known = known.unwrap().unwrap().request;
    for number in 0..18 {
        let mut one = known.clone();
        (one.id, one.fingerprint) = (ApprovalId::new(format!("ap-{number}")), number.to_string());
        one.arguments = format!(r#"{{"a":{number}{}}}"#, " ".repeat(15 << 20));
        inbox.submit(&one).await.unwrap();
    }
    let long = || ToolCall::new("count", format!(r#"{{"a":1e{}1}}"#, "0".repeat(64 << 10)));
    let refused = executor.execute(&client, long()).await;
    let error = refused.error.as_ref().unwrap();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{}", error.message);
    assert!(error.message.contains("256 MiB of all clients"));
    let own = opened_by(CallerClass::Operator);
    for (run, call) in [(&client, numbered(2)), (&own, long())] {
        let outcome = executor.execute(run, call).await;
        assert_eq!(outcome.status, Status::Suspended, "{:?}", outcome.error);
    }
}

#[tokio::test]
async fn w12_of_one_run_a_hundred_requests_wait_and_no_more() {
    let home = tempfile::tempdir().unwrap();
    let inbox: Arc<dyn WaitingCalls> = Arc::new(SqliteInbox::new(home.path()));
    let executor = Executor::new(Policy::workspace()).with_inbox(Arc::clone(&inbox));
    let fresh = || session(plain().0);
    let one = fresh().build().unwrap();
    let calls = (0..150).map(|number| executor.execute(&one, numbered(number)));
    let outcomes = futures_util::future::join_all(calls).await;
    let (waiting, refused): (Vec<_>, Vec<_>) = outcomes
        .into_iter()
        .partition(|outcome| outcome.status == Status::Suspended);
    assert_eq!((waiting.len(), refused.len()), (100, 50));
    let says = |outcome: &Outcome| {
        let error = outcome.error.as_ref().unwrap();
        assert_eq!(error.kind, ErrorKind::Unavailable);
        let expect = "too many requests are already pending: 100 of this run";
        assert!(error.message.contains(expect), "{}", error.message);
    };
    refused.iter().for_each(says);
    // A pending call can be repeated, even after the run was resumed; a new call is refused.
    let again = fresh().resume(one.run().clone(), 150).build().unwrap();
    for session in [&one, &again] {
        let standing = executor.execute(session, numbered(0)).await;
        assert_eq!(standing.approval, waiting[0].approval);
        says(&executor.execute(session, numbered(1000)).await);
    }
    // Another run has places of its own.
    let other = fresh().build().unwrap();
    let outcome = executor.execute(&other, numbered(0)).await;
    assert_eq!(outcome.status, Status::Suspended);
    // A decision frees a place.
    let id = ApprovalId::new(waiting[1].approval.clone().unwrap());
    let no = Decision::deny("bob", "test");
    inbox.decide(&id, &no).await.unwrap();
    let outcome = executor.execute(&one, numbered(1000)).await;
    assert_eq!(outcome.status, Status::Suspended, "{:?}", outcome.error);
    says(&executor.execute(&one, numbered(1001)).await);
}

/// How the wait of a call ends without a decision, if it is decided while it waits.
#[derive(Debug, Clone, Copy)]
enum Undecided {
    Later,
    Left,
    Ended,
}

/// Returns a tool that makes an internal call, which is useful only while the tool runs.
fn holding(ended: Arc<Notify>) -> ToolRegistry {
    let tool = TestTool::with_body(TestTool::echo("hold"), move |_, context| {
        let ended = Arc::clone(&ended);
        Box::pin(async move {
            let inner = context.call_internal_now("count", r#"{"a":1}"#, ended.notified());
            let inner = inner.await;
            let message = inner.error.map(|error| error.message).unwrap_or_default();
            Ok(ToolResult::text(format!("{:?} {message}", inner.status)))
        })
    });
    let registry = ToolRegistry::new();
    registry.add_all([tool.arc()]).unwrap();
    registry
}

#[tokio::test]
async fn a_call_that_is_of_no_use_later_leaves_no_request_however_its_wait_ends() {
    for (how, says) in [
        (Undecided::Later, "Denied nobody approved it within"),
        (Undecided::Left, "Cancelled the session ended"),
        (Undecided::Ended, "Cancelled the session ended"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let inbox: Arc<dyn WaitingCalls> = Arc::new(SqliteInbox::new(home.path()));
        let (internal, runs) = plain();
        let (approver, mut requests) = haft::approval::channel(8);
        let executor = Executor::new(workspace())
            .with_inbox(Arc::clone(&inbox))
            .with_approver(approver)
            .with_internal_tools(Arc::new(internal));
        let ended = Arc::new(Notify::new());
        let session = session(holding(Arc::clone(&ended))).build().unwrap();
        let person = async {
            let pending = requests.next().await.unwrap();
            let id = pending.request().id.clone();
            match how {
                Undecided::Later => assert!(pending.suspend()),
                Undecided::Left => session.suspend(),
                Undecided::Ended => ended.notify_one(),
            }
            id
        };
        let call = ToolCall::new("hold", "{}");
        let both = async { tokio::join!(executor.execute(&session, call), person) };
        let (outcome, id) = timeout(SOON, both).await.unwrap();
        let entry = inbox.get(&id).await.unwrap().unwrap();
        assert_eq!(entry.status, RequestStatus::Withdrawn, "{how:?}");
        let text = outcome.text();
        assert!(text.starts_with(says), "{how:?}: {text}");
        assert_eq!(runs.load(Ordering::SeqCst), 0, "{how:?}");
    }
}
