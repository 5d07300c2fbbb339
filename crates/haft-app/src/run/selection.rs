//! `RunSelection`: whose changes are shown or undone.

use haft::audit::runs::{RunsError, run_dir};
use haft::call::RunId;

use crate::problem::Problem;
use crate::run::Runs;

/// A run, or one call of it with its nested calls.
#[derive(Debug, Clone)]
pub struct RunSelection {
    /// The run's id.
    pub run: RunId,
    /// The call; `None` for the whole run.
    pub call: Option<String>,
}

impl RunSelection {
    /// Selects the changes of a run that has a record here.
    ///
    /// # Errors
    /// The id is malformed, or there is no such run.
    pub fn find(runs: &Runs, run: &str, call: Option<String>) -> Result<Self, RunsError> {
        if run_dir(runs.parts.archive.home(), run)?.is_dir() {
            let run = RunId::new(run);
            Ok(Self { run, call })
        } else {
            Err(RunsError::NotFound(run.to_owned()))
        }
    }
}

/// Checks that a run was started in this workspace, so that its files are the ones here.
///
/// # Errors
/// A [`Problem`] if it was started in another one; it names both.
pub async fn check_workspace(runs: &Runs, run: &RunId, action: &str) -> Result<(), Problem> {
    let known = runs.parts.index.get(run).await;
    let known = known.map_err(|e| Problem::failed(format!("cannot look the run up: {e}")))?;
    let began = known.and_then(|entry| entry.start.workspace);
    let here = &runs.parts.terms().workspace;
    match began.filter(|began| began != here) {
        None => Ok(()),
        Some(began) => Err(Problem::usage(format!("run {run} works in {began}"))
            .advise(format!("haft runs {action} {run} --workspace {began}"))),
    }
}
