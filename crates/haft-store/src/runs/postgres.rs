//! The run index in `PostgreSQL`.

use haft::audit::RunStart;
use haft::audit::index::{Closed, IndexError, RunEntry, RunIndex};
use haft::call::{Principal, RunId};
use haft::future::BoxFuture;
use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row as _};

use super::{RunRow, changed, entry, in_progress};
use crate::number::{nanoseconds, number};
use crate::postgres::{OperationError, PostgresStore, Server, is_lost};

/// A statement whose answer was lost finds what it wrote.
const OPEN: &str = "INSERT INTO haft.runs (tenant, run, subject, door, workspace, profile, started) \
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (run) DO UPDATE SET started = excluded.started \
    WHERE haft.runs.started = excluded.started AND haft.runs.subject = excluded.subject AND haft.runs.calls = 0";
const PROGRESS: &str =
    "UPDATE haft.runs SET calls = $1, state = $2 WHERE run = $3 AND state <> 'closed'";
const CLOSE: &str = "UPDATE haft.runs SET state = 'closed', ended = $1, calls = $2, count = $3, head = $4, seal = $5 \
    WHERE run = $6 AND (state <> 'closed' OR (seal = $5 AND ended = $1))";
const LIST: &str = "SELECT * FROM haft.runs ORDER BY started DESC, run DESC LIMIT $1";
const LIST_OF: &str = "SELECT * FROM haft.runs WHERE tenant = $2 AND subject = $3 \
    ORDER BY started DESC, run DESC LIMIT $1";
const GET: &str = "SELECT * FROM haft.runs WHERE run = $1";

impl Server {
    async fn index<T, F>(&self, make: impl Fn(PgPool) -> F) -> Result<T, IndexError>
    where
        F: Future<Output = Result<T, sqlx::Error>>,
    {
        self.ask(make, is_lost).await.map_err(|error| match error {
            OperationError::Silent => IndexError::Store(self.silent().into()),
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
        closed: &'a Closed,
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

    fn list<'a>(
        &'a self,
        principal: Option<&'a Principal>,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<RunEntry>, IndexError>> {
        Box::pin(self.0.index(move |pool| async move {
            let query = match principal {
                None => sqlx::query(LIST).bind(i64::from(limit)),
                Some(of) => sqlx::query(LIST_OF)
                    .bind(i64::from(limit))
                    .bind(&*of.tenant)
                    .bind(&*of.subject),
            };
            query.fetch_all(&pool).await?.iter().map(entry).collect()
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

impl RunRow for PgRow {
    type Error = sqlx::Error;

    fn text(&self, column: &str) -> Result<Option<String>, sqlx::Error> {
        self.try_get(column)
    }

    fn number(&self, column: &str) -> Result<Option<i64>, sqlx::Error> {
        self.try_get(column)
    }
}
