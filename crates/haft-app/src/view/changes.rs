//! What a run changed in the workspace: for the command line and the HTTP API.

use haft::audit::runs::{self, RunsError};
use haft::call::RunId;

use crate::app::App;

mod report;

pub use report::{ChangeReport, FileReport, FileTexts, ReportLimits, report, texts};

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
    pub fn find(app: &App, run: &str, call: Option<String>) -> Result<Self, RunsError> {
        if runs::run_dir(app.home(), run)?.is_dir() {
            let run = RunId::new(run);
            Ok(Self { run, call })
        } else {
            Err(RunsError::NotFound(run.to_owned()))
        }
    }
}
