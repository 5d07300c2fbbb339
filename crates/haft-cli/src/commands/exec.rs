//! `haft exec`: runs one command in the jail, judged, recorded and undone like every call, with the command's own input, output and exit
//! code.

use std::env;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use haft::approval::inbox::RequestStatus;
use haft::result::Outcome;
use haft_app::app::App;
use haft_app::hook::exec_session::ExecSession;
use haft_app::problem::Problem;
use haft_app::requests::{visit, with_status};
use haft_app::run::{ApprovalWait, RunHandle, RunOptions};

use crate::args;
use crate::commands::ExitResult;
use crate::commands::call::waits;
use crate::commands::signals::Signals;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{stdout, visible};

mod end;
mod input;
mod output;
mod terminal;

use end::print_end;
use output::{OutputEnd, OutputWriter};
use terminal::AttendedTerminal;

/// How often haft checks whether the command waits for a decision.
const LOOK: Duration = Duration::from_millis(500);

/// How long, after a signal, what is left of the output may take.
const GRACE: Duration = Duration::from_secs(2);

/// Why haft ends a command.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CommandStop {
    /// haft received a signal.
    Signal,
    /// Its output cannot be passed on any more.
    Output(OutputEnd),
}

/// Runs the command in a run of its own.
pub(crate) async fn run(at: &Invocation, app: &App, args: &args::Exec) -> ExitResult {
    let attended = args.tty.then(|| AttendedTerminal::take(at.lines.router()));
    let attended = attended.transpose()?;
    let mut signals = match &attended {
        Some(_) => Signals::heard_at_a_terminal()?,
        None => Signals::heard()?,
    };
    let output = OutputWriter::start(app.redactor(), attended.clone())?;
    let agent = args.session.as_deref();
    let agent = agent.map(|name| ExecSession::find(app, name, args.shell_state));
    let agent = agent.transpose()?;
    let options = RunOptions {
        shell_report: agent.as_ref().and_then(ExecSession::shell_report),
        progress: Some(Arc::clone(&output) as _),
        ..options(args, attended.as_ref(), agent.as_ref())
    };
    let folder = folder(at)?;
    let call = match (&attended, &agent) {
        (Some(_), _) => app.terminal_call(&args.words, &folder),
        (None, Some(agent)) => agent.call(app, &args.words, &folder, args.background)?,
        (None, None) => app.exec_call(&args.words, &folder, args.background),
    };
    let (run, call) = app.start_for(options, call).await?;
    if let Some(agent) = &agent {
        agent.recall(&run)?;
    }
    let command = ExecCommand {
        at,
        app,
        run: &run,
        output: &output,
    };
    let running = note_reads(agent.as_ref(), &run, run.call(call));
    let (outcome, stopped) = command.outcome(running, &mut signals).await;
    let outcome = match &agent {
        Some(agent) => agent.without_known_notes(outcome),
        None => outcome,
    };
    output.leave_terminal();
    run.release().await;
    if stopped == Some(CommandStop::Signal) {
        end_within(GRACE);
    }
    let exit = print_end(at, app, &output, &outcome, stopped.as_ref()).await?;
    keep_shell(at, agent.as_ref(), args, &outcome);
    // The rest of the output may wait for its reader, who may never read it.
    let end = tokio::select! {
        end = output.finish() => end,
        _ = signals.next() => return Ok(Exit::Interrupted),
    };
    match stopped.or(end.map(CommandStop::Output)) {
        Some(CommandStop::Output(OutputEnd::Failed(why))) => Err(stdout::unwritten(&why)),
        Some(CommandStop::Output(OutputEnd::Closed)) => Ok(exit.or_closed()),
        Some(CommandStop::Signal) | None => Ok(exit.code()),
    }
}

/// Returns how the run of a command works.
fn options(
    args: &args::Exec,
    attended: Option<&Arc<AttendedTerminal>>,
    agent: Option<&ExecSession>,
) -> RunOptions {
    RunOptions {
        input: match attended {
            Some(terminal) => Some(terminal.input()),
            None => input::stdin_data().filter(|_| !args.background),
        },
        on_terminal: attended.is_some(),
        attends: args.background,
        wait: match args.wait {
            None => ApprovalWait::Limit,
            some => waits(Some(some), false),
        },
        ..agent.map_or_else(|| RunOptions::new("call"), ExecSession::options)
    }
}

/// Keeps what the command's shell held for the agent's next command, and says what is not kept.
fn keep_shell(at: &Invocation, agent: Option<&ExecSession>, args: &args::Exec, outcome: &Outcome) {
    let Some(agent) = agent else { return };
    let lost = match agent.keep_shell(outcome) {
        Ok(lost) => lost,
        Err(problem) => Some(problem.to_string()),
    };
    let folder = agent.unfollowed_folder(&args.words, outcome);
    let folder = folder.filter(|_| !args.background).map(str::to_owned);
    for text in lost.into_iter().chain(folder) {
        at.screen.err(&format!("haft: {}", visible::block(&text)));
    }
}

/// Ends this process after this time at the latest: whoever reads its output may have stopped, and every write then waits.
#[expect(clippy::exit, reason = "main waits for a write that nothing ends")]
fn end_within(time: Duration) {
    let started = std::thread::Builder::new()
        .name("end".to_owned())
        .spawn(move || {
            std::thread::sleep(time);
            terminal::restore();
            std::process::exit(i32::from(Exit::Interrupted.number()));
        });
    if let Err(error) = started {
        tracing::warn!(%error, "bound the end of the output");
    }
}

/// Notes for the agent's session what the command reads from elsewhere, while it runs and before the agent learns its outcome.
async fn note_reads(
    agent: Option<&ExecSession>,
    run: &RunHandle,
    running: impl Future<Output = Outcome>,
) -> Outcome {
    tokio::pin!(running);
    loop {
        let outcome = tokio::select! {
            outcome = &mut running => Some(outcome),
            () = tokio::time::sleep(LOOK), if agent.is_some() => None,
        };
        let noted = agent.map(|agent| agent.note(run));
        if let Some(Err(problem)) = noted {
            // Its output may be on the agent's screen already. The run's own record holds what it read.
            tracing::warn!(%problem, "note what a command read for an agent's session");
        }
        if let Some(outcome) = outcome {
            return outcome;
        }
    }
}

/// A command under way, and what can end it.
struct ExecCommand<'a> {
    at: &'a Invocation,
    app: &'a App,
    run: &'a RunHandle,
    output: &'a OutputWriter,
}

impl ExecCommand<'_> {
    /// Waits for the outcome of the call. Also returns why haft ended it, if it did.
    async fn outcome(
        &self,
        running: impl Future<Output = Outcome>,
        signals: &mut Signals,
    ) -> (Outcome, Option<CommandStop>) {
        tokio::pin!(running);
        let notice = self.announce_request();
        tokio::pin!(notice);
        let mut is_announced = false;
        let stopped = loop {
            tokio::select! {
                outcome = &mut running => return (outcome, None),
                _ = signals.next() => break CommandStop::Signal,
                // A command that has ended may still wait for a decision about its changes.
                end = self.output.end_reason(), if !self.output.has_ended() => {
                    if !self.output.has_ended() {
                        break CommandStop::Output(end);
                    }
                }
                () = &mut notice, if !is_announced => is_announced = true,
            }
        };
        let session = self.run.session();
        if self.output.has_ended() {
            // If a person is asked about its changes, they stay pending.
            session.suspend();
        } else {
            session.cancel();
        }
        let outcome = tokio::select! {
            outcome = &mut running => outcome,
            // A second signal ends the wait at once.
            _ = signals.next() => {
                session.cancel();
                running.await
            }
        };
        (outcome, Some(stopped))
    }

    /// Says which decision the command waits for, once it waits for one.
    async fn announce_request(&self) {
        let Self { at, app, .. } = self;
        loop {
            tokio::time::sleep(LOOK).await;
            let mut waits = None;
            let looked = visit(app, with_status(RequestStatus::Pending), |entry| {
                if entry.request.run == *self.run.id() {
                    waits = Some(entry.request.id.to_string());
                }
            });
            if looked.await.is_ok()
                && let Some(approval) = waits
            {
                // A model reads that somebody decides, and where, but no command for it.
                let place = if is_watched() {
                    "by `haft console` or `haft approvals`"
                } else {
                    "in haft's console"
                };
                let notice = format!(
                    "haft: this waits for a person's decision {place} (approval {approval})"
                );
                if terminal::is_raw() {
                    // In a row of its own, wherever the command draws.
                    at.screen.say(&format!("\r\n{notice}\r"));
                } else {
                    at.screen.say(&notice);
                }
                return;
            }
        }
    }
}

/// Whether a person reads stderr. A model must never read how to approve.
fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Returns the current folder, relative to the workspace.
///
/// # Errors
/// It is outside the workspace: the command would change the workspace instead of that folder.
fn folder(at: &Invocation) -> Result<String, Problem> {
    let elsewhere = |place: &str| {
        let what = format!(
            "haft exec works only in the workspace, {}, not in {place}",
            at.site.workspace.display()
        );
        Problem::usage(what).advise("change to the workspace, or name another one with --workspace")
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
