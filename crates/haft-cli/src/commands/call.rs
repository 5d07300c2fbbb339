//! `haft call`: one call through the executor, its outcome printed however it ended.

use std::sync::Arc;
use std::time::Duration;

use anstyle::Style;

use haft::call::ToolCall;
use haft::progress::{ProgressEvent, ProgressSink, Stream};
use haft::result::{Content, Outcome, Status, TracedCall};
use haft::session::Session;
use haft_chain::TOOL_CHAIN;

use crate::args;
use crate::commands::signals::Signals;
use crate::commands::{Done, arguments};
use crate::exit::Exit;
use crate::invocation::{Invocation, is_interactive};
use crate::screen::{DIM, GREEN, RED, Screen, YELLOW, styled, visible};
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::run::{ApprovalWait, RunOptions};
use haft_app::view::when;

/// Makes the call in a run of its own.
pub(crate) async fn run(at: &Invocation, app: &App, args: &args::Call) -> Done {
    let mut signals = Signals::heard()?;
    let text = arguments::read(&args.args)?;
    let options = RunOptions {
        wait: waits(args.wait, &args.args),
        ..options(at, "call")
    };
    let call = ToolCall::new(&args.tool, text);
    let (run, call) = app.start_for(options, call).await?;
    let outcome = cancellable(run.call(call), run.session(), &mut signals).await;
    let known = run.session().tools().entry(&args.tool).is_some();
    run.release().await;
    print_outcome(at, &outcome)?;
    Ok(Exit::of(&outcome, known))
}

/// The options of a run that one command starts.
pub(crate) fn options(at: &Invocation, entry: &'static str) -> RunOptions {
    let progress = Live { screen: at.screen };
    RunOptions {
        progress: live(at).then(|| Arc::new(progress) as Arc<dyn ProgressSink>),
        wait: ApprovalWait::Never,
        ..RunOptions::new(entry)
    }
}

#[expect(
    clippy::option_option,
    reason = "absent, given bare, given with a number: clap's own form"
)]
/// Whether a command waits for people: where somebody can answer at its terminal, and where `--wait` says so.
pub(crate) fn waits(wait: Option<Option<u64>>, input: &str) -> ApprovalWait {
    match wait {
        Some(Some(seconds)) => ApprovalWait::For(Duration::from_secs(seconds.max(1))),
        Some(None) => ApprovalWait::Limit,
        None if is_interactive() && input != "-" => ApprovalWait::Limit,
        None => ApprovalWait::Never,
    }
}

/// An outcome as people or programs read it. What only the operator can do about it goes to stderr in either case.
pub(crate) fn print_outcome(at: &Invocation, outcome: &Outcome) -> Result<(), Problem> {
    if at.screen.json {
        at.screen.document(outcome)?;
    } else {
        print(at, outcome)?;
    }
    if let Some(operator) = &outcome.operator {
        at.screen.say(&format!("  {}", visible::block(operator)));
    }
    Ok(())
}

/// Runs a call of this session; the first signal cancels it, and the outcome says so.
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

/// Whether a person watches.
fn live(at: &Invocation) -> bool {
    !at.screen.json && std::io::IsTerminal::is_terminal(&std::io::stderr())
}

/// Shows a running tool's output on stderr.
#[derive(Debug)]
struct Live {
    screen: Screen,
}

impl ProgressSink for Live {
    fn progress(&self, event: ProgressEvent) {
        if event.stream == Stream::Info {
            for line in event.text.lines() {
                self.screen.say(&styled(DIM, &visible::line(line)));
            }
        }
    }
}

fn print(at: &Invocation, outcome: &Outcome) -> Result<(), Problem> {
    let screen = at.screen;
    for content in &outcome.content {
        screen.out(&render_content(content))?;
    }
    // A script's text is what it printed; what it returned says more.
    let silent = outcome.content.is_empty() || outcome.tool == TOOL_CHAIN;
    if let (true, Some(data)) = (silent, &outcome.data) {
        let value: serde_json::Value = serde_json::from_str(data.get()).unwrap_or_default();
        let pretty = serde_json::to_string_pretty(&value).unwrap_or_default();
        screen.out(&format!("{}\n", visible::block(&pretty)))?;
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
        None => screen.detail(&format!("{head} {detail}")),
        Some(failure) => {
            screen.err(&format!("{head}: {}", visible::block(&failure.message)));
            // What the operator can do says more to a person than what a model can.
            if let (Some(advice), None) = (&failure.advice, &outcome.operator) {
                screen.err(&format!("  {}", visible::block(advice)));
            }
        }
    }
    Ok(())
}

fn colour(status: Status) -> Style {
    match status {
        Status::Ok => GREEN,
        Status::Suspended => YELLOW,
        Status::Error | Status::Denied | Status::Timeout | Status::Cancelled => RED,
    }
}

/// The calls of a chain, one a line.
fn trace(at: &Invocation, calls: &[TracedCall]) {
    for call in calls {
        let status = styled(colour(call.status), &format!("{:<9}", call.status.as_str()));
        let took = styled(DIM, &format!("({})", when::duration(call.duration_ms)));
        let (seq, tool) = (call.seq, visible::line(&call.tool));
        at.screen.say(&format!("{seq:>4}  {status} {tool} {took}"));
    }
}

fn render_content(content: &Content) -> String {
    let text = match content {
        Content::Text { text } | Content::Resource { text, .. } => visible::block(text),
        Content::Image { mime_type, data } | Content::Audio { mime_type, data } => {
            let bytes = data.len() as u64 / 4 * 3;
            format!("[{mime_type}, {}]", when::size(bytes))
        }
        Content::ResourceLink { uri, name, .. } => {
            format!("{} {}", visible::line(name), visible::line(uri))
        }
    };
    if text.ends_with('\n') {
        text
    } else {
        format!("{text}\n")
    }
}
