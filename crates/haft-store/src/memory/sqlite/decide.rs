//! Decisions about candidates: each is decided once, and only against the revision that its writer saw.

use haft::memory::{
    CandidateDecision, MemoryAccess, MemoryError, MemoryId, MemoryRecord, MemoryState,
};
use rusqlite::{Connection, params};

use super::steps::{delete, index, named, written};
use super::{MemoryJobError, one};
use crate::number::nanoseconds;

/// How long a decided record that is not recalled (a rejected one or an executed deletion) stays readable: seven days.
const RETENTION_NANOS: i128 = 7 * 86_400 * 1_000_000_000;

const DECIDE: &str = "UPDATE memory SET state = ?1, decided_by = ?2, changed_by = ?2, updated = ?3, \
    expires = CASE WHEN ?4 IS NULL THEN expires ELSE min(coalesce(expires, ?4), ?4) END, revision = revision + 1 \
    WHERE tenant = ?5 AND subject = ?6 AND id = ?7 AND state = 'candidate'";

/// Applies the decision; the caller commits.
pub(super) fn run(
    connection: &Connection,
    asker: &MemoryAccess,
    id: &MemoryId,
    decision: &CandidateDecision,
) -> Result<MemoryRecord, MemoryJobError> {
    let found = one(connection, asker, id)?;
    let candidate = found.ok_or_else(|| MemoryError::NotFound(id.clone()))?;
    if candidate.state != MemoryState::Candidate {
        return Err(MemoryError::Decided(id.clone(), candidate.state).into());
    }
    if decision.accept
        && let Some(replaced) = &candidate.replaces
    {
        delete(connection, asker, &replaced.id, replaced.revision)?;
    }
    let state = if decision.accept {
        MemoryState::Accepted
    } else {
        MemoryState::Rejected
    };
    let is_temporary = !decision.accept || candidate.deletes;
    let until = is_temporary.then(|| nanoseconds(asker.at.saturating_add(RETENTION_NANOS)));
    let decided = connection.prepare_cached(DECIDE)?.execute(params![
        state.as_str(),
        decision.by,
        nanoseconds(asker.at),
        until,
        &*asker.principal.tenant,
        &*asker.principal.subject,
        id.as_str(),
    ]);
    let decided = decided.map_err(|e| named(e, candidate.path.as_deref()))?;
    if decided != 1 {
        return Err(rusqlite::Error::StatementChangedRows(decided).into());
    }
    let record = written(connection, asker, id)?;
    index(connection, asker, &record)?;
    Ok(record)
}
