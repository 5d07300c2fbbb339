//! The words by which users narrow a list of runs, the same on the command line and over HTTP.

use haft::audit::index::{RunFilter, RunState};
use haft::result::Status;

/// The state that a word names.
///
/// # Errors
/// A message for the user where no state has this name.
pub fn state(word: &str) -> Result<RunState, String> {
    let all = [RunState::Open, RunState::Suspended, RunState::Closed];
    let found = all.into_iter().find(|state| state.as_str() == word);
    found.ok_or_else(|| format!("unknown state `{word}`: expected open, suspended or closed"))
}

/// Narrows the list to runs with a call that ended like this: a status, or `failed` for all that failed, timed out or were denied.
///
/// # Errors
/// A message for the user where no status has this name.
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
