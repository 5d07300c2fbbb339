//! The calls that ended suspended on requests, in `PostgreSQL`: each is read together with the state of its request, and what it is owed is
//! taken in one transaction.

use haft::approval::ApprovalId;
use haft::approval::suspended::{CollectedCall, SuspendedCall, SuspendedEntry};
use haft::approval::transition::{CallerState, WaitingEvent, transition};
use haft::call::{CallId, RunId};
use haft::clock;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool, Row as _};

use super::PostgresInboxError;
use crate::inbox::{MAX_FOUND, RETENTION, StoredState, request_call};
use crate::number::nanoseconds;
use crate::postgres::sweeps::SWEEP_NANOS;

/// Outcomes may be long, so they are read only for the call that is collected. What an attempt with the name `$1` has taken, it has not: it is
/// made again because its answer was lost.
macro_rules! select {
    () => {
        "SELECT c.run, c.call, c.key, c.approval, c.within, c.alone, c.outcome IS NOT NULL AS has_ended, \
        a.status, a.expires, a.outcome IS NOT NULL AS has_outcome, coalesce(a.delivered_by <> $1, false) AS delivered, \
        CASE WHEN a.claimed_by IS NOT NULL THEN split_part(a.claimed_by, '/', 1) IN \
        (SELECT id FROM haft.processes WHERE alive_until > clock_timestamp()) END AS claimer_lives \
        FROM haft.suspended_calls c LEFT JOIN haft.approvals a ON a.id = c.approval \
        WHERE (c.taken_by IS NULL OR c.taken_by = $1) "
    };
}

const FIND: &str = concat!(
    select!(),
    "AND c.key = $2 ORDER BY c.noted DESC, c.call DESC LIMIT $3"
);
const GET: &str = concat!(select!(), "AND c.run = $2 AND c.call = $3");
const NAMES: &str = "SELECT run, request FROM haft.approvals WHERE id = $1";
const SUSPEND: &str = "INSERT INTO haft.suspended_calls (run, call, key, approval, within, alone, noted) \
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (run, call) DO UPDATE SET key = excluded.key, \
    approval = excluded.approval, within = excluded.within, alone = excluded.alone, noted = excluded.noted, outcome = NULL, taken_by = NULL";
/// Also deletes calls whose outcome was collected: a retry that collects it again comes soon.
const OLD: &str =
    "DELETE FROM haft.suspended_calls WHERE noted < $1 OR (taken_by IS NOT NULL AND noted < $2)";
const END: &str = "UPDATE haft.suspended_calls SET outcome = $3 WHERE run = $1 AND call = $2";
const FORGET: &str = "DELETE FROM haft.suspended_calls WHERE run = $1 AND call = $2";
/// Locks a call first and its request second: a decision or a claim comes before both are read, or after what is written.
const LOCK: &str =
    "SELECT approval FROM haft.suspended_calls WHERE run = $1 AND call = $2 FOR UPDATE";
const LOCK_REQUEST: &str = "SELECT id FROM haft.approvals WHERE id = $1 FOR UPDATE";
const TAKE: &str =
    "UPDATE haft.suspended_calls SET taken_by = $3 WHERE run = $1 AND call = $2 RETURNING outcome";
const OUTCOME: &str = "SELECT outcome FROM haft.approvals WHERE id = $1";
const DELIVER: &str =
    "UPDATE haft.approvals SET delivered_by = $2 WHERE id = $1 AND delivered_by IS NULL";

/// The name of no attempt.
const NO_ATTEMPT: &str = "";

/// Deletes old suspended calls.
pub(super) async fn sweep(pool: &PgPool, now: i64) -> Result<(), PostgresInboxError> {
    let old = sqlx::query(OLD).bind(now.saturating_sub(RETENTION));
    let old = old.bind(now.saturating_sub(SWEEP_NANOS));
    old.execute(pool).await?;
    Ok(())
}

pub(super) async fn suspend(
    pool: &PgPool,
    call: &SuspendedCall,
    now: i64,
) -> Result<(), PostgresInboxError> {
    let (mut run, mut id) = (call.run.to_string(), call.call.to_string());
    if !call.within {
        let names = sqlx::query(NAMES).bind(call.approval.as_str());
        if let Some(row) = names.fetch_optional(pool).await? {
            run = row.try_get("run")?;
            id = request_call(row.try_get("request")?)?;
        }
    }
    let suspend = sqlx::query(SUSPEND)
        .bind(run)
        .bind(id)
        .bind(&call.key)
        .bind(call.approval.as_str())
        .bind(call.within)
        .bind(call.alone)
        .bind(now);
    suspend.execute(pool).await?;
    Ok(())
}

pub(super) async fn find(
    pool: &PgPool,
    key: &str,
) -> Result<Vec<SuspendedEntry>, PostgresInboxError> {
    let found = sqlx::query(FIND).bind(NO_ATTEMPT).bind(key).bind(MAX_FOUND);
    let rows = found.fetch_all(pool).await?;
    rows.iter().map(read).collect()
}

pub(super) async fn get(
    pool: &PgPool,
    run: &RunId,
    call: &CallId,
) -> Result<Option<SuspendedEntry>, PostgresInboxError> {
    let found = sqlx::query(GET).bind(NO_ATTEMPT);
    let found = found.bind(run.as_str()).bind(call.as_str());
    let row = found.fetch_optional(pool).await?;
    row.as_ref().map(read).transpose()
}

pub(super) async fn end(
    pool: &PgPool,
    run: &RunId,
    call: &CallId,
    outcome: Option<&str>,
) -> Result<(), PostgresInboxError> {
    let mut transaction = pool.begin().await?;
    let name = LockedCaller {
        run,
        call,
        attempt: NO_ATTEMPT,
    };
    let Some(noted) = name.lock(&mut transaction).await? else {
        return Ok(());
    };
    let heard = outcome.is_none();
    let after = transition(noted.state, WaitingEvent::Return { heard });
    let ended = match after.map(|after| after.caller) {
        Ok(CallerState::Ended) => {
            let end = sqlx::query(END).bind(run.as_str()).bind(call.as_str());
            end.bind(outcome.map(str::as_bytes))
        }
        Ok(CallerState::None) => sqlx::query(FORGET).bind(run.as_str()).bind(call.as_str()),
        _ => return Ok(()),
    };
    ended.execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

pub(super) async fn collect(
    pool: &PgPool,
    run: &RunId,
    call: &CallId,
    attempt: &str,
) -> Result<Option<CollectedCall>, PostgresInboxError> {
    let mut transaction = pool.begin().await?;
    let name = LockedCaller { run, call, attempt };
    let Some(noted) = name.lock(&mut transaction).await? else {
        return Ok(None);
    };
    let (before, approval) = (noted.state, noted.call.approval.as_str());
    let after = match transition(before, WaitingEvent::Collect) {
        Ok(after) if after.caller == CallerState::None => after,
        _ => return Ok(None),
    };
    let take = sqlx::query(TAKE).bind(run.as_str()).bind(call.as_str());
    let mut taken = take.bind(attempt).fetch_one(&mut *transaction).await?;
    if before.caller == CallerState::Own && before.owes_outcome() {
        let outcome = sqlx::query(OUTCOME).bind(approval);
        taken = outcome.fetch_one(&mut *transaction).await?;
    }
    if after.delivered && !before.delivered {
        let deliver = sqlx::query(DELIVER).bind(approval).bind(attempt);
        deliver.execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    let outcome: Option<Vec<u8>> = taken.try_get("outcome")?;
    Ok(Some(CollectedCall {
        before,
        outcome: outcome.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    }))
}

/// A suspended call, and the attempt to take what it is owed.
struct LockedCaller<'a> {
    run: &'a RunId,
    call: &'a CallId,
    attempt: &'a str,
}

impl LockedCaller<'_> {
    /// Locks the call and its request until the end of the transaction, and reads them.
    async fn lock(
        &self,
        connection: &mut PgConnection,
    ) -> Result<Option<SuspendedEntry>, PostgresInboxError> {
        let (run, call) = (self.run.as_str(), self.call.as_str());
        let lock = sqlx::query_scalar(LOCK).bind(run).bind(call);
        let approval: Option<String> = lock.fetch_optional(&mut *connection).await?;
        let Some(approval) = approval else {
            return Ok(None);
        };
        let lock = sqlx::query(LOCK_REQUEST).bind(approval);
        lock.execute(&mut *connection).await?;
        let found = sqlx::query(GET).bind(self.attempt).bind(run).bind(call);
        let row = found.fetch_optional(connection).await?;
        row.as_ref().map(read).transpose()
    }
}

fn read(row: &PgRow) -> Result<SuspendedEntry, PostgresInboxError> {
    let call = SuspendedCall {
        run: RunId::new(row.try_get::<String, _>("run")?),
        call: CallId::new(row.try_get::<String, _>("call")?),
        key: row.try_get("key")?,
        approval: ApprovalId::new(row.try_get::<String, _>("approval")?),
        within: row.try_get("within")?,
        alone: row.try_get("alone")?,
    };
    let request = match row.try_get::<Option<String>, _>("status")? {
        Some(status) => {
            let stored = StoredState {
                status,
                expires: row.try_get("expires")?,
                claimer_lives: row.try_get("claimer_lives")?,
                has_outcome: row.try_get("has_outcome")?,
                delivered: row.try_get("delivered")?,
            };
            Some(stored.at(nanoseconds(clock::now()))?)
        }
        None => None,
    };
    Ok(SuspendedEntry::of(call, row.try_get("has_ended")?, request))
}
