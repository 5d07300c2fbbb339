//! Databases that an older haft made: what waited in them is there, and goes on.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use haft::approval::inbox::{Filed, Inbox as _, RequestStatus};
use haft::audit::index::RunIndex as _;
use haft_store::sqlite::{SqliteInbox, SqliteStore};
use rusqlite::{Connection, params};

use crate::request::{all, id, request, yes};

/// Up to the schema before requests became lean.
const OLD: &[&str] = &[
    include_str!("../../src/migrations/0001_runs.sql"),
    include_str!("../../src/migrations/0002_memory.sql"),
    include_str!("../../src/migrations/0003_approvals.sql"),
    include_str!("../../src/migrations/0004_journal.sql"),
];

/// A file of that schema with a request of each status, as they were written then.
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

#[tokio::test(flavor = "multi_thread")]
async fn an_older_file_keeps_what_waits_in_it() {
    let statuses = [
        RequestStatus::Pending,
        RequestStatus::Approved,
        RequestStatus::Denied,
        RequestStatus::Answered,
        RequestStatus::Done,
        RequestStatus::Expired,
        RequestStatus::Withdrawn,
    ];
    // The connection of the runs and that of the inbox bring it up to date, each where it comes first.
    for runs_first in [true, false] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("haft.db");
        old(&path, &statuses);
        if runs_first {
            let store = SqliteStore::new(home.path());
            assert!(store.list(None, 3).await.unwrap().is_empty());
        }
        let inbox = SqliteInbox::new(home.path());
        let listed = inbox.list(&all()).await.unwrap();
        let found: Vec<_> = listed.iter().map(|entry| entry.status).collect();
        assert_eq!(found, statuses);
        let mut heard = inbox.changes();
        // After what is read now, all is heard.
        assert_eq!(inbox.list(&all()).await.unwrap().len(), statuses.len());

        let known = inbox.file(&request("b", "f0")).await.unwrap();
        assert!(matches!(known, Filed::Known(entry) if entry.request.id == id("a0")));
        inbox.decide(&id("a0"), &yes("ada")).await.unwrap();
        let other = SqliteInbox::new(home.path());
        assert_eq!(other.file(&request("c", "f5")).await, Ok(Filed::New));
        let told = [heard.recv().await.unwrap(), heard.recv().await.unwrap()];
        assert_eq!(told, [id("a0"), id("c")]);
        let version: i64 = Connection::open(&path)
            .unwrap()
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .unwrap();
        assert_eq!(version, 5);
    }
}
