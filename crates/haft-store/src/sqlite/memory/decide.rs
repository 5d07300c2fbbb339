//! Decisions about candidates: once, and against what their writer saw.

use haft::memory::{Asker, Decision, MemoryError, MemoryId, Record, State};
use sqlx::SqliteConnection;

use super::super::nanoseconds;
use super::steps::{delete, index, named, written};
use super::{one, store};

/// What is decided and not recalled (rejected, or a deletion that was made) stays readable so long: seven days.
const KEPT: i128 = 7 * 86_400 * 1_000_000_000;

const DECIDE: &str = "UPDATE memory SET state = ?1, decided_by = ?2, changed_by = ?2, updated = ?3, \
    expires = CASE WHEN ?4 IS NULL THEN expires ELSE min(coalesce(expires, ?4), ?4) END, revision = revision + 1 \
    WHERE tenant = ?5 AND subject = ?6 AND id = ?7 AND state = 'candidate'";

/// Makes the decision; the caller commits.
pub(super) async fn run(
    connection: &mut SqliteConnection,
    asker: &Asker,
    id: &MemoryId,
    decision: &Decision,
) -> Result<Record, MemoryError> {
    let found = one(connection, asker, id).await?;
    let candidate = found.ok_or_else(|| MemoryError::NotFound(id.clone()))?;
    if candidate.state != State::Candidate {
        return Err(MemoryError::Decided(id.clone(), candidate.state));
    }
    if decision.accept
        && let Some(replaced) = &candidate.replaces
    {
        let gone = delete(connection, asker, &replaced.id, replaced.revision).await;
        gone.map_err(|_| MemoryError::Changed(replaced.id.clone()))?;
    }
    let state = if decision.accept {
        State::Accepted
    } else {
        State::Rejected
    };
    let kept = !decision.accept || candidate.deletes;
    let until = kept.then(|| nanoseconds(asker.at.saturating_add(KEPT)));
    let decided = sqlx::query(DECIDE)
        .bind(state.as_str())
        .bind(&decision.by)
        .bind(nanoseconds(asker.at))
        .bind(until)
        .bind(&*asker.principal.tenant)
        .bind(&*asker.principal.subject)
        .bind(id.as_str())
        .execute(&mut *connection)
        .await;
    let decided = decided.map_err(|e| named(e, candidate.path.as_deref()))?;
    if decided.rows_affected() != 1 {
        return Err(store(sqlx::Error::RowNotFound));
    }
    let record = written(connection, asker, id).await?;
    index(connection, asker, &record).await?;
    Ok(record)
}
