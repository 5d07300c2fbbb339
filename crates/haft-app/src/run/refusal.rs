//! Why a run is not started or resumed: another process holds it, it belongs to another principal, or its record cannot
//! be written.

use std::path::Path;

use haft::audit::index::RunEntry;
use haft::audit::runs::{self, Holder};
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

/// Returns the refusal to resume a run that another process has, or this one; names the process if the system tells which it is.
pub(crate) fn busy(home: &Path, run: &RunId) -> Problem {
    let pid = runs::holding_process(home, run.as_str());
    if pid == Some(std::process::id()) {
        return Problem::usage(format!("run {run} is already in use in this process"))
            .advise("nothing ran here; end that use of it first");
    }
    let (named, end) = match pid {
        Some(pid) => (format!(" (process {pid})"), format!("process {pid}")),
        None => (String::new(), "that process".to_owned()),
    };
    let what = match runs::holder(home, run.as_str()) {
        Ok(Holder::Owner) => {
            format!("run {run} is still active in the haft process that started it{named}")
        }
        Ok(Holder::Resumer) | Err(_) => {
            format!("run {run} is already being resumed by another haft process{named}")
        }
        // It has left it since.
        Ok(Holder::Free) => {
            return Problem::usage(format!("another haft process has just acted in run {run}"))
                .advise("nothing ran here; resume the run again");
        }
    };
    Problem::usage(what).advise(format!(
        "nothing ran here; wait until {end} has ended, or end it, and resume the run again: it goes on from where it is then"
    ))
}

/// Returns the refusal to resume a run that has ended, perhaps in another process a moment ago.
pub(crate) fn over(run: &RunId, is_agents: bool) -> Problem {
    let advice = if is_agents {
        format!(
            "nothing ran here; `haft run --resume {run}` shows its answer, and with a prompt continues it"
        )
    } else {
        format!("nothing ran here; `haft runs show {run}` shows what it did")
    };
    Problem::usage(format!(
        "run {run} has ended; another haft process may have resumed it meanwhile"
    ))
    .advise(advice)
}

/// Returns the problem of a run that could not be started.
pub(crate) fn not_started(why: impl std::fmt::Display) -> Problem {
    Problem::failed(format!("cannot start the run: {why}"))
        .advise("`haft doctor` says what is wrong with the state folder")
}
