//! The end of `haft exec`: what it prints then, and its exit code, the command's own if the command ran, else haft's.

use haft::artifact::{ArtifactOwner, ArtifactRef};
use haft::call::RunId;
use haft::error::ErrorKind;
use haft::progress::{ProgressSink as _, ProgressStream};
use haft::result::{Artifact, Outcome, PartMark, Status};
use haft::toolset::Toolset as _;
use haft_app::app::App;
use haft_app::exec::RUN_COMMAND;
use haft_app::problem::Problem;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::commands::exec::output::OutputWriter;
use crate::commands::exec::{CommandStop, is_watched};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::visible;

/// Size of the pieces in which artifacts are read, in bytes.
const PIECE: u64 = 1 << 20;
/// What a shell adds to the number of the signal that ended a command.
const BY_SIGNAL: u8 = 128;
/// SIGPIPE: the reader of the pipe went away.
const CLOSED: u8 = BY_SIGNAL + 13;

/// The result of a command, as `run_command` gives it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CommandResult {
    exit_code: Option<u8>,
    signal: Option<u8>,
    stdout: String,
    stderr: String,
    not_applied: Vec<IgnoredAny>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandEnd {
    /// The command exited by itself, with this code.
    ByItself(u8),
    /// haft ended it, or it never ran.
    Otherwise(Exit),
}

impl CommandEnd {
    /// The exit code.
    pub(super) fn code(self) -> Exit {
        match self {
            Self::ByItself(code) => Exit::Command(code),
            Self::Otherwise(exit) => exit,
        }
    }

    /// The exit code if the reader of the output went away: that of a command ended by SIGPIPE.
    pub(super) fn or_closed(self) -> Exit {
        match self {
            Self::Otherwise(Exit::Interrupted) => Exit::Command(CLOSED),
            other => other.code(),
        }
    }
}

/// Prints what was not passed on while the command ran, and says how it ended. `stopped` is why haft ended it, if it did.
pub(super) async fn print_end(
    at: &Invocation,
    app: &App,
    output: &OutputWriter,
    outcome: &Outcome,
    stopped: Option<&CommandStop>,
) -> Result<CommandEnd, Problem> {
    let result: CommandResult = match &outcome.data {
        Some(data) => serde_json::from_str(data.get()).unwrap_or_default(),
        None => CommandResult::default(),
    };
    if !output.has_begun() {
        print_earlier(app, output, outcome, &result).await?;
    }
    let known = app.tools().snapshot().entry(RUN_COMMAND).is_some();
    let by_haft = CommandEnd::Otherwise(Exit::of(outcome, known));
    let end = match (result.exit_code, result.signal) {
        // The command succeeded, but its changes are not in the workspace.
        (Some(0), _) if !outcome.is_ok() => by_haft,
        (Some(code), _) => CommandEnd::ByItself(code),
        (None, Some(signal)) if outcome.status == Status::Error => {
            CommandEnd::ByItself(BY_SIGNAL.saturating_add(signal))
        }
        (None, _) => by_haft,
    };
    // The output of a command that failed says enough.
    let failed = result.exit_code.is_some_and(|code| code != 0) && outcome.strength.is_some();
    match stopped.filter(|_| outcome.status == Status::Cancelled) {
        None => say(at, outcome, failed && result.not_applied.is_empty()),
        Some(CommandStop::Signal) => at.screen.err(
            "haft: cancelled: a signal ended the command, and none of its changes were applied",
        ),
        Some(CommandStop::Output(_)) => at.screen.say(
            "haft: cancelled: its output cannot be passed on, so haft ended the command and applied none of its changes",
        ),
    }
    Ok(end)
}

/// Says what kept a command from running or ending, or its changes from reaching the workspace, and what to do.
fn say(at: &Invocation, outcome: &Outcome, failed: bool) {
    let err = |text: &str| at.screen.err(&format!("haft: {}", visible::block(text)));
    let rendered = outcome.render();
    let own = [PartMark::Text, PartMark::Data, PartMark::Media];
    for part in &rendered.parts {
        let waits = part.mark == PartMark::Status && outcome.error.is_none() && !outcome.is_ok();
        if waits || own.contains(&part.mark) {
            err(&part.text);
        }
    }
    for note in outcome.notes.iter().filter(|note| !names_tools(note)) {
        err(note);
    }
    let Some(error) = &outcome.error else { return };
    if !failed {
        let word = match outcome.status {
            Status::Error => error.kind.as_str(),
            status => status.as_str(),
        };
        err(&format!("{word}: {}", error.message));
    }
    if error.kind == ErrorKind::Timeout {
        // The tool's own advice names its arguments.
        err("raise limits.call_timeout_s in the settings, or run it in the background");
    } else if let Some(advice) = &error.advice {
        // What follows is about members of the result, which a shell does not get.
        err(advice.split("; where `data.").next().unwrap_or(advice));
    }
    if let Some(operator) = outcome.operator.as_ref().filter(|_| is_watched()) {
        at.screen
            .say(&format!("haft: {}", visible::block(operator)));
    }
}

/// Returns whether a note names a tool that a shell does not have. The output has come whole.
fn names_tools(note: &str) -> bool {
    note.contains("read_artifact {")
}

/// Prints the output of a command that ran in an earlier call. What the result has only a part of comes whole from its
/// artifact.
async fn print_earlier(
    app: &App,
    output: &OutputWriter,
    outcome: &Outcome,
    result: &CommandResult,
) -> Result<(), Problem> {
    for (stream, text) in [
        (ProgressStream::Stdout, &result.stdout),
        (ProgressStream::Stderr, &result.stderr),
    ] {
        // A text that was cut names the artifact.
        let mut whole = outcome.artifacts.iter();
        match whole.find(|artifact| text.contains(&artifact.reference)) {
            Some(artifact) => print_whole(app, output, &outcome.run, stream, artifact).await?,
            None => output.add(stream, text.as_bytes()),
        }
    }
    Ok(())
}

/// Prints a stream that was too long for the result, from its artifact.
async fn print_whole(
    app: &App,
    output: &OutputWriter,
    run: &RunId,
    stream: ProgressStream,
    artifact: &Artifact,
) -> Result<(), Problem> {
    let missing = || Problem::failed(format!("the output {} is not kept", artifact.reference));
    let reference = ArtifactRef::parse(&artifact.reference).ok_or_else(missing)?;
    let all = app.artifacts().list(app.principal(), None).await;
    let all = all.map_err(|e| Problem::failed(format!("cannot read artifacts: {e}")))?;
    let found = all.into_iter().find(|info| info.reference == reference);
    let owner = ArtifactOwner {
        principal: app.principal().clone(),
        run: found.map_or_else(|| run.clone(), |info| info.run),
    };
    let mut from = 0;
    while from < artifact.bytes {
        output.room().await;
        let to = artifact.bytes.min(from + PIECE);
        let read = app.artifacts().read(&owner, &reference, from..to).await;
        let bytes = read.map_err(|e| Problem::failed(format!("cannot read artifacts: {e}")))?;
        if bytes.is_empty() {
            break;
        }
        output.add(stream, &bytes);
        from += bytes.len() as u64;
    }
    Ok(())
}
