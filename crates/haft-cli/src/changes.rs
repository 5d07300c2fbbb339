//! What a run changed in the workspace, and its undo: for the command line and the HTTP API.

use haft::audit::runs::{self, RunsError};
use haft::call::RunId;

use crate::assemble::House;

mod report;
mod undo;

pub(crate) use report::{FileReport, Limits, report};
pub(crate) use undo::{Person, Refusal, Step, StepAction, Undo, UndoPlan};

/// A run, or one call of it with its nested calls.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    /// The run.
    pub(crate) run: RunId,
    /// The call; the whole run if there is none.
    pub(crate) call: Option<String>,
}

impl Selection {
    /// Selects the changes of a run that has a record here.
    ///
    /// # Errors
    /// The id is malformed, or there is no such run.
    pub(crate) fn find(house: &House, run: &str, call: Option<String>) -> Result<Self, RunsError> {
        if runs::run_dir(house.home(), run)?.is_dir() {
            let run = RunId::new(run);
            Ok(Self { run, call })
        } else {
            Err(RunsError::NotFound(run.to_owned()))
        }
    }
}
