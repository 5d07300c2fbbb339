//! The run index in `SQLite`.

use haft::audit::RunStart;
use haft::audit::index::{
    ClosedEvent, HourCount, IndexError, NoteEntry, RunEntry, RunFilter, RunIndex,
};
use haft::call::RunId;
use haft::future::BoxFuture;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params, params_from_iter};

use super::query::{self, BindValue, SqlDialect};
use super::{RunRow, changed, entry, hour, in_progress};
use crate::number::{nanoseconds, number};
use crate::sqlite::SqliteStore;
use crate::sqlite::worker::{JobError, is_taken};

const OPEN: &str = "INSERT INTO runs (tenant, run, subject, door, workspace, profile, started) \
    VALUES (?, ?, ?, ?, ?, ?, ?)";
const PROGRESS: &str = "UPDATE runs SET calls = ?, state = ? WHERE run = ? AND state <> 'closed'";
const CLOSE: &str = "UPDATE runs SET state = 'closed', ended = ?, calls = ?, count = ?, head = ?, seal = ? \
    WHERE run = ? AND state <> 'closed'";
const GET: &str =
    "SELECT r.*, n.notes FROM runs r LEFT JOIN run_notes n ON n.run = r.run WHERE r.run = ?";
const NOTE: &str = "INSERT INTO run_notes (run, started, noted, failed, notes) VALUES (?, ?, ?, ?, ?) \
    ON CONFLICT (run) DO UPDATE SET noted = excluded.noted, failed = excluded.failed, notes = excluded.notes";
const COUNT: &str = "INSERT INTO run_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET calls = excluded.calls, \
    total_ms = excluded.total_ms, decided = excluded.decided, waited_ms = excluded.waited_ms";
const HOURS: &str = "SELECT * FROM call_hours WHERE hour >= ? ORDER BY hour, tool, status";

const DIALECT: SqlDialect = SqlDialect {
    schema: "",
    mark: '?',
};

impl RunIndex for SqliteStore {
    fn open<'a>(
        &'a self,
        run: &'a RunId,
        start: &'a RunStart,
        at: i128,
    ) -> BoxFuture<'a, Result<(), IndexError>> {
        let (run, start) = (run.clone(), start.clone());
        Box::pin(self.worker.with(0, move |connection| {
            let inserted = connection.prepare_cached(OPEN)?.execute(params![
                &*start.principal.tenant,
                run.as_str(),
                &*start.principal.subject,
                start.entry_point,
                start.workspace,
                start.profile,
                nanoseconds(at),
            ]);
            match inserted {
                Err(error) if is_taken(&error) => Err(JobError::Refused(IndexError::Exists(run))),
                Err(error) => Err(error.into()),
                Ok(_) => Ok(()),
            }
        }))
    }

    fn progress<'a>(
        &'a self,
        run: &'a RunId,
        calls: u64,
        suspended: bool,
    ) -> BoxFuture<'a, Result<(), IndexError>> {
        let run = run.clone();
        Box::pin(self.worker.with(0, move |connection| {
            let state = in_progress(suspended).as_str();
            let values = params![number(calls), state, run.as_str()];
            check_open(&run, connection.prepare_cached(PROGRESS)?.execute(values)?)
        }))
    }

    fn close<'a>(
        &'a self,
        run: &'a RunId,
        closed: &'a ClosedEvent,
        at: i128,
    ) -> BoxFuture<'a, Result<(), IndexError>> {
        let (run, closed) = (run.clone(), closed.clone());
        Box::pin(self.worker.with(0, move |connection| {
            let rows = connection.prepare_cached(CLOSE)?.execute(params![
                nanoseconds(at),
                number(closed.calls),
                number(closed.count),
                closed.head,
                closed.seal,
                run.as_str(),
            ])?;
            check_open(&run, rows)
        }))
    }

    fn note<'a>(
        &'a self,
        run: &'a RunId,
        notes: &'a NoteEntry,
    ) -> BoxFuture<'a, Result<(), IndexError>> {
        let (run, notes) = (run.clone(), notes.clone());
        let work = move |connection: &mut Connection| Ok(note(connection, &run, &notes)?);
        Box::pin(self.worker.with(0, work))
    }

    fn list<'a>(
        &'a self,
        filter: &'a RunFilter,
    ) -> BoxFuture<'a, Result<Vec<RunEntry>, IndexError>> {
        let (sql, values) = query::list(DIALECT, filter);
        Box::pin(self.worker.with(0, move |connection| {
            let mut query = connection.prepare_cached(&sql)?;
            let entries = query.query_map(params_from_iter(values), |row| entry(row))?;
            Ok(entries.collect::<Result<_, _>>()?)
        }))
    }

    fn activity(&self, since_hour: i64) -> BoxFuture<'_, Result<Vec<HourCount>, IndexError>> {
        Box::pin(self.worker.with(0, move |connection| {
            let mut query = connection.prepare_cached(HOURS)?;
            let hours = query.query_map([since_hour], |row| hour(row))?;
            Ok(hours.collect::<Result<_, _>>()?)
        }))
    }

    fn get<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunEntry>, IndexError>> {
        let run = run.clone();
        Box::pin(self.worker.with(0, move |connection| {
            let mut query = connection.prepare_cached(GET)?;
            Ok(query
                .query_row([run.as_str()], |row| entry(row))
                .optional()?)
        }))
    }
}

/// Writes the notes and the counts atomically.
fn note(connection: &mut Connection, run: &RunId, entry: &NoteEntry) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    // Strings and numbers always serialize.
    let notes = serde_json::to_string(&entry.notes).unwrap_or_default();
    transaction.prepare_cached(NOTE)?.execute(params![
        run.as_str(),
        nanoseconds(entry.started),
        nanoseconds(entry.at),
        number(entry.notes.failed()),
        notes,
    ])?;
    {
        let mut count = transaction.prepare_cached(COUNT)?;
        for tally in &entry.tallies {
            count.execute(params![
                run.as_str(),
                tally.tool,
                tally.word(),
                nanoseconds(tally.part),
                tally.hour,
                number(tally.count.calls),
                number(tally.count.total_ms),
                number(tally.count.decided),
                number(tally.count.waited_ms),
            ])?;
        }
    }
    transaction.commit()
}

fn check_open(run: &RunId, rows: usize) -> Result<(), JobError<IndexError>> {
    changed(run, rows as u64).map_err(JobError::Refused)
}

impl RunRow for Row<'_> {
    type Error = rusqlite::Error;

    fn text(&self, column: &str) -> rusqlite::Result<Option<String>> {
        self.get(column)
    }

    fn number(&self, column: &str) -> rusqlite::Result<Option<i64>> {
        self.get(column)
    }
}

impl ToSql for BindValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Number(number) => ValueRef::Integer(*number),
        }))
    }
}
