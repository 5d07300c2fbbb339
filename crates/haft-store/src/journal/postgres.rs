//! Journals in `PostgreSQL`.

use tokio::runtime::{Builder, Runtime};

use super::{JournalBackend, JournalJobError, JournalJobResult};
use crate::lease::Lease;
use crate::postgres::{OperationError, PostgresStore, is_lost};

const HOLD: &str = "INSERT INTO haft.journal_runs (run, holder, alive_until) \
    VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3)) \
    ON CONFLICT (run) DO UPDATE SET holder = excluded.holder, alive_until = excluded.alive_until \
    WHERE haft.journal_runs.holder = excluded.holder OR haft.journal_runs.alive_until <= clock_timestamp()";
const OLD: &str = "SELECT EXISTS (SELECT 1 FROM haft.journal_lines WHERE run = $1 AND name <> $2)";
const ADD: &str = "INSERT INTO haft.journal_lines (run, name, line) VALUES ($1, $2, $3) \
    ON CONFLICT (name) DO NOTHING";
const RENEW: &str = "UPDATE haft.journal_runs \
    SET alive_until = clock_timestamp() + make_interval(secs => $3) WHERE run = ANY($1) AND holder = $2";
const LEAVE: &str = "WITH gone AS (DELETE FROM haft.journal_runs WHERE run = $1 AND holder = $2 RETURNING run) \
    DELETE FROM haft.journal_lines WHERE $3 AND run IN (SELECT run FROM gone)";
const BUSY: &str = "SELECT EXISTS (SELECT 1 FROM haft.journal_runs \
    WHERE run = $1 AND alive_until > clock_timestamp())";
const LINES: &str = "SELECT line FROM haft.journal_lines WHERE run = $1 ORDER BY row";

/// The journal tables on a server, accessed from a thread of their own.
pub(super) struct PostgresJournal {
    runtime: Runtime,
    store: PostgresStore,
    /// Duration of a run's lease, in seconds.
    lasts: f64,
}

impl PostgresJournal {
    pub(super) fn new(url: &str, lease: Lease) -> Result<Self, String> {
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self {
            runtime: runtime.map_err(|e| e.to_string())?,
            store: PostgresStore::new(url)
                .map_err(|e| e.to_string())?
                .with_lease(lease),
            lasts: lease.lasts.as_secs_f64(),
        })
    }

    fn with<T, F>(&self, make: impl Fn(sqlx::PgPool, String) -> F) -> JournalJobResult<T>
    where
        F: Future<Output = Result<JournalJobResult<T>, sqlx::Error>>,
    {
        let server = &self.store.0;
        let make = &make;
        let asked = server.ask(
            move |pool| async move {
                let me = server.process_name(&pool).await?.to_owned();
                make(pool, me).await
            },
            is_lost,
        );
        self.runtime.block_on(asked).unwrap_or_else(|error| {
            Err(JournalJobError::Failed(match error {
                OperationError::Silent => server.timeout_message().into(),
                OperationError::Refused(error) => server.failure(error),
            }))
        })
    }
}

impl JournalBackend for PostgresJournal {
    fn add(&mut self, run: &str, line: &str, held: bool) -> JournalJobResult<bool> {
        let (attempt, lasts) = (self.store.0.attempt(), self.lasts);
        self.with(|pool, me| async move {
            let name = format!("{me}/{attempt}");
            let mut all = pool.begin().await?;
            let holding = sqlx::query(HOLD).bind(run).bind(me).bind(lasts);
            if holding.execute(&mut *all).await?.rows_affected() == 0 {
                return Ok(Err(JournalJobError::Busy));
            }
            let old = if held {
                true
            } else {
                let query = sqlx::query_scalar(OLD).bind(run).bind(&name);
                query.fetch_one(&mut *all).await?
            };
            let adding = sqlx::query(ADD).bind(run).bind(&name).bind(line.as_bytes());
            adding.execute(&mut *all).await?;
            all.commit().await?;
            Ok(Ok(old))
        })
    }

    fn release_run(&mut self, run: &str, wipe: bool) -> JournalJobResult<()> {
        self.with(|pool, me| async move {
            let leaving = sqlx::query(LEAVE).bind(run).bind(me).bind(wipe);
            leaving.execute(&pool).await?;
            Ok(Ok(()))
        })
    }

    fn renew(&mut self, runs: &mut dyn Iterator<Item = &str>) -> JournalJobResult<()> {
        let runs: Vec<&str> = runs.collect();
        let (runs, lasts) = (&runs, self.lasts);
        self.with(|pool, me| async move {
            let renewing = sqlx::query(RENEW).bind(runs).bind(me).bind(lasts);
            renewing.execute(&pool).await?;
            Ok(Ok(()))
        })
    }

    fn lines(&mut self, run: &str, ours: bool) -> JournalJobResult<Vec<Vec<u8>>> {
        self.with(|pool, _| async move {
            let busy: bool = sqlx::query_scalar(BUSY).bind(run).fetch_one(&pool).await?;
            if busy && !ours {
                return Ok(Err(JournalJobError::Busy));
            }
            let query = sqlx::query_scalar(LINES).bind(run);
            Ok(Ok(query.fetch_all(&pool).await?))
        })
    }
}
