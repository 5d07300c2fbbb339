//! Durable approvals: microseconds per request stored on the disk, compared to bare inserts of the same text with the same durability;
//! milliseconds from a decision to its claim by the waiting process, and for a list of 10,000.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::approval::inbox::{RequestFilter, Submission, WaitingCalls};
use haft::approval::{ApprovalId, ApprovalRequest, CallSnapshot, Decision};
use haft::call::{CallId, Origin, Principal, RunId};
use haft::clock;
use haft::policy::Safeguards;
use haft::spec::{Risk, ToolName};
use haft_store::postgres::PostgresStore;
use haft_store::sqlite::SqliteInbox;
use measure::{Row, Step, fact, interleave, wall_ms};
use rusqlite::Connection;
use sqlx::postgres::{PgPool, PgPoolOptions};
use tokio::runtime::{Builder, Runtime};

#[allow(dead_code, reason = "a part of it is for tests alone")]
#[path = "../../../crates/haft-store/tests/it/cluster.rs"]
mod cluster;

/// Number of requests per round.
const REQUESTS: usize = 1_600;
/// Number of parallel writers in the rows with many.
const MANY: usize = 32;
/// Number of decisions per round.
const DECISIONS: usize = 200;

/// Returns a distinct request of the size of a small write.
fn request(n: usize, tenant: &str) -> ApprovalRequest {
    ApprovalRequest {
        id: ApprovalId::new(format!("ap-{n:024x}{tenant}")),
        run: RunId::new("20261122-081500-abcdef"),
        call: CallId::new("call-1"),
        parent: None,
        tool: ToolName::new("write_file").expect("a name"),
        origin: Origin::Model,
        entry_point: "serve".into(),
        client: None,
        principal: Principal::new(tenant.to_owned(), "ada".to_owned()),
        workspace: "/home/ada/project".into(),
        arguments: format!(
            r#"{{"path":"notes/{n}.md","content":"{}"}}"#,
            "text ".repeat(80)
        ),
        args_digest: format!("{n:064x}"),
        bound: serde_json::Map::new(),
        unstated: String::new(),
        snapshot: CallSnapshot::default(),
        risk: Risk::High,
        reason: "it writes a file".into(),
        rule: "profile workspace".into(),
        suggested: vec!["Edit(notes/**)".into()],
        verdicts: Vec::new(),
        causes: Vec::new(),
        safeguards: Safeguards::default(),
        form: None,
        spec_hash: "0".repeat(64),
        fingerprint: format!("{tenant}{n:064x}"),
        created: clock::now(),
        expires: clock::now() + 3_600_000_000_000,
        waits_until: None,
        rule_of_two: None,
        review: None,
    }
}

fn main() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let here = &runtime.expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let cluster = cluster::Cluster::start();
    let full = Full::new(here, &folder.join("full"));
    fact(
        "compared with",
        "bare and raw inserts: the same JSON by its id, in a table with that key alone; ours is found by run and call, \
        by tenant and status, and by when it changed, too",
    );
    let mut steps: Vec<Step<'_>> = Vec::new();
    for writers in [1, MANY] {
        let row = Row::new(format!("bare/sqlite/{writers}"), "us");
        steps.push((row, Box::new(move || bare_sqlite(folder, writers))));
        let row = Row::new(format!("haft/sqlite/{writers}"), "us");
        steps.push((
            row,
            Box::new(move || {
                let home = tempfile::tempdir_in(folder).expect("a folder");
                file(
                    here,
                    &(Arc::new(SqliteInbox::new(home.path())) as Arc<dyn WaitingCalls>),
                    writers,
                )
            }),
        ));
    }
    if let Some(cluster) = &cluster {
        for writers in [1, MANY] {
            let row = Row::new(format!("raw/postgres/{writers}"), "us");
            steps.push((
                row,
                Box::new(move || raw_postgres(here, &cluster.database(), writers)),
            ));
            let row = Row::new(format!("haft/postgres/{writers}"), "us");
            steps.push((
                row,
                Box::new(move || {
                    let store = PostgresStore::new(&cluster.database()).expect("a URL");
                    file(here, &(Arc::new(store) as Arc<dyn WaitingCalls>), writers)
                }),
            ));
        }
    } else {
        fact("PostgreSQL", "MISSING PEER: install the package postgresql");
    }
    let row = Row::new("haft/sqlite/list 10000", "ms");
    steps.push((row, Box::new(|| full.list(here))));
    for (name, of) in [("p50", DECISIONS / 2), ("p99", DECISIONS * 99 / 100)] {
        let row = Row::new(format!("haft/sqlite/decided to claimed {name}"), "ms");
        steps.push((row, Box::new(move || decided_to_claimed(here, folder)[of])));
    }
    interleave(measure::rounds(5), steps);
}

/// Returns the microseconds per request, written by this many tasks in parallel.
fn file(runtime: &Runtime, inbox: &Arc<dyn WaitingCalls>, writers: usize) -> f64 {
    let requests: Vec<ApprovalRequest> = (0..REQUESTS).map(|n| request(n, "t")).collect();
    let requests: Arc<[ApprovalRequest]> = requests.into();
    runtime.block_on(async {
        // Opens the inbox and makes its schema.
        inbox.submit(&request(0, "warm")).await.expect("an inbox");
        let began = Instant::now();
        let tasks = (0..writers).map(|first| {
            let (inbox, requests) = (Arc::clone(inbox), Arc::clone(&requests));
            tokio::spawn(async move {
                for request in requests.iter().skip(first).step_by(writers) {
                    let filed = inbox.submit(request).await;
                    assert_eq!(filed.expect("an inbox"), Submission::New);
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("a writer");
        }
        began.elapsed().as_secs_f64() * 1e6 / REQUESTS as f64
    })
}

fn texts() -> Arc<[(String, String)]> {
    let text = |n| serde_json::to_string(&request(n, "t")).expect("JSON");
    (0..REQUESTS)
        .map(|n| (format!("ap-{n:024x}"), text(n)))
        .collect()
}

fn open_bare(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("a database");
    connection
        .busy_timeout(Duration::from_secs(60))
        .expect("a timeout");
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .expect("a log");
    connection
        .pragma_update(None, "synchronous", "FULL")
        .expect("care");
    let table =
        "CREATE TABLE IF NOT EXISTS requests (id TEXT PRIMARY KEY, request TEXT NOT NULL) STRICT";
    connection.execute_batch(table).expect("a table");
    connection
}

/// Returns the microseconds per insert into a table with a key, by this many threads with a connection each.
fn bare_sqlite(folder: &Path, writers: usize) -> f64 {
    let home = tempfile::tempdir_in(folder).expect("a folder");
    let path = home.path().join("bare.db");
    let texts = texts();
    let connections: Vec<Connection> = (0..writers).map(|_| open_bare(&path)).collect();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for (first, connection) in connections.into_iter().enumerate() {
            let texts = &texts;
            scope.spawn(move || {
                let sql = "INSERT INTO requests VALUES (?, ?)";
                let mut insert = connection.prepare(sql).expect("a statement");
                for (id, text) in texts.iter().skip(first).step_by(writers) {
                    insert.execute([id, text]).expect("an insert");
                }
            });
        }
    });
    began.elapsed().as_secs_f64() * 1e6 / REQUESTS as f64
}

/// Returns the microseconds per insert into a table with a key, by this many clients with a connection each.
fn raw_postgres(runtime: &Runtime, url: &str, writers: usize) -> f64 {
    let texts = texts();
    runtime.block_on(async {
        let pool = PgPoolOptions::new()
            .max_connections(32)
            .test_before_acquire(false);
        let pool: PgPool = pool.connect(url).await.expect("a server");
        let table = "CREATE TABLE requests (id text PRIMARY KEY, request text NOT NULL)";
        sqlx::query(table).execute(&pool).await.expect("a table");
        let mut clients = Vec::new();
        for _ in 0..writers {
            clients.push(pool.acquire().await.expect("a connection"));
        }
        let began = Instant::now();
        let tasks = clients.into_iter().enumerate().map(|(first, mut client)| {
            let texts = Arc::clone(&texts);
            tokio::spawn(async move {
                for (id, text) in texts.iter().skip(first).step_by(writers) {
                    let insert = sqlx::query("INSERT INTO requests VALUES ($1, $2)");
                    let insert = insert.bind(id).bind(text);
                    insert.execute(&mut *client).await.expect("an insert");
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("a client");
        }
        let us = began.elapsed().as_secs_f64() * 1e6 / REQUESTS as f64;
        pool.close().await;
        us
    })
}

/// An inbox with ten thousand pending requests.
struct Full(SqliteInbox);

impl Full {
    fn new(runtime: &Runtime, home: &Path) -> Self {
        let inbox = Arc::new(SqliteInbox::new(home));
        runtime.block_on(async {
            let filing = (0..10_000).map(|n| {
                let inbox = Arc::clone(&inbox);
                tokio::spawn(async move { inbox.submit(&request(n, "t")).await.expect("an inbox") })
            });
            for filed in filing.collect::<Vec<_>>() {
                filed.await.expect("a writer");
            }
        });
        Self(SqliteInbox::new(home))
    }

    fn list(&self, runtime: &Runtime) -> f64 {
        let filter = RequestFilter {
            tenant: "t".into(),
            limit: usize::MAX,
            ..RequestFilter::default()
        };
        let (ms, listed) = wall_ms(|| runtime.block_on(self.0.list(&filter)).expect("an inbox"));
        assert_eq!(listed.len(), 10_000);
        ms
    }
}

/// Returns the sorted milliseconds from a decision in one process, as SQLite sees it, to the claim by the waiting one.
fn decided_to_claimed(runtime: &Runtime, folder: &Path) -> Vec<f64> {
    let home = tempfile::tempdir_in(folder).expect("a folder");
    let (asker, person) = (SqliteInbox::new(home.path()), SqliteInbox::new(home.path()));
    let mut took: Vec<f64> = runtime.block_on(async {
        let mut took = Vec::new();
        let mut heard = asker.changes();
        for n in 0..DECISIONS {
            let request = request(n, "t");
            asker.submit(&request).await.expect("an inbox");
            // Not in step with the polling for changes.
            tokio::time::sleep(Duration::from_micros(137 * (n as u64 % 50))).await;
            let decision = Decision::approve("ada", "terminal");
            let began = Instant::now();
            person
                .decide(&request.id, &decision)
                .await
                .expect("a decision");
            loop {
                // It is notified of its own writes, too.
                if heard.recv().await.expect("a change") == request.id
                    && asker.claim(&request.id).await.is_ok()
                {
                    break;
                }
            }
            took.push(began.elapsed().as_secs_f64() * 1e3);
            while heard.try_recv().is_ok() {}
        }
        took
    });
    took.sort_by(f64::total_cmp);
    took
}
