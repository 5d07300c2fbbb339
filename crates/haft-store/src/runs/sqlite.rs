//! The run index in `SQLite`.

use haft::audit::RunStart;
use haft::audit::index::{Closed, IndexError, RunEntry, RunIndex};
use haft::call::{Principal, RunId};
use haft::future::BoxFuture;
use rusqlite::{OptionalExtension as _, Row, params};

use super::{RunRow, changed, entry, in_progress};
use crate::number::{nanoseconds, number};
use crate::sqlite::SqliteStore;
use crate::sqlite::worker::{Fault, is_taken};

const OPEN: &str = "INSERT INTO runs (tenant, run, subject, door, workspace, profile, started) \
    VALUES (?, ?, ?, ?, ?, ?, ?)";
const PROGRESS: &str = "UPDATE runs SET calls = ?, state = ? WHERE run = ? AND state <> 'closed'";
const CLOSE: &str = "UPDATE runs SET state = 'closed', ended = ?, calls = ?, count = ?, head = ?, seal = ? \
    WHERE run = ? AND state <> 'closed'";
const LIST: &str = "SELECT * FROM runs ORDER BY started DESC, run DESC LIMIT ?";
const LIST_OF: &str = "SELECT * FROM runs WHERE tenant = ? AND subject = ? \
    ORDER BY started DESC, run DESC LIMIT ?";
const GET: &str = "SELECT * FROM runs WHERE run = ?";

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
                Err(error) if is_taken(&error) => Err(Fault::Refused(IndexError::Exists(run))),
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
        closed: &'a Closed,
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

    fn list<'a>(
        &'a self,
        principal: Option<&'a Principal>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<RunEntry>, IndexError>> {
        let principal = principal.cloned();
        Box::pin(self.worker.with(0, move |connection| {
            let read = |row: &Row<'_>| entry(row);
            let entries = match principal {
                None => connection
                    .prepare_cached(LIST)?
                    .query_map([limit], read)?
                    .collect::<Result<_, _>>()?,
                Some(of) => connection
                    .prepare_cached(LIST_OF)?
                    .query_map(params![&*of.tenant, &*of.subject, limit], read)?
                    .collect::<Result<_, _>>()?,
            };
            Ok(entries)
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

fn check_open(run: &RunId, rows: usize) -> Result<(), Fault<IndexError>> {
    changed(run, rows as u64).map_err(Fault::Refused)
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
