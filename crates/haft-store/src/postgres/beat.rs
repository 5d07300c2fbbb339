//! `Beat`: what this process attends and runs, and the task that says that it is alive, by the server's clock.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use sqlx::PgPool;
use tokio::time::sleep;

use super::Server;
use crate::lease::Lease;

/// How many beats pass before what was forgotten is looked for.
const FORGOTTEN: u32 = 40;

const NAME: &str = "SELECT replace(gen_random_uuid()::text, '-', '')";
const RENEW: &str = "INSERT INTO haft.processes (id, alive_until) \
    VALUES ($1, clock_timestamp() + make_interval(secs => $2)) \
    ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until";
const LEAVE: &str = "DELETE FROM haft.processes WHERE id = $1";
const STILL: &str = "SELECT id FROM haft.approvals WHERE id = ANY($1) AND ((waiter = $2 \
    AND status IN ('pending', 'approved', 'answered', 'running')) \
    OR (split_part(claimed_by, '/', 1) = $2 AND status = 'running'))";

/// The life of this process as others see it.
#[derive(Debug)]
pub(crate) struct Beat {
    /// The name of this process: random, new with each store, given by the server.
    me: OnceLock<String>,
    pub(crate) lease: Lease,
    attempts: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    held: HashSet<String>,
    last: Option<Instant>,
    task: bool,
}

impl Beat {
    pub(crate) fn new(lease: Lease) -> Self {
        Self {
            me: OnceLock::new(),
            lease,
            attempts: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The name of this process.
    pub(crate) async fn me(&self, pool: &PgPool) -> Result<&str, sqlx::Error> {
        if let Some(me) = self.me.get() {
            return Ok(me);
        }
        let name: String = sqlx::query_scalar(NAME).fetch_one(pool).await?;
        Ok(self.me.get_or_init(|| name))
    }

    /// A number for an attempt of this process, which no other has.
    pub(crate) fn attempt(&self) -> u64 {
        self.attempts.fetch_add(1, Ordering::Relaxed)
    }

    /// Has done with a request.
    pub(crate) fn release(&self, id: &str) {
        self.state().held.remove(id);
    }

    /// Says that this process is alive, where that was not said lately.
    async fn renew(&self, pool: &PgPool) -> Result<(), sqlx::Error> {
        let Lease { lasts, beat } = self.lease;
        if self.state().last.is_some_and(|last| last.elapsed() < beat) {
            return Ok(());
        }
        let me = self.me(pool).await?;
        let began = Instant::now();
        let renewing = sqlx::query(RENEW).bind(me).bind(lasts.as_secs_f64());
        renewing.execute(pool).await?;
        self.state().last = Some(began);
        Ok(())
    }

    pub(crate) async fn leave(&self, pool: &PgPool) -> Result<(), sqlx::Error> {
        self.state().held.clear();
        let Some(me) = self.me.get() else {
            return Ok(());
        };
        sqlx::query(LEAVE).bind(me).execute(pool).await?;
        self.state().last = None;
        Ok(())
    }

    /// Lets go of what ended without a word to this process.
    async fn forget(&self, pool: &PgPool) -> Result<(), sqlx::Error> {
        let held: Vec<String> = self.state().held.iter().cloned().collect();
        let query = sqlx::query_scalar(STILL)
            .bind(&held)
            .bind(self.me(pool).await?);
        let still: Vec<String> = query.fetch_all(pool).await?;
        let still: HashSet<String> = still.into_iter().collect();
        let mut state = self.state();
        for id in held.iter().filter(|id| !still.contains(*id)) {
            state.held.remove(id);
        }
        Ok(())
    }
}

/// Attends or runs these requests from now on: alive before the row says so.
pub(crate) async fn hold(
    server: &Arc<Server>,
    pool: &PgPool,
    ids: impl Iterator<Item = String>,
) -> Result<(), sqlx::Error> {
    let start = {
        let mut state = server.beat.state();
        state.held.extend(ids);
        !std::mem::replace(&mut state.task, true)
    };
    if start {
        let weak = Arc::downgrade(server);
        let beat = server.beat.lease.beat;
        tokio::spawn(async move {
            for beats in 1_u32.. {
                sleep(beat).await;
                let Some(server) = weak.upgrade() else { return };
                let Some(pool) = server.pool.get().filter(|pool| !pool.is_closed()) else {
                    return;
                };
                {
                    let mut state = server.beat.state();
                    if state.held.is_empty() {
                        state.task = false;
                        return;
                    }
                }
                // What fails is said again with the next beat; others then see that this process cannot be reached.
                let _ = server.beat.renew(pool).await;
                if beats.is_multiple_of(FORGOTTEN) {
                    let _ = server.beat.forget(pool).await;
                }
            }
        });
    }
    server.beat.renew(pool).await
}
