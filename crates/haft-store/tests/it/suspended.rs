//! The contract of every store of suspended calls: in memory, on `SQLite`, on `PostgreSQL`.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::Arc;

use haft::approval::ApprovalId;
use haft::approval::suspended::{MemorySuspended, SuspendedCall, SuspendedCalls, key};
use haft::call::{CallId, Principal, RunId};
use haft::spec::ToolName;
use haft_store::postgres::PostgresStore;
use haft_store::sqlite::SqliteStore;

use crate::cluster::Cluster;

fn call(run: &str, call: &str, key: &str) -> SuspendedCall {
    SuspendedCall {
        run: RunId::new(run),
        call: CallId::new(call),
        key: key.to_owned(),
        approval: ApprovalId::new("ap-1"),
        within: true,
        alone: false,
        outcome: None,
    }
}

/// Checks the duties of a store; `again` is another process's connection to it.
async fn check(store: Arc<dyn SuspendedCalls>, again: Arc<dyn SuspendedCalls>) {
    let (first, second) = (call("r1", "call-1", "k"), call("r2", "call-1", "k"));
    for one in [&first, &second, &call("r1", "call-2", "other")] {
        store.suspend(one).await.unwrap();
    }
    // The newest first, and no others.
    assert_eq!(
        again.find("k").await.unwrap(),
        [second.clone(), first.clone()]
    );
    assert!(again.find("none").await.unwrap().is_empty());
    let (run, id) = (&first.run, &first.call);
    assert_eq!(again.get(run, id).await.unwrap(), Some(first.clone()));
    // A call that has not ended cannot be collected.
    assert_eq!(again.collect(run, id).await.unwrap(), None);
    store.finish(run, id, "{\"ok\":\"ü\0\"}").await.unwrap();
    let ended = again.get(run, id).await.unwrap().unwrap();
    assert_eq!(ended.outcome.as_deref(), Some("{\"ok\":\"ü\0\"}"));
    // A list only says whether there is an outcome.
    let listed = again.find("k").await.unwrap().pop().unwrap();
    assert_eq!(listed.outcome.as_deref(), Some(""));
    // A call that is suspended again has not ended.
    let later = SuspendedCall {
        approval: ApprovalId::new("ap-2"),
        ..first.clone()
    };
    store.suspend(&later).await.unwrap();
    assert_eq!(again.find("k").await.unwrap(), [later, second.clone()]);
    store.finish(run, id, "done").await.unwrap();
    // Of many concurrent attempts to collect, one succeeds.
    let tries = (0..8).map(|n| {
        let (store, run, id) = (
            if n % 2 == 0 {
                store.clone()
            } else {
                again.clone()
            },
            run.clone(),
            id.clone(),
        );
        tokio::spawn(async move { store.collect(&run, &id).await.unwrap() })
    });
    let mut got = Vec::new();
    for one in tries.collect::<Vec<_>>() {
        got.extend(one.await.unwrap());
    }
    assert_eq!(got, ["done"]);
    assert_eq!(store.get(run, id).await.unwrap(), None);
    assert_eq!(
        store.find("k").await.unwrap(),
        std::slice::from_ref(&second)
    );
    again.forget(&second.run, &second.call).await.unwrap();
    assert!(store.find("k").await.unwrap().is_empty());
    // An unknown call is not an error: its outcome was already delivered.
    store.finish(run, id, "late").await.unwrap();
    store.forget(run, id).await.unwrap();
    assert_eq!(store.get(run, id).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn f1_a_suspended_call_is_found_and_its_outcome_collected_once() {
    let memory = Arc::new(MemorySuspended::default());
    check(memory.clone(), memory).await;
    let home = tempfile::tempdir().unwrap();
    let store = || Arc::new(SqliteStore::new(home.path()));
    check(store(), store()).await;
    if let Some(cluster) = Cluster::start() {
        let url = cluster.database();
        let store = || Arc::new(PostgresStore::new(&url).unwrap());
        check(store(), store()).await;
    }
}

#[tokio::test]
async fn af12_a_known_call_takes_no_other_s_place_in_memory_and_outcomes_are_bounded() {
    let memory = MemorySuspended::default();
    let at = |n: usize| call(&format!("r{n}"), "call-1", "k");
    for n in 0..1000 {
        memory.suspend(&at(n)).await.unwrap();
    }
    memory.suspend(&at(999)).await.unwrap();
    assert_eq!(memory.find("k").await.unwrap().len(), 1000);
    memory.suspend(&at(1000)).await.unwrap();
    let oldest = at(0);
    let known = memory.get(&oldest.run, &oldest.call).await.unwrap();
    assert_eq!(known, None);
    let long = "x".repeat(1 << 20);
    for n in 1..101 {
        let one = at(n);
        memory.finish(&one.run, &one.call, &long).await.unwrap();
    }
    let left = memory.find("k").await.unwrap();
    let ended = left.iter().filter(|call| call.outcome.is_some());
    assert_eq!(ended.count(), 64);
}

#[test]
fn f1_a_call_is_the_same_by_tool_person_workspace_and_arguments() {
    let (tool, ada) = (
        ToolName::new("tool_chain").unwrap(),
        Principal::local("ada"),
    );
    let one = key(&tool, &ada, "/w", r#"{"code":"1","timeout_s":5}"#);
    assert_eq!(
        one,
        key(&tool, &ada, "/w", r#"{ "timeout_s": 5, "code": "1" }"#)
    );
    for other in [
        key(&tool, &ada, "/w", r#"{"code":"2","timeout_s":5}"#),
        key(&tool, &ada, "/v", r#"{"code":"1","timeout_s":5}"#),
        key(
            &tool,
            &Principal::local("bob"),
            "/w",
            r#"{"code":"1","timeout_s":5}"#,
        ),
        key(
            &ToolName::new("other").unwrap(),
            &ada,
            "/w",
            r#"{"code":"1","timeout_s":5}"#,
        ),
    ] {
        assert_ne!(one, other);
    }
}
