//! What lists show about runs: notes, filters, and the counts by hour, in both databases.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use haft::audit::RunStart;
use haft::audit::index::{
    CallCount, CallTally, ChangeCount, ClosedEvent, FirstCall, NoteEntry, RunFilter, RunIndex,
    RunNotes, RunState,
};
use haft::call::{Principal, RunId};
use haft::result::Status;
use haft_store::postgres::PostgresStore;
use haft_store::sqlite::SqliteStore;
use rusqlite::Connection;

use crate::cluster::Cluster;

fn start(workspace: &str) -> RunStart {
    RunStart {
        principal: Principal::local("ada"),
        entry_point: "mcp http".into(),
        workspace: Some(workspace.into()),
        profile: "workspace".into(),
    }
}

fn tally(tool: &str, status: Status, calls: u64, waited_ms: u64) -> CallTally {
    CallTally {
        part: 1,
        hour: 480_000,
        tool: tool.into(),
        status,
        exit: false,
        count: CallCount {
            calls,
            total_ms: calls * 10,
            decided: u64::from(waited_ms > 0),
            waited_ms,
        },
    }
}

fn noted(started: i128, tallies: Vec<CallTally>) -> NoteEntry {
    let mut notes = RunNotes {
        client: Some("claude-code 2.1".into()),
        first: Some(FirstCall {
            tool: "read_file".into(),
            argument: Some("src/a.rs".into()),
        }),
        outcome: Some(Status::Ok),
        changes: Some(ChangeCount {
            files: 1,
            added: 3,
            removed: 2,
        }),
        ..RunNotes::default()
    };
    for tally in &tallies {
        *notes
            .statuses
            .entry(tally.status.as_str().into())
            .or_default() += tally.count.calls;
    }
    NoteEntry {
        at: started + 5,
        started,
        notes,
        tallies,
    }
}

async fn ids(store: &dyn RunIndex, filter: RunFilter) -> Vec<String> {
    let listed = store.list(&filter).await.unwrap();
    listed.iter().map(|entry| entry.run.to_string()).collect()
}

/// Writes four runs: r1 ok, r2 with a denied call, r3 with a failed one in another folder, r4 without a note.
async fn write(store: &dyn RunIndex) -> [RunId; 4] {
    let runs = ["r1", "r2", "r3", "r4"].map(RunId::new);
    for (n, run) in (1..).zip(&runs) {
        let workspace = if n == 3 { "/other" } else { "/w" };
        store.open(run, &start(workspace), n * 10).await.unwrap();
    }
    let read = || tally("read_file", Status::Ok, 2, 0);
    let denied = tally("run_command", Status::Denied, 1, 1500);
    let failed = CallTally {
        exit: true,
        ..tally("run_command", Status::Error, 1, 0)
    };
    let [r1, r2, r3, _] = &runs;
    store.note(r1, &noted(10, vec![read()])).await.unwrap();
    let entry = noted(20, vec![read(), denied]);
    store.note(r2, &entry).await.unwrap();
    store.note(r3, &noted(30, vec![failed])).await.unwrap();
    runs
}

async fn lists_are_filtered(store: &dyn RunIndex) {
    let [r1, r2, ..] = write(store).await;
    let all = || RunFilter::newest(9);
    assert_eq!(ids(store, all()).await, ["r4", "r3", "r2", "r1"]);
    let tool = |tool: &str| RunFilter {
        tool: Some(tool.into()),
        ..all()
    };
    assert_eq!(ids(store, tool("read_file")).await, ["r2", "r1"]);
    let denied = RunFilter {
        status: Some(Status::Denied),
        ..all()
    };
    assert_eq!(ids(store, denied.clone()).await, ["r2"]);
    let error = RunFilter {
        status: Some(Status::Error),
        ..all()
    };
    assert_eq!(
        ids(store, error).await,
        ["r3"],
        "an exit code other than 0 is an error, too"
    );
    let both = RunFilter {
        tool: Some("read_file".into()),
        ..denied
    };
    assert!(ids(store, both).await.is_empty(), "one call has both");
    let failed = RunFilter {
        failed: true,
        ..all()
    };
    assert_eq!(ids(store, failed.clone()).await, ["r3", "r2"]);
    let later = RunFilter {
        since: Some(21),
        ..failed
    };
    assert_eq!(ids(store, later).await, ["r3"]);
    let here = RunFilter {
        workspace: Some("/w".into()),
        until: Some(40),
        ..all()
    };
    assert_eq!(ids(store, here).await, ["r2", "r1"]);
    let noted = RunFilter {
        noted_since: Some(25),
        ..all()
    };
    assert_eq!(ids(store, noted).await, ["r3", "r2"]);
    let next = RunFilter {
        after: Some(RunId::new("r3")),
        limit: 1,
        ..all()
    };
    assert_eq!(ids(store, next).await, ["r2"]);

    states_are_told_apart(store, &r1, &r2).await;
}

async fn states_are_told_apart(store: &dyn RunIndex, r1: &RunId, r2: &RunId) {
    store.progress(r2, 3, true).await.unwrap();
    let closed = ClosedEvent {
        count: 5,
        head: "aa".into(),
        calls: 2,
        seal: "bb".into(),
    };
    store.close(r1, &closed, 99).await.unwrap();
    let state = |state| RunFilter {
        state: Some(state),
        ..RunFilter::newest(9)
    };
    assert_eq!(ids(store, state(RunState::Suspended)).await, ["r2"]);
    assert_eq!(ids(store, state(RunState::Closed)).await, ["r1"]);
    assert_eq!(ids(store, state(RunState::Open)).await, ["r4", "r3"]);
}

async fn counts_may_be_written_twice(store: &dyn RunIndex) {
    let run = RunId::new("r2");
    // A broken connection can execute a statement twice; a later count replaces the earlier one.
    let more = noted(20, vec![tally("run_command", Status::Denied, 4, 2500)]);
    store.note(&run, &more).await.unwrap();
    store.note(&run, &more).await.unwrap();
    let hours = store.activity(480_000).await.unwrap();
    let found: Vec<_> = hours
        .iter()
        .map(|hour| (&*hour.tool, &*hour.status, hour.count.calls))
        .collect();
    let expect = [
        ("read_file", "ok", 4),
        ("run_command", "denied", 4),
        ("run_command", "exit", 1),
    ];
    assert_eq!(found, expect);
    let waited = hours.iter().map(|hour| hour.count.waited_ms).sum::<u64>();
    assert_eq!(waited, 2500);
    assert!(store.activity(480_001).await.unwrap().is_empty());
    let entry = store.get(&run).await.unwrap().unwrap();
    assert_eq!(entry.notes, Some(more.notes), "the newest notes");
}

async fn all_of_it(store: &dyn RunIndex) {
    lists_are_filtered(store).await;
    counts_may_be_written_twice(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_noted_in_a_file() {
    let home = tempfile::tempdir().unwrap();
    all_of_it(&SqliteStore::new(home.path())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_noted_on_a_server() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let store = PostgresStore::new(&cluster.database()).unwrap();
    all_of_it(&store).await;
}

/// Returns the plan of a statement, one step per line.
fn plan(connection: &Connection, sql: &str) -> String {
    let mut query = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
        .unwrap();
    let steps = query.query_map([], |row| row.get::<_, String>(3)).unwrap();
    steps.collect::<Result<Vec<_>, _>>().unwrap().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overview_of_many_runs_reads_few_rows() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::new(home.path());
    store.list(&RunFilter::newest(1)).await.unwrap();
    let connection = Connection::open(home.path().join("haft.db")).unwrap();
    // 100,000 runs over 100 days, every tenth with a failure.
    connection
        .execute_batch(
            "BEGIN;
            WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)
            INSERT INTO runs (tenant, run, subject, door, workspace, profile, started, state, ended, count, head, seal)
                SELECT 'local', printf('r%06d', i), 'ada', 'mcp http', '/w', 'workspace', i * 86400000000, 'closed', 1, 1, 'h', 's' FROM n;
            INSERT INTO run_notes SELECT run, started, started, (started / 86400000000) % 10 = 0, '{}' FROM runs;
            INSERT INTO run_calls SELECT run, 'read_file', 'ok', 1, started / 3600000000000, 3, 30, 0, 0 FROM runs;
            COMMIT; ANALYZE;",
        )
        .unwrap();
    let hours: i64 = connection
        .query_row("SELECT count(*) FROM call_hours", [], |row| row.get(0))
        .unwrap();
    assert_eq!(hours, 2400, "a row an hour, however many runs");
    let day = 99 * 24;
    assert_eq!(store.activity(day).await.unwrap().len(), 24);
    let plan_of_hours = plan(&connection, "SELECT * FROM call_hours WHERE hour >= 2376");
    assert!(
        plan_of_hours.contains("SEARCH call_hours USING PRIMARY KEY (hour>?)"),
        "{plan_of_hours}"
    );
    let failed = "SELECT r.*, n.notes FROM runs r JOIN run_notes n ON n.run = r.run WHERE 1 = 1 AND n.failed > 0 \
        AND n.started >= 1 ORDER BY n.started DESC, r.run DESC LIMIT 10";
    let plan_of_failed = plan(&connection, failed);
    assert!(
        plan_of_failed.contains("run_notes_failed") && !plan_of_failed.contains("SCAN"),
        "{plan_of_failed}"
    );
    let newest = RunFilter {
        failed: true,
        since: Some(1),
        ..RunFilter::newest(10)
    };
    assert_eq!(store.list(&newest).await.unwrap().len(), 10);
    let open = plan(
        &connection,
        "SELECT r.*, n.notes FROM runs r LEFT JOIN run_notes n ON n.run = r.run WHERE 1 = 1 AND r.state <> 'closed' \
        AND r.state = 'open' ORDER BY r.started DESC, r.run DESC LIMIT 10",
    );
    assert!(
        open.contains("runs_in_progress") && !open.contains("SCAN"),
        "{open}"
    );
}
