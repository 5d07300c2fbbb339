//! A process that ends before any one of its writes to the inbox: the call that its client makes again is the one that was asked about, it
//! runs at most once, and its client learns how it ended.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft::approval::inbox::{
    InboxError, RequestEnding, RequestFilter, StoredApproval, Submission, WaitingCalls,
    WaitingLimits,
};
use haft::approval::suspended::{
    CollectedCall, OtherRun, OtherRuns, SuspendedCall, SuspendedEntry,
};
use haft::approval::{ApprovalId, ApprovalRequest};
use haft::call::{CallId, RunId};
use haft::future::BoxFuture;
use haft::session::WaitMode;
use haft::testing::{ScriptedApprover, TestTool};
use haft::{
    ApproverReply, Decision, Executor, Outcome, Policy, Principal, Risk, Session, Status, ToolCall,
    ToolRegistry, ToolResult, ToolSpec,
};
use haft_store::sqlite::SqliteInbox;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::sync::broadcast::Receiver;

use crate::leases::short;

type InboxFuture<'a, T> = BoxFuture<'a, Result<T, InboxError>>;

/// The inbox of a process that ends before one of its writes.
#[derive(Debug)]
struct MortalInbox {
    inner: SqliteInbox,
    /// Number of writes that it still makes.
    left: AtomicUsize,
    is_dead: Notify,
}

impl MortalInbox {
    async fn write(&self) {
        let left = |left: usize| left.checked_sub(1);
        if self
            .left
            .try_update(Ordering::SeqCst, Ordering::SeqCst, left)
            .is_err()
        {
            self.is_dead.notify_one();
            pending::<()>().await;
        }
    }
}

impl WaitingCalls for MortalInbox {
    fn is_durable(&self) -> bool {
        true
    }

    fn submit<'a>(&'a self, request: &'a ApprovalRequest) -> InboxFuture<'a, Submission> {
        Box::pin(async {
            self.write().await;
            self.inner.submit(request).await
        })
    }

    fn has_room<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        limits: WaitingLimits,
    ) -> InboxFuture<'a, bool> {
        self.inner.has_room(request, limits)
    }

    fn get<'a>(&'a self, id: &'a ApprovalId) -> InboxFuture<'a, Option<StoredApproval>> {
        self.inner.get(id)
    }

    fn find<'a>(
        &'a self,
        run: &'a RunId,
        fingerprint: &'a str,
    ) -> InboxFuture<'a, Option<StoredApproval>> {
        self.inner.find(run, fingerprint)
    }

    fn list<'a>(&'a self, filter: &'a RequestFilter) -> InboxFuture<'a, Vec<StoredApproval>> {
        self.inner.list(filter)
    }

    fn decide<'a>(
        &'a self,
        id: &'a ApprovalId,
        decision: &'a Decision,
    ) -> InboxFuture<'a, StoredApproval> {
        Box::pin(async {
            self.write().await;
            self.inner.decide(id, decision).await
        })
    }

    fn claim<'a>(&'a self, id: &'a ApprovalId) -> InboxFuture<'a, StoredApproval> {
        Box::pin(async {
            self.write().await;
            self.inner.claim(id).await
        })
    }

    fn finish<'a>(
        &'a self,
        id: &'a ApprovalId,
        outcome: &'a str,
        delivered: bool,
    ) -> InboxFuture<'a, ()> {
        Box::pin(async move {
            self.write().await;
            self.inner.finish(id, outcome, delivered).await
        })
    }

    fn deliver<'a>(&'a self, id: &'a ApprovalId) -> InboxFuture<'a, bool> {
        Box::pin(async {
            self.write().await;
            self.inner.deliver(id).await
        })
    }

    fn set_attended<'a>(&'a self, id: &'a ApprovalId, attended: bool) -> InboxFuture<'a, ()> {
        Box::pin(async move {
            self.write().await;
            self.inner.set_attended(id, attended).await
        })
    }

    fn end<'a>(
        &'a self,
        id: &'a ApprovalId,
        ending: RequestEnding,
        why: &'a str,
    ) -> InboxFuture<'a, ()> {
        Box::pin(async move {
            self.write().await;
            self.inner.end(id, ending, why).await
        })
    }

    fn suspend<'a>(&'a self, call: &'a SuspendedCall) -> InboxFuture<'a, ()> {
        Box::pin(async {
            self.write().await;
            self.inner.suspend(call).await
        })
    }

    fn find_suspended<'a>(&'a self, key: &'a str) -> InboxFuture<'a, Vec<SuspendedEntry>> {
        self.inner.find_suspended(key)
    }

    fn get_suspended<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> InboxFuture<'a, Option<SuspendedEntry>> {
        self.inner.get_suspended(run, call)
    }

    fn end_suspended<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
        outcome: Option<&'a str>,
    ) -> InboxFuture<'a, ()> {
        Box::pin(async move {
            self.write().await;
            self.inner.end_suspended(run, call, outcome).await
        })
    }

    fn collect<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> InboxFuture<'a, Option<CollectedCall>> {
        Box::pin(async move {
            self.write().await;
            self.inner.collect(run, call).await
        })
    }

    fn changes(&self) -> Receiver<ApprovalId> {
        self.inner.changes()
    }
}

/// No other process has a run.
struct AllGone;

impl OtherRuns for AllGone {
    fn look(&self, _: &RunId) -> OtherRun {
        OtherRun::Abandoned
    }

    fn can_resume<'a>(&'a self, _: &'a RunId, _: &'a CallId) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }
}

/// A workspace folder, the state folder, and how often the tool has run.
struct Desk {
    home: tempfile::TempDir,
    runs: Arc<AtomicUsize>,
    tools: Arc<ToolRegistry>,
}

impl Desk {
    fn new() -> Self {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let spec = ToolSpec {
            risk: Risk::High,
            ..TestTool::echo("count")
        };
        let tool = TestTool::with_body(spec, move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Ok(ToolResult::text("ran")) })
        });
        Self {
            home: tempfile::tempdir().unwrap(),
            runs,
            tools: Arc::new(ToolRegistry::new().with(tool.arc()).unwrap()),
        }
    }

    fn inbox(&self) -> SqliteInbox {
        SqliteInbox::new(self.home.path()).with_lease(short())
    }

    /// Returns a new process's session: a command's run, which exists for one call.
    fn session(&self, wait: WaitMode) -> Session {
        let builder = Session::builder(Arc::clone(&self.tools) as _)
            .with_principal(Principal::local("ann"))
            .with_other_runs(Arc::new(AllGone))
            .with_wait_mode(wait);
        builder.for_one_call().build().unwrap()
    }

    /// Makes the call in a process that ends before this write, and returns its outcome if it came to it.
    fn call_and_die(&self, before: usize, wait: WaitMode, reply: ApproverReply) -> Option<Outcome> {
        let inbox = Arc::new(MortalInbox {
            inner: self.inbox(),
            left: AtomicUsize::new(before),
            is_dead: Notify::new(),
        });
        let process = process();
        let outcome = process.block_on(async {
            let executor = Executor::new(workspace())
                .with_inbox(Arc::clone(&inbox) as _)
                .with_approver(ScriptedApprover::new([reply]));
            let session = self.session(wait);
            tokio::select! {
                outcome = executor.execute(&session, call()) => Some(outcome),
                () = inbox.is_dead.notified() => None,
            }
        });
        process.shutdown_background();
        outcome
    }

    /// Makes the call in a new process until it has an outcome; a user approves what is asked, and the process of that command runs it.
    fn call_again(&self) -> Outcome {
        process().block_on(async {
            let inbox: Arc<dyn WaitingCalls> = Arc::new(self.inbox());
            let executor = Executor::new(workspace()).with_inbox(Arc::clone(&inbox));
            let mut seen = Vec::new();
            for _ in 0..4 {
                let session = self.session(WaitMode::SuspendAtOnce);
                let outcome = executor.execute(&session, call()).await;
                if outcome.status != Status::Suspended {
                    return outcome;
                }
                seen.push(outcome.summary);
                let id = ApprovalId::new(outcome.approval.unwrap());
                let _ = inbox.decide(&id, &Decision::approve("bob", "cli")).await;
                // A process that ended while the call ran counts as alive until its lease is over.
                let entry = executor.wait_while_running(&session, &id).await;
                let entry = entry.unwrap().unwrap();
                if !entry.claimed {
                    let run = entry.request.run.clone();
                    let session = Session::builder(Arc::clone(&self.tools) as _)
                        .with_principal(Principal::local("ann"))
                        .resume(run, 1);
                    let session = session.build().unwrap();
                    seen.push(format!("{:?}", executor.resume(&session, &id).await));
                }
            }
            panic!("the call has no outcome after four rounds: {seen:#?}");
        })
    }
}

fn process() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn workspace() -> Policy {
    let builder = Policy::builder(haft::policy::Profile::Workspace);
    builder.workspace_root(Path::new("/w")).build().unwrap()
}

fn call() -> ToolCall {
    ToolCall::new("count", r#"{"a":1}"#)
}

#[test]
fn a_call_made_again_after_its_process_ended_before_any_write_runs_at_most_once_and_is_answered() {
    type Case = (&'static str, WaitMode, fn() -> ApproverReply);
    let approve = || ApproverReply::Decided(Decision::approve("ann", "terminal"));
    let deny = || ApproverReply::Decided(Decision::deny("ann", "terminal"));
    let cases: [Case; 3] = [
        ("approved", WaitMode::WaitThenSuspend, approve),
        ("denied", WaitMode::WaitThenSuspend, deny),
        ("suspended", WaitMode::SuspendAtOnce, || {
            ApproverReply::Later
        }),
    ];
    for (name, wait, reply) in cases {
        let mut deaths = 0;
        loop {
            let desk = Desk::new();
            let first = desk.call_and_die(deaths, wait, reply());
            let is_over = first.is_some();
            let ran = desk.runs.load(Ordering::SeqCst);
            let row = format!("{name}, dead before write {deaths}: {first:?}");
            if !is_over || name == "suspended" {
                let outcome = desk.call_again();
                let (runs, status) = (desk.runs.load(Ordering::SeqCst), outcome.status);
                let text = outcome.error.as_ref().map_or("", |error| &error.message);
                // The process ended between the claim and the outcome: whether it ran is not known, and it is not run again.
                let is_in_doubt =
                    status == Status::Error && text.contains("claimed by a process that exited");
                match name {
                    "denied" if runs == 0 => {
                        assert_eq!(status, Status::Denied, "{row} then {outcome:?}");
                    }
                    _ if is_in_doubt => assert!(runs <= 1, "{row}"),
                    _ => assert_eq!((status, runs), (Status::Ok, 1), "{row} then {outcome:?}"),
                }
                assert!(runs <= 1 && runs >= ran, "{row} then {outcome:?}");
            }
            if is_over {
                break;
            }
            deaths += 1;
        }
        assert!(deaths >= 3, "{name}: {deaths} writes");
    }
}
