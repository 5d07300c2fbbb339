//! The memory in `SQLite`: records in a table, the words of accepted ones in a full-text index.

use haft::memory::{
    Answer, Asker, Counts, Decision, Filter, Hit, MAX_LISTED, MemoryError, MemoryId, MemoryStore,
    Query, Record, Revision, Step,
};
use sqlx::{Row as _, SqliteConnection};

use super::{SqliteStore, nanoseconds, reason};
use crate::error::StoreError;

mod decide;
mod row;
mod search;
mod steps;

const GET: &str = "SELECT * FROM memory WHERE tenant = ? AND subject = ? AND id = ? \
    AND (expires IS NULL OR expires > ?)";
/// `?5` is `null` for any state, `?6` for any run, `?7` for any shelf.
const LIST: &str = "SELECT * FROM memory WHERE tenant = ?1 AND subject = ?2 \
    AND (expires IS NULL OR expires > ?3) AND (?4 = 0 OR path IS NOT NULL) \
    AND (?5 IS NULL OR state = ?5) AND (?6 IS NULL OR run = ?6) \
    AND (?7 IS NULL OR scope || ':' || key IN (SELECT value FROM json_each(?7))) \
    ORDER BY updated DESC, row DESC LIMIT ?8";
const HISTORY: &str = "SELECT h.* FROM memory_history h JOIN memory m ON m.row = h.row \
    WHERE m.tenant = ? AND m.subject = ? AND m.id = ? ORDER BY h.revision";
const COUNTS: &str = "SELECT state, n FROM memory_counts WHERE tenant = ? AND subject = ?";
const SWEEP: &str = "DELETE FROM memory WHERE expires <= ?";

impl MemoryStore for SqliteStore {
    fn apply<'a>(&'a self, asker: &'a Asker, steps: Vec<Step>) -> Answer<'a, Vec<Record>> {
        Box::pin(async move {
            let mut connection = self.connection().await?;
            // Taken at the start: nothing that was read below can change before it is written.
            let begun = sqlx::Connection::begin_with(&mut *connection, "BEGIN IMMEDIATE").await;
            let mut transaction = begun.map_err(store)?;
            let applied = steps::apply(&mut transaction, asker, steps).await?;
            transaction.commit().await.map_err(store)?;
            Ok(applied)
        })
    }

    fn get<'a>(&'a self, asker: &'a Asker, id: &'a MemoryId) -> Answer<'a, Option<Record>> {
        Box::pin(async move { one(&mut *self.connection().await?, asker, id).await })
    }

    fn list<'a>(&'a self, asker: &'a Asker, filter: &'a Filter) -> Answer<'a, Vec<Record>> {
        Box::pin(async move {
            let rows = sqlx::query(LIST)
                .bind(&*asker.principal.tenant)
                .bind(&*asker.principal.subject)
                .bind(nanoseconds(asker.at))
                .bind(i64::from(filter.files))
                .bind(filter.state.map(haft::memory::State::as_str))
                .bind(filter.run.as_ref().map(haft::call::RunId::as_str))
                .bind(row::shelves(&filter.shelves))
                .bind(i64::from(filter.limit.min(MAX_LISTED)))
                .fetch_all(&mut *self.connection().await?)
                .await;
            let records = rows.map_err(store)?;
            let records: Result<_, _> = records.iter().map(row::record).collect();
            records.map_err(store)
        })
    }

    fn search<'a>(&'a self, asker: &'a Asker, query: &'a Query) -> Answer<'a, Vec<Hit>> {
        Box::pin(async move { search::run(&mut *self.connection().await?, asker, query).await })
    }

    fn history<'a>(&'a self, asker: &'a Asker, id: &'a MemoryId) -> Answer<'a, Vec<Revision>> {
        Box::pin(async move {
            let mut connection = self.connection().await?;
            let found = raw(&mut connection, asker, id).await?;
            let found = found.ok_or_else(|| MemoryError::NotFound(id.clone()))?;
            let earlier = sqlx::query(HISTORY)
                .bind(&*asker.principal.tenant)
                .bind(&*asker.principal.subject)
                .bind(id.as_str())
                .fetch_all(&mut *connection)
                .await;
            let mut all = Vec::new();
            for earlier in &earlier.map_err(store)? {
                all.push(row::revision(earlier, "since", "by").map_err(store)?);
            }
            all.push(row::revision(&found, "updated", "changed_by").map_err(store)?);
            Ok(all)
        })
    }

    fn decide<'a>(
        &'a self,
        asker: &'a Asker,
        id: &'a MemoryId,
        decision: &'a Decision,
    ) -> Answer<'a, Record> {
        Box::pin(async move {
            let mut connection = self.connection().await?;
            let begun = sqlx::Connection::begin_with(&mut *connection, "BEGIN IMMEDIATE").await;
            let mut transaction = begun.map_err(store)?;
            let decided = decide::run(&mut transaction, asker, id, decision).await?;
            transaction.commit().await.map_err(store)?;
            Ok(decided)
        })
    }

    fn counts<'a>(&'a self, asker: &'a Asker) -> Answer<'a, Counts> {
        Box::pin(async move { counts(&mut *self.connection().await?, asker).await })
    }

    fn sweep(&self, at: i128) -> Answer<'_, u64> {
        Box::pin(async move {
            let query = sqlx::query(SWEEP).bind(nanoseconds(at));
            let swept = query.execute(&mut *self.connection().await?).await;
            Ok(swept.map_err(store)?.rows_affected())
        })
    }
}

impl From<StoreError> for MemoryError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

fn store(error: sqlx::Error) -> MemoryError {
    MemoryError::Store(reason(error))
}

/// A record's row, unless it has expired.
async fn raw(
    connection: &mut SqliteConnection,
    asker: &Asker,
    id: &MemoryId,
) -> Result<Option<sqlx::sqlite::SqliteRow>, MemoryError> {
    let query = sqlx::query(GET)
        .bind(&*asker.principal.tenant)
        .bind(&*asker.principal.subject)
        .bind(id.as_str())
        .bind(nanoseconds(asker.at));
    query.fetch_optional(connection).await.map_err(store)
}

async fn one(
    connection: &mut SqliteConnection,
    asker: &Asker,
    id: &MemoryId,
) -> Result<Option<Record>, MemoryError> {
    let found = raw(connection, asker, id).await?;
    found.as_ref().map(row::record).transpose().map_err(store)
}

async fn counts(connection: &mut SqliteConnection, asker: &Asker) -> Result<Counts, MemoryError> {
    let rows = sqlx::query(COUNTS)
        .bind(&*asker.principal.tenant)
        .bind(&*asker.principal.subject)
        .fetch_all(connection)
        .await;
    let mut counts = Counts::default();
    for row in rows.map_err(store)? {
        let n: i64 = row.try_get("n").map_err(store)?;
        let n = u64::try_from(n).unwrap_or(0);
        match row.try_get::<&str, _>("state").map_err(store)? {
            "candidate" => counts.candidate = n,
            "accepted" => counts.accepted = n,
            _ => counts.rejected = n,
        }
    }
    Ok(counts)
}
