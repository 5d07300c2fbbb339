//! Whether a run's record is whole: read from its folder and compared with the index.

use haft::audit::runs::{RunsError, run_dir};
use haft::audit::verify::{VerifyReport, verify as verify_folder};
use haft::call::RunId;

use crate::problem::Problem;
use crate::run::Runs;

/// Verifies a run's record.
///
/// # Errors
/// A [`Problem`] if there is no such run or its record cannot be read.
pub async fn verify(runs: &Runs, run: &str) -> Result<VerifyReport, Problem> {
    let folder = run_dir(runs.parts.archive.home(), run)?;
    let known = runs.parts.index.get(&RunId::new(run)).await;
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
