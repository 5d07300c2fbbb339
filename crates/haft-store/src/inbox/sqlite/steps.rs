//! `InboxChange`: each change of a waiting call as statements within a shared transaction, which reads the row's state and writes the one that
//! [`transition`] leads to.

use std::collections::{HashMap, HashSet};

use haft::approval::ApprovalId;
use haft::approval::inbox::{InboxError, RequestEnding, RequestStatus, StoredApproval};
use haft::approval::suspended::CollectedCall;
use haft::approval::transition::{CallState, WaitingEvent, transition};
use haft::clock;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};

use super::beat::{SqliteHeartbeat, alive};
use crate::inbox::{
    DecisionRow, MAX_PENDING, ReviewChange, StoredRow, StoredState, inbox_full, refusal,
};
use crate::number::nanoseconds;
use crate::request_draft::RequestDraft;

pub(super) mod callers;

use callers::CallerChange;

/// The columns of a row, for [`read_bare_row`].
macro_rules! columns {
    () => {
        "request, status, decision, outcome, delivered, waiter, claimed_by, \
        (SELECT why FROM approval_reasons WHERE approval_reasons.id = approvals.id), \
        (SELECT review FROM approval_reviews WHERE approval_reviews.id = approvals.id)"
    };
}
pub(super) use columns;

const GET: &str = concat!("SELECT ", columns!(), " FROM approvals WHERE id = ?");
const ALIKE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM approvals WHERE substr(fingerprint, -16) = ?3 AND run = ?2 AND fingerprint = ?1 \
    ORDER BY row DESC LIMIT 1"
);
const NEXT: &str = "SELECT coalesce(max(changed), 0) + 1 FROM approvals WHERE changed > 0";
const PENDING: &str = "SELECT count(*) FROM (SELECT 1 FROM approvals \
    WHERE tenant = ? AND status = 'pending' LIMIT ?)";
const INSERT: &str = "INSERT INTO approvals \
    (tenant, id, run, fingerprint, created, expires, waiter, request) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
/// Whether the claiming process is alive makes no difference to an event.
const STATE: &str = "SELECT status, expires, claimed_by IS NOT NULL, outcome IS NOT NULL, delivered FROM approvals WHERE id = ?";
const DECIDE: &str = concat!(
    "UPDATE approvals SET status = ?2, decision = ?3, edited_digest = ?4, changed = ?5 WHERE id = ?1 RETURNING ",
    columns!()
);
const CLAIM: &str = concat!(
    "UPDATE approvals SET status = ?2, claimed_by = ?3, changed = ?4 WHERE id = ?1 RETURNING ",
    columns!()
);
const FINISH: &str =
    "UPDATE approvals SET status = ?2, outcome = ?3, delivered = ?4, changed = ?5 WHERE id = ?1";
const DELIVER: &str = "UPDATE approvals SET delivered = 1, changed = ?2 WHERE id = ?1";
const ATTEND: &str = "UPDATE approvals SET waiter = ?2, changed = ?3 WHERE id = ?1";
const LEAVE: &str =
    "UPDATE approvals SET waiter = NULL, changed = ?3 WHERE id = ?1 AND waiter = ?2";
const END: &str = "UPDATE approvals SET status = ?2, changed = ?3 WHERE id = ?1";
const REASON: &str = "INSERT OR REPLACE INTO approval_reasons (id, why) VALUES (?1, ?2)";
const REVIEW: &str = "INSERT OR IGNORE INTO approval_reviews (id, review) \
    SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM approvals WHERE id = ?1)";
const REVIEW_AGAIN: &str = "UPDATE approval_reviews SET review = ?2 WHERE id = ?1 AND review = ?3";
const REVIEWED: &str = "UPDATE approvals SET changed = ?2 WHERE id = ?1";
const EXPIRE: &str = "UPDATE approvals SET status = 'expired', changed = ?3 \
    WHERE tenant = ?1 AND status = 'pending' AND expires <= ?2 RETURNING id";
const EXISTS: &str = "SELECT EXISTS (SELECT 1 FROM approvals WHERE id = ?)";

/// A requested change.
#[derive(Debug)]
pub(super) enum InboxChange {
    File(Box<RequestDraft>),
    Decide(ApprovalId, DecisionRow),
    Claim(ApprovalId),
    Finish {
        id: ApprovalId,
        outcome: String,
        delivered: bool,
    },
    Deliver(ApprovalId),
    Attend(ApprovalId, bool),
    /// Ends a request without its call; the text says why.
    End(ApprovalId, RequestEnding, String),
    /// Writes a review.
    Review(ApprovalId, ReviewChange),
    /// Marks a tenant's expired requests.
    Sweep(String),
    /// Changes a suspended call.
    Caller(CallerChange),
}

/// A row's state before and after an event, and the stored status before it.
struct RowStep {
    stored: String,
    before: CallState,
    after: CallState,
}

impl RowStep {
    /// Returns the status to store.
    fn status(&self) -> &'static str {
        match self.after.status {
            // A row whose process is gone stays as it is.
            RequestStatus::InDoubt => RequestStatus::Running.as_str(),
            status => status.as_str(),
        }
    }
}

impl InboxChange {
    /// Returns the bytes of the request that it writes.
    pub(super) fn filed_bytes(&self) -> usize {
        match self {
            Self::File(draft) => draft.request.len(),
            _ => 0,
        }
    }
}

/// The result of a step.
#[derive(Debug)]
pub(super) enum InboxChangeResult {
    Done,
    Entry(Box<StoredApproval>),
    First(bool),
    Collected(Option<CollectedCall>),
}

/// Why a step failed: the inbox refused it, and the other steps continue, or the database failed, and none does.
pub(super) enum SqliteInboxError {
    Inbox(InboxError),
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for SqliteInboxError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<InboxError> for SqliteInboxError {
    fn from(error: InboxError) -> Self {
        Self::Inbox(error)
    }
}

/// A transaction that runs steps.
pub(super) struct ChangeTransaction<'a> {
    pub(super) connection: &'a Connection,
    pub(super) beat: &'a mut SqliteHeartbeat,
    pub(super) room: &'a mut TenantCapacity,
    /// The transaction's number, once it changes an existing row.
    pub(super) number: Option<i64>,
    /// The new rows.
    pub(super) rows: Vec<i64>,
    /// The new and changed requests.
    pub(super) changed: Vec<ApprovalId>,
}

/// How many more pending requests each tenant may have, as far as is known; counted again when used up.
#[derive(Debug, Default)]
pub(super) struct TenantCapacity(HashMap<String, u32>);

impl<'a> ChangeTransaction<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        beat: &'a mut SqliteHeartbeat,
        room: &'a mut TenantCapacity,
    ) -> Self {
        Self {
            connection,
            beat,
            room,
            number: None,
            rows: Vec::new(),
            changed: Vec::new(),
        }
    }

    pub(super) fn make(
        &mut self,
        step: &InboxChange,
    ) -> Result<InboxChangeResult, SqliteInboxError> {
        let number = match step {
            // A new request is recognized by its row.
            InboxChange::File(_) => 0,
            _ => self.number()?,
        };
        match step {
            InboxChange::File(draft) => self.file(draft),
            InboxChange::Decide(id, verdict) => self.decide(id, verdict, number),
            InboxChange::Claim(id) => self.claim(id, number),
            InboxChange::Finish {
                id,
                outcome,
                delivered,
            } => {
                self.beat.release(id.as_str());
                let delivered = *delivered;
                let step = self.step(id, WaitingEvent::Finish { delivered })?;
                let (status, delivered) = (step.status(), step.after.delivered);
                let values: [&dyn ToSql; 5] = [&id.as_str(), &status, outcome, &delivered, &number];
                self.update(id, FINISH, &values)?;
                Ok(InboxChangeResult::Done)
            }
            InboxChange::Deliver(id) => {
                let first = self.deliver(id, number)?;
                Ok(InboxChangeResult::First(first))
            }
            InboxChange::Attend(id, true) => {
                self.beat.hold(id.as_str());
                let me = self.beat.me.clone();
                self.update(id, ATTEND, &[&id.as_str(), &me, &number])?;
                Ok(InboxChangeResult::Done)
            }
            InboxChange::Attend(id, false) => {
                self.beat.release(id.as_str());
                let me = self.beat.me.clone();
                self.update(id, LEAVE, &[&id.as_str(), &me, &number])?;
                Ok(InboxChangeResult::Done)
            }
            InboxChange::End(id, ending, why) => {
                self.beat.release(id.as_str());
                self.end(id, *ending, why, number)?;
                Ok(InboxChangeResult::Done)
            }
            InboxChange::Review(id, change) => {
                let first = self.review(id, change, number)?;
                Ok(InboxChangeResult::First(first))
            }
            InboxChange::Sweep(tenant) => self.sweep(tenant, number),
            InboxChange::Caller(change) => self.change_caller(change, number),
        }
    }

    fn number(&mut self) -> rusqlite::Result<i64> {
        if let Some(number) = self.number {
            return Ok(number);
        }
        let number = self
            .connection
            .prepare_cached(NEXT)?
            .query_row([], |row| row.get(0))?;
        Ok(*self.number.insert(number))
    }

    fn file(&mut self, draft: &RequestDraft) -> Result<InboxChangeResult, SqliteInboxError> {
        if let Some(found) = alike(self.connection, &draft.run, &draft.fingerprint)? {
            let entry = self.entry(found)?;
            if entry.answers_again() {
                return Ok(InboxChangeResult::Entry(Box::new(entry)));
            }
        }
        self.reserve_place(&draft.tenant)?;
        self.connection.prepare_cached(INSERT)?.execute(params![
            draft.tenant,
            draft.id,
            draft.run,
            draft.fingerprint,
            draft.created,
            draft.expires,
            self.beat.me,
            draft.request,
        ])?;
        self.rows.push(self.connection.last_insert_rowid());
        self.beat.hold(&draft.id);
        self.changed.push(ApprovalId::new(draft.id.as_str()));
        Ok(InboxChangeResult::Done)
    }

    /// Takes one of a tenant's places. Counts again each time half of those that were free are used, so requests that other
    /// processes wrote are noticed long before there are too many.
    fn reserve_place(&mut self, tenant: &str) -> Result<(), SqliteInboxError> {
        if let Some(left) = self.room.0.get_mut(tenant).filter(|left| **left > 0) {
            *left -= 1;
            return Ok(());
        }
        let pending: u32 = self
            .connection
            .prepare_cached(PENDING)?
            .query_row(params![tenant, MAX_PENDING], |row| row.get(0))?;
        let left = MAX_PENDING.saturating_sub(pending);
        if left == 0 {
            return Err(inbox_full().into());
        }
        if self.room.0.len() >= 1024 {
            self.room.0.clear();
        }
        self.room
            .0
            .insert(tenant.to_owned(), left.saturating_sub(1) / 2);
        Ok(())
    }

    /// Reads a row's state and returns what an event makes of it.
    fn step(&self, id: &ApprovalId, event: WaitingEvent) -> Result<RowStep, SqliteInboxError> {
        let read = |row: &Row<'_>| {
            Ok(StoredState {
                status: row.get(0)?,
                expires: row.get(1)?,
                claimer_lives: row.get::<_, bool>(2)?.then_some(true),
                has_outcome: row.get(3)?,
                delivered: row.get(4)?,
            })
        };
        let mut state = self.connection.prepare_cached(STATE)?;
        let stored = state.query_row([id.as_str()], read).optional()?;
        let stored = stored.ok_or_else(|| InboxError::NotFound(id.clone()))?;
        let before = stored.at(nanoseconds(clock::now()))?;
        match transition(before, event) {
            Ok(after) => Ok(RowStep {
                stored: stored.status,
                before,
                after,
            }),
            Err(_) => Err(refusal(&self.known(id)?, event).into()),
        }
    }

    fn decide(
        &mut self,
        id: &ApprovalId,
        verdict: &DecisionRow,
        number: i64,
    ) -> Result<InboxChangeResult, SqliteInboxError> {
        let step = match self.step(id, verdict.event) {
            Ok(step) => step,
            Err(refused) => {
                // Marks one whose time is over as such.
                self.end(id, RequestEnding::Expired, "", number)?;
                return Err(refused);
            }
        };
        let (json, edited) = (&verdict.json, &verdict.edited_digest);
        let values = params![id.as_str(), step.status(), json, edited, number];
        let decided = self
            .connection
            .prepare_cached(DECIDE)?
            .query_row(values, read_bare_row)?;
        self.changed.push(id.clone());
        Ok(InboxChangeResult::Entry(Box::new(self.entry(decided)?)))
    }

    /// Marks an outcome as delivered; returns whether it was not before.
    pub(super) fn deliver(
        &mut self,
        id: &ApprovalId,
        number: i64,
    ) -> Result<bool, SqliteInboxError> {
        let step = self.step(id, WaitingEvent::Deliver)?;
        let first = step.after.delivered && !step.before.delivered;
        if first {
            self.update(id, DELIVER, &[&id.as_str(), &number])?;
        }
        Ok(first)
    }

    fn end(
        &mut self,
        id: &ApprovalId,
        ending: RequestEnding,
        why: &str,
        number: i64,
    ) -> Result<(), SqliteInboxError> {
        let step = self.step(id, WaitingEvent::End(ending))?;
        let status = step.status();
        if status == step.stored {
            return Ok(());
        }
        self.update(id, END, &[&id.as_str(), &status, &number])?;
        // One that expired before it was withdrawn has no reason.
        if step.after.status == RequestStatus::Withdrawn && !why.is_empty() {
            let mut reason = self.connection.prepare_cached(REASON)?;
            reason.execute(params![id.as_str(), why])?;
        }
        Ok(())
    }

    /// Writes a review where the stored one is still as it was; returns whether it did.
    fn review(
        &mut self,
        id: &ApprovalId,
        change: &ReviewChange,
        number: i64,
    ) -> Result<bool, SqliteInboxError> {
        let ReviewChange { was, now } = change;
        let id_text = id.as_str();
        let rows = match was {
            None => {
                let mut first = self.connection.prepare_cached(REVIEW)?;
                first.execute(params![id_text, now])?
            }
            Some(was) => {
                let mut again = self.connection.prepare_cached(REVIEW_AGAIN)?;
                again.execute(params![id_text, now, was])?
            }
        };
        // Also fails for a request that does not exist.
        self.update(id, REVIEWED, &[&id_text, &number])?;
        Ok(rows == 1)
    }

    fn claim(
        &mut self,
        id: &ApprovalId,
        number: i64,
    ) -> Result<InboxChangeResult, SqliteInboxError> {
        let step = self.step(id, WaitingEvent::Claim)?;
        let values = params![id.as_str(), step.status(), self.beat.me, number];
        let claimed = self
            .connection
            .prepare_cached(CLAIM)?
            .query_row(values, read_bare_row)?;
        self.changed.push(id.clone());
        self.beat.hold(id.as_str());
        // Before the row is read: the claiming process must count as alive.
        self.beat.renew(self.connection)?;
        Ok(InboxChangeResult::Entry(Box::new(self.entry(claimed)?)))
    }

    fn sweep(&mut self, tenant: &str, number: i64) -> Result<InboxChangeResult, SqliteInboxError> {
        let now = nanoseconds(clock::now());
        let mut expire = self.connection.prepare_cached(EXPIRE)?;
        let ids = expire.query_map(params![tenant, now, number], |row| row.get::<_, String>(0))?;
        for id in ids {
            self.changed.push(ApprovalId::new(id?));
        }
        Ok(InboxChangeResult::Done)
    }

    /// Updates one row and returns whether it did. Fails if there is no such request.
    fn update(
        &mut self,
        id: &ApprovalId,
        sql: &str,
        values: &[&dyn ToSql],
    ) -> Result<bool, SqliteInboxError> {
        let rows = self.connection.prepare_cached(sql)?.execute(values)?;
        if rows == 1 {
            self.changed.push(id.clone());
            return Ok(true);
        }
        let exists: bool = self
            .connection
            .prepare_cached(EXISTS)?
            .query_row([id.as_str()], |row| row.get(0))?;
        if exists {
            Ok(false)
        } else {
            Err(InboxError::NotFound(id.clone()).into())
        }
    }

    fn known(&self, id: &ApprovalId) -> Result<StoredApproval, SqliteInboxError> {
        let found = get(self.connection, id.as_str())?;
        self.entry(found.ok_or_else(|| InboxError::NotFound(id.clone()))?)
    }

    fn entry(&self, row: BareRow) -> Result<StoredApproval, SqliteInboxError> {
        let alive = alive(self.connection, self.beat.lease)?;
        Ok(row.alive(&alive).entry(clock::now())?)
    }
}

/// Returns the indexed part of a fingerprint: its last 16 digits.
fn end(fingerprint: &str) -> &str {
    let from = fingerprint
        .char_indices()
        .nth_back(15)
        .map_or(0, |(at, _)| at);
    &fingerprint[from..]
}

/// Returns the newest request of this run with this fingerprint.
pub(super) fn alike(
    connection: &Connection,
    run: &str,
    fingerprint: &str,
) -> rusqlite::Result<Option<BareRow>> {
    connection
        .prepare_cached(ALIKE)?
        .query_row(params![fingerprint, run, end(fingerprint)], read_bare_row)
        .optional()
}

pub(super) fn get(connection: &Connection, id: &str) -> rusqlite::Result<Option<BareRow>> {
    connection
        .prepare_cached(GET)?
        .query_row([id], read_bare_row)
        .optional()
}

/// A row without the information from the process table.
pub(super) struct BareRow {
    stored: StoredRow,
    waiter: Option<String>,
    claimed_by: Option<String>,
}

impl BareRow {
    /// Completes the row, given the processes that are alive.
    pub(super) fn alive(self, alive: &HashSet<String>) -> StoredRow {
        StoredRow {
            attended: self.waiter.is_some_and(|process| alive.contains(&process)),
            claimer_lives: self.claimed_by.map(|process| alive.contains(&process)),
            ..self.stored
        }
    }
}

/// Reads a row of [`columns`].
pub(super) fn read_bare_row(row: &Row<'_>) -> rusqlite::Result<BareRow> {
    let stored = StoredRow {
        request: row.get(0)?,
        status: row.get(1)?,
        decision: row.get(2)?,
        outcome: row.get(3)?,
        delivered: row.get(4)?,
        attended: false,
        claimer_lives: None,
        why: row.get(7)?,
        review: row.get(8)?,
    };
    Ok(BareRow {
        stored,
        waiter: row.get(5)?,
        claimed_by: row.get(6)?,
    })
}
