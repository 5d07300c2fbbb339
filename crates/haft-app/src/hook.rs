//! `Hooks`: answers the hooks of coding agents. An event is read, its call located, named and judged like every other call, and the verdict
//! goes back in the agent's own form. The agent runs the tool; here the call ends when the agent reports its end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haft::change::ChangeLog;
use haft_builtins::command::changes::CommandChanges;
pub use haft_hook::{Agent, HookReply, refusal};
use haft_hook::{CallReport, HookCall, HookEvent, HookEventKind, HookVerdict};

use crate::config::hook::HookSettings;
use crate::environment_part::EnvironmentPart;
use crate::hook::arguments::{announced_forms, arguments, folder_of, input_of};
use crate::hook::folder::AgentFolder;
use crate::hook::folders::AgentFolders;
use crate::hook::key::SessionKey;
use crate::hook::located_call::{JailTerms, LocatedCall};
use crate::hook::location::Location;
use crate::hook::session::AnswerTerms;
use crate::hook::unjudged::UnjudgedCall;
use crate::problem::{Problem, ProblemKind};
use crate::session_group;
use crate::site::Site;

mod agent_process;
mod arguments;
pub mod client;
mod edited_files;
mod exec_line;
pub mod exec_session;
mod folder;
mod folders;
mod foreign;
mod jailed_call;
mod key;
mod located_call;
mod location;
mod open_call;
mod open_calls;
mod preapproval;
mod prompt;
mod reading;
mod readings;
mod run_notes;
mod session;
mod session_effects;
pub(crate) mod session_marks;
mod session_runs;
pub(crate) mod shell_state;
mod unfollowed;
mod unjudged;
pub mod wrap_setting;

/// The share of an agent's time limit that haft leaves for the answer's way back, and the maximum that it leaves.
const MARGIN: (u32, Duration) = (10, Duration::from_secs(10));

/// What a hook was started with.
#[derive(Debug, Clone, Copy)]
pub struct HookInvocation<'a> {
    /// The agent that the hook was installed for.
    pub agent: Agent,
    /// The event, as the agent wrote it.
    pub bytes: &'a [u8],
    /// The folder that the hook's process was started for.
    pub folder: Option<&'a Path>,
    /// The agent's process, as far as the hook's process can see it. It tells sessions apart where they have no names.
    pub process: Option<&'a str>,
    /// Whether the agent has no user whom it could ask.
    pub headless: bool,
    /// What the hook's process would give commands of its environment, as far as it was asked for that.
    pub environment: Option<&'a EnvironmentPart>,
}

/// The answer to an event.
#[derive(Debug)]
pub enum HookAnswer {
    /// The agent gets this.
    Reply(HookReply),
    /// The answer depends on these variables of the hook's process, which is to ask again with their [digests](EnvironmentPart).
    NeedsEnvironment(Vec<String>),
    /// The hook's process is to judge the call by itself: its environment gives commands something else, or this one's settings do not load.
    OtherEnvironment,
}

impl HookAnswer {
    /// Returns what the agent gets of a process that judges by itself.
    pub fn into_reply(self, agent: Agent) -> HookReply {
        match self {
            Self::Reply(reply) => reply,
            Self::NeedsEnvironment(_) | Self::OtherEnvironment => {
                haft_hook::refusal(agent, "the environment of the command is not known")
            }
        }
    }
}

/// Answers the hooks of one user's agents. Clones share the open folders and sessions.
#[derive(Debug, Clone)]
pub struct Hooks {
    folders: Arc<AgentFolders>,
    follows: bool,
}

/// Which event asks about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AskingEvent {
    /// A tool is about to run.
    BeforeTool,
    /// The agent is about to ask its user about a call that an earlier event has announced.
    BeforePrompt,
}

impl Hooks {
    /// The hooks of this user's agents, in whichever folders they work. `follows` is whether this process stays, so that it gets the
    /// events that say how calls ended.
    pub fn new(site: &Site, follows: bool) -> Self {
        Self {
            folders: Arc::new(AgentFolders::new(site)),
            follows,
        }
    }

    /// Returns the answer to an event. Whatever goes wrong denies the call and says why.
    pub async fn answer(&self, incoming: HookInvocation<'_>) -> HookAnswer {
        let event = match haft_hook::read(incoming.agent, incoming.bytes) {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(agent = incoming.agent.name(), %error, "read an event of a hook");
                return HookAnswer::Reply(haft_hook::refusal(incoming.agent, &error.to_string()));
            }
        };
        // Boxed: judging needs far more room than the other events.
        let judged = match &event.kind {
            HookEventKind::Before(call) => {
                let asks = AskingEvent::BeforeTool;
                Box::pin(self.judge(&event, call, &incoming, asks)).await
            }
            HookEventKind::Permission(call) => {
                let asks = AskingEvent::BeforePrompt;
                Box::pin(self.judge(&event, call, &incoming, asks)).await
            }
            HookEventKind::After(report) => {
                self.report(&event, report, &incoming);
                Ok(HookVerdict::NoOpinion)
            }
            HookEventKind::SessionEnd => {
                self.end(&key(&event, &incoming)).await;
                Ok(HookVerdict::NoOpinion)
            }
            _ => Ok(HookVerdict::NoOpinion),
        };
        let verdict = match judged {
            Ok(verdict) => verdict,
            Err(UnjudgedCall::Problem(problem)) => denial(&problem),
            Err(UnjudgedCall::NeedsEnvironment(names)) => {
                return HookAnswer::NeedsEnvironment(names);
            }
            Err(UnjudgedCall::OtherEnvironment) => return HookAnswer::OtherEnvironment,
        };
        HookAnswer::Reply(haft_hook::reply(&event, &verdict))
    }

    /// Whether agents work in no folder here.
    pub fn is_quiet(&self) -> bool {
        self.folders.is_empty()
    }

    /// Ends all sessions: their runs are finished, or suspended where a decision is pending.
    pub async fn shut_down(&self) {
        self.folders.shut_down().await;
    }

    /// Locates a call and judges it there.
    async fn judge(
        &self,
        event: &HookEvent,
        call: &HookCall,
        incoming: &HookInvocation<'_>,
        asks: AskingEvent,
    ) -> Result<HookVerdict, UnjudgedCall> {
        let located = self.locate(event, call, incoming).await?;
        let settings = located.folder.settings();
        let answer_within = time_for_answer(event.agent.limits().wait);
        let terms = AnswerTerms {
            by_agent: is_asked_by_agent(&settings, event, incoming.headless),
            again: asks == AskingEvent::BeforePrompt,
            within: answer_within.min(settings.wait),
            answer_within,
        };
        let jail = JailTerms {
            wraps: settings.wraps,
            is_own: !self.follows,
            environment: incoming.environment,
        };
        let verdict = Box::pin(located.judge(jail, terms)).await?;
        Ok(under_settings(&located.folder, verdict))
    }

    /// Finds the folder and the session that a call belongs to, and states its arguments as rules see them there.
    async fn locate<'e>(
        &self,
        event: &'e HookEvent,
        call: &'e HookCall,
        incoming: &HookInvocation<'_>,
    ) -> Result<LocatedCall<'e>, UnjudgedCall> {
        let location = Location::of(event, incoming.folder, &self.folders.site)?;
        let folder = match self.folders.open(&location.workspace).await {
            Ok(folder) => folder,
            // A variable that the settings refer to may be set for the agent alone.
            Err(problem) if self.follows && problem.kind() == ProblemKind::Settings => {
                tracing::warn!(%problem, "open the folder of an agent");
                return Err(UnjudgedCall::OtherEnvironment);
            }
            Err(problem) => return Err(problem.into()),
        };
        let session = folder.session(&key(event, incoming), self.follows).await?;
        let cwd = folder.within(&location.start)?;
        let arguments = arguments(input_of(call), folder_of(call, &cwd), &location.doubts)?;
        Ok(LocatedCall {
            event,
            call,
            location,
            folder,
            session,
            cwd,
            arguments,
        })
    }

    /// Passes on how a call ended, to the session that follows it.
    fn report(&self, event: &HookEvent, report: &CallReport, incoming: &HookInvocation<'_>) {
        let key = key(event, incoming);
        let location = Location::of(event, incoming.folder, &self.folders.site).ok();
        let first = location.as_ref().map(|location| &*location.workspace);
        let folders = self.folders.of_session(&key, first);
        let ended = folders
            .iter()
            .any(|folder| ends_call(folder, &key, report, location.as_ref()));
        if !ended {
            let (agent, tool) = (event.agent.name(), &report.tool);
            tracing::debug!(agent, tool, "an unknown call ended");
        }
    }

    async fn end(&self, key: &SessionKey) {
        for folder in self.folders.of_session(key, None) {
            folder.end(key).await;
        }
        let (home, name) = (self.folders.site.home.path(), key.name());
        if let Err(error) = session_group::end(home, &name) {
            tracing::warn!(%error, "end what a user allowed for an agent's session");
        }
        let log = ChangeLog::new(home);
        let forgotten = tokio::task::spawn_blocking(move || {
            CommandChanges::forget_additions(&log, &name);
        });
        // A server removes large caches in its own time. A hook's own process ends with the answer; if the agent ends it before,
        // the sweep removes the rest.
        if !self.follows {
            let _ = forgotten.await;
        }
    }
}

/// Passes a report to the session that this folder has, if any. False if no call there is the one that ended.
fn ends_call(
    folder: &AgentFolder,
    key: &SessionKey,
    report: &CallReport,
    location: Option<&Location>,
) -> bool {
    let Some(session) = folder.known(key) else {
        return false;
    };
    let forms = match (location, report.input.as_deref()) {
        (Some(location), Some(input)) => match folder.within(&location.start) {
            Ok(cwd) => announced_forms(input, &cwd, &location.doubts),
            Err(_) => Vec::new(),
        },
        _ => Vec::new(),
    };
    let mut forms = forms.iter().map(|form| Some(form.as_str())).chain([None]);
    forms.any(|form| session.report(form, report.clone()))
}

/// Whether the agent's own prompt asks the user, rather than haft's inbox.
fn is_asked_by_agent(settings: &HookSettings, event: &HookEvent, headless: bool) -> bool {
    let can_ask = event.agent.limits().can_ask;
    match settings.ask.as_str() {
        "agent" => can_ask,
        "haft" => false,
        _ => can_ask && !headless && event.headless != Some(true) && knows_its_user(event.agent),
    }
}

/// Whether the agent's prompt ends by itself where no user is there. Gemini CLI waits forever, and its event does not show it.
fn knows_its_user(agent: Agent) -> bool {
    agent != Agent::Gemini
}

fn key(event: &HookEvent, incoming: &HookInvocation<'_>) -> SessionKey {
    let process = incoming
        .process
        .filter(|name| event.session.is_empty() && agent_process::is_name(name));
    SessionKey {
        agent: event.agent,
        session: event.session.clone(),
        process: process.map(str::to_owned),
    }
}

/// How long the answer may take if the agent waits this long for it. An answer that is late decides nothing.
fn time_for_answer(wait: Duration) -> Duration {
    let (share, most) = MARGIN;
    wait.saturating_sub((wait / share).min(most))
}

/// Adds to the reason of a verdict that it follows the previous settings, if the changed ones do not load.
fn under_settings(folder: &AgentFolder, verdict: HookVerdict) -> HookVerdict {
    let Some(fault) = folder.app.settings_fault() else {
        return verdict;
    };
    let with_fault = |reason: &str| {
        format!(
            "{reason} (haft's changed settings do not load, so the old ones stay in force: {fault})"
        )
    };
    match verdict {
        HookVerdict::Ask { reason } => HookVerdict::Ask {
            reason: with_fault(&reason),
        },
        HookVerdict::Deny { reason } => HookVerdict::Deny {
            reason: with_fault(&reason),
        },
        other => other,
    }
}

/// The denial of a call that could not be judged.
fn denial(problem: &Problem) -> HookVerdict {
    let reason = match problem.advice() {
        Some(advice) => format!("{problem}; {advice}"),
        None => problem.to_string(),
    };
    HookVerdict::Deny { reason }
}
