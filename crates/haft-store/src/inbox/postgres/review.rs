//! Writes a review where the stored one is still as it was.

use haft::approval::ApprovalId;
use sqlx::PgPool;

use super::{PostgresInboxError, get_existing};
use crate::inbox::ReviewChange;

const REVIEW: &str =
    "UPDATE haft.approvals SET review = $3 WHERE id = $1 AND review IS NOT DISTINCT FROM $2";

/// Writes it; returns whether it did.
pub(super) async fn set(
    pool: &PgPool,
    id: &ApprovalId,
    change: &ReviewChange,
) -> Result<bool, PostgresInboxError> {
    let setting = sqlx::query(REVIEW).bind(id.as_str());
    let setting = setting.bind(&change.was).bind(&change.now);
    if setting.execute(pool).await?.rows_affected() == 1 {
        return Ok(true);
    }
    // Written before the connection broke: nobody else writes the same review in the same nanosecond.
    let stored = get_existing(pool, id).await?.request.review;
    let stored = stored.map(|review| ReviewChange::of(None, &review));
    Ok(stored
        .transpose()?
        .is_some_and(|stored| stored.now == change.now))
}
