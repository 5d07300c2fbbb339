//! The calls that ended suspended on requests, in `SQLite`: each is read together with the state of its request, and changed in the same
//! transaction.

use std::collections::HashSet;

use haft::approval::ApprovalId;
use haft::approval::inbox::InboxError;
use haft::approval::suspended::{CollectedCall, SuspendedCall, SuspendedEntry};
use haft::approval::transition::{CallerState, WaitingEvent, transition};
use haft::call::{CallId, RunId};
use haft::clock;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{ChangeTransaction, InboxChangeResult, SqliteInboxError};
use crate::inbox::sqlite::beat::alive;
use crate::inbox::{MAX_FOUND, RETENTION, StoredState, request_call};
use crate::lease::Lease;
use crate::number::nanoseconds;

/// Outcomes may be long, so they are read only for the call that is collected.
macro_rules! select {
    () => {
        "SELECT c.run, c.call, c.key, c.approval, c.within, c.alone, c.outcome IS NOT NULL, \
        a.status, a.expires, a.claimed_by, a.outcome IS NOT NULL, a.delivered \
        FROM suspended_calls c LEFT JOIN approvals a ON a.id = c.approval "
    };
}

const FIND: &str = concat!(
    select!(),
    "WHERE c.key = ? ORDER BY c.noted DESC, c.call DESC LIMIT ?"
);
const GET: &str = concat!(select!(), "WHERE c.run = ? AND c.call = ?");
const OLD: &str = "DELETE FROM suspended_calls WHERE noted < ?";
const NAMES: &str = "SELECT run, request FROM approvals WHERE id = ?";
const SUSPEND: &str = "INSERT INTO suspended_calls (run, call, key, approval, within, alone, noted) \
    VALUES (?, ?, ?, ?, ?, ?, ?) \
    ON CONFLICT (run, call) DO UPDATE SET key = excluded.key, approval = excluded.approval, within = excluded.within, alone = excluded.alone, \
    noted = excluded.noted, outcome = NULL";
const END: &str = "UPDATE suspended_calls SET outcome = ? WHERE run = ? AND call = ?";
const FORGET: &str = "DELETE FROM suspended_calls WHERE run = ? AND call = ?";
const OUTCOME: &str = "SELECT outcome FROM suspended_calls WHERE run = ? AND call = ?";
const REQUEST_OUTCOME: &str = "SELECT outcome FROM approvals WHERE id = ?";

/// The run and the id of a suspended call.
#[derive(Debug)]
pub(in crate::inbox::sqlite) struct CallerName {
    run: String,
    call: String,
}

impl CallerName {
    pub(in crate::inbox::sqlite) fn of(run: &RunId, call: &CallId) -> Self {
        Self {
            run: run.to_string(),
            call: call.to_string(),
        }
    }
}

/// A requested change of a suspended call.
#[derive(Debug)]
pub(in crate::inbox::sqlite) enum CallerChange {
    Suspend(SuspendedCall),
    End {
        name: CallerName,
        outcome: Option<String>,
    },
    Collect(CallerName),
}

/// A stored call as read.
struct CallerRow {
    call: SuspendedCall,
    has_ended: bool,
    request: Option<StoredState>,
}

impl ChangeTransaction<'_> {
    pub(in crate::inbox::sqlite) fn change_caller(
        &mut self,
        change: &CallerChange,
        number: i64,
    ) -> Result<InboxChangeResult, SqliteInboxError> {
        match change {
            CallerChange::Suspend(call) => self.suspend(call)?,
            CallerChange::End { name, outcome } => self.end_caller(name, outcome.as_deref())?,
            CallerChange::Collect(name) => {
                return self.collect(name, number).map(InboxChangeResult::Collected);
            }
        }
        Ok(InboxChangeResult::Done)
    }

    fn suspend(&self, call: &SuspendedCall) -> Result<(), SqliteInboxError> {
        let now = nanoseconds(clock::now());
        self.connection
            .prepare_cached(OLD)?
            .execute([now.saturating_sub(RETENTION)])?;
        let mut name = CallerName::of(&call.run, &call.call);
        if !call.within {
            let mut names = self.connection.prepare_cached(NAMES)?;
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?));
            let found = names.query_row([call.approval.as_str()], read).optional()?;
            if let Some((run, request)) = found {
                let call = request_call(&request)?;
                name = CallerName { run, call };
            }
        }
        self.connection.prepare_cached(SUSPEND)?.execute(params![
            name.run,
            name.call,
            call.key,
            call.approval.as_str(),
            call.within,
            call.alone,
            now,
        ])?;
        Ok(())
    }

    fn caller(&self, name: &CallerName) -> Result<Option<SuspendedEntry>, SqliteInboxError> {
        Ok(get(self.connection, self.beat.lease, name)??)
    }

    fn end_caller(&self, name: &CallerName, outcome: Option<&str>) -> Result<(), SqliteInboxError> {
        let Some(noted) = self.caller(name)? else {
            return Ok(());
        };
        let heard = outcome.is_none();
        let Ok(after) = transition(noted.state, WaitingEvent::Return { heard }) else {
            return Ok(());
        };
        match after.caller {
            CallerState::Ended => {
                let mut end = self.connection.prepare_cached(END)?;
                end.execute(params![outcome, name.run, name.call])?;
            }
            CallerState::None => self.forget(name)?,
            CallerState::Own | CallerState::Within => {}
        }
        Ok(())
    }

    fn forget(&self, name: &CallerName) -> rusqlite::Result<()> {
        let mut forget = self.connection.prepare_cached(FORGET)?;
        forget.execute(params![name.run, name.call]).map(drop)
    }

    fn collect(
        &mut self,
        name: &CallerName,
        number: i64,
    ) -> Result<Option<CollectedCall>, SqliteInboxError> {
        let Some(SuspendedEntry { call, state }) = self.caller(name)? else {
            return Ok(None);
        };
        let Ok(after) = transition(state, WaitingEvent::Collect) else {
            return Ok(None);
        };
        if after.caller != CallerState::None {
            return Ok(None);
        }
        let mut outcome = None;
        if state.owes_outcome() {
            let outcome_in = |sql, values: &[&dyn rusqlite::ToSql]| {
                let mut query = self.connection.prepare_cached(sql)?;
                query.query_row(values, |row| row.get(0))
            };
            outcome = match state.caller {
                CallerState::Ended => outcome_in(OUTCOME, &[&name.run, &name.call])?,
                _ => outcome_in(REQUEST_OUTCOME, &[&call.approval.as_str()])?,
            };
        }
        if after.delivered && !state.delivered {
            self.deliver(&call.approval, number)?;
        }
        self.forget(name)?;
        Ok(Some(CollectedCall {
            before: state,
            outcome,
        }))
    }
}

/// Returns the suspended calls with this key, newest first.
pub(in crate::inbox::sqlite) fn find(
    connection: &Connection,
    lease: Lease,
    key: &str,
) -> rusqlite::Result<Result<Vec<SuspendedEntry>, InboxError>> {
    let alive = alive(connection, lease)?;
    let mut query = connection.prepare_cached(FIND)?;
    let found = query.query_map(params![key, MAX_FOUND], |row| read(row, &alive))?;
    let rows = found.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(rows.into_iter().map(CallerRow::entry).collect())
}

/// Returns the suspended call with this name.
pub(in crate::inbox::sqlite) fn get(
    connection: &Connection,
    lease: Lease,
    name: &CallerName,
) -> rusqlite::Result<Result<Option<SuspendedEntry>, InboxError>> {
    let alive = alive(connection, lease)?;
    let mut query = connection.prepare_cached(GET)?;
    let found = query
        .query_row(params![name.run, name.call], |row| read(row, &alive))
        .optional()?;
    Ok(found.map(CallerRow::entry).transpose())
}

impl CallerRow {
    fn entry(self) -> Result<SuspendedEntry, InboxError> {
        let now = nanoseconds(clock::now());
        let request = self.request.map(|stored| stored.at(now)).transpose()?;
        Ok(SuspendedEntry::of(self.call, self.has_ended, request))
    }
}

fn read(row: &Row<'_>, alive: &HashSet<String>) -> rusqlite::Result<CallerRow> {
    let call = SuspendedCall {
        run: RunId::new(row.get::<_, String>(0)?),
        call: CallId::new(row.get::<_, String>(1)?),
        key: row.get(2)?,
        approval: ApprovalId::new(row.get::<_, String>(3)?),
        within: row.get(4)?,
        alone: row.get(5)?,
    };
    let claimed_by: Option<String> = row.get(9)?;
    let request = match row.get::<_, Option<String>>(7)? {
        Some(status) => Some(StoredState {
            status,
            expires: row.get(8)?,
            claimer_lives: claimed_by.map(|process| alive.contains(&process)),
            has_outcome: row.get(10)?,
            delivered: row.get(11)?,
        }),
        None => None,
    };
    Ok(CallerRow {
        call,
        has_ended: row.get(6)?,
        request,
    })
}
