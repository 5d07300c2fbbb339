//! The leases of the tests' processes: shorter than usual, and read from the database to see that they are renewed.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use haft_store::Lease;
use rusqlite::Connection;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

/// Far longer than anything that the tests wait for.
const LATE: Duration = Duration::from_secs(60);

/// Returns a lease that ends soon and is renewed often.
pub(crate) fn short() -> Lease {
    Lease {
        lasts: Duration::from_secs(3),
        beat: Duration::from_millis(200),
    }
}

/// Returns until when each process at a database counts as alive.
async fn ends(address: &str) -> HashMap<String, i64> {
    if let Some(home) = address.strip_prefix("sqlite:") {
        let file = Connection::open(Path::new(home).join("haft.db")).unwrap();
        file.busy_timeout(LATE).unwrap();
        let sql = "SELECT id, alive_until FROM approval_processes";
        let mut query = file.prepare(sql).unwrap();
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        return rows.unwrap().collect::<Result<_, _>>().unwrap();
    }
    let mut server = PgConnection::connect(address).await.unwrap();
    let sql = "SELECT id, (extract(epoch FROM alive_until) * 1000000)::bigint FROM haft.processes";
    let rows: Vec<(String, i64)> = sqlx::query_as(sql).fetch_all(&mut server).await.unwrap();
    rows.into_iter().collect()
}

/// Waits until each process at a database has renewed its lease by itself, so that it counts as alive for longer than the lease
/// that it had.
pub(crate) async fn renewed(address: &str) {
    let (before, began) = (ends(address).await, Instant::now());
    assert!(!before.is_empty());
    loop {
        let now = ends(address).await;
        if before
            .iter()
            .all(|(id, end)| now.get(id).is_some_and(|later| later > end))
        {
            return;
        }
        assert!(began.elapsed() < LATE, "{before:?} {now:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
