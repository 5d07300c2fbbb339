//! Locked children kept ready, and the zygote that creates them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::CodeConfig;
use super::pidfd::gone;
use super::zygote::{Zygote, ZygoteChild, kill};
use crate::StartError;

/// The pause after a zygote failed before the next one is tried; doubled with each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A child and the zygote that it must not outlive.
pub(super) type ReadyChild = (ZygoteChild, Arc<Zygote>);

/// The children of one kind.
#[derive(Debug)]
pub(super) struct Pool {
    state: Mutex<PoolState>,
    /// Held while a zygote starts, so that only one does.
    starting: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct PoolState {
    zygote: Option<Arc<Zygote>>,
    idle: VecDeque<ReadyChild>,
    filling: bool,
    failures: u32,
    not_before: Option<Instant>,
    closed: bool,
}

impl Pool {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::default(),
            starting: tokio::sync::Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock()
    }

    /// Takes a warmed child that is still alive.
    pub(super) fn pop(&self) -> Option<ReadyChild> {
        loop {
            let (newborn, zygote) = self.state().idle.pop_front()?;
            if !gone(&newborn.pidfd, 0) {
                return Some((newborn, zygote));
            }
        }
    }

    /// Returns the zygote, if there is one.
    pub(super) fn zygote(&self) -> Option<Arc<Zygote>> {
        self.state().zygote.clone()
    }

    /// Returns the zygote; `start` starts one if there is none.
    pub(super) async fn zygote_or(
        &self,
        start: impl Future<Output = Result<Zygote, StartError>>,
    ) -> Result<Arc<Zygote>, StartError> {
        if let Some(zygote) = self.zygote() {
            return Ok(zygote);
        }
        let _alone = self.starting.lock().await;
        if let Some(zygote) = self.zygote() {
            return Ok(zygote);
        }
        if self.state().closed {
            return Err(StartError::Shut);
        }
        if self
            .state()
            .not_before
            .is_some_and(|at| at > Instant::now())
        {
            let why = "the last one failed a moment ago".to_owned();
            return Err(StartError::Interpreter(why));
        }
        match start.await {
            Ok(zygote) => self.put(zygote),
            Err(error) => {
                self.failed();
                Err(error)
            }
        }
    }

    /// Makes this the zygote of the pool; the idle children of an older one are killed.
    pub(super) fn put(&self, zygote: Zygote) -> Result<Arc<Zygote>, StartError> {
        let zygote = Arc::new(zygote);
        let mut state = self.state();
        if state.closed {
            return Err(StartError::Shut);
        }
        let old = state.zygote.replace(Arc::clone(&zygote));
        let idle = std::mem::take(&mut state.idle);
        (state.failures, state.not_before) = (0, None);
        drop(state);
        end(idle);
        drop(old);
        Ok(zygote)
    }

    fn failed(&self) {
        let mut state = self.state();
        let pause = FIRST_PAUSE.saturating_mul(1 << state.failures.min(10));
        state.failures += 1;
        state.not_before = Some(Instant::now() + pause.min(LONGEST_PAUSE));
    }

    /// Drops a zygote that failed to create a child.
    pub(super) fn discard(&self, zygote: &Arc<Zygote>) {
        let mut state = self.state();
        if state
            .zygote
            .as_ref()
            .is_some_and(|own| Arc::ptr_eq(own, zygote))
        {
            let (old, idle) = (state.zygote.take(), std::mem::take(&mut state.idle));
            drop(state);
            end(idle);
            drop(old);
        }
    }

    /// Returns whether the zygote is due for replacement.
    pub(super) fn is_due(&self, config: &CodeConfig) -> bool {
        self.zygote().is_some_and(|zygote| {
            let (made, age) = zygote.age();
            made >= config.recycle_after || age >= config.recycle_age
        })
    }

    /// Returns whether a child is ready now.
    pub(super) fn has_ready(&self) -> bool {
        !self.state().idle.is_empty()
    }

    /// Returns the right to fill the pool, unless another task has it or there is nothing to do.
    pub(super) fn begin(&self, config: &CodeConfig) -> Option<FillPermit<'_>> {
        let due = self.is_due(config);
        let mut state = self.state();
        if state.filling || state.closed || !(due || state.idle.len() < config.idle) {
            return None;
        }
        state.filling = true;
        Some(FillPermit(self))
    }

    /// Kills everything; returns when it is gone.
    pub(super) async fn shut_down(&self) {
        let (zygote, idle) = {
            let mut state = self.state();
            state.closed = true;
            (state.zygote.take(), std::mem::take(&mut state.idle))
        };
        end(idle);
        if let Some(zygote) = zygote {
            zygote.end().await;
        }
    }
}

/// Kills children that no script will use.
fn end(idle: VecDeque<ReadyChild>) {
    for (newborn, _) in idle {
        kill(&newborn.pidfd);
        if newborn.scratch.is_some() {
            gone(&newborn.pidfd, 1);
        }
    }
}

/// The right to fill a pool, held by the task that fills it.
#[derive(Debug)]
pub(super) struct FillPermit<'a>(&'a Pool);

impl FillPermit<'_> {
    /// Returns whether more children are wanted.
    pub(super) fn wants(&self, idle: usize) -> bool {
        let state = self.0.state();
        !state.closed && state.idle.len() < idle
    }

    /// Keeps a child if the pool's present zygote created it.
    pub(super) fn keep(&self, ready: ReadyChild) {
        let mut state = self.0.state();
        let current = state
            .zygote
            .as_ref()
            .is_some_and(|own| Arc::ptr_eq(own, &ready.1));
        if state.closed || !current {
            drop(state);
            end([ready].into());
            return;
        }
        state.idle.push_back(ready);
    }
}

impl Drop for FillPermit<'_> {
    fn drop(&mut self) {
        self.0.state().filling = false;
    }
}
