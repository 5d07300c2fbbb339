//! `PostgresStore`: the connections to a `PostgreSQL` database (15 or later) that processes on several machines can share.
//!
//! Each change is one statement that is safe to repeat: if the connection breaks before the answer arrives, the change is retried
//! until the operation's time limit. A server restart therefore neither loses nor duplicates anything.

use haft::error::HostFailure;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::approval::ApprovalId;
use parking_lot::Mutex;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Executor as _, PgPool};
use tokio::sync::{OnceCell, broadcast};
use tokio::time::{sleep, timeout};

use crate::error::StoreError;
use crate::lease::Lease;
use crate::request_changes;

pub(crate) mod beat;
pub(crate) mod filing_queue;
pub(crate) mod sweeps;

use beat::PostgresHeartbeat;
use filing_queue::FilingQueue;
use sweeps::SweepClock;

/// Time limit of an operation, including connecting and retries.
pub(crate) const OPERATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Delay before the first retry of an operation; doubles each time, up to half a second.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// Maximum number of connections per process. One of them listens; for the others, more than the machine has processors seldom
/// help.
const MAX_CONNECTIONS: u32 = 8;

/// The oldest supported server version.
const MIN_VERSION: i32 = 150_000;

/// Advisory lock held while migrating the schema, so that only one process does it.
const MIGRATION_LOCK: i64 = 0x6861_6674;

/// Migrations from each schema version to the next.
const MIGRATIONS: &[&str] = &[
    include_str!("postgres/migrations/0001_store.sql"),
    include_str!("postgres/migrations/0002_journal.sql"),
    include_str!("postgres/migrations/0003_approvals_lean.sql"),
    include_str!("postgres/migrations/0004_suspended.sql"),
    include_str!("postgres/migrations/0005_suspended_age.sql"),
    include_str!("postgres/migrations/0006_run_notes.sql"),
    include_str!("postgres/migrations/0007_approval_reasons.sql"),
    include_str!("postgres/migrations/0008_approval_reviews.sql"),
];

/// haft's tables in a `PostgreSQL` database, connected on first use.
#[derive(Debug)]
pub struct PostgresStore(pub(crate) Arc<PostgresServer>);

#[derive(Debug)]
pub(crate) struct PostgresServer {
    options: PgConnectOptions,
    /// The server's address without secrets.
    place: String,
    pub(crate) pool: OnceCell<PgPool>,
    pub(crate) changes: broadcast::Sender<ApprovalId>,
    /// Whether a task is listening.
    listening: Mutex<bool>,
    pub(crate) beat: PostgresHeartbeat,
    pub(crate) filing: FilingQueue,
    pub(crate) sweeps: SweepClock,
}

impl PostgresStore {
    /// Creates a store for the database at this URL (`postgres://user:password@host:port/database?sslmode=require`); does not connect yet.
    ///
    /// # Errors
    /// [`StoreError`] if the URL is invalid; the error does not contain the password.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let options = PgConnectOptions::from_str(url)
            // The original error may quote the URL, which may contain a password.
            .map_err(|_| StoreError("the URL of PostgreSQL cannot be read".into()))?;
        let database = options
            .get_database()
            .unwrap_or(options.get_username())
            .to_owned();
        let place = format!(
            "PostgreSQL at {}:{}/{database}",
            options.get_host(),
            options.get_port()
        );
        let options = options.application_name("haft").options([
            ("statement_timeout", "5000"),
            ("lock_timeout", "4000"),
            // A decision that was confirmed is on disk, whatever the server's own setting is.
            ("synchronous_commit", "on"),
        ]);
        Ok(Self::of(options, place, Lease::default()))
    }

    /// Sets another lease; for a store that has not been used yet.
    pub fn with_lease(self, lease: Lease) -> Self {
        Self::of(self.0.options.clone(), self.0.place.clone(), lease)
    }

    fn of(options: PgConnectOptions, place: String, lease: Lease) -> Self {
        Self(Arc::new(PostgresServer {
            options,
            place,
            pool: OnceCell::new(),
            changes: request_changes::new_sender(),
            listening: Mutex::default(),
            beat: PostgresHeartbeat::new(lease),
            filing: FilingQueue::default(),
            sweeps: SweepClock::default(),
        }))
    }

    /// Removes this process and closes the connections. Dropping without it loses nothing.
    pub async fn shut_down(&self) {
        if let Some(pool) = self.0.pool.get() {
            // If this fails, others notice within seconds.
            let _ = timeout(OPERATION_TIMEOUT, self.0.beat.leave(pool)).await;
            let _ = timeout(OPERATION_TIMEOUT, self.0.filing.close()).await;
            let _ = timeout(OPERATION_TIMEOUT, pool.close()).await;
        }
    }
}

impl PostgresServer {
    /// Returns the connection pool, with the schema up to date.
    pub(crate) async fn pool(&self) -> Result<&PgPool, sqlx::Error> {
        self.pool
            .get_or_try_init(|| async {
                let pool = PgPoolOptions::new()
                    .max_connections(MAX_CONNECTIONS)
                    .acquire_timeout(OPERATION_TIMEOUT)
                    // A broken connection fails on first use and is then replaced.
                    .test_before_acquire(false)
                    .idle_timeout(None)
                    .max_lifetime(None)
                    .connect_lazy_with(self.options.clone());
                migrate(&pool).await?;
                Ok(pool)
            })
            .await
    }

    /// Runs an operation and retries it while the server is unreachable, until its time limit.
    pub(crate) async fn ask<T, E, F>(
        &self,
        make: impl Fn(PgPool) -> F,
        lost: fn(&E) -> bool,
    ) -> Result<T, OperationError<E>>
    where
        E: From<sqlx::Error>,
        F: Future<Output = Result<T, E>>,
    {
        let began = Instant::now();
        let mut pause = RETRY_DELAY;
        loop {
            let once = async {
                let pool = self.pool().await.map_err(E::from)?;
                make(pool.clone()).await
            };
            match timeout(OPERATION_TIMEOUT.saturating_sub(began.elapsed()), once).await {
                Ok(Err(error)) if lost(&error) && began.elapsed() + pause < OPERATION_TIMEOUT => {}
                Ok(made) => return made.map_err(OperationError::Refused),
                Err(_) => return Err(OperationError::Silent),
            }
            sleep(pause).await;
            pause = (pause * 2).min(RETRY_DELAY * 25);
        }
    }

    /// Describes the error, naming the server.
    pub(crate) fn reason(&self, error: &sqlx::Error) -> String {
        let place = &self.place;
        match error {
            sqlx::Error::PoolTimedOut => self.timeout_message(),
            sqlx::Error::Io(error) => format!("{place} cannot be reached: {error}"),
            sqlx::Error::Database(error) => format!("{place}: {}", error.message()),
            other => format!("{place}: {other}"),
        }
    }

    /// Like [`PostgresServer::reason`], with the original error as the source.
    pub(crate) fn failure(&self, error: sqlx::Error) -> HostFailure {
        HostFailure::new(self.reason(&error)).with_source(error)
    }

    pub(crate) fn timeout_message(&self) -> String {
        format!(
            "{} did not answer within {} s",
            self.place,
            OPERATION_TIMEOUT.as_secs()
        )
    }

    /// Returns this process's name.
    pub(crate) async fn process_name(&self, pool: &PgPool) -> Result<&str, sqlx::Error> {
        self.beat.process_name(pool).await
    }

    /// Returns a number for an attempt that is unique within this process.
    pub(crate) fn attempt(&self) -> u64 {
        self.beat.attempt()
    }

    pub(crate) fn listening(&self) -> parking_lot::MutexGuard<'_, bool> {
        self.listening.lock()
    }
}

/// Why an operation failed.
pub(crate) enum OperationError<E> {
    /// It was refused, or the server was still unreachable at the end of its time limit.
    Refused(E),
    /// No response came.
    Silent,
}

/// Returns whether the server or the connection to it was lost, so that the operation may be retried.
pub(crate) fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::PoolTimedOut => true,
        // 08: connection; 57P: the server is stopping, crashed or starting; 40: the transaction was rolled back in favor of another.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            code.starts_with("08") || code.starts_with("57P") || code.starts_with("40")
        }),
        _ => false,
    }
}

/// Brings the schema up to date.
async fn migrate(pool: &PgPool) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin().await?;
    let server: i32 = sqlx::query_scalar("SELECT current_setting('server_version_num')::integer")
        .fetch_one(&mut *transaction)
        .await?;
    if server < MIN_VERSION {
        let old = "the server is older than PostgreSQL 15";
        return Err(sqlx::Error::Configuration(old.into()));
    }
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(MIGRATION_LOCK)
        .execute(&mut *transaction)
        .await?;
    let made: bool = sqlx::query_scalar("SELECT to_regclass('haft.version') IS NOT NULL")
        .fetch_one(&mut *transaction)
        .await?;
    let mut from = 0;
    if made {
        let version: i32 = sqlx::query_scalar("SELECT version FROM haft.version")
            .fetch_one(&mut *transaction)
            .await?;
        from = usize::try_from(version).unwrap_or(usize::MAX);
    }
    let Some(steps) = MIGRATIONS.get(from..) else {
        let newer = format!(
            "version {from} of a newer haft, this one knows {}",
            MIGRATIONS.len()
        );
        return Err(sqlx::Error::Configuration(newer.into()));
    };
    for step in steps {
        transaction.execute(sqlx::raw_sql(*step)).await?;
    }
    if !steps.is_empty() {
        sqlx::query("UPDATE haft.version SET version = $1")
            .bind(i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX))
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await
}
