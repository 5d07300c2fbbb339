//! `Live`: the runs that are open in this process, and the state of other runs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft::approval::suspended::{OtherRun, OtherRuns};
use haft::audit::runs::{self, Holder};
use haft::call::{CallId, RunId};
use haft::journal::Journal;
use haft::session::Session;

/// The runs that are open here.
#[derive(Debug)]
pub(crate) struct Live {
    home: PathBuf,
    journal: Arc<dyn Journal>,
    runs: Mutex<HashMap<RunId, Session>>,
}

impl Live {
    /// No run is open yet. `home` is haft's state folder.
    pub(crate) fn new(home: &Path, journal: Arc<dyn Journal>) -> Self {
        Self {
            home: home.to_owned(),
            journal,
            runs: Mutex::default(),
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Session>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of a run that is open here.
    pub(crate) fn get(&self, run: &RunId) -> Option<Session> {
        self.runs().get(run).cloned()
    }

    /// The sessions of all runs that are open here.
    pub(crate) fn all(&self) -> Vec<Session> {
        self.runs().values().cloned().collect()
    }

    /// Notes that a run is open here.
    pub(crate) fn add(&self, session: &Session) {
        let run = session.run().clone();
        self.runs().insert(run, session.clone());
    }

    /// Notes that a run is no longer open here.
    pub(crate) fn remove(&self, run: &RunId) {
        self.runs().remove(run);
    }
}

impl OtherRuns for Live {
    fn look(&self, run: &RunId) -> OtherRun {
        let resumed_here = self.runs().get(run).map(Session::is_resumed);
        match (resumed_here, runs::holder(&self.home, run.as_str())) {
            (Some(true), _) | (None, Ok(Holder::Resumer)) => return OtherRun::Resumed,
            (None, Ok(Holder::Free)) => {}
            // A run without a folder here is another machine's, which may be at it.
            (Some(false), _) | (None, Ok(Holder::Owner) | Err(_)) => return OtherRun::InUse,
        }
        let closed = runs::run_dir(&self.home, run.as_str()).map(|dir| runs::closed(&dir));
        match closed {
            Ok(Ok(Some(_))) => OtherRun::Closed,
            Ok(Ok(None)) => OtherRun::Abandoned,
            Ok(Err(_)) | Err(_) => OtherRun::InUse,
        }
    }

    fn can_resume(&self, run: &RunId, call: &CallId) -> bool {
        !matches!(self.journal.interrupted(run, Some(call)), Ok(None))
    }
}
