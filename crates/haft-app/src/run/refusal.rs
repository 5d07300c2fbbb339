//! Why a run is not started or resumed: another process holds it, it belongs to another principal, or its record cannot
//! be written.

use haft::audit::index::RunEntry;
use haft::call::{Principal, RunId};

use crate::problem::Problem;

/// Returns the principal that a resumed run was started for; `requested` if the index does not know the run.
pub(crate) fn principal_of(
    run: &RunId,
    known: Option<&RunEntry>,
    requested: Option<Principal>,
) -> Result<Option<Principal>, Problem> {
    let Some(owner) = known.map(|entry| entry.start.principal.clone()) else {
        return Ok(requested);
    };
    if let Some(other) = requested.filter(|requested| *requested != owner) {
        let foreign = format!("run {run} was started for {owner}, not for {other}");
        return Err(Problem::usage(foreign)
            .advise("resume it for the principal that it was started for, or for none"));
    }
    Ok(Some(owner))
}

/// Returns the refusal to resume a run that is in use.
pub(crate) fn busy(run: &RunId) -> Problem {
    Problem::usage(format!(
        "run {run} is already being resumed by another haft process"
    ))
    .advise("nothing ran here; wait for that process, or end it")
}

/// Returns the problem of a run that could not be started.
pub(crate) fn not_started(why: impl std::fmt::Display) -> Problem {
    Problem::failed(format!("cannot start the run: {why}"))
        .advise("`haft doctor` says what is wrong with the state folder")
}
