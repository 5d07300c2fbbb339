//! Suspended calls in `SQLite`.

use haft::approval::ApprovalId;
use haft::approval::suspended::{SuspendedCall, SuspendedCalls, SuspendedError};
use haft::call::{CallId, RunId};
use haft::clock;
use haft::future::BoxFuture;
use rusqlite::{OptionalExtension as _, Row, params};

use super::MAX_FOUND;
use crate::inbox::RETENTION;
use crate::number::nanoseconds;
use crate::sqlite::SqliteStore;
use crate::sqlite::worker::with_full_sync;

const SUSPEND: &str = "INSERT INTO suspended_calls (run, call, key, approval, within, alone, noted) \
    VALUES (?, ?, ?, ?, ?, ?, ?) \
    ON CONFLICT (run, call) DO UPDATE SET key = excluded.key, approval = excluded.approval, within = excluded.within, alone = excluded.alone, \
    noted = excluded.noted, outcome = NULL";
const OLD: &str = "DELETE FROM suspended_calls WHERE noted < ?";
/// Outcomes may be long, so they are read only for the call that is collected.
const FIND: &str = "SELECT run, call, key, approval, within, alone, CASE WHEN outcome IS NOT NULL THEN '' END AS outcome FROM suspended_calls WHERE key = ? ORDER BY noted DESC, call DESC LIMIT ?";
const GET: &str = "SELECT * FROM suspended_calls WHERE run = ? AND call = ?";
const FINISH: &str = "UPDATE suspended_calls SET outcome = ? WHERE run = ? AND call = ?";
const COLLECT: &str = "DELETE FROM suspended_calls WHERE run = ? AND call = ? AND outcome IS NOT NULL RETURNING outcome";
const FORGET: &str = "DELETE FROM suspended_calls WHERE run = ? AND call = ?";

impl SuspendedCalls for SqliteStore {
    fn suspend<'a>(&'a self, call: &'a SuspendedCall) -> BoxFuture<'a, Result<(), SuspendedError>> {
        let now = nanoseconds(clock::now());
        let sweeps = self.sweeps.is_due(now);
        let call = call.clone();
        Box::pin(self.worker.with(0, move |connection| {
            if sweeps {
                connection.execute(OLD, [now.saturating_sub(RETENTION)])?;
            }
            // A call that is not found would run from its start: unlike the index, this must survive a power cut.
            let suspended = with_full_sync(connection, |connection| {
                connection.prepare_cached(SUSPEND)?.execute(params![
                    call.run.as_str(),
                    call.call.as_str(),
                    call.key,
                    call.approval.as_str(),
                    call.within,
                    call.alone,
                    now,
                ])
            });
            suspended?;
            Ok(())
        }))
    }

    fn find<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SuspendedCall>, SuspendedError>> {
        let key = key.to_owned();
        Box::pin(self.worker.with(0, move |connection| {
            let mut query = connection.prepare_cached(FIND)?;
            let calls = query.query_map(params![key, MAX_FOUND], read)?;
            Ok(calls.collect::<Result<_, _>>()?)
        }))
    }

    fn get<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<SuspendedCall>, SuspendedError>> {
        let name = name(run, call);
        Box::pin(self.worker.with(0, move |connection| {
            let mut query = connection.prepare_cached(GET)?;
            Ok(query.query_row(name, read).optional()?)
        }))
    }

    fn finish<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
        outcome: &'a str,
    ) -> BoxFuture<'a, Result<(), SuspendedError>> {
        let (run, call) = name(run, call);
        let outcome = outcome.to_owned();
        Box::pin(self.worker.with(outcome.len(), move |connection| {
            // If an outcome is lost, haft cannot say how its call ended.
            let finished = with_full_sync(connection, |connection| {
                let mut finish = connection.prepare_cached(FINISH)?;
                finish.execute(params![outcome, run, call])
            });
            finished?;
            Ok(())
        }))
    }

    fn collect<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<Option<String>, SuspendedError>> {
        let name = name(run, call);
        Box::pin(self.worker.with(0, move |connection| {
            let outcome = with_full_sync(connection, |connection| {
                let mut collect = connection.prepare_cached(COLLECT)?;
                collect.query_row(name, |row| row.get(0)).optional()
            });
            Ok(outcome?)
        }))
    }

    fn forget<'a>(
        &'a self,
        run: &'a RunId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Result<(), SuspendedError>> {
        let name = name(run, call);
        Box::pin(self.worker.with(0, move |connection| {
            connection.prepare_cached(FORGET)?.execute(name)?;
            Ok(())
        }))
    }
}

fn name(run: &RunId, call: &CallId) -> (String, String) {
    (run.to_string(), call.to_string())
}

fn read(row: &Row<'_>) -> rusqlite::Result<SuspendedCall> {
    Ok(SuspendedCall {
        run: RunId::new(row.get::<_, String>("run")?),
        call: CallId::new(row.get::<_, String>("call")?),
        key: row.get("key")?,
        approval: ApprovalId::new(row.get::<_, String>("approval")?),
        within: row.get("within")?,
        alone: row.get("alone")?,
        outcome: row.get("outcome")?,
    })
}
