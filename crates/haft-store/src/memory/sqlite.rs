//! The memory in `SQLite`: records in a table, and the words of accepted ones in a full-text index.

use std::sync::Arc;

use haft::call::{Principal, RunId};
use haft::memory::{
    CandidateDecision, MAX_LISTED, MemoryAccess, MemoryCounts, MemoryError, MemoryFilter,
    MemoryFuture, MemoryHit, MemoryId, MemoryOperation, MemoryQuery, MemoryRecord, MemoryRevision,
    MemoryState, MemoryStore, PendingCandidate,
};
use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, params};

use crate::error::StoreError;
use crate::number::nanoseconds;
use crate::sqlite::{SqliteStore, worker};

mod decide;
mod row;
mod search;
mod steps;

const GET: &str = "SELECT * FROM memory WHERE tenant = ? AND subject = ? AND id = ? \
    AND (expires IS NULL OR expires > ?)";
/// Null means: any state (`?5`), any run (`?6`), any shelf (`?7`).
const LIST: &str = "SELECT * FROM memory WHERE tenant = ?1 AND subject = ?2 \
    AND (expires IS NULL OR expires > ?3) AND (?4 = 0 OR path IS NOT NULL) \
    AND (?5 IS NULL OR state = ?5) AND (?6 IS NULL OR run = ?6) \
    AND (?7 IS NULL OR scope || ':' || key IN (SELECT value FROM json_each(?7))) \
    ORDER BY updated DESC, row DESC LIMIT ?8";
const CANDIDATES: &str = "SELECT * FROM memory WHERE tenant = ?1 AND state = 'candidate' \
    AND subject IN (SELECT subject FROM memory_counts WHERE tenant = ?1 AND state = 'candidate' AND n > 0) \
    AND (expires IS NULL OR expires > ?2) ORDER BY updated DESC, row DESC LIMIT ?3";
const HISTORY: &str = "SELECT h.* FROM memory_history h JOIN memory m ON m.row = h.row \
    WHERE m.tenant = ? AND m.subject = ? AND m.id = ? ORDER BY h.revision";
const COUNTS: &str = "SELECT state, n FROM memory_counts WHERE tenant = ? AND subject = ?";
const SWEEP: &str = "DELETE FROM memory WHERE expires <= ?";

impl MemoryStore for SqliteStore {
    fn apply<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        steps: Vec<MemoryOperation>,
    ) -> MemoryFuture<'a, Vec<MemoryRecord>> {
        let asker = asker.clone();
        let bytes = steps.iter().map(steps::bytes).sum();
        Box::pin(self.worker.with(bytes, move |connection| {
            // Takes the write lock at once: nothing that is read below can change before the write.
            let all = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let applied = steps::apply(&all, &asker, steps)?;
            all.commit()?;
            Ok(applied)
        }))
    }

    fn get<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        id: &'a MemoryId,
    ) -> MemoryFuture<'a, Option<MemoryRecord>> {
        let (asker, id) = (asker.clone(), id.clone());
        Box::pin(
            self.worker
                .with(0, move |connection| Ok(one(connection, &asker, &id)?)),
        )
    }

    fn list<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        filter: &'a MemoryFilter,
    ) -> MemoryFuture<'a, Vec<MemoryRecord>> {
        let (asker, filter) = (asker.clone(), filter.clone());
        Box::pin(self.worker.with(0, move |connection| {
            let mut query = connection.prepare_cached(LIST)?;
            let values = params![
                &*asker.principal.tenant,
                &*asker.principal.subject,
                nanoseconds(asker.at),
                filter.files,
                filter.state.map(MemoryState::as_str),
                filter.run.as_ref().map(RunId::as_str),
                row::shelves(&filter.shelves),
                filter.limit.min(MAX_LISTED),
            ];
            let records = query.query_map(values, row::record)?;
            Ok(records.collect::<Result<_, _>>()?)
        }))
    }

    fn search<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        query: &'a MemoryQuery,
    ) -> MemoryFuture<'a, Vec<MemoryHit>> {
        let (asker, query) = (asker.clone(), query.clone());
        Box::pin(
            self.worker
                .with(0, move |connection| search::run(connection, &asker, &query)),
        )
    }

    fn candidates<'a>(
        &'a self,
        asker: &'a MemoryAccess,
    ) -> MemoryFuture<'a, Vec<PendingCandidate>> {
        let asker = asker.clone();
        Box::pin(self.worker.with(0, move |connection| {
            let mut query = connection.prepare_cached(CANDIDATES)?;
            let tenant = Arc::clone(&asker.principal.tenant);
            let values = params![&*tenant, nanoseconds(asker.at), MAX_LISTED];
            let found = query.query_map(values, |row| {
                let subject: String = row.get("subject")?;
                Ok(PendingCandidate {
                    record: row::record(row)?,
                    principal: Principal::new(Arc::clone(&tenant), subject),
                })
            })?;
            Ok(found.collect::<Result<_, _>>()?)
        }))
    }

    fn history<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        id: &'a MemoryId,
    ) -> MemoryFuture<'a, Vec<MemoryRevision>> {
        let (asker, id) = (asker.clone(), id.clone());
        Box::pin(self.worker.with(0, move |connection| {
            // In one transaction, for a consistent snapshot.
            let moment = connection.transaction()?;
            let newest = raw(&moment, &asker, &id, |row| {
                row::revision(row, "updated", "changed_by")
            })?;
            let newest = newest.ok_or_else(|| MemoryError::NotFound(id.clone()))?;
            let mut query = moment.prepare_cached(HISTORY)?;
            let (tenant, subject) = (&*asker.principal.tenant, &*asker.principal.subject);
            let earlier = query.query_map([tenant, subject, id.as_str()], |row| {
                row::revision(row, "since", "by")
            })?;
            let mut all: Vec<_> = earlier.collect::<Result<_, _>>()?;
            all.push(newest);
            Ok(all)
        }))
    }

    fn decide<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        id: &'a MemoryId,
        decision: &'a CandidateDecision,
    ) -> MemoryFuture<'a, MemoryRecord> {
        let (asker, id, decision) = (asker.clone(), id.clone(), decision.clone());
        Box::pin(self.worker.with(0, move |connection| {
            let all = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let decided = decide::run(&all, &asker, &id, &decision)?;
            all.commit()?;
            Ok(decided)
        }))
    }

    fn counts<'a>(&'a self, asker: &'a MemoryAccess) -> MemoryFuture<'a, MemoryCounts> {
        let asker = asker.clone();
        Box::pin(
            self.worker
                .with(0, move |connection| Ok(counts(connection, &asker)?)),
        )
    }

    fn sweep(&self, at: i128) -> MemoryFuture<'_, u64> {
        Box::pin(self.worker.with(0, move |connection| {
            let swept = connection.execute(SWEEP, [nanoseconds(at)])?;
            Ok(swept as u64)
        }))
    }
}

/// Why a job failed.
type MemoryJobError = worker::JobError<MemoryError>;

impl From<MemoryError> for MemoryJobError {
    fn from(refused: MemoryError) -> Self {
        Self::Refused(refused)
    }
}

impl From<StoreError> for MemoryError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.0)
    }
}

/// Reads a record's row with `read`, unless it has expired.
fn raw<T>(
    connection: &Connection,
    asker: &MemoryAccess,
    id: &MemoryId,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    let mut query = connection.prepare_cached(GET)?;
    let values = params![
        &*asker.principal.tenant,
        &*asker.principal.subject,
        id.as_str(),
        nanoseconds(asker.at)
    ];
    query.query_row(values, read).optional()
}

fn one(
    connection: &Connection,
    asker: &MemoryAccess,
    id: &MemoryId,
) -> rusqlite::Result<Option<MemoryRecord>> {
    raw(connection, asker, id, row::record)
}

fn counts(connection: &Connection, asker: &MemoryAccess) -> rusqlite::Result<MemoryCounts> {
    let mut query = connection.prepare_cached(COUNTS)?;
    let mut rows = query.query([&*asker.principal.tenant, &*asker.principal.subject])?;
    let mut counts = MemoryCounts::default();
    while let Some(row) = rows.next()? {
        let n: i64 = row.get("n")?;
        let n = u64::try_from(n).unwrap_or(0);
        match row.get_ref("state")?.as_str()? {
            "candidate" => counts.candidate = n,
            "accepted" => counts.accepted = n,
            _ => counts.rejected = n,
        }
    }
    Ok(counts)
}
