//! `haft runs resume`: resumes a suspended or interrupted run; its chain gets the results of earlier calls instead of repeating them.

use haft::call::RunId;
use haft::toolset::Toolset as _;
use haft_app::app::App;
use haft_app::resume::ResumeResult;
use haft_chain::TOOL_CHAIN;

use crate::commands::signals::Signals;
use crate::commands::{ExitResult, call};
use crate::exit::Exit;
use crate::invocation::Invocation;

/// Resumes the run; the first signal cancels the chain that is replayed.
pub(crate) async fn run(at: &Invocation, app: &App, run: &str) -> ExitResult {
    let mut signals = Signals::heard()?;
    let options = call::options(at, "resume");
    let stop = async {
        signals.next().await;
    };
    match app.resume(&RunId::new(run), options, stop).await? {
        ResumeResult::Ran(outcome) => {
            call::print_outcome(at, &outcome)?;
            // Only a chain that is disabled now is unknown: any other call was known when its approval was requested.
            let known =
                outcome.tool != TOOL_CHAIN || app.tools().snapshot().entry(TOOL_CHAIN).is_some();
            Ok(Exit::of(&outcome, known))
        }
        ResumeResult::Pending(id) => {
            at.screen.err(&format!(
                "run {run} has a pending request: look at it with `haft approvals show {id}`, then approve or deny it"
            ));
            Ok(Exit::Suspended)
        }
    }
}
