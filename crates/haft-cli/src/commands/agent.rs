//! `haft run`: runs a task from prompt to answer; at a terminal without a prompt, a conversation.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use haft::call::RunId;
use haft_agent::{AgentError, AgentEvent, RunEnd, RunResult};
use haft_app::agent::{AgentRun, AgentTask, ENTRY, problem};
use haft_app::app::App;
use haft_app::config::Settings;
use haft_app::dry_run::DryRun;
use haft_app::plain_file;
use haft_app::problem::{Problem, SourceLocation};
use haft_app::run::RunOptions;
use haft_app::view::runs;
use haft_wire::Message;

use crate::args;
use crate::commands::agent::cards::Cards;
use crate::commands::agent::ndjson::Ndjson;
use crate::commands::agent::view::RunView;
use crate::commands::signals::{Signal, Signals};
use crate::commands::{ExitResult, call};
use crate::exit::Exit;
use crate::invocation::{Invocation, is_interactive};

mod cards;
mod conversation;
mod dry;
pub(super) mod editor;
mod ndjson;
mod output;
mod view;
mod waiting;

/// The maximum size of a prompt on stdin.
const MOST: u64 = 4 << 20;

/// Runs the agent in its own run.
pub(crate) async fn run(
    at: &Invocation,
    settings: &Settings,
    app: &App,
    args: &args::AgentRunCommand,
    dry: Option<&DryRun>,
) -> ExitResult {
    let mut signals = Signals::heard()?;
    let mut prompt = prompt(args)?;
    let view = view(at, app, dry.is_some());
    let task = AgentTask {
        model: args.model.clone(),
        base_url: args.base_url.clone(),
        skills: args.skills.clone(),
        resume: run_to_resume(app, args).await?,
        max_turns: args.max_turns,
        watcher: Some(Arc::clone(&view) as _),
        run: Some(RunOptions {
            progress: Some(Arc::clone(&view) as _),
            wait: call::waits(args.wait, args.is_from_stdin()),
            client: dry.map(|_| "dry run".to_owned()),
            ..RunOptions::new(ENTRY)
        }),
        ..AgentTask::default()
    };
    let mut goes_on = false;
    if prompt.is_none()
        && let Some((run, finished)) = app.end_of(settings, &task).await?
    {
        if !converses(at) || matches!(finished.end, RunEnd::Denied(_)) {
            show_end(&run, &finished, args, &*view);
            return Ok(exit(&finished.end));
        }
        match first_prompt(at, args, &mut signals).await {
            Ok(first) => prompt = Some(first),
            Err(exit) => return Ok(exit),
        }
        goes_on = true;
    }
    let agent = app.agent(settings, task).await?;
    view.begins(agent.id(), agent.model());
    for notice in agent.notices() {
        view.notice(notice);
    }
    let mut talk = AgentConversation {
        at,
        agent,
        view,
        signals,
        is_resumed: args.resume.is_some(),
        goes_on,
    };
    let done = talk.all(prompt).await;
    let (id, view) = (talk.agent.id().clone(), talk.view);
    talk.agent.release().await;
    if let Some(dry) = dry {
        dry::report(at, app, dry, &id, &*view)?;
    }
    done.map_err(|problem| {
        view.failed(&problem);
        match problem.advice() {
            Some(_) => problem,
            None => problem.advise(format!("`haft run --resume {id}` continues from here")),
        }
    })
}

/// Returns the run to resume.
async fn run_to_resume(app: &App, args: &args::AgentRunCommand) -> Result<Option<RunId>, Problem> {
    Ok(match &args.resume {
        Some(run) => Some(RunId::new(runs::find(app, run).await?)),
        None => None,
    })
}

/// Reads the first prompt of a conversation that continues a finished run: no run begins before the user has entered it.
async fn first_prompt(
    at: &Invocation,
    args: &args::AgentRunCommand,
    signals: &mut Signals,
) -> Result<String, Exit> {
    conversation::introduce(at, args.model.as_deref());
    conversation::read(at, signals).await
}

/// Shows how a finished run has ended.
fn show_end(run: &RunId, finished: &RunResult, args: &args::AgentRunCommand, view: &dyn RunView) {
    view.begins(run, args.model.as_deref().unwrap_or_default());
    view.works(true);
    view.event(AgentEvent::Done(finished));
}

/// Returns the prompt; `None` if the user types it at the terminal, or if a run is resumed.
fn prompt(args: &args::AgentRunCommand) -> Result<Option<String>, Problem> {
    match args.prompt.as_deref() {
        Some("-") => {
            let text = plain_file::bounded(io::stdin().lock(), MOST).map_err(|e| {
                Problem::usage(format!("cannot read the prompt: {e}"))
                    .at(SourceLocation::named("stdin"))
            })?;
            not_blank(text).map(Some)
        }
        Some(text) => not_blank(text.to_owned()).map(Some),
        None if args.resume.is_some() || is_interactive() => Ok(None),
        None => Err(Problem::usage("there is no prompt").advise(
            "pass it to `haft run`, or - to read it from stdin; a conversation needs a terminal",
        )),
    }
}

/// Returns whether the user types prompts at this terminal.
fn converses(at: &Invocation) -> bool {
    is_interactive() && !at.screen.json
}

/// Returns the prompt if it is not blank: providers refuse an empty one.
fn not_blank(prompt: String) -> Result<String, Problem> {
    if prompt.trim().is_empty() {
        return Err(Problem::usage("the prompt is empty")
            .advise("pass the task to `haft run`, or on stdin to `haft run -`"));
    }
    Ok(prompt)
}

fn view(at: &Invocation, app: &App, is_dry: bool) -> Arc<dyn RunView> {
    if at.screen.json {
        return Arc::new(Ndjson::new(at.screen, is_dry));
    }
    Cards::watching(at.screen, app.redactor().clone(), &at.lines)
}

/// The next step of the agent.
enum ConversationInput {
    Prompt(String),
    /// Continues with open calls.
    Resume,
}

/// A conversation between an agent and the user.
struct AgentConversation<'a> {
    at: &'a Invocation,
    agent: AgentRun,
    view: Arc<dyn RunView>,
    signals: Signals,
    is_resumed: bool,
    /// Whether the user types another prompt after the first one.
    goes_on: bool,
}

impl AgentConversation<'_> {
    /// Continues with open calls, runs the prompt, or starts a conversation.
    async fn all(&mut self, prompt: Option<String>) -> ExitResult {
        let is_unfinished = self.is_unfinished();
        if is_unfinished {
            let exit = self.step(ConversationInput::Resume).await?;
            if exit != Exit::Done {
                return Ok(exit);
            }
        }
        match prompt {
            Some(prompt) if self.goes_on => self.converse(Some(prompt)).await,
            Some(prompt) => self.step(ConversationInput::Prompt(prompt)).await,
            None if is_unfinished => Ok(Exit::Done),
            None if converses(self.at) => {
                conversation::introduce(self.at, Some(self.agent.model()));
                self.converse(None).await
            }
            None => self.step(ConversationInput::Resume).await,
        }
    }

    /// Returns whether a resumed run has not reached its answer.
    fn is_unfinished(&self) -> bool {
        let agent = self.agent.agent();
        let is_answered = matches!(agent.messages().last(), None | Some(Message::Model(_)));
        self.is_resumed && !agent.is_over() && (agent.is_open() || !is_answered)
    }

    /// Runs one prompt to its end. The first interrupt stops the calls of the current reply, the next one the run, whatever it does.
    async fn step(&mut self, step: ConversationInput) -> ExitResult {
        self.view.works(true);
        let control = self.agent.agent().control();
        let agent = self.agent.agent_mut();
        let done = {
            let mut running = pin!(async move {
                match step {
                    ConversationInput::Prompt(prompt) => agent.run(prompt).await,
                    ConversationInput::Resume => agent.resume().await,
                }
            });
            let mut stopped = false;
            loop {
                tokio::select! {
                    // Poll the run first, so that a signal can stop what it has just started.
                    biased;
                    done = &mut running => break done,
                    signal = self.signals.next() => {
                        if signal == Signal::Interrupt && !stopped && control.stop_calls() {
                            stopped = true;
                            self.view.notice("the tools were stopped; Ctrl-C again ends the run");
                        } else {
                            control.cancel();
                        }
                    }
                }
            }
        };
        self.view.works(false);
        self.ended(done)
    }

    fn ended(&self, done: Result<RunResult, AgentError>) -> ExitResult {
        let finished = done.map_err(|error| problem(&error))?;
        if let RunEnd::Suspended(waiting) = &finished.end {
            for call in waiting {
                let id = &call.approval;
                self.at.screen.say(&if call.is_decided {
                    format!("  {id} is decided, and another haft process acts on it")
                } else {
                    format!(
                        "  `haft approvals approve {id}` decides about {}",
                        call.tool
                    )
                });
            }
            let id = self.agent.id();
            self.at
                .screen
                .say(&format!("  `haft run --resume {id}` then continues"));
        }
        Ok(exit(&finished.end))
    }
}

fn exit(end: &RunEnd) -> Exit {
    match end {
        RunEnd::Done => Exit::Done,
        RunEnd::Suspended(_) => Exit::Suspended,
        RunEnd::Denied(_) => Exit::Denied,
        RunEnd::Cancelled => Exit::Interrupted,
        _ => Exit::Failed,
    }
}
