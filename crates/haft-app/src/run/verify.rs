//! Whether a run's record is whole: read from its folder and compared with the index.

use haft::audit::runs::{self, RunsError};
use haft::audit::verify::{VerifyReport, verify as verify_folder};
use haft::call::RunId;

use crate::app::App;
use crate::problem::Problem;

/// Verifies a run's record.
///
/// # Errors
/// A [`Problem`] if there is no such run or its record cannot be read.
pub async fn verify(app: &App, run: &str) -> Result<VerifyReport, Problem> {
    let folder = runs::run_dir(app.home(), run)?;
    let known = app.index().get(&RunId::new(run)).await;
    let known = known.map_err(|e| Problem::failed(format!("cannot verify the run: {e}")))?;
    if known.is_none() && !folder.exists() {
        return Err(RunsError::NotFound(run.to_owned()).into());
    }
    let closed = known.and_then(|entry| entry.closed);
    let verified =
        tokio::task::spawn_blocking(move || verify_folder(&folder, closed.as_ref())).await;
    verified
        .map_err(|e| Problem::failed(format!("cannot verify the run: {e}")))?
        .map_err(|e| Problem::failed(format!("cannot verify the run: {e}")))
}
