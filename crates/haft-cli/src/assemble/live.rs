//! `Live`: the runs that are open in this process, and where others stand.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use haft::approval::suspended::{OtherRun, OtherRuns};
use haft::audit::runs;
use haft::call::RunId;
use haft::session::Session;

/// The runs that are open here.
#[derive(Debug)]
pub(crate) struct Live {
    home: PathBuf,
    runs: Mutex<HashMap<RunId, Session>>,
}

impl Live {
    /// None yet, of those below haft's state folder.
    pub(crate) fn new(home: &Path) -> Self {
        Self {
            home: home.to_owned(),
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

    /// A run is open here.
    pub(crate) fn add(&self, session: &Session) {
        let run = session.run().clone();
        self.runs().insert(run, session.clone());
    }

    /// It is not any more.
    pub(crate) fn remove(&self, run: &RunId) {
        self.runs().remove(run);
    }
}

impl OtherRuns for Live {
    fn look(&self, run: &RunId) -> OtherRun {
        if self.runs().contains_key(run) || runs::is_held(&self.home, run.as_str()) {
            return OtherRun::InUse;
        }
        let closed = runs::run_dir(&self.home, run.as_str())
            .is_ok_and(|dir| matches!(runs::closed(&dir), Ok(Some(_))));
        if closed {
            OtherRun::Closed
        } else {
            OtherRun::Abandoned
        }
    }
}
