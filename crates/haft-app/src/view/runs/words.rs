//! The words with which users filter a list of runs, the same on the command line and over HTTP.

use haft::audit::index::{RunFilter, RunState};
use haft::result::Status;

/// Returns the state with this name.
///
/// # Errors
/// A message for the user if no state has this name.
pub fn state(word: &str) -> Result<RunState, String> {
    let all = [RunState::Open, RunState::Suspended, RunState::Closed];
    let found = all.into_iter().find(|state| state.as_str() == word);
    found.ok_or_else(|| format!("unknown state `{word}`: expected open, suspended or closed"))
}

/// Filters the list by how a call ended: by a status, or `failed` for failed, timed out or denied.
///
/// # Errors
/// A message for the user if no status has this name.
pub fn with_status(filter: &mut RunFilter, word: &str) -> Result<(), String> {
    if word == "failed" {
        filter.failed = true;
        return Ok(());
    }
    let status = serde_json::from_value::<Status>(word.into()).map_err(|_| {
        format!("unknown status `{word}`: expected failed, ok, error, denied, suspended, timeout or cancelled")
    })?;
    filter.status = Some(status);
    Ok(())
}
