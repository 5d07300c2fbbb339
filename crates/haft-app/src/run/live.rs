//! `LiveRuns`: the runs of this process, and the state of other runs.

use std::collections::HashMap;
use std::sync::Arc;

use haft::approval::suspended::{OtherRun, OtherRuns};
use haft::audit::runs::{self, Holder};
use haft::call::{CallId, RunId};
use haft::future::BoxFuture;
use haft::journal::Journal;
use haft::session::Session;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Mutex as AsyncMutex;

use crate::home::Home;
use crate::run::phase::RunPhase;

/// A run that this process holds.
#[derive(Debug)]
pub(crate) struct HeldRun {
    /// The run's state in memory.
    pub(crate) session: Session,
    /// Whether its tools are restricted; their names are stored with its record.
    pub(crate) narrowed: bool,
    /// The client's own name, if it gave one.
    pub(crate) client: Option<String>,
    /// The finished run that it continues.
    pub(crate) continues: Option<RunId>,
    /// Held while the run changes from one phase to the next.
    pub(crate) phase: AsyncMutex<RunPhase>,
}

impl HeldRun {
    /// Returns a run that is prepared.
    pub(crate) fn new(session: Session, narrowed: bool) -> Self {
        Self {
            session,
            narrowed,
            client: None,
            continues: None,
            phase: AsyncMutex::new(RunPhase::Prepared),
        }
    }
}

/// The runs of this process.
#[derive(Debug)]
pub(crate) struct LiveRuns {
    /// haft's state folder, which must outlive its runs.
    home: Home,
    journal: Arc<dyn Journal>,
    runs: Mutex<HashMap<RunId, Arc<HeldRun>>>,
}

impl LiveRuns {
    /// Returns an empty set of runs.
    pub(crate) fn new(home: Home, journal: Arc<dyn Journal>) -> Self {
        Self {
            home,
            journal,
            runs: Mutex::default(),
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Arc<HeldRun>>> {
        self.runs.lock()
    }

    /// Returns a run of this process.
    pub(crate) fn get(&self, run: &RunId) -> Option<Arc<HeldRun>> {
        self.runs().get(run).cloned()
    }

    /// Returns all runs of this process.
    pub(crate) fn all(&self) -> Vec<Arc<HeldRun>> {
        self.runs().values().cloned().collect()
    }

    /// Adds a run to this process's runs.
    pub(crate) fn add(&self, life: &Arc<HeldRun>) {
        let run = life.session.run().clone();
        self.runs().insert(run, Arc::clone(life));
    }

    /// Removes a run from this process's runs.
    pub(crate) fn remove(&self, run: &RunId) {
        self.runs().remove(run);
    }
}

impl OtherRuns for LiveRuns {
    fn look(&self, run: &RunId) -> OtherRun {
        let resumed_here = self.get(run).map(|life| life.session.is_resumed());
        match (resumed_here, runs::holder(self.home.path(), run.as_str())) {
            (Some(true), _) | (None, Ok(Holder::Resumer)) => return OtherRun::Resumed,
            (None, Ok(Holder::Free)) => {}
            // A run without a folder here belongs to another machine, which may be running it.
            (Some(false), _) | (None, Ok(Holder::Owner) | Err(_)) => return OtherRun::InUse,
        }
        let closed = runs::run_dir(self.home.path(), run.as_str()).map(|dir| runs::closed(&dir));
        match closed {
            Ok(Ok(Some(_))) => OtherRun::Closed,
            Ok(Ok(None)) => OtherRun::Abandoned,
            Ok(Err(_)) | Err(_) => OtherRun::InUse,
        }
    }

    fn can_resume<'a>(&'a self, run: &'a RunId, call: &'a CallId) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let interrupted = self.journal.interrupted(run, Some(call)).await;
            !matches!(interrupted, Ok(None))
        })
    }
}
