//! The run index in both databases, and what they share: conversion of rows, and checks of updates.

use haft::audit::RunStart;
use haft::audit::index::{CallCount, ClosedEvent, HourCount, IndexError, RunEntry, RunState};
use haft::call::{Principal, RunId};
use haft::clock;

use crate::error::StoreError;

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod query;
#[cfg(feature = "sqlite")]
mod sqlite;

/// A row of the runs table; columns have the same names in every database.
trait RunRow {
    /// The driver's error for a column that cannot be read.
    type Error;

    /// Reads a text column.
    fn text(&self, column: &str) -> Result<Option<String>, Self::Error>;

    /// Reads a number column.
    fn number(&self, column: &str) -> Result<Option<i64>, Self::Error>;
}

/// Reads a row.
fn entry<R: RunRow>(row: &R) -> Result<RunEntry, R::Error> {
    let text = |column: &str| Ok(row.text(column)?.unwrap_or_default());
    let count = |column: &str| -> Result<u64, R::Error> {
        Ok(u64::try_from(row.number(column)?.unwrap_or(0)).unwrap_or(0))
    };
    let time = |column: &str| -> Result<Option<String>, R::Error> {
        Ok(row.number(column)?.map(|at| clock::rfc3339(at.into())))
    };
    let state = match text("state")?.as_str() {
        "closed" => RunState::Closed,
        "suspended" => RunState::Suspended,
        _ => RunState::Open,
    };
    let closed = match state {
        RunState::Closed => Some(ClosedEvent {
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
            entry_point: text("door")?,
            workspace: row.text("workspace")?,
            profile: text("profile")?,
        },
        state,
        started: time("started")?.unwrap_or_default(),
        ended: time("ended")?,
        calls: count("calls")?,
        closed,
        // Notes of a newer haft may be unreadable; the run is listed anyway.
        notes: row
            .text("notes")?
            .and_then(|notes| serde_json::from_str(&notes).ok()),
    })
}

/// Reads an hour's calls.
fn hour<R: RunRow>(row: &R) -> Result<HourCount, R::Error> {
    let number = |column: &str| -> Result<i64, R::Error> { Ok(row.number(column)?.unwrap_or(0)) };
    let count =
        |column: &str| -> Result<u64, R::Error> { Ok(u64::try_from(number(column)?).unwrap_or(0)) };
    Ok(HourCount {
        hour: number("hour")?,
        tool: row.text("tool")?.unwrap_or_default(),
        status: row.text("status")?.unwrap_or_default(),
        count: CallCount {
            calls: count("calls")?,
            total_ms: count("total_ms")?,
            decided: count("decided")?,
            waited_ms: count("waited_ms")?,
        },
    })
}

/// Returns the state of a run in progress.
fn in_progress(suspended: bool) -> RunState {
    if suspended {
        RunState::Suspended
    } else {
        RunState::Open
    }
}

/// Returns an error unless the update found the run open.
fn changed(run: &RunId, rows: u64) -> Result<(), IndexError> {
    if rows == 1 {
        Ok(())
    } else {
        Err(IndexError::NotOpen(run.clone()))
    }
}

impl From<StoreError> for IndexError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.0)
    }
}
