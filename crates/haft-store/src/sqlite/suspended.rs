//! Suspended calls in `SQLite`.

use haft::approval::ApprovalId;
use haft::approval::suspended::{SuspendedCall, SuspendedCalls, SuspendedError};
use haft::call::{CallId, RunId};
use haft::clock;
use haft::future::BoxFuture;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};

use super::{SqliteStore, nanoseconds, reason};
use crate::approvals::{MOST_SUSPENDED, RETENTION};
use crate::error::StoreError;

const SUSPEND: &str = "INSERT INTO suspended_calls (run, call, key, approval, within, alone, noted) \
    VALUES (?, ?, ?, ?, ?, ?, ?) \
    ON CONFLICT (run, call) DO UPDATE SET key = excluded.key, approval = excluded.approval, within = excluded.within, alone = excluded.alone, \
    noted = excluded.noted, outcome = NULL";
const OLD: &str = "DELETE FROM suspended_calls WHERE noted < ?";
/// The outcomes, which may be long, are read with the call that is taken.
const FIND: &str = "SELECT run, call, key, approval, within, alone, CASE WHEN outcome IS NOT NULL THEN '' END AS outcome FROM suspended_calls WHERE key = ? ORDER BY noted DESC, call DESC LIMIT ?";
const GET: &str = "SELECT * FROM suspended_calls WHERE run = ? AND call = ?";
const FINISH: &str = "UPDATE suspended_calls SET outcome = ? WHERE run = ? AND call = ?";
const COLLECT: &str = "DELETE FROM suspended_calls WHERE run = ? AND call = ? AND outcome IS NOT NULL RETURNING outcome";
const FORGET: &str = "DELETE FROM suspended_calls WHERE run = ? AND call = ?";

impl SuspendedCalls for SqliteStore {
    fn suspend<'a>(&'a self, call: &'a SuspendedCall) -> BoxFuture<'a, Result<(), SuspendedError>> {
        Box::pin(async move {
            let now = nanoseconds(clock::now());
            if self.sweeps.is_due(now) {
                let old = sqlx::query(OLD).bind(now.saturating_sub(RETENTION));
                let swept = old.execute(&mut *self.connection().await?).await;
                swept.map_err(told)?;
            }
            let suspend = sqlx::query(SUSPEND)
                .bind(call.run.as_str())
                .bind(call.call.as_str())
                .bind(&call.key)
                .bind(call.approval.as_str())
                .bind(call.within)
                .bind(call.alone)
                .bind(now);
            // A call that is not found would run from its start: unlike the index, this must survive a power cut.
            let noted = durably(&mut *self.connection().await?, async |connection| {
                suspend.execute(connection).await
            })
            .await;
            noted.map(drop).map_err(told)
        })
    }

    fn find<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SuspendedCall>, SuspendedError>> {
        Box::pin(async move {
            let found = sqlx::query(FIND).bind(key).bind(MOST_SUSPENDED);
            let rows = found.fetch_all(&mut *self.connection().await?).await;
            let calls = rows.map_err(told)?;
            calls
                .iter()
                .map(read)
                .collect::<Result<_, _>>()
                .map_err(told)
        })
    }

    fn get<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<SuspendedCall>, SuspendedError>> {
        Box::pin(async move {
            let found = sqlx::query(GET).bind(run.as_str()).bind(call.as_str());
            let row = found.fetch_optional(&mut *self.connection().await?).await;
            row.map_err(told)?
                .as_ref()
                .map(read)
                .transpose()
                .map_err(told)
        })
    }

    fn finish<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
        outcome: &'a str,
    ) -> BoxFuture<'a, Result<(), SuspendedError>> {
        Box::pin(async move {
            let finish = sqlx::query(FINISH).bind(outcome);
            let finish = finish.bind(run.as_str()).bind(call.as_str());
            // An outcome that is lost makes its call one that cannot be told about.
            let finished = durably(&mut *self.connection().await?, async |connection| {
                finish.execute(connection).await
            })
            .await;
            finished.map(drop).map_err(told)
        })
    }

    fn collect<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<String>, SuspendedError>> {
        Box::pin(async move {
            let collect = sqlx::query_scalar(COLLECT)
                .bind(run.as_str())
                .bind(call.as_str());
            let outcome = durably(&mut *self.connection().await?, async |connection| {
                collect.fetch_optional(connection).await
            })
            .await;
            outcome.map_err(told)
        })
    }

    fn forget<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<(), SuspendedError>> {
        Box::pin(async move {
            let forget = sqlx::query(FORGET).bind(run.as_str()).bind(call.as_str());
            let forgotten = forget.execute(&mut *self.connection().await?).await;
            forgotten.map(drop).map_err(told)
        })
    }
}

/// Does one thing whose commit waits for the disk.
async fn durably<T>(
    connection: &mut SqliteConnection,
    work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T, sqlx::Error>,
) -> Result<T, sqlx::Error> {
    sync(connection, true).await?;
    let done = work(connection).await;
    sync(connection, false).await?;
    done
}

/// Whether a commit waits for the disk.
async fn sync(connection: &mut SqliteConnection, full: bool) -> Result<(), sqlx::Error> {
    let pragma = if full {
        "PRAGMA synchronous = FULL"
    } else {
        "PRAGMA synchronous = NORMAL"
    };
    sqlx::query(pragma).execute(connection).await.map(drop)
}

fn read(row: &SqliteRow) -> Result<SuspendedCall, sqlx::Error> {
    Ok(SuspendedCall {
        run: RunId::new(row.try_get::<String, _>("run")?),
        call: CallId::new(row.try_get::<String, _>("call")?),
        key: row.try_get("key")?,
        approval: ApprovalId::new(row.try_get::<String, _>("approval")?),
        within: row.try_get("within")?,
        alone: row.try_get("alone")?,
        outcome: row.try_get("outcome")?,
    })
}

fn told(error: sqlx::Error) -> SuspendedError {
    SuspendedError(reason(error))
}

impl From<StoreError> for SuspendedError {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}
