//! The task that reports changes while there are listeners: the server notifies, and a poll every few seconds finds what was missed.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use haft::approval::ApprovalId;
use sqlx::postgres::PgListener;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::postgres::{OPERATION_TIMEOUT, PostgresServer};
use crate::request_changes::LISTENER_BUFFER;

const CHANNEL: &str = "haft_approvals";

/// Interval between polls for missed changes.
const POLL_INTERVAL: Duration = Duration::from_secs(3);

/// Delay before reconnecting to the server.
const RECONNECT_DELAY: Duration = Duration::from_millis(300);

/// How far back a poll looks, in microseconds: longer than a statement may take, so that none commits behind it.
const LOOKBACK_MICROS: i64 = 10_000_000;

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
const SINCE: &str =
    "SELECT changed, id FROM haft.approvals WHERE changed > $1 ORDER BY changed LIMIT $2";

/// Starts the task unless it is running.
pub(super) fn start(server: &Arc<PostgresServer>) {
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    if !std::mem::replace(&mut *server.listening(), true) {
        drop(runtime.spawn(run(Arc::downgrade(server))));
    }
}

/// Recently reported changes: the newest of each request.
type NewestChanges = HashMap<String, i64>;

async fn run(server: Weak<PostgresServer>) {
    let mut reported = NewestChanges::new();
    // Where polls begin: set on the first connection and kept while disconnected.
    let mut from = None;
    while has_listeners(&server) {
        // No strong reference is held while waiting: dropping the store ends the task.
        let connected = listen(&server, &mut from, &mut reported).await;
        if connected.is_err() {
            sleep(RECONNECT_DELAY).await;
        }
    }
}

/// Returns whether there still are listeners.
fn has_listeners(server: &Weak<PostgresServer>) -> bool {
    let Some(server) = server.upgrade() else {
        return false;
    };
    let mut listening = server.listening();
    let closed = server.pool.get().is_some_and(sqlx::Pool::is_closed);
    *listening = server.changes.receiver_count() > 0 && !closed;
    *listening
}

/// Listens until the connection breaks or the last listener is dropped.
async fn listen(
    server: &Weak<PostgresServer>,
    from: &mut Option<i64>,
    reported: &mut NewestChanges,
) -> Result<(), sqlx::Error> {
    let mut listener = {
        let Some(server) = server.upgrade() else {
            return Ok(());
        };
        let pool = server.pool().await?;
        let mut listener = PgListener::connect_with(pool).await?;
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        listener
    };
    loop {
        look(server, from, reported).await?;
        let until = tokio::time::Instant::now() + POLL_INTERVAL;
        while let Ok(heard) = tokio::time::timeout_at(until, listener.try_recv()).await {
            // The connection broke: after reconnecting, a poll finds what was missed.
            let Some(heard) = heard? else { return Ok(()) };
            let Some(server) = server.upgrade() else {
                return Ok(());
            };
            if let Some((changed, id)) = heard.payload().split_once(' ') {
                report_change(&server, reported, changed.parse().unwrap_or(0), id);
            }
        }
        if !has_listeners(server) {
            return Ok(());
        }
    }
}

/// Polls for missed changes.
async fn look(
    server: &Weak<PostgresServer>,
    from: &mut Option<i64>,
    reported: &mut NewestChanges,
) -> Result<(), sqlx::Error> {
    let Some(server) = server.upgrade() else {
        return Ok(());
    };
    let pool = server.pool().await?;
    let looking = async {
        let now: i64 = sqlx::query_scalar(NOW).fetch_one(pool).await?;
        let since = from.unwrap_or(now - LOOKBACK_MICROS);
        let query = sqlx::query_as(SINCE).bind(since);
        let most = i64::try_from(LISTENER_BUFFER).unwrap_or(i64::MAX);
        let rows: Vec<(i64, String)> = query.bind(most).fetch_all(pool).await?;
        Ok::<_, sqlx::Error>((now, rows))
    };
    let looked = timeout(OPERATION_TIMEOUT, looking).await;
    let (now, rows) = looked.map_err(|_| sqlx::Error::PoolTimedOut)??;
    for (changed, id) in &rows {
        report_change(&server, reported, *changed, id);
    }
    let back = match rows.last() {
        // There are more changes than a listener can lag behind.
        Some((changed, _)) if rows.len() >= LISTENER_BUFFER => *changed,
        _ => now - LOOKBACK_MICROS,
    };
    *from = Some(back);
    reported.retain(|_, changed| *changed > back);
    Ok(())
}

fn report_change(server: &PostgresServer, reported: &mut NewestChanges, changed: i64, id: &str) {
    if reported.get(id).is_some_and(|known| *known >= changed) {
        return;
    }
    reported.insert(id.to_owned(), changed);
    // The last listener may just have been dropped.
    let _ = server.changes.send(ApprovalId::new(id));
}
