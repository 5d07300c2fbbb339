//! A database written with the driver before `rusqlite` opens unchanged: runs, memory and suspended calls.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use haft::approval::inbox::WaitingCalls as _;
use haft::audit::index::{ClosedEvent, RunFilter, RunIndex, RunState};
use haft::call::{CallId, RunId};
use haft::memory::{
    CandidateDecision, MemoryCounts, MemoryId, MemoryOperation, MemoryState, MemoryStore as _,
};
use haft_store::sqlite::{SqliteInbox, SqliteStore};
use rusqlite::Connection;

use crate::memory::{asker, draft, query};
use crate::request::{all, id, request, yes};

/// The schema and rows of such a file.
const WRITTEN: &str = include_str!("../fixtures/haft_v7.sql");

/// Returns a folder with such a file, and its schema.
fn written() -> (tempfile::TempDir, Vec<String>) {
    let home = tempfile::tempdir().unwrap();
    let connection = Connection::open(home.path().join("haft.db")).unwrap();
    connection.execute_batch(WRITTEN).unwrap();
    let schema = schema(&connection);
    connection.close().unwrap();
    (home, schema)
}

fn schema(connection: &Connection) -> Vec<String> {
    let sql =
        "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1";
    let mut query = connection.prepare(sql).unwrap();
    let rows = query.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_the_driver_before_opens_unchanged() {
    let (home, before) = written();
    let store = SqliteStore::new(home.path());
    runs(&store).await;
    memory(&store).await;
    let inbox = SqliteInbox::new(home.path());
    suspended(&inbox).await;
    inbox_works(&inbox).await;
    inbox.shut_down().await;
    store.shut_down().await.unwrap();
    let connection = Connection::open(home.path().join("haft.db")).unwrap();
    // Later versions add tables; the existing ones stay as they were.
    let after = schema(&connection);
    let gone: Vec<_> = before.iter().filter(|item| !after.contains(item)).collect();
    assert!(gone.is_empty(), "{gone:?}");
    let mode: String = connection
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
}

async fn runs(store: &SqliteStore) {
    let listed = RunIndex::list(store, &RunFilter::newest(10)).await.unwrap();
    let found: Vec<_> = listed
        .iter()
        .map(|run| (run.run.as_str(), run.state, run.calls))
        .collect();
    let expect = [
        ("r-closed", RunState::Closed, 3),
        ("r-suspended", RunState::Suspended, 2),
        ("r-open", RunState::Open, 0),
    ];
    assert_eq!(found, expect);
    let closed = ClosedEvent {
        count: 9,
        head: "h".into(),
        calls: 3,
        seal: "s".into(),
    };
    assert_eq!(listed[0].closed.as_ref(), Some(&closed));
    assert_eq!(listed[0].ended.as_deref(), Some("2023-11-14T22:13:23.000Z"));
    assert_eq!(listed[1].start.workspace, None);
    let open = RunId::new("r-open");
    store.progress(&open, 1, true).await.unwrap();
    store.close(&open, &closed, 0).await.unwrap();
}

async fn memory(store: &SqliteStore) {
    let who = asker("ada", 1_700_000_010);
    let found = store.search(&who, &query("deploy friday")).await.unwrap();
    assert_eq!(found[0].record.content, "The deploys run on Fridays");
    assert_eq!(found[0].record.tags, ["deploy"]);
    let counts = MemoryCounts {
        candidate: 1,
        accepted: 2,
        rejected: 0,
    };
    assert_eq!(store.counts(&who).await.unwrap(), counts);
    // A pending candidate is accepted: the index drops the words of the text that it replaces.
    let accept = CandidateDecision {
        accept: true,
        by: "ada".into(),
    };
    let decided = store.decide(&who, &MemoryId::new("m-3"), &accept).await;
    assert_eq!(decided.unwrap().state, MemoryState::Accepted);
    assert!(
        store
            .search(&who, &query("fridays"))
            .await
            .unwrap()
            .is_empty()
    );
    let found = store.search(&who, &query("mondays")).await.unwrap();
    assert_eq!(found[0].record.id, MemoryId::new("m-3"));
    let put = MemoryOperation::Put(draft("A new one about zebras", MemoryState::Accepted));
    store.apply(&who, vec![put]).await.unwrap();
    assert_eq!(store.search(&who, &query("zebra")).await.unwrap().len(), 1);
}

async fn suspended(store: &SqliteInbox) {
    let run = RunId::new("r-suspended");
    let found = store.find_suspended("k").await.unwrap();
    let calls: Vec<_> = found
        .iter()
        .map(|noted| &noted.call)
        .map(|call| (call.call.as_str(), call.within, call.alone))
        .collect();
    assert_eq!(calls, [("call-2", false, true), ("call-1", true, false)]);
    let collected = store.collect(&run, &CallId::new("call-1")).await.unwrap();
    let outcome = collected.and_then(|collected| collected.outcome);
    assert_eq!(outcome.as_deref(), Some(r#"{"v":1}"#));
}

async fn inbox_works(inbox: &SqliteInbox) {
    inbox.submit(&request("a", "f")).await.unwrap();
    inbox.decide(&id("a"), &yes("bob")).await.unwrap();
    assert_eq!(inbox.list(&all()).await.unwrap().len(), 1);
}
