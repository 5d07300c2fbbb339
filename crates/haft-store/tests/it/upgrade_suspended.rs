//! Databases in which an older haft kept requests and suspended calls apart: what waits, is decided, runs or has ended in them is collected
//! like what this haft writes.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::Arc;

use haft::approval::inbox::{RequestStatus, WaitingCalls};
use haft::approval::transition::CallerState;
use haft::call::{CallId, RunId};
use haft_store::postgres::PostgresStore;
use haft_store::sqlite::SqliteInbox;
use rusqlite::{Connection, params};
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Executor as _};

use crate::cluster::Cluster;
use crate::request::{id, request, yes};

/// The migrations up to the schema of an older haft that kept suspended calls.
const OLD: &[&str] = &[
    include_str!("../../src/sqlite/migrations/0001_runs.sql"),
    include_str!("../../src/sqlite/migrations/0002_memory.sql"),
    include_str!("../../src/sqlite/migrations/0003_approvals.sql"),
    include_str!("../../src/sqlite/migrations/0004_journal.sql"),
    include_str!("../../src/sqlite/migrations/0005_approvals_lean.sql"),
    include_str!("../../src/sqlite/migrations/0006_suspended.sql"),
    include_str!("../../src/sqlite/migrations/0007_suspended_age.sql"),
];

const OLD_SERVER: &[&str] = &[
    include_str!("../../src/postgres/migrations/0001_store.sql"),
    include_str!("../../src/postgres/migrations/0002_journal.sql"),
    include_str!("../../src/postgres/migrations/0003_approvals_lean.sql"),
    include_str!("../../src/postgres/migrations/0004_suspended.sql"),
    include_str!("../../src/postgres/migrations/0005_suspended_age.sql"),
    "UPDATE haft.version SET version = 5",
];

/// A row of each kind in such a database.
struct OldRow {
    name: &'static str,
    status: RequestStatus,
    /// The outcome of the request's call.
    outcome: Option<&'static str>,
    delivered: bool,
    within: bool,
    /// The outcome of the suspended call.
    own: Option<&'static str>,
    owed: Owed<'static>,
}

/// What a client that makes the call again receives.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Owed<'a> {
    /// Nothing yet.
    Later,
    /// It is a new call.
    Nothing,
    Outcome(&'a str),
}

const WAITS: OldRow = OldRow {
    name: "waits",
    status: RequestStatus::Pending,
    outcome: None,
    delivered: false,
    within: false,
    own: None,
    owed: Owed::Later,
};

const ROWS: [OldRow; 8] = [
    WAITS,
    OldRow {
        name: "approved",
        status: RequestStatus::Approved,
        ..WAITS
    },
    OldRow {
        name: "denied",
        status: RequestStatus::Denied,
        ..WAITS
    },
    OldRow {
        name: "done",
        status: RequestStatus::Done,
        outcome: Some("the outcome"),
        owed: Owed::Outcome("the outcome"),
        ..WAITS
    },
    // The older haft stopped between delivering the outcome and forgetting the call.
    OldRow {
        name: "delivered",
        status: RequestStatus::Done,
        outcome: Some("the outcome"),
        delivered: true,
        owed: Owed::Nothing,
        ..WAITS
    },
    OldRow {
        name: "expired",
        status: RequestStatus::Expired,
        owed: Owed::Nothing,
        ..WAITS
    },
    OldRow {
        name: "script",
        status: RequestStatus::Done,
        outcome: Some("of the call in it"),
        within: true,
        ..WAITS
    },
    OldRow {
        name: "script that ended",
        status: RequestStatus::Done,
        outcome: Some("of the call in it"),
        within: true,
        own: Some("its own"),
        owed: Owed::Outcome("its own"),
        ..WAITS
    },
];

fn claimed_by(row: &OldRow) -> Option<&'static str> {
    row.outcome.map(|_| "gone/1")
}

/// The run and the id under which the older haft noted the call.
fn noted(row: &OldRow) -> (RunId, CallId) {
    let request = request(row.name, row.name);
    if row.within {
        (RunId::new("r1"), CallId::new(row.name))
    } else {
        // Every request of the tests is about a call of the same id: each has a run of its own here.
        (RunId::new(row.name), request.call)
    }
}

fn request_of(row: &OldRow) -> haft::approval::ApprovalRequest {
    let mut request = request(row.name, row.name);
    request.run = RunId::new(row.name);
    request
}

fn old_file(path: &std::path::Path) {
    let connection = Connection::open(path).unwrap();
    for step in OLD {
        connection.execute_batch(step).unwrap();
    }
    for row in &ROWS {
        let one = request_of(row);
        let time = |at: i128| i64::try_from(at).unwrap();
        let sql = "INSERT INTO approvals (tenant, id, run, fingerprint, status, created, expires, claimed_by, delivered, outcome, request) \
            VALUES ('local', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let values = params![
            one.id.as_str(),
            one.run.as_str(),
            one.fingerprint,
            row.status.as_str(),
            time(one.created),
            time(one.expires),
            claimed_by(row),
            row.delivered,
            row.outcome,
            serde_json::to_string(&one).unwrap(),
        ];
        connection.execute(sql, values).unwrap();
        let (run, call) = noted(row);
        let sql = "INSERT INTO suspended_calls (run, call, key, approval, within, alone, noted, outcome) VALUES (?, ?, 'k', ?, ?, 1, ?, ?)";
        let (run, call) = (run.as_str(), call.as_str());
        let created = time(one.created);
        let values = params![run, call, row.name, row.within, created, row.own];
        connection.execute(sql, values).unwrap();
    }
}

async fn old_server(url: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    for step in OLD_SERVER {
        connection.execute(sqlx::raw_sql(*step)).await.unwrap();
    }
    for row in &ROWS {
        let one = request_of(row);
        let time = |at: i128| i64::try_from(at).unwrap();
        let sql = "INSERT INTO haft.approvals (tenant, id, run, fingerprint, status, created, expires, changed, claimed_by, delivered_by, \
            outcome, digest, request, stands) VALUES ('local', $1, $2, $3, $4, $5, $6, 0, $7, $8, $9, 'd', $10, false)";
        sqlx::query(sql)
            .bind(one.id.as_str())
            .bind(one.run.as_str())
            .bind(&one.fingerprint)
            .bind(row.status.as_str())
            .bind(time(one.created))
            .bind(time(one.expires))
            .bind(claimed_by(row))
            .bind(row.delivered.then_some("gone/2"))
            .bind(row.outcome.map(str::as_bytes))
            .bind(serde_json::to_string(&one).unwrap())
            .execute(&mut connection)
            .await
            .unwrap();
        let (run, call) = noted(row);
        let sql = "INSERT INTO haft.suspended_calls (run, call, key, approval, within, alone, noted, outcome) VALUES ($1, $2, 'k', $3, $4, true, $5, $6)";
        sqlx::query(sql)
            .bind(run.as_str())
            .bind(call.as_str())
            .bind(row.name)
            .bind(row.within)
            .bind(time(one.created))
            .bind(row.own.map(str::as_bytes))
            .execute(&mut connection)
            .await
            .unwrap();
    }
}

async fn check(store: Arc<dyn WaitingCalls>) {
    assert_eq!(store.find_suspended("k").await.unwrap().len(), ROWS.len());
    for row in &ROWS {
        let (run, call) = noted(row);
        let name = row.name;
        let entry = store.get_suspended(&run, &call).await.unwrap().unwrap();
        assert_eq!(entry.state.status, row.status, "{name}");
        let expect = match (row.within, row.own) {
            (true, Some(_)) => CallerState::Ended,
            (true, None) => CallerState::Within,
            (false, _) => CallerState::Own,
        };
        assert_eq!(entry.state.caller, expect, "{name}");
        let collected = store.collect(&run, &call).await.unwrap();
        let outcome = collected.as_ref().map(|one| one.outcome.as_deref());
        let owed = match outcome {
            None => Owed::Later,
            Some(None) => Owed::Nothing,
            Some(Some(outcome)) => Owed::Outcome(outcome),
        };
        assert_eq!(owed, row.owed, "{name}");
        assert_eq!(store.collect(&run, &call).await.unwrap(), None, "{name}");
    }
    // What waited is decided, run and collected.
    let (run, call) = noted(&WAITS);
    store.decide(&id("waits"), &yes("ada")).await.unwrap();
    for name in ["waits", "approved"] {
        store.claim(&id(name)).await.unwrap();
        store.finish(&id(name), "ran now", false).await.unwrap();
    }
    let collected = store.collect(&run, &call).await.unwrap().unwrap();
    assert_eq!(collected.outcome.as_deref(), Some("ran now"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_file_keeps_its_requests_and_the_calls_that_wait_for_them() {
    let home = tempfile::tempdir().unwrap();
    old_file(&home.path().join("haft.db"));
    check(Arc::new(SqliteInbox::new(home.path()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_server_keeps_its_requests_and_the_calls_that_wait_for_them() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = cluster.database();
    old_server(&url).await;
    check(Arc::new(PostgresStore::new(&url).unwrap())).await;
}
