//! `haft chain`: runs a script's calls through the executor; prints its output and its calls.

use std::io;
use std::path::Path;

use haft::call::ToolCall;
use haft_chain::TOOL_CHAIN;
use serde_json::json;

use crate::args;
use crate::commands::signals::Signals;
use crate::commands::{ExitResult, call};
use crate::exit::Exit;
use crate::invocation::Invocation;
use haft_app::app::App;
use haft_app::plain_file;
use haft_app::problem::{Problem, SourceLocation};
use haft_app::run::RunOptions;

/// The maximum size of a script that is read; the tool's own limit is lower.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Runs the script in its own run.
pub(crate) async fn run(at: &Invocation, app: &App, args: &args::Chain) -> ExitResult {
    let mut signals = Signals::heard()?;
    let code = script(&args.file)?;
    let mut arguments = json!({"code": code});
    if let Some(seconds) = args.timeout {
        arguments["timeout_s"] = seconds.into();
    }
    let options = RunOptions {
        wait: call::waits(args.wait, args.file.as_os_str() == "-"),
        ..call::options(at, "chain")
    };
    let script = ToolCall::new(TOOL_CHAIN, arguments.to_string());
    let (run, script) = app.start_for(options, script).await?;
    let outcome = call::cancellable(run.call(script), run.session(), &mut signals).await;
    let known = run.session().tools().entry(TOOL_CHAIN).is_some();
    // First the outcome: it is not owed any more, and closing the run takes a while.
    let printed = call::print_outcome(at, &outcome);
    run.release().await;
    printed?;
    Ok(Exit::of(&outcome, known))
}

fn script(file: &Path) -> Result<String, Problem> {
    let told = |what: io::Error, place: SourceLocation| {
        Problem::usage(format!("cannot read the script: {what}"))
            .at(place)
            .advise("`haft chain` takes a file of Python, or - for stdin")
    };
    if file.as_os_str() == "-" {
        return plain_file::bounded(io::stdin().lock(), MAX_BYTES)
            .map_err(|e| told(e, SourceLocation::named("stdin")));
    }
    plain_file::read(file, MAX_BYTES).map_err(|e| told(e, SourceLocation::file(file)))
}
