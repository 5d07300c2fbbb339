//! `haft call`: makes one call through the executor, and prints its outcome however it ended.

use std::sync::Arc;
use std::time::Duration;

use anstyle::Style;

use haft::call::ToolCall;
use haft::error::ErrorKind;
use haft::progress::ProgressSink;
use haft::result::{Outcome, PartMark, RenderedOutcome, RenderedPart, Status, TracedCall};
use haft::session::Session;

use crate::args;
use crate::commands::signals::Signals;
use crate::commands::tools::parameters;
use crate::commands::{ExitResult, arguments};
use crate::exit::Exit;
use crate::invocation::{Invocation, is_interactive};
use crate::screen::{DIM, GREEN, RED, YELLOW, is_terminal, styled, visible};
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::run::{ApprovalWait, RunOptions};
use haft_app::view::when;

pub(crate) mod data;
pub(crate) mod excerpt;
mod live;

use live::LivePrinter;

/// Makes the call in its own run.
pub(crate) async fn run(at: &Invocation, app: &App, args: &args::CallCommand) -> ExitResult {
    let mut signals = Signals::heard()?;
    let tools = app.tools().snapshot();
    let schema = tools.entry(&args.tool);
    let schema = schema.map(|entry| &*entry.spec().input_schema);
    let text = arguments::of_call(&args.arguments, schema)?;
    let live = Arc::new(LivePrinter::new(at.screen, is_terminal()));
    let options = RunOptions {
        progress: watched(at).then(|| Arc::clone(&live) as Arc<dyn ProgressSink>),
        wait: waits(args.wait, args.arguments.are_from_stdin()),
        ..options(at, "call")
    };
    let call = ToolCall::new(&args.tool, text);
    let (run, call) = app.start_for(options, call).await?;
    let outcome = cancellable(run.call(call), run.session(), &mut signals).await;
    let known = run.session().tools().entry(&args.tool).is_some();
    // First the outcome: it is not owed any more, and closing the run takes a while.
    let printed = print_watched(at, &outcome, Some(&live));
    run.release().await;
    printed?;
    let wrong = outcome.error.as_ref();
    if wrong.is_some_and(|error| error.kind == ErrorKind::InvalidArguments)
        && let Some(entry) = tools.entry(&args.tool)
    {
        at.screen
            .say(&format!("{} takes", visible::line(&args.tool)));
        at.screen.err_text(&parameters(entry.spec()));
    }
    if !known && wrong.is_some_and(|error| error.kind == ErrorKind::NotFound) {
        at.screen
            .say("  `haft tools` lists the tools, `haft tools --search WORDS` finds one");
    }
    Ok(Exit::of(&outcome, known))
}

/// Returns the options of a run that one command starts.
pub(crate) fn options(at: &Invocation, entry: &'static str) -> RunOptions {
    let progress = LivePrinter::new(at.screen, false);
    RunOptions {
        progress: watched(at).then(|| Arc::new(progress) as Arc<dyn ProgressSink>),
        wait: ApprovalWait::Never,
        ..RunOptions::new(entry)
    }
}

#[expect(
    clippy::option_option,
    reason = "absent, given bare, given with a number: clap's own form"
)]
/// Returns how long a command waits for approvals: at a terminal where a user can answer, or as `--wait` says.
pub(crate) fn waits(wait: Option<Option<u64>>, from_stdin: bool) -> ApprovalWait {
    match wait {
        Some(Some(seconds)) => ApprovalWait::For(Duration::from_secs(seconds.max(1))),
        Some(None) => ApprovalWait::Limit,
        None if is_interactive() && !from_stdin => ApprovalWait::Limit,
        None => ApprovalWait::Never,
    }
}

/// Prints an outcome for users or programs. Advice that only the operator can act on goes to stderr in either case.
pub(crate) fn print_outcome(at: &Invocation, outcome: &Outcome) -> Result<(), Problem> {
    print_watched(at, outcome, None)
}

/// Prints an outcome without the output that `live` has already shown.
fn print_watched(
    at: &Invocation,
    outcome: &Outcome,
    live: Option<&LivePrinter>,
) -> Result<(), Problem> {
    if at.screen.json {
        at.screen.document(outcome)?;
    } else {
        print(at, outcome, live)?;
    }
    if let Some(operator) = &outcome.operator {
        at.screen.say(&format!("  {}", visible::block(operator)));
    }
    Ok(())
}

/// Runs a call of this session; the first signal cancels it, and the outcome reports that.
pub(crate) async fn cancellable(
    running: impl Future<Output = Outcome>,
    session: &Session,
    signals: &mut Signals,
) -> Outcome {
    tokio::pin!(running);
    tokio::select! {
        outcome = &mut running => return outcome,
        _ = signals.next() => session.cancel(),
    }
    running.await
}

/// Returns whether a user is watching.
fn watched(at: &Invocation) -> bool {
    !at.screen.json && std::io::IsTerminal::is_terminal(&std::io::stderr())
}

fn print(at: &Invocation, outcome: &Outcome, live: Option<&LivePrinter>) -> Result<(), Problem> {
    let screen = at.screen;
    let rendered = outcome.render();
    let is_shown = live.is_some_and(|live| live.has_shown(&outcome.call, &rendered));
    let lines = CallText::of(outcome, &rendered, is_shown);
    screen.out(&lines.out)?;
    screen.err_text(&lines.err);
    for note in &lines.notes {
        screen.say(note);
    }
    for artifact in &outcome.artifacts {
        let size = when::size(artifact.bytes);
        screen.say(&format!(
            "{size} kept: haft artifacts get {}",
            artifact.reference
        ));
    }
    let style = colour(outcome.status);
    trace(at, &outcome.calls);
    let took = when::duration(haft::result::milliseconds(outcome.duration));
    let head = format!(
        "{} {}",
        styled(style, outcome.status.as_str()),
        visible::line(&outcome.tool)
    );
    let detail = styled(DIM, &format!("({took}, run {})", outcome.run));
    match &outcome.error {
        // The call did its part; what else is to be said of the whole stands in its summary.
        None if outcome.outer_error.is_some() => {
            screen.err(&format!("{head}: {}", visible::line(&outcome.summary)));
        }
        None => screen.detail(&format!("{head} {detail}")),
        Some(failure) => {
            screen.err(&format!("{head}: {}", visible::block(&failure.message)));
            // What the operator can do is more useful to a user than advice for a model.
            if let (Some(advice), None) = (&failure.advice, &outcome.operator) {
                screen.err(&format!("  {}", visible::block(advice)));
            }
        }
    }
    Ok(())
}

pub(crate) fn colour(status: Status) -> Style {
    match status {
        Status::Ok => GREEN,
        Status::Suspended => YELLOW,
        Status::Error | Status::Denied | Status::Timeout | Status::Cancelled => RED,
    }
}

/// What is printed of a call before its status.
#[derive(Debug, Default)]
struct CallText {
    /// What the tool returned, for stdout.
    out: String,
    /// The standard error of a command, and what else is known of it, for stderr.
    err: String,
    /// Lines in haft's own name.
    notes: Vec<String>,
}

impl CallText {
    /// Sorts the parts of an outcome. `is_shown` tells whether the output of a command was already shown while it ran.
    fn of(outcome: &Outcome, rendered: &RenderedOutcome<'_>, is_shown: bool) -> Self {
        let mut lines = Self::default();
        for RenderedPart { mark, text } in &rendered.parts {
            match mark {
                PartMark::Stdout | PartMark::Stderr if is_shown => {}
                // `print` shows the status last; only one without an error, as of a call that waits, is shown here.
                PartMark::Status if outcome.is_ok() || outcome.error.is_some() => {}
                PartMark::Status | PartMark::Stdout | PartMark::Text | PartMark::Media => {
                    lines.out.push_str(&with_line_end(visible::block(text)));
                }
                PartMark::Data => lines.out.push_str(&data::render(text)),
                PartMark::Stderr => lines.err.push_str(&with_line_end(visible::block(text))),
                PartMark::Details => lines.err.push_str(&data::details(text)),
                PartMark::Artifact => {
                    // `print` lists the reference with the others; here only the preview is shown.
                    let preview = text.lines().skip(1);
                    let preview = preview.map(|line| styled(DIM, &visible::line(line)));
                    lines.notes.extend(preview);
                }
                PartMark::Note => {}
            }
        }
        // Notes are taken from the outcome: the rendered ones include the advice, which `print` shows below the
        // failure.
        for note in &outcome.notes {
            let note = visible::block(note);
            lines.notes.push(format!("{} {note}", styled(DIM, "note:")));
        }
        lines
    }
}

fn with_line_end(text: String) -> String {
    if text.is_empty() || text.ends_with('\n') {
        text
    } else {
        format!("{text}\n")
    }
}

/// Prints the calls of a chain, one per line.
fn trace(at: &Invocation, calls: &[TracedCall]) {
    for call in calls {
        let status = styled(colour(call.status), &format!("{:<9}", call.status.as_str()));
        let took = styled(DIM, &format!("({})", when::duration(call.duration_ms)));
        let (seq, tool) = (call.seq, visible::line(&call.tool));
        at.screen.say(&format!("{seq:>4}  {status} {tool} {took}"));
    }
}

#[cfg(test)]
mod tests {
    use haft::testing::rendering::check;

    use super::CallText;

    /// How it ended and its artifacts are printed from the outcome itself.
    #[test]
    fn everything_that_a_tool_gave_is_printed() {
        check("haft call", |outcome| {
            let lines = CallText::of(outcome, &outcome.render(), false);
            format!("{lines:?}{:?}{:?}", outcome.error, outcome.artifacts)
                + &outcome.approval.clone().unwrap_or_default()
        });
    }
}
