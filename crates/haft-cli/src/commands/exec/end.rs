//! How `haft exec` ends: with its command's own exit code where that ran, else with haft's.

use haft::artifact::{ArtifactRef, Owner};
use haft::call::RunId;
use haft::progress::{ProgressSink as _, Stream};
use haft::result::{Artifact, Content, Outcome, Status};
use haft::toolset::Toolset as _;
use haft_app::app::App;
use haft_app::exec::RUN_COMMAND;
use haft_app::problem::Problem;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::commands::exec::output::Output;
use crate::commands::exec::{Attended, Stopped, is_watched};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::visible;

/// Read in pieces of this many bytes.
const PIECE: u64 = 1 << 20;
/// What a shell adds to the number of the signal that ended a command.
const BY_SIGNAL: u8 = 128;
/// SIGPIPE: the reader of the pipe is gone.
const CLOSED: u8 = BY_SIGNAL + 13;

/// What a command came to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ran {
    exit_code: Option<u8>,
    signal: Option<u8>,
    stdout: String,
    stdout_bytes: u64,
    stderr: String,
    not_applied: Vec<IgnoredAny>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The command by itself, with this code.
    ByItself(u8),
    /// Not by itself, or it never ran.
    Otherwise(Exit),
}

impl Ended {
    /// The exit code.
    pub(super) fn code(self) -> Exit {
        match self {
            Self::ByItself(code) => Exit::Command(code),
            Self::Otherwise(exit) => exit,
        }
    }

    /// The exit code where the reader of the output went away: that of a command that SIGPIPE ended.
    pub(super) fn or_closed(self) -> Exit {
        match self {
            Self::Otherwise(Exit::Interrupted) => Exit::Command(CLOSED),
            other => other.code(),
        }
    }
}

/// Prints what of an outcome was not passed on live, and says how the command ended; `stopped` is why haft ended it, if it did.
pub(super) async fn ended(
    attended: &Attended<'_>,
    outcome: &Outcome,
    stopped: Option<&Stopped>,
) -> Result<Ended, Problem> {
    let Attended {
        at, app, output, ..
    } = attended;
    let ran: Ran = match &outcome.data {
        Some(data) => serde_json::from_str(data.get()).unwrap_or_default(),
        None => Ran::default(),
    };
    if !output.has_begun() {
        print_earlier(app, output, outcome, &ran).await?;
    }
    let known = app.tools().snapshot().entry(RUN_COMMAND).is_some();
    let by_haft = Ended::Otherwise(Exit::of(outcome, known));
    let ended = match (ran.exit_code, ran.signal) {
        // It did what it had to, and that is not in the workspace.
        (Some(0), _) if !outcome.is_ok() => by_haft,
        (Some(code), _) => Ended::ByItself(code),
        (None, Some(signal)) if outcome.status == Status::Error => {
            Ended::ByItself(BY_SIGNAL.saturating_add(signal))
        }
        (None, _) => by_haft,
    };
    // What a command that failed wrote says it all.
    let failed = ran.exit_code.is_some_and(|code| code != 0) && outcome.strength.is_some();
    match stopped.filter(|_| outcome.status == Status::Cancelled) {
        None => say(at, outcome, failed && ran.not_applied.is_empty()),
        Some(Stopped::Signal) => at.screen.err(
            "haft: cancelled: a signal ended the command, and nothing that it changed was applied",
        ),
        Some(Stopped::Output(_)) => at.screen.say(
            "haft: cancelled: its output is read no further: the command was ended, and nothing that it changed was applied",
        ),
    }
    Ok(ended)
}

/// Says what kept a command from running, from ending, or its changes from the workspace, and what to do.
fn say(at: &Invocation, outcome: &Outcome, failed: bool) {
    let err = |text: &str| at.screen.err(&format!("haft: {}", visible::block(text)));
    for content in &outcome.content {
        if let Content::Text { text } = content {
            err(text);
        }
    }
    let Some(error) = &outcome.error else { return };
    if !failed {
        let word = match outcome.status {
            Status::Error => error.kind.as_str(),
            status => status.as_str(),
        };
        err(&format!("{word}: {}", error.message));
    }
    if let Some(advice) = &error.advice {
        err(advice);
    }
    if let Some(operator) = outcome.operator.as_ref().filter(|_| is_watched()) {
        at.screen
            .say(&format!("haft: {}", visible::block(operator)));
    }
}

/// The output of a command that ran in an earlier call: what a result has of it, or whole from where it was kept.
async fn print_earlier(
    app: &App,
    output: &Output,
    outcome: &Outcome,
    ran: &Ran,
) -> Result<(), Problem> {
    let mut whole = outcome.artifacts.iter();
    if (ran.stdout.len() as u64) < ran.stdout_bytes
        && let Some(artifact) = whole.next()
    {
        print_whole(app, output, &outcome.run, artifact).await?;
    } else {
        output.add(Stream::Stdout, ran.stdout.as_bytes());
    }
    output.add(Stream::Stderr, ran.stderr.as_bytes());
    Ok(())
}

/// A stream that is too long for a result, from where it was kept.
async fn print_whole(
    app: &App,
    output: &Output,
    run: &RunId,
    artifact: &Artifact,
) -> Result<(), Problem> {
    let gone = || Problem::failed(format!("the output {} is not kept", artifact.reference));
    let reference = ArtifactRef::parse(&artifact.reference).ok_or_else(gone)?;
    let all = app.artifacts().list(app.principal(), None).await;
    let all = all.map_err(|e| Problem::failed(format!("read artifacts: {e}")))?;
    let found = all.into_iter().find(|info| info.reference == reference);
    let owner = Owner {
        principal: app.principal().clone(),
        run: found.map_or_else(|| run.clone(), |info| info.run),
    };
    let mut from = 0;
    while from < artifact.bytes {
        output.room().await;
        let to = artifact.bytes.min(from + PIECE);
        let read = app.artifacts().read(&owner, &reference, from..to).await;
        let bytes = read.map_err(|e| Problem::failed(format!("read artifacts: {e}")))?;
        if bytes.is_empty() {
            break;
        }
        output.add(Stream::Stdout, &bytes);
        from += bytes.len() as u64;
    }
    Ok(())
}
