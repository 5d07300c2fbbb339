//! `haft exec`: one command in the jail, judged, recorded and undone like every call, with input, output and exit code of its own.

use std::env;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use haft::approval::inbox::RequestStatus;
use haft::call::RunId;
use haft::result::Outcome;
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::run::{ApprovalWait, RunHandle, RunOptions};
use haft_app::view::approvals::{visit, with_status};

use crate::args;
use crate::commands::Done;
use crate::commands::call::waits;
use crate::commands::signals::Signals;
use crate::exit::Exit;
use crate::invocation::Invocation;

mod ended;
mod input;
mod output;

use ended::ended;
use output::{Broken, Output};

/// How soon it is looked whether the command waits for a person.
const LOOK: Duration = Duration::from_millis(500);

/// Why haft ends a command.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stopped {
    /// A signal came.
    Signal,
    /// Its output goes nowhere any more.
    Output(Broken),
}

/// Runs the command in a run of its own.
pub(crate) async fn run(at: &Invocation, app: &App, args: &args::Exec) -> Done {
    let mut signals = Signals::heard()?;
    let output = Output::start(app.redactor())?;
    let options = RunOptions {
        input: input::piped(),
        progress: Some(Arc::clone(&output) as _),
        wait: match args.wait {
            None => ApprovalWait::Limit,
            some => waits(Some(some), false),
        },
        ..RunOptions::new("call")
    };
    let call = app.exec_call(&args.words, &folder(at)?);
    let (run, call) = app.start_for(options, call).await?;
    let attended = Attended {
        at,
        app,
        run: &run,
        output: &output,
    };
    let (outcome, stopped) = attended.outcome(run.call(call), &mut signals).await;
    let exit = ended(&attended, &outcome, stopped.as_ref()).await?;
    run.release().await;
    // What is written may still wait for its reader, who may never read on.
    let broken = tokio::select! {
        broken = output.finish() => broken,
        _ = signals.next() => return Ok(Exit::Interrupted),
    };
    match stopped.or(broken.map(Stopped::Output)) {
        Some(Stopped::Output(Broken::Failed(why))) => {
            Err(Problem::failed(format!("write to stdout: {why}")))
        }
        Some(Stopped::Output(Broken::Closed)) => Ok(exit.or_closed()),
        Some(Stopped::Signal) | None => Ok(exit.code()),
    }
}

/// A command under way, and what may end it.
struct Attended<'a> {
    at: &'a Invocation,
    app: &'a App,
    run: &'a RunHandle,
    output: &'a Output,
}

impl Attended<'_> {
    /// The outcome of the call, and why haft ended it, if it did.
    async fn outcome(
        &self,
        running: impl Future<Output = Outcome>,
        signals: &mut Signals,
    ) -> (Outcome, Option<Stopped>) {
        tokio::pin!(running);
        let says = say_what_it_waits_for(self.at, self.app, self.run.id());
        tokio::pin!(says);
        let mut said = false;
        let stopped = loop {
            tokio::select! {
                outcome = &mut running => return (outcome, None),
                _ = signals.next() => break Stopped::Signal,
                // One that has ended may still be asked about.
                broken = self.output.broken(), if !self.output.has_ended() => {
                    if !self.output.has_ended() {
                        break Stopped::Output(broken);
                    }
                }
                () = &mut says, if !said => said = true,
            }
        };
        let session = self.run.session();
        if self.output.has_ended() {
            // What it changed stays pending where a person is being asked about it.
            session.suspend();
        } else {
            session.cancel();
        }
        let outcome = tokio::select! {
            outcome = &mut running => outcome,
            // Asked once more, it waits for nothing.
            _ = signals.next() => {
                session.cancel();
                running.await
            }
        };
        (outcome, Some(stopped))
    }
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
                "haft: this waits for a person's decision (approval {approval}){}",
                if is_watched() {
                    ": `haft console`, or `haft approvals`"
                } else {
                    ""
                }
            ));
            return;
        }
    }
}

/// Whether a person reads what haft says: a model is never told how to approve.
fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// The folder where the command was given, below the workspace.
///
/// # Errors
/// It is another one: the command would do to the workspace what was meant for that.
fn folder(at: &Invocation) -> Result<String, Problem> {
    let elsewhere = |place: &str| {
        let what = format!(
            "haft exec works in the workspace, {}, and not in {place}",
            at.site.workspace.display()
        );
        Problem::usage(what).advise("go into the workspace, or name another one: --workspace")
    };
    let here = env::current_dir().and_then(|here| here.canonicalize());
    let here =
        here.map_err(|error| elsewhere(&format!("a folder that cannot be found ({error})")))?;
    let below = here.strip_prefix(&at.site.workspace).ok();
    let below = below.and_then(|below| below.to_str());
    below
        .map(str::to_owned)
        .ok_or_else(|| elsewhere(&here.display().to_string()))
}
