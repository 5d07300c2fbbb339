//! An inbox that stores a request and never confirms it: a call that gives up meanwhile withdraws the request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haft::approval::inbox::{
    InboxError, RequestEnding, RequestFilter, StoredApproval, Submission, WaitingCalls,
    WaitingLimits,
};
use haft::approval::memory::MemoryInbox;
use haft::approval::suspended::{CollectedCall, SuspendedCall, SuspendedEntry};
use haft::approval::{ApprovalId, ApprovalRequest};
use haft::call::{CallId, RunId};
use haft::future::BoxFuture;
use haft::testing::TestTool;
use haft::{Decision, Executor, Policy, Risk, Session, ToolCall, ToolRegistry};
use tokio::sync::broadcast::Receiver;

use crate::asking::withdrawn;

type InboxFuture<'a, T> = BoxFuture<'a, Result<T, InboxError>>;

/// An inbox that stores requests and never confirms them.
#[derive(Debug)]
struct Mute(MemoryInbox);

impl WaitingCalls for Mute {
    fn is_durable(&self) -> bool {
        true
    }

    fn submit<'a>(&'a self, request: &'a ApprovalRequest) -> InboxFuture<'a, Submission> {
        Box::pin(async {
            self.0.submit(request).await?;
            std::future::pending().await
        })
    }

    fn has_room<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        limits: WaitingLimits,
    ) -> InboxFuture<'a, bool> {
        self.0.has_room(request, limits)
    }

    fn get<'a>(&'a self, id: &'a ApprovalId) -> InboxFuture<'a, Option<StoredApproval>> {
        self.0.get(id)
    }

    fn find<'a>(
        &'a self,
        run: &'a RunId,
        fingerprint: &'a str,
    ) -> InboxFuture<'a, Option<StoredApproval>> {
        self.0.find(run, fingerprint)
    }

    fn list<'a>(&'a self, filter: &'a RequestFilter) -> InboxFuture<'a, Vec<StoredApproval>> {
        self.0.list(filter)
    }

    fn decide<'a>(
        &'a self,
        id: &'a ApprovalId,
        decision: &'a Decision,
    ) -> InboxFuture<'a, StoredApproval> {
        self.0.decide(id, decision)
    }

    fn claim<'a>(&'a self, id: &'a ApprovalId) -> InboxFuture<'a, StoredApproval> {
        self.0.claim(id)
    }

    fn finish<'a>(
        &'a self,
        id: &'a ApprovalId,
        outcome: &'a str,
        told: bool,
    ) -> InboxFuture<'a, ()> {
        self.0.finish(id, outcome, told)
    }

    fn deliver<'a>(&'a self, id: &'a ApprovalId) -> InboxFuture<'a, bool> {
        self.0.deliver(id)
    }

    fn set_attended<'a>(&'a self, id: &'a ApprovalId, attended: bool) -> InboxFuture<'a, ()> {
        self.0.set_attended(id, attended)
    }

    fn end<'a>(
        &'a self,
        id: &'a ApprovalId,
        ending: RequestEnding,
        why: &'a str,
    ) -> InboxFuture<'a, ()> {
        self.0.end(id, ending, why)
    }

    fn suspend<'a>(&'a self, call: &'a SuspendedCall) -> InboxFuture<'a, ()> {
        self.0.suspend(call)
    }

    fn find_suspended<'a>(&'a self, key: &'a str) -> InboxFuture<'a, Vec<SuspendedEntry>> {
        self.0.find_suspended(key)
    }

    fn get_suspended<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> InboxFuture<'a, Option<SuspendedEntry>> {
        self.0.get_suspended(run, call)
    }

    fn end_suspended<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
        outcome: Option<&'a str>,
    ) -> InboxFuture<'a, ()> {
        self.0.end_suspended(run, call, outcome)
    }

    fn collect<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> InboxFuture<'a, Option<CollectedCall>> {
        self.0.collect(run, call)
    }

    fn changes(&self) -> Receiver<ApprovalId> {
        self.0.changes()
    }
}

#[tokio::test]
async fn a_call_given_up_while_its_request_is_written_leaves_nothing_to_approve() {
    let ran = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ran);
    let spec = haft::ToolSpec {
        risk: Risk::High,
        ..TestTool::echo("mark")
    };
    let tool = TestTool::with_body(spec, move |_, _| {
        seen.store(true, Ordering::SeqCst);
        Box::pin(async { Ok(haft::ToolResult::text("ran")) })
    });
    let tools = ToolRegistry::new();
    tools.add_all([tool.arc()]).unwrap();
    let inbox = Arc::new(Mute(MemoryInbox::new()));
    let executor = Executor::new(Policy::workspace()).with_inbox(Arc::clone(&inbox) as _);
    let session = Session::new(tools);
    let mut changes = inbox.changes();
    let asked = tokio::spawn(async move {
        let call = ToolCall::new("mark", r#"{"a":1}"#);
        executor.execute(&session, call).await
    });
    let id = changes.recv().await.unwrap();
    asked.abort();
    assert!(asked.await.is_err());
    withdrawn(&*inbox, &id).await;
    assert!(!ran.load(Ordering::SeqCst));
}
