//! Suspended calls in `PostgreSQL`.

use haft::approval::ApprovalId;
use haft::approval::suspended::{SuspendedCall, SuspendedCalls, SuspendedError};
use haft::call::{CallId, RunId};
use haft::clock;
use haft::future::BoxFuture;
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row as _};

use super::{MAX_FOUND, SWEEP_NANOS};
use crate::inbox::RETENTION;
use crate::number::nanoseconds;
use crate::postgres::{OperationError, PostgresServer, PostgresStore, is_lost};

const SUSPEND: &str = "INSERT INTO haft.suspended_calls (run, call, key, approval, within, alone, noted) \
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (run, call) DO UPDATE SET key = excluded.key, \
    approval = excluded.approval, within = excluded.within, alone = excluded.alone, noted = excluded.noted, outcome = NULL, taken_by = NULL";
/// Also deletes calls whose outcome was collected: a retry that collects it again comes soon.
const OLD: &str =
    "DELETE FROM haft.suspended_calls WHERE noted < $1 OR (taken_by IS NOT NULL AND noted < $2)";
/// Outcomes may be long, so they are read only for the call that is collected.
const FIND: &str = "SELECT run, call, key, approval, within, alone, \
    CASE WHEN outcome IS NOT NULL THEN ''::bytea END AS outcome FROM haft.suspended_calls WHERE key = $1 AND taken_by IS NULL \
    ORDER BY noted DESC, call DESC LIMIT $2";
const GET: &str =
    "SELECT * FROM haft.suspended_calls WHERE run = $1 AND call = $2 AND taken_by IS NULL";
const FINISH: &str = "UPDATE haft.suspended_calls SET outcome = $1 WHERE run = $2 AND call = $3";
/// A retry whose first answer was lost collects the same outcome again.
const COLLECT: &str = "UPDATE haft.suspended_calls SET taken_by = $1 WHERE run = $2 AND call = $3 \
    AND outcome IS NOT NULL AND (taken_by IS NULL OR taken_by = $1) RETURNING outcome";
const FORGET: &str = "DELETE FROM haft.suspended_calls WHERE run = $1 AND call = $2";

impl PostgresServer {
    async fn suspended<T, F>(&self, make: impl Fn(PgPool) -> F) -> Result<T, SuspendedError>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        self.ask(make, is_lost).await.map_err(|error| match error {
            OperationError::Silent => SuspendedError(self.timeout_message().into()),
            OperationError::Refused(error) => SuspendedError(self.failure(error)),
        })
    }
}

impl SuspendedCalls for PostgresStore {
    fn suspend<'a>(&'a self, call: &'a SuspendedCall) -> BoxFuture<'a, Result<(), SuspendedError>> {
        let now = nanoseconds(clock::now());
        let due = self.0.sweeps.is_due(now);
        Box::pin(self.0.suspended(move |pool| async move {
            if due {
                let old = sqlx::query(OLD).bind(now.saturating_sub(RETENTION));
                let old = old.bind(now.saturating_sub(SWEEP_NANOS));
                old.execute(&pool).await?;
            }
            let suspend = sqlx::query(SUSPEND)
                .bind(call.run.as_str())
                .bind(call.call.as_str())
                .bind(&call.key)
                .bind(call.approval.as_str())
                .bind(call.within)
                .bind(call.alone)
                .bind(now);
            suspend.execute(&pool).await.map(drop)
        }))
    }

    fn find<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SuspendedCall>, SuspendedError>> {
        Box::pin(self.0.suspended(move |pool| async move {
            let found = sqlx::query(FIND).bind(key).bind(MAX_FOUND);
            let rows = found.fetch_all(&pool).await?;
            rows.iter().map(read).collect()
        }))
    }

    fn get<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<SuspendedCall>, SuspendedError>> {
        Box::pin(self.0.suspended(move |pool| async move {
            let found = sqlx::query(GET).bind(run.as_str()).bind(call.as_str());
            let row = found.fetch_optional(&pool).await?;
            row.as_ref().map(read).transpose()
        }))
    }

    fn finish<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
        outcome: &'a str,
    ) -> BoxFuture<'a, Result<(), SuspendedError>> {
        Box::pin(self.0.suspended(move |pool| async move {
            let finish = sqlx::query(FINISH).bind(outcome.as_bytes());
            let finish = finish.bind(run.as_str()).bind(call.as_str());
            finish.execute(&pool).await.map(drop)
        }))
    }

    fn collect<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<String>, SuspendedError>> {
        let attempt = self.0.attempt();
        Box::pin(self.0.suspended(move |pool| async move {
            let attempt = format!("{}/{attempt}", self.0.process_name(&pool).await?);
            let collect = sqlx::query(COLLECT).bind(attempt);
            let collect = collect.bind(run.as_str()).bind(call.as_str());
            let row = collect.fetch_optional(&pool).await?;
            row.map(|row| outcome(&row))
                .transpose()
                .map(Option::flatten)
        }))
    }

    fn forget<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<(), SuspendedError>> {
        Box::pin(self.0.suspended(move |pool| async move {
            let forget = sqlx::query(FORGET).bind(run.as_str()).bind(call.as_str());
            forget.execute(&pool).await.map(drop)
        }))
    }
}

fn outcome(row: &PgRow) -> Result<Option<String>, sqlx::Error> {
    let bytes: Option<Vec<u8>> = row.try_get("outcome")?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn read(row: &PgRow) -> Result<SuspendedCall, sqlx::Error> {
    Ok(SuspendedCall {
        run: RunId::new(row.try_get::<String, _>("run")?),
        call: CallId::new(row.try_get::<String, _>("call")?),
        key: row.try_get("key")?,
        approval: ApprovalId::new(row.try_get::<String, _>("approval")?),
        within: row.try_get("within")?,
        alone: row.try_get("alone")?,
        outcome: outcome(row)?,
    })
}
