//! `haft exec`: one command in the jail, judged, recorded and undone like every call, with the output and the exit code of its own.

use std::env;
use std::time::Duration;

use haft::approval::inbox::RequestStatus;
use haft::call::{RunId, ToolCall};
use haft::result::{Artifact, Outcome};
use haft::toolset::Toolset as _;
use haft_app::app::App;
use haft_app::config::{Settings, typed};
use haft_app::problem::Problem;
use haft_app::run::{ApprovalWait, RunOptions};
use haft_app::view::approvals::{visit, with_status};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args;
use crate::commands::call::{cancellable, options, waits};
use crate::commands::signals::Signals;
use crate::commands::{Done, artifacts};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::visible;

/// The tool that runs commands.
const TOOL: &str = "run_command";

/// How soon it is looked whether the command waits for a person.
const LOOK: Duration = Duration::from_millis(500);

/// What a command came to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ran {
    exit_code: Option<u8>,
    signal: Option<u8>,
    stdout: String,
    stdout_bytes: u64,
    stderr: String,
}

/// Runs the command in a run of its own.
pub(crate) async fn run(
    at: &Invocation,
    settings: &Settings,
    app: &App,
    args: &args::Exec,
) -> Done {
    let mut signals = Signals::heard()?;
    let options = RunOptions {
        progress: None,
        wait: match args.wait {
            None => ApprovalWait::Limit,
            some => waits(Some(some), false),
        },
        ..options(at, "call")
    };
    let call = ToolCall::new(TOOL, arguments(at, settings, &args.words).to_string());
    let (run, call) = app.start_for(options, call).await?;
    let outcome = {
        let running = cancellable(run.call(call), run.session(), &mut signals);
        tokio::pin!(running);
        tokio::select! {
            outcome = &mut running => outcome,
            () = say_what_it_waits_for(at, app, run.id()) => running.await,
        }
    };
    run.release().await;
    let ended = match outcome.data.as_deref() {
        Some(data) => ran(at, app, &outcome, data.get()).await?,
        None => None,
    };
    if let Some(ended) = ended {
        return Ok(ended);
    }
    // Nothing of it ran, or not to its end.
    at.screen.err(&visible::block(&outcome.to_model()));
    if let Some(operator) = &outcome.operator {
        at.screen.say(&format!("  {}", visible::block(operator)));
    }
    let known = app.tools().snapshot().entry(TOOL).is_some();
    Ok(Exit::of(&outcome, known))
}

/// Says which decision the command waits for, once there is one.
async fn say_what_it_waits_for(at: &Invocation, app: &App, run: &RunId) {
    loop {
        tokio::time::sleep(LOOK).await;
        let mut waits = None;
        let looked = visit(app, with_status(RequestStatus::Pending), |entry| {
            if entry.request.run == *run {
                waits = Some(entry.request.id.to_string());
            }
        });
        if looked.await.is_ok()
            && let Some(approval) = waits
        {
            at.screen.say(&format!(
                "this waits for a decision (approval {approval}): `haft console`, or `haft approvals`"
            ));
            return;
        }
    }
}

/// The arguments of the call: a line for the shell, or words; in the folder where the command was given.
fn arguments(at: &Invocation, settings: &Settings, words: &[String]) -> Value {
    let here = env::current_dir().and_then(|here| here.canonicalize());
    let here = here.ok();
    let below = here
        .as_deref()
        .and_then(|here| here.strip_prefix(&at.site.workspace).ok());
    let cwd = below.and_then(|below| below.to_str()).unwrap_or_default();
    let cwd = if cwd.is_empty() { "." } else { cwd };
    let limit = settings.get(typed::CALL_TIMEOUT).as_secs();
    match words {
        [line] => json!({"command": line, "cwd": cwd, "timeout_s": limit}),
        words => json!({"argv": words, "cwd": cwd, "timeout_s": limit}),
    }
}

/// Prints what the command wrote; none where it did not end by itself.
async fn ran(
    at: &Invocation,
    app: &App,
    outcome: &Outcome,
    data: &str,
) -> Result<Option<Exit>, Problem> {
    let ran: Ran = serde_json::from_str(data).unwrap_or_default();
    let mut whole = outcome.artifacts.iter();
    let is_cut = |text: &str, bytes: u64| (text.len() as u64) < bytes;
    if is_cut(&ran.stdout, ran.stdout_bytes) {
        print_whole(at, app, whole.next(), &ran.stdout).await?;
    } else {
        at.screen.raw(ran.stdout.as_bytes())?;
    }
    match whole.next() {
        Some(artifact) => {
            // A long error stream is named, not repeated whole: the record has it.
            at.screen.err_text(&ran.stderr);
            at.screen.say(&format!(
                "all of it: haft artifacts get {}",
                artifact.reference
            ));
        }
        None => at.screen.err_text(&ran.stderr),
    }
    let ended = match (ran.exit_code, ran.signal) {
        (Some(code), _) => Some(Exit::Command(code)),
        (None, Some(signal)) => Some(Exit::Command(128_u8.saturating_add(signal))),
        (None, None) => None,
    };
    Ok(ended)
}

/// A stream that is too long for a result, from where it was kept.
async fn print_whole(
    at: &Invocation,
    app: &App,
    artifact: Option<&Artifact>,
    shown: &str,
) -> Result<(), Problem> {
    match artifact {
        Some(artifact) => artifacts::print_whole(at, app, &artifact.reference).await,
        None => at.screen.raw(shown.as_bytes()),
    }
}
