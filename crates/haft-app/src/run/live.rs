//! `Live`: the runs that are running in this process, and the state of other runs.

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
use crate::run::phase::Phase;

/// A run that this process holds.
#[derive(Debug)]
pub(crate) struct Life {
    /// The run's state in memory.
    pub(crate) session: Session,
    /// It has not all tools: which it has is kept with its record.
    pub(crate) narrowed: bool,
    /// The client's own name, where it gave one.
    pub(crate) client: Option<String>,
    /// The finished run that it goes on with.
    pub(crate) continues: Option<RunId>,
    /// Held while the run goes from one phase to the next.
    pub(crate) phase: AsyncMutex<Phase>,
}

impl Life {
    /// A run that is prepared.
    pub(crate) fn new(session: Session, narrowed: bool) -> Self {
        Self {
            session,
            narrowed,
            client: None,
            continues: None,
            phase: AsyncMutex::new(Phase::Prepared),
        }
    }
}

/// The runs that are running here.
#[derive(Debug)]
pub(crate) struct Live {
    /// haft's state folder, which lives at least as long as its runs.
    home: Home,
    journal: Arc<dyn Journal>,
    runs: Mutex<HashMap<RunId, Arc<Life>>>,
}

impl Live {
    /// No run is running yet.
    pub(crate) fn new(home: Home, journal: Arc<dyn Journal>) -> Self {
        Self {
            home,
            journal,
            runs: Mutex::default(),
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Life>>> {
        self.runs.lock()
    }

    /// A run that is running here.
    pub(crate) fn get(&self, run: &RunId) -> Option<Arc<Life>> {
        self.runs().get(run).cloned()
    }

    /// All runs that are running here.
    pub(crate) fn all(&self) -> Vec<Arc<Life>> {
        self.runs().values().cloned().collect()
    }

    /// Notes that a run is running here.
    pub(crate) fn add(&self, life: &Arc<Life>) {
        let run = life.session.run().clone();
        self.runs().insert(run, Arc::clone(life));
    }

    /// Notes that a run is no longer running here.
    pub(crate) fn remove(&self, run: &RunId) {
        self.runs().remove(run);
    }
}

impl OtherRuns for Live {
    fn look(&self, run: &RunId) -> OtherRun {
        let resumed_here = self.get(run).map(|life| life.session.is_resumed());
        match (resumed_here, runs::holder(self.home.path(), run.as_str())) {
            (Some(true), _) | (None, Ok(Holder::Resumer)) => return OtherRun::Resumed,
            (None, Ok(Holder::Free)) => {}
            // A run without a folder here is another machine's, which may be at it.
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
