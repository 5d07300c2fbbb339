//! `haft runs resume`: an interrupted chain gone on with; what it had done is told to it, not done again.

use haft::audit::runs;
use haft::call::{RunId, ToolCall};
use haft::journal::{JournalError, Recorded};
use haft_chain::TOOL_CHAIN;

use crate::assemble::House;
use crate::commands::signals::Signals;
use crate::commands::{Done, call};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::problem::Problem;

/// Goes on with the run's last chain, in the run.
pub(crate) async fn run(at: &Invocation, house: &House, run: &str) -> Done {
    let mut signals = Signals::heard()?;
    let folder = runs::run_dir(house.home(), run).map_err(|e| super::runs::told(&e))?;
    if !folder.is_dir() {
        let missing = runs::RunsError::NotFound(run.to_owned());
        return Err(super::runs::told(&missing));
    }
    if matches!(runs::closed(&folder), Ok(Some(_))) {
        return Err(
            Problem::usage(format!("run {run} has ended: nothing to go on with"))
                .advise(format!("`haft runs show {run}` shows what it did")),
        );
    }
    let id = RunId::new(run);
    let recorded = interrupted(house, &id)?;
    same_workspace(house, &id).await?;
    let calls = runs::last_call(house.home(), run).map_err(|e| super::runs::told(&e))?;
    // Its own line may not have come to the disk.
    let own = recorded.chain.as_str().strip_prefix("call-");
    let calls = calls.max(
        own.and_then(|number| number.parse().ok())
            .unwrap_or_default(),
    );
    let session = house.reopen(call::door(at, "resume"), id, calls).await?;
    // Under its own id: the record's open call is the one that ends.
    let asked =
        ToolCall::new(TOOL_CHAIN, recorded.start.arguments).with_id(recorded.chain.as_str());
    let outcome = call::cancellable(house, &session, asked, &mut signals).await;
    let known = session.tools().entry(TOOL_CHAIN).is_some();
    house.close(&session).await;
    call::told(at, &outcome)?;
    Ok(Exit::of(&outcome, known))
}

/// A script goes on among the files that it began among.
async fn same_workspace(house: &House, run: &RunId) -> Result<(), Problem> {
    let known = house.index().get(run).await;
    let known = known.map_err(|e| Problem::failed(format!("look the run up: {e}")))?;
    let began = known.and_then(|entry| entry.start.workspace);
    match began.filter(|began| began != house.workspace()) {
        None => Ok(()),
        Some(began) => Err(Problem::usage(format!("run {run} works in {began}"))
            .advise(format!("haft runs resume {run} --workspace {began}"))),
    }
}

/// The chain that was interrupted.
fn interrupted(house: &House, run: &RunId) -> Result<Recorded, Problem> {
    match house.journal().interrupted(run) {
        Ok(Some(recorded)) => Ok(recorded),
        Ok(None) => Err(
            Problem::usage(format!("run {run} has nothing to go on with"))
                .advise("only a chain whose haft was ended while it ran can be resumed"),
        ),
        Err(error @ JournalError::Busy(_)) => {
            Err(Problem::usage(error.to_string()).advise("end that process, or wait for it"))
        }
        Err(error) => Err(Problem::failed(error.to_string())),
    }
}
