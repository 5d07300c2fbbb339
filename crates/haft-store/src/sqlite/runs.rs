//! The run index in `SQLite`.

use haft::audit::RunStart;
use haft::audit::index::{Closed, IndexError, RunEntry, RunIndex, RunState};
use haft::call::{Principal, RunId};
use haft::clock;
use haft::future::BoxFuture;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::{SqliteStore, nanoseconds, number, reason};
use crate::error::StoreError;

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
        Box::pin(async move {
            let inserted = sqlx::query(OPEN)
                .bind(&*start.principal.tenant)
                .bind(run.as_str())
                .bind(&*start.principal.subject)
                .bind(&start.door)
                .bind(&start.workspace)
                .bind(&start.profile)
                .bind(nanoseconds(at))
                .execute(&mut *self.connection().await?)
                .await;
            match inserted {
                Err(sqlx::Error::Database(e)) if e.is_unique_violation() => {
                    Err(IndexError::Exists(run.clone()))
                }
                inserted => inserted.map(drop).map_err(store),
            }
        })
    }

    fn progress<'a>(
        &'a self,
        run: &'a RunId,
        calls: u64,
        suspended: bool,
    ) -> BoxFuture<'a, Result<(), IndexError>> {
        let state = if suspended {
            RunState::Suspended
        } else {
            RunState::Open
        };
        Box::pin(async move {
            let updated = sqlx::query(PROGRESS)
                .bind(number(calls))
                .bind(state.as_str())
                .bind(run.as_str())
                .execute(&mut *self.connection().await?)
                .await;
            changed(run, updated.map_err(store)?.rows_affected())
        })
    }

    fn close<'a>(
        &'a self,
        run: &'a RunId,
        closed: &'a Closed,
        at: i128,
    ) -> BoxFuture<'a, Result<(), IndexError>> {
        Box::pin(async move {
            let updated = sqlx::query(CLOSE)
                .bind(nanoseconds(at))
                .bind(number(closed.calls))
                .bind(number(closed.count))
                .bind(&closed.head)
                .bind(&closed.seal)
                .bind(run.as_str())
                .execute(&mut *self.connection().await?)
                .await;
            changed(run, updated.map_err(store)?.rows_affected())
        })
    }

    fn list<'a>(
        &'a self,
        principal: Option<&'a Principal>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<RunEntry>, IndexError>> {
        Box::pin(async move {
            let query = match principal {
                None => sqlx::query(LIST),
                Some(of) => sqlx::query(LIST_OF).bind(&*of.tenant).bind(&*of.subject),
            };
            let rows = query
                .bind(i64::from(limit))
                .fetch_all(&mut *self.connection().await?)
                .await;
            let entries = rows
                .map_err(store)?
                .iter()
                .map(entry)
                .collect::<Result<_, _>>();
            entries.map_err(store)
        })
    }

    fn get<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunEntry>, IndexError>> {
        Box::pin(async move {
            let query = sqlx::query(GET).bind(run.as_str());
            let row = query
                .fetch_optional(&mut *self.connection().await?)
                .await
                .map_err(store)?;
            row.as_ref().map(entry).transpose().map_err(store)
        })
    }
}

impl From<StoreError> for IndexError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

fn store(error: sqlx::Error) -> IndexError {
    IndexError::Store(reason(error))
}

fn changed(run: &RunId, rows: u64) -> Result<(), IndexError> {
    if rows == 1 {
        Ok(())
    } else {
        Err(IndexError::NotOpen(run.clone()))
    }
}

fn entry(row: &SqliteRow) -> Result<RunEntry, sqlx::Error> {
    let count = |column: &str| -> Result<u64, sqlx::Error> {
        let n: Option<i64> = row.try_get(column)?;
        Ok(u64::try_from(n.unwrap_or(0)).unwrap_or(0))
    };
    let text = |column: &str| row.try_get::<String, _>(column);
    let time = |column: &str| -> Result<Option<String>, sqlx::Error> {
        let at: Option<i64> = row.try_get(column)?;
        Ok(at.map(|at| clock::rfc3339(at.into())))
    };
    let state = match text("state")?.as_str() {
        "closed" => RunState::Closed,
        "suspended" => RunState::Suspended,
        _ => RunState::Open,
    };
    let closed = match state {
        RunState::Closed => Some(Closed {
            count: count("count")?,
            head: text("head")?,
            calls: count("calls")?,
            seal: text("seal")?,
        }),
        RunState::Open | RunState::Suspended => None,
    };
    Ok(RunEntry {
        run: RunId::new(text("run")?),
        start: RunStart {
            principal: Principal::new(text("tenant")?, text("subject")?),
            door: text("door")?,
            workspace: row.try_get("workspace")?,
            profile: text("profile")?,
        },
        state,
        started: time("started")?.unwrap_or_default(),
        ended: time("ended")?,
        calls: count("calls")?,
        closed,
    })
}
