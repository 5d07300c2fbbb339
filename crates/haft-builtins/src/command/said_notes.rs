//! `SaidNotes`: which notes on how commands run here the results of a run have had, so that each is said once.

use std::collections::VecDeque;

use haft::call::RunId;
use haft::context::CallContext;
use haft::result::ToolResult;
use parking_lot::Mutex;

use crate::command::left_behind::{HOME_NOTE, PROCESSES_NOTE};

/// How the note on secrets begins.
pub(super) const SECRETS_NOTE: &str = "Commands see secret files as empty";
/// How the note on the user's git settings begins.
pub(super) const GIT_NOTE: &str = "Your git settings that commands do not get";
/// How the note on a workspace of another user begins.
pub(super) const OWNER_NOTE: &str = "The workspace belongs to another user";
/// Maximum number of notes that are remembered.
const MAX_NOTES: usize = 1_000;

/// What the results of each run have said.
#[derive(Debug, Default)]
pub(super) struct SaidNotes(Mutex<VecDeque<(RunId, String)>>);

impl SaidNotes {
    /// Adds those of these notes to a result that no result of the run has had yet, as far as is known.
    pub(super) fn add(
        &self,
        mut result: ToolResult,
        notes: impl IntoIterator<Item = String>,
        context: &CallContext,
    ) -> ToolResult {
        let run = context.run();
        result
            .notes
            .extend(notes.into_iter().filter(|note| self.is_new(run, note)));
        result
    }

    fn is_new(&self, run: &RunId, note: &str) -> bool {
        let mut said = self.0.lock();
        if said.iter().any(|(of, known)| of == run && known == note) {
            return false;
        }
        if said.len() >= MAX_NOTES {
            said.pop_front();
        }
        said.push_back((run.clone(), note.to_owned()));
        true
    }
}

/// Returns true for a note of a result that holds for the next commands as it does for this one: who has read it once needs it no more.
pub fn is_standing_note(note: &str) -> bool {
    [
        SECRETS_NOTE,
        GIT_NOTE,
        PROCESSES_NOTE,
        HOME_NOTE,
        OWNER_NOTE,
    ]
    .iter()
    .any(|start| note.starts_with(start))
}
