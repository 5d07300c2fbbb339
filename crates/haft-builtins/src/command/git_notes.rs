//! `GitNotes`: which sentences on git the results of a run have had, so that each is said once.

use std::collections::VecDeque;

use haft::call::RunId;
use parking_lot::Mutex;

/// What the results of each run have said of git.
#[derive(Debug, Default)]
pub(super) struct GitNotes(Mutex<VecDeque<(RunId, String)>>);

impl GitNotes {
    /// Returns true if no result of the run has said this yet, as far as is known, and notes that one does.
    pub(super) fn is_new(&self, run: &RunId, sentence: &str) -> bool {
        let mut said = self.0.lock();
        if said
            .iter()
            .any(|(of, known)| of == run && known == sentence)
        {
            return false;
        }
        if said.len() >= MAX_NOTES {
            said.pop_front();
        }
        said.push_back((run.clone(), sentence.to_owned()));
        true
    }
}

/// Maximum number of sentences that are remembered.
const MAX_NOTES: usize = 1_000;
