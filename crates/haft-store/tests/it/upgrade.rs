//! Databases of an older haft: requests that were pending in them are still there and continue.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use haft::approval::inbox::{RequestEnding, RequestStatus, Submission, WaitingCalls};
use haft::audit::index::{RunFilter, RunIndex as _};
use haft_store::postgres::PostgresStore;
use haft_store::sqlite::{SqliteInbox, SqliteStore};
use rusqlite::{Connection, params};
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Executor as _};

use crate::cluster::Cluster;
use crate::request::{all, id, request, yes};

/// The migrations up to the schema before requests became lean.
const OLD: &[&str] = &[
    include_str!("../../src/sqlite/migrations/0001_runs.sql"),
    include_str!("../../src/sqlite/migrations/0002_memory.sql"),
    include_str!("../../src/sqlite/migrations/0003_approvals.sql"),
    include_str!("../../src/sqlite/migrations/0004_journal.sql"),
];

/// Makes a file of that schema with a request of each status, in the format of the time.
fn old(path: &std::path::Path, statuses: &[RequestStatus]) {
    let connection = Connection::open(path).unwrap();
    for step in OLD {
        connection.execute_batch(step).unwrap();
    }
    for (n, status) in (0_i64..).zip(statuses) {
        let one = request(&format!("a{n}"), &format!("f{n}"));
        let json = serde_json::to_string(&one).unwrap();
        let time = |at: i128| i64::try_from(at).unwrap();
        let (created, expires) = (time(one.created), time(one.expires));
        let sql = "INSERT INTO approvals (tenant, id, run, fingerprint, status, created, expires, changed, waiter, \
            claimed_by, digest, request) VALUES ('local', ?, 'r1', ?, ?, ?, ?, ?, 'gone', 'gone', 'd', ?)";
        let values = params![
            one.id.as_str(),
            one.fingerprint,
            status.as_str(),
            created,
            expires,
            n + 7,
            json
        ];
        connection.execute(sql, values).unwrap();
    }
}

const STATUSES: [RequestStatus; 7] = [
    RequestStatus::Pending,
    RequestStatus::Approved,
    RequestStatus::Denied,
    RequestStatus::Answered,
    RequestStatus::Done,
    RequestStatus::Expired,
    RequestStatus::Withdrawn,
];

#[tokio::test(flavor = "multi_thread")]
async fn an_older_file_keeps_what_waits_in_it() {
    let statuses = STATUSES;
    // The connection of the runs and that of the inbox each upgrade it if they come first.
    for runs_first in [true, false] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("haft.db");
        old(&path, &statuses);
        if runs_first {
            let store = SqliteStore::new(home.path());
            assert!(store.list(&RunFilter::newest(3)).await.unwrap().is_empty());
        }
        let inbox = SqliteInbox::new(home.path());
        let listed = inbox.list(&all()).await.unwrap();
        let found: Vec<_> = listed.iter().map(|entry| entry.status).collect();
        assert_eq!(found, statuses);
        let mut heard = inbox.changes();
        // After this read, all changes are received.
        assert_eq!(inbox.list(&all()).await.unwrap().len(), statuses.len());

        let known = inbox.submit(&request("b", "f0")).await.unwrap();
        assert!(matches!(known, Submission::Existing(entry) if entry.request.id == id("a0")));
        inbox.decide(&id("a0"), &yes("ada")).await.unwrap();
        let other = SqliteInbox::new(home.path());
        assert_eq!(other.submit(&request("c", "f5")).await, Ok(Submission::New));
        let told = [heard.recv().await.unwrap(), heard.recv().await.unwrap()];
        assert_eq!(told, [id("a0"), id("c")]);
        let version: i64 = Connection::open(&path)
            .unwrap()
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .unwrap();
        assert_eq!(version, 10);
    }
}

/// The server's schema before requests became lean.
const OLD_SERVER: &[&str] = &[
    include_str!("../../src/postgres/migrations/0001_store.sql"),
    include_str!("../../src/postgres/migrations/0002_journal.sql"),
    "UPDATE haft.version SET version = 2",
];

async fn old_server(url: &str) -> PgConnection {
    let mut connection = PgConnection::connect(url).await.unwrap();
    for step in OLD_SERVER {
        connection.execute(sqlx::raw_sql(*step)).await.unwrap();
    }
    for (n, status) in (0_i64..).zip(STATUSES) {
        let one = request(&format!("a{n}"), &format!("f{n}"));
        let sql = "INSERT INTO haft.approvals (tenant, id, run, fingerprint, status, created, expires, changed, \
            waiter, claimed_by, digest, request) VALUES ('local', $1, 'r1', $2, $3, $4, $5, 0, 'gone', 'gone/1', 'd', $6)";
        sqlx::query(sql)
            .bind(one.id.as_str())
            .bind(&one.fingerprint)
            .bind(status.as_str())
            .bind(i64::try_from(one.created).unwrap())
            .bind(i64::try_from(one.expires).unwrap())
            .bind(serde_json::to_string(&one).unwrap())
            .execute(&mut connection)
            .await
            .unwrap();
    }
    connection
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_server_keeps_what_waits_in_it() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let url = cluster.database();
    let mut server = old_server(&url).await;
    let inbox = PostgresStore::new(&url).unwrap();
    let listed = WaitingCalls::list(&inbox, &all()).await.unwrap();
    let found: Vec<_> = listed.iter().map(|entry| entry.status).collect();
    assert_eq!(found, STATUSES);

    // Existing requests are recognised in their old and their later states.
    let known = inbox.submit(&request("b", "f0")).await.unwrap();
    assert!(matches!(known, Submission::Existing(entry) if entry.request.id == id("a0")));
    assert_eq!(
        inbox.submit(&request("c", "f5")).await,
        Ok(Submission::New),
        "expired"
    );
    inbox
        .end(&id("c"), RequestEnding::Withdrawn, "")
        .await
        .unwrap();
    assert_eq!(inbox.submit(&request("d", "f5")).await, Ok(Submission::New));
    inbox.decide(&id("d"), &yes("ada")).await.unwrap();
    let known = inbox.submit(&request("e", "f5")).await.unwrap();
    assert!(matches!(known, Submission::Existing(entry) if entry.request.id == id("d")));

    // Values that no statement of haft writes are still refused.
    for wrong in [
        "status = 'perhaps'",
        "status = 'running', claimed_by = NULL",
    ] {
        let sql = format!("UPDATE haft.approvals SET {wrong} WHERE id = 'd'");
        assert!(
            server
                .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(sql)))
                .await
                .is_err(),
            "{wrong}"
        );
    }
    inbox.shut_down().await;
}
