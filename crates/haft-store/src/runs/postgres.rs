//! The run index in `PostgreSQL`.

use haft::audit::RunStart;
use haft::audit::index::{
    CallCount, CallTally, ClosedEvent, HourCount, IndexError, NoteEntry, RunEntry, RunFilter,
    RunIndex,
};
use haft::call::RunId;
use haft::future::BoxFuture;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgPool, Row as _};

use super::query::{self, BindValue, SqlDialect};
use super::{RunRow, changed, entry, hour, in_progress};
use crate::number::{nanoseconds, number};
use crate::postgres::{OperationError, PostgresServer, PostgresStore, is_lost};

/// A retry whose first answer was lost finds what it wrote.
const OPEN: &str = "INSERT INTO haft.runs (tenant, run, subject, door, workspace, profile, started) \
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (run) DO UPDATE SET started = excluded.started \
    WHERE haft.runs.started = excluded.started AND haft.runs.subject = excluded.subject AND haft.runs.calls = 0";
const PROGRESS: &str =
    "UPDATE haft.runs SET calls = $1, state = $2 WHERE run = $3 AND state <> 'closed'";
const CLOSE: &str = "UPDATE haft.runs SET state = 'closed', ended = $1, calls = $2, count = $3, head = $4, seal = $5 \
    WHERE run = $6 AND (state <> 'closed' OR (seal = $5 AND ended = $1))";
const GET: &str = "SELECT r.*, n.notes FROM haft.runs r LEFT JOIN haft.run_notes n ON n.run = r.run WHERE r.run = $1";
const NOTE: &str = "INSERT INTO haft.run_notes (run, started, noted, failed, notes) VALUES ($1, $2, $3, $4, $5) \
    ON CONFLICT (run) DO UPDATE SET noted = excluded.noted, failed = excluded.failed, notes = excluded.notes";
const COUNT: &str = "INSERT INTO haft.run_calls (run, tool, status, part, hour, calls, total_ms, decided, waited_ms) \
    SELECT $1, * FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], \
    $9::bigint[]) ON CONFLICT (run, tool, status, part, hour) DO UPDATE SET calls = excluded.calls, \
    total_ms = excluded.total_ms, decided = excluded.decided, waited_ms = excluded.waited_ms";
const HOURS: &str = "SELECT * FROM haft.call_hours WHERE hour >= $1 ORDER BY hour, tool, status";

const DIALECT: SqlDialect = SqlDialect {
    schema: "haft.",
    mark: '$',
};

impl PostgresServer {
    async fn index<T, F>(&self, make: impl Fn(PgPool) -> F) -> Result<T, IndexError>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        self.ask(make, is_lost).await.map_err(|error| match error {
            OperationError::Silent => IndexError::Store(self.timeout_message().into()),
            OperationError::Refused(error) => IndexError::Store(self.failure(error)),
        })
    }
}

impl RunIndex for PostgresStore {
    fn open<'a>(
        &'a self,
        run: &'a RunId,
        start: &'a RunStart,
        at: i128,
    ) -> BoxFuture<'a, Result<(), IndexError>> {
        Box::pin(async move {
            let opened = self.0.index(move |pool| async move {
                sqlx::query(OPEN)
                    .bind(&*start.principal.tenant)
                    .bind(run.as_str())
                    .bind(&*start.principal.subject)
                    .bind(&start.entry_point)
                    .bind(&start.workspace)
                    .bind(&start.profile)
                    .bind(nanoseconds(at))
                    .execute(&pool)
                    .await
            });
            match opened.await?.rows_affected() {
                0 => Err(IndexError::Exists(run.clone())),
                _ => Ok(()),
            }
        })
    }

    fn progress<'a>(
        &'a self,
        run: &'a RunId,
        calls: u64,
        suspended: bool,
    ) -> BoxFuture<'a, Result<(), IndexError>> {
        let state = in_progress(suspended);
        Box::pin(async move {
            let updated = self.0.index(move |pool| async move {
                let query = sqlx::query(PROGRESS).bind(number(calls));
                let query = query.bind(state.as_str()).bind(run.as_str());
                query.execute(&pool).await
            });
            changed(run, updated.await?.rows_affected())
        })
    }

    fn close<'a>(
        &'a self,
        run: &'a RunId,
        closed: &'a ClosedEvent,
        at: i128,
    ) -> BoxFuture<'a, Result<(), IndexError>> {
        Box::pin(async move {
            let updated = self.0.index(move |pool| async move {
                sqlx::query(CLOSE)
                    .bind(nanoseconds(at))
                    .bind(number(closed.calls))
                    .bind(number(closed.count))
                    .bind(&closed.head)
                    .bind(&closed.seal)
                    .bind(run.as_str())
                    .execute(&pool)
                    .await
            });
            changed(run, updated.await?.rows_affected())
        })
    }

    fn note<'a>(
        &'a self,
        run: &'a RunId,
        entry: &'a NoteEntry,
    ) -> BoxFuture<'a, Result<(), IndexError>> {
        Box::pin(async move {
            // Strings and numbers always serialize.
            let notes = serde_json::to_string(&entry.notes).unwrap_or_default();
            let notes = &notes;
            let noted = self.0.index(move |pool| async move {
                sqlx::query(NOTE)
                    .bind(run.as_str())
                    .bind(nanoseconds(entry.started))
                    .bind(nanoseconds(entry.at))
                    .bind(number(entry.notes.failed()))
                    .bind(notes)
                    .execute(&pool)
                    .await
            });
            noted.await?;
            if !entry.tallies.is_empty() {
                let counted = self.0.index(move |pool| count(pool, run, entry));
                counted.await?;
            }
            Ok(())
        })
    }

    fn list<'a>(
        &'a self,
        filter: &'a RunFilter,
    ) -> BoxFuture<'a, Result<Vec<RunEntry>, IndexError>> {
        Box::pin(async move {
            let (sql, values) = query::list(DIALECT, filter);
            let (sql, values) = (&sql, &values);
            let listed = self.0.index(move |pool| async move {
                // The conditions are fixed texts; every value is a parameter.
                let mut query = sqlx::query(AssertSqlSafe(sql.clone()));
                for value in values {
                    query = match value {
                        BindValue::Text(text) => query.bind(text),
                        BindValue::Number(number) => query.bind(number),
                    };
                }
                query.fetch_all(&pool).await?.iter().map(entry).collect()
            });
            listed.await
        })
    }

    fn activity(&self, since_hour: i64) -> BoxFuture<'_, Result<Vec<HourCount>, IndexError>> {
        Box::pin(self.0.index(move |pool| async move {
            let query = sqlx::query(HOURS).bind(since_hour);
            query.fetch_all(&pool).await?.iter().map(hour).collect()
        }))
    }

    fn get<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunEntry>, IndexError>> {
        Box::pin(self.0.index(move |pool| async move {
            let query = sqlx::query(GET).bind(run.as_str());
            query
                .fetch_optional(&pool)
                .await?
                .as_ref()
                .map(entry)
                .transpose()
        }))
    }
}

/// Writes the counts of a run's calls.
async fn count(pool: PgPool, run: &RunId, entry: &NoteEntry) -> Result<(), sqlx::Error> {
    let each = entry.tallies.iter();
    let numbers = |member: fn(&CallCount) -> u64| -> Vec<i64> {
        let tallies = entry.tallies.iter();
        tallies.map(|tally| number(member(&tally.count))).collect()
    };
    sqlx::query(COUNT)
        .bind(run.as_str())
        .bind(
            each.clone()
                .map(|tally| tally.tool.clone())
                .collect::<Vec<_>>(),
        )
        .bind(each.clone().map(CallTally::word).collect::<Vec<_>>())
        .bind(
            each.clone()
                .map(|tally| nanoseconds(tally.part))
                .collect::<Vec<_>>(),
        )
        .bind(each.map(|tally| tally.hour).collect::<Vec<_>>())
        .bind(numbers(|count| count.calls))
        .bind(numbers(|count| count.total_ms))
        .bind(numbers(|count| count.decided))
        .bind(numbers(|count| count.waited_ms))
        .execute(&pool)
        .await?;
    Ok(())
}

impl RunRow for PgRow {
    type Error = sqlx::Error;

    fn text(&self, column: &str) -> Result<Option<String>, sqlx::Error> {
        self.try_get(column)
    }

    fn number(&self, column: &str) -> Result<Option<i64>, sqlx::Error> {
        self.try_get(column)
    }
}
