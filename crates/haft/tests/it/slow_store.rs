//! A slow store: calls that do not need it continue, and the store finishes what it has started.

use std::future::ready;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;

use bytes::Bytes;
use haft::artifact::memory::MemoryArtifacts;
use haft::artifact::quota::QuotaUsage;
use haft::artifact::source::ByteSource;
use haft::artifact::{ArtifactFuture, ArtifactInfo, ArtifactOwner, ArtifactRef, ArtifactStore};
use haft::audit::EventKind;
use haft::call::Principal;
use haft::testing::{MemoryAudit, TestTool};
use haft::{
    Executor, Outcome, Policy, RunId, Session, Status, ToolCall, ToolRegistry, ToolResult, ToolSpec,
};
use serde_json::json;
use tokio::sync::{Notify, Semaphore};

/// A store whose writes and reads run in tasks of their own, each once the test releases it.
struct SlowStore {
    inner: MemoryArtifacts,
    gate: Arc<Semaphore>,
    reached: Arc<Notify>,
    done: Arc<Notify>,
}

impl SlowStore {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryArtifacts::new(),
            gate: Arc::new(Semaphore::new(0)),
            reached: Arc::default(),
            done: Arc::default(),
        })
    }

    fn later<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, haft::artifact::ArtifactError>> + Send + 'static,
    ) -> ArtifactFuture<'static, T> {
        let (gate, done) = (Arc::clone(&self.gate), Arc::clone(&self.done));
        self.reached.notify_one();
        let task = tokio::spawn(async move {
            gate.acquire().await.unwrap().forget();
            let worked = work.await;
            done.notify_one();
            worked
        });
        Box::pin(async move { task.await.unwrap() })
    }
}

impl ArtifactStore for SlowStore {
    fn put_from<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        media_type: &'a str,
        source: Arc<dyn ByteSource>,
    ) -> ArtifactFuture<'a, ArtifactRef> {
        let (inner, owner) = (self.inner.clone(), owner.clone());
        let media_type = media_type.to_owned();
        self.later(async move { inner.put_from(&owner, &media_type, source).await })
    }

    fn usage<'a>(&'a self, principal: &'a Principal) -> ArtifactFuture<'a, QuotaUsage> {
        self.inner.usage(principal)
    }

    fn info<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        reference: &'a ArtifactRef,
    ) -> ArtifactFuture<'a, ArtifactInfo> {
        self.inner.info(owner, reference)
    }

    fn read<'a>(
        &'a self,
        owner: &'a ArtifactOwner,
        reference: &'a ArtifactRef,
        range: Range<u64>,
    ) -> ArtifactFuture<'a, Bytes> {
        let (inner, owner) = (self.inner.clone(), owner.clone());
        let reference = reference.clone();
        self.later(async move { inner.read(&owner, &reference, range).await })
    }

    fn pin(&self, owner: &ArtifactOwner) {
        self.inner.pin(owner);
    }

    fn unpin(&self, owner: &ArtifactOwner) {
        self.inner.unpin(owner);
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        run: Option<&'a RunId>,
    ) -> ArtifactFuture<'a, Vec<ArtifactInfo>> {
        self.inner.list(principal, run)
    }
}

struct Scene {
    store: Arc<SlowStore>,
    audit: Arc<MemoryAudit>,
    executor: Executor,
    session: Session,
}

impl Scene {
    fn new() -> Self {
        let spec = ToolSpec {
            inline_tokens: Some(300),
            ..TestTool::echo("long")
        };
        let long = TestTool::with_body(spec, |_, _| {
            Box::pin(ready(Ok(ToolResult::text("a line\n".repeat(9_000)))))
        });
        let registry = ToolRegistry::new();
        registry
            .add_all([long.arc(), TestTool::of(TestTool::echo("echo")).arc()])
            .unwrap();
        let (store, audit) = (SlowStore::new(), Arc::new(MemoryAudit::new()));
        let executor = Executor::new(Policy::workspace())
            .with_artifacts(Arc::clone(&store) as _)
            .with_audit(Arc::clone(&audit) as _);
        Self {
            store,
            audit,
            executor,
            session: Session::new(registry),
        }
    }

    async fn call(&self, tool: &str, arguments: serde_json::Value) -> Outcome {
        let call = ToolCall::new(tool, arguments.to_string());
        self.executor.execute(&self.session, call).await
    }

    /// Polls a call until the store has work to do for it.
    async fn until_stored(&self, call: Pin<&mut impl Future<Output = Outcome>>) {
        tokio::select! {
            outcome = call => panic!("it did not wait for the store: {outcome:?}"),
            () = self.store.reached.notified() => {}
        }
    }

    async fn stored(&self) -> Vec<ArtifactInfo> {
        let owner = self.session.owner();
        self.store
            .list(&owner.principal, Some(&owner.run))
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn a_call_that_waits_for_the_store_holds_up_no_other() {
    let scene = Scene::new();
    let mut slow = pin!(scene.call("long", json!({})));
    scene.until_stored(slow.as_mut()).await;
    // The runtime has this one thread.
    for n in 0..3 {
        let quick = scene.call("echo", json!({"n": n})).await;
        assert!(quick.is_ok(), "{quick:?}");
    }
    assert!(scene.stored().await.is_empty());
    scene.store.gate.add_permits(1);
    let outcome = slow.await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(outcome.artifacts.len(), 1);
    assert_eq!(scene.stored().await.len(), 1);
}

#[tokio::test]
async fn what_a_dropped_call_was_storing_is_stored_whole() {
    let scene = Scene::new();
    {
        let mut dropped = pin!(scene.call("long", json!({})));
        scene.until_stored(dropped.as_mut()).await;
    }
    let events = scene.audit.events();
    let ended = events.iter().find_map(|event| match &event.what {
        EventKind::CallEnded(_, end) => Some(end.status),
        _ => None,
    });
    assert_eq!(
        ended,
        Some(Status::Cancelled),
        "the record says how it ended"
    );
    scene.store.gate.add_permits(1);
    scene.store.done.notified().await;
    let stored = scene.stored().await;
    assert_eq!((stored.len(), stored[0].bytes), (1, 9_000 * 7));
}

#[tokio::test]
async fn a_call_dropped_while_its_ref_is_read_is_recorded_as_it_was_written() {
    let scene = Scene::new();
    scene.store.gate.add_permits(1);
    let bytes = Bytes::from_static(b"named");
    let reference = scene
        .store
        .put(scene.session.owner(), "text/plain", bytes)
        .await
        .unwrap();
    scene.store.reached.notified().await;
    let arguments = json!({"a": {"$artifact": reference.as_str()}});
    {
        let mut dropped = pin!(scene.call("echo", arguments.clone()));
        scene.until_stored(dropped.as_mut()).await;
    }
    let events = scene.audit.events();
    let recorded = events.iter().find_map(|event| match &event.what {
        EventKind::CallEnded(call, end) => Some((call.arguments.to_string(), end.status)),
        _ => None,
    });
    assert_eq!(recorded, Some((arguments.to_string(), Status::Cancelled)));
}
