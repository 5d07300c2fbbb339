//! Hooks of coding agents: what an agent says before and after it runs a tool of its own, judged, asked about and recorded like
//! every call. The agent runs the tool; here the call is one of a tool that ends when the agent says so.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::call::ToolCall;
use haft_hook::{Action, Call, Event, Kind, Report, Verdict};
pub use haft_hook::{Agent, Reply, refusal};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::OnceCell;

use crate::app::App;
use crate::hook::ahead::Asking;
use crate::hook::arguments::arguments;
use crate::hook::folder::{Folder, place};
use crate::hook::key::Key;
use crate::hook::name::Named;
use crate::hook::open_call::Made;
use crate::hook::session::Terms;
use crate::hook::wrap::Wrapped;
use crate::problem::Problem;
use crate::site::Site;

mod ahead;
mod arguments;
pub mod client;
mod folder;
mod foreign;
mod kept_run;
mod key;
mod name;
mod open_call;
mod prompt;
mod session;
mod wrap;

/// Most folders in which agents work at a time.
const MOST: usize = 64;
/// How long a folder's application stays without a session.
const IDLE: Duration = Duration::from_secs(60 * 60);
/// The share of an agent's time limit that is left to it, and the most that is.
const LEFT: (u32, Duration) = (10, Duration::from_secs(10));

/// What a hook was started with.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// The agent that it was installed for.
    pub agent: Agent,
    /// What the agent wrote to it.
    pub bytes: &'a [u8],
    /// The folder that the hook's process was started for.
    pub folder: Option<&'a Path>,
    /// No user is there to be asked by the agent.
    pub headless: bool,
}

/// Answers the hooks of agents. Clones share what is open.
#[derive(Debug, Clone)]
pub struct Hooks(Arc<Parts>);

type Slot = Arc<OnceCell<Folder>>;

#[derive(Debug)]
struct Parts {
    site: Site,
    /// Whether later events of a session come here, too.
    follows: bool,
    folders: Mutex<HashMap<PathBuf, Slot>>,
}

impl Hooks {
    /// Those of this user's agents, whichever folders they work in. `follows` is whether this process lives on, so that it hears
    /// how calls end.
    pub fn new(site: &Site, follows: bool) -> Self {
        Self(Arc::new(Parts {
            site: site.clone(),
            follows,
            folders: Mutex::default(),
        }))
    }

    /// What the agent is answered. Whatever goes wrong denies the call and says why.
    pub async fn answer(&self, incoming: Incoming<'_>) -> Reply {
        let event = match haft_hook::read(incoming.agent, incoming.bytes) {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(agent = incoming.agent.name(), %error, "read an event of a hook");
                return haft_hook::refusal(incoming.agent, &error.to_string());
            }
        };
        let verdict = match &event.kind {
            Kind::Before(call) => self.judge(&event, call, &incoming, false).await,
            Kind::Permission(call) => self.judge(&event, call, &incoming, true).await,
            Kind::After(report) => {
                self.report(&event, report, &incoming);
                Ok(Verdict::NoOpinion)
            }
            Kind::SessionEnd => self.end(&event, &incoming).await,
            _ => Ok(Verdict::NoOpinion),
        };
        let verdict = verdict.unwrap_or_else(|problem| Verdict::Deny {
            reason: in_words(&problem),
        });
        haft_hook::reply(&event, &verdict)
    }

    /// Whether agents work in no folder here.
    pub fn is_quiet(&self) -> bool {
        self.0.forget_idle();
        self.0.folders.lock().is_empty()
    }

    /// Ends all sessions: their runs are finished, or suspended where a person is still to decide.
    pub async fn shut(&self) {
        let all = std::mem::take(&mut *self.0.folders.lock());
        for folder in all.into_values() {
            if let Some(folder) = folder.get() {
                folder.shut().await;
            }
        }
    }

    async fn judge(
        &self,
        event: &Event,
        call: &Call,
        incoming: &Incoming<'_>,
        again: bool,
    ) -> Result<Verdict, Problem> {
        let slot = self.folder(event, incoming).await?;
        let folder = opened(&slot)?;
        let limits = event.agent.limits();
        let within = within(limits.wait).min(folder.hook.wait);
        let by_agent = is_asked_by_agent(folder, event, incoming.headless);
        let session = folder.session(&key(event), within, self.0.follows).await?;
        let place = folder.within(event.cwd.as_deref())?;
        let input = arguments(&call.input, &place)?;
        let named = Named::new(event.agent, &call.tool, &call.actions)?;
        // `haft exec` works in the workspace alone.
        let inside = !place.starts_with('/') && !place.starts_with("..");
        let wrapped = folder.hook.wraps && inside;
        let jailed = wrapped.then(|| Jailed::of(&folder.app, event, call, &place));
        // Before its own prompt an agent takes no other input: there only what is wrapped already is.
        let jailed = jailed
            .flatten()
            .filter(|jailed| !again || jailed.input.is_none());
        let begun = Instant::now();
        let named = match &jailed {
            Some(jailed) => {
                if let Some(reason) = jailed.refusal(folder, event, within).await? {
                    return Ok(Verdict::Deny { reason });
                }
                named.jailed()?
            }
            None => named,
        };
        let made = Made {
            tool: &call.tool,
            arguments: &input,
            folder: &place,
            actions: &call.actions,
            id: call.id.as_deref(),
        };
        let terms = Terms {
            // What its prompt asks about would run as it is.
            by_agent: by_agent && jailed.is_none(),
            again,
            within: within.saturating_sub(begun.elapsed()),
        };
        let verdict = session.judge(named, made, terms).await?;
        let verdict = verdict.unwrap_or_else(|| Verdict::Deny {
            reason: "nothing was decided about this call in time: it did not run. Make the same call again later".to_owned(),
        });
        Ok(match verdict {
            Verdict::Allow { input: None } => Verdict::Allow {
                input: jailed.and_then(|jailed| jailed.input),
            },
            other => other,
        })
    }

    /// Passes on how a call ended, to the session that follows it.
    fn report(&self, event: &Event, report: &Report, incoming: &Incoming<'_>) {
        let slot = self.known(event, incoming);
        let folder = slot.as_ref().and_then(|slot| slot.get());
        let session = folder.and_then(|folder| Some((folder, folder.known(&key(event))?)));
        let Some((folder, session)) = session else {
            return;
        };
        let input = report.input.as_deref();
        let input = input.and_then(|input| {
            let within = folder.within(event.cwd.as_deref()).ok()?;
            arguments(input, &within).ok()
        });
        if !session.report(input.as_deref(), report.clone()) {
            let (agent, tool) = (event.agent.name(), &report.tool);
            tracing::debug!(agent, tool, "an unknown call ended");
        }
    }

    async fn end(&self, event: &Event, incoming: &Incoming<'_>) -> Result<Verdict, Problem> {
        if let Some(folder) = self
            .known(event, incoming)
            .as_ref()
            .and_then(|slot| slot.get())
        {
            folder.end(&key(event)).await;
        }
        Ok(Verdict::NoOpinion)
    }

    fn place(&self, event: &Event, incoming: &Incoming<'_>) -> Result<PathBuf, Problem> {
        let home = self.0.site.environment.folder("HOME");
        place(event, incoming.folder, home.as_deref()).ok_or_else(|| {
            let what = "the agent names no folder that is there, so the call cannot be judged";
            Problem::failed(what).advise("start the agent in a folder that exists")
        })
    }

    fn known(&self, event: &Event, incoming: &Incoming<'_>) -> Option<Slot> {
        let place = self.place(event, incoming).ok()?;
        self.0.folders.lock().get(&place).cloned()
    }

    /// The place of the folder's application, which is built where there is none.
    async fn folder(&self, event: &Event, incoming: &Incoming<'_>) -> Result<Slot, Problem> {
        let place = self.place(event, incoming)?;
        self.0.forget_idle();
        let slot = {
            let mut folders = self.0.folders.lock();
            if !folders.contains_key(&place) && folders.len() >= MOST {
                let what = format!("agents work in {MOST} folders at a time already");
                return Err(Problem::failed(what).advise("end some of their sessions"));
            }
            Arc::clone(folders.entry(place.clone()).or_default())
        };
        let site = &self.0.site;
        slot.get_or_try_init(|| async { Folder::open(site, &place) })
            .await?;
        Ok(slot)
    }
}

/// A call whose command haft runs in the jail.
struct Jailed {
    /// The input that the agent is to use instead of its own.
    input: Option<Box<RawValue>>,
    /// The call that `haft exec` makes.
    call: ToolCall,
}

impl Jailed {
    /// The wrapped form of a call, where it has one that the agent takes.
    fn of(app: &App, event: &Event, call: &Call, place: &str) -> Option<Self> {
        let Wrapped { line, call } = Wrapped::of(app, call, place)?;
        let input = match line {
            Some(line) => Some(haft_hook::rewritten(event, &line)?),
            None => None,
        };
        Some(Self { input, call })
    }

    /// Why the agent must not run it; none where it may.
    async fn refusal(
        &self,
        folder: &Folder,
        event: &Event,
        within: Duration,
    ) -> Result<Option<String>, Problem> {
        let client = event.agent.title();
        ahead::refusal(&folder.app, self.call.clone(), Asking { client, within }).await
    }
}

impl Parts {
    /// Ends the applications of folders in which no agent has worked for long.
    fn forget_idle(&self) {
        let mut folders = self.folders.lock();
        let is_old = |slot: &Slot| {
            let idle = slot.get().and_then(Folder::idle);
            idle.is_some_and(|idle| idle > IDLE)
        };
        for (_, slot) in folders.extract_if(|_, slot| is_old(slot)) {
            tokio::spawn(async move {
                if let Some(folder) = slot.get() {
                    folder.shut().await;
                }
            });
        }
    }
}

/// Whether the agent's own prompt asks, and not haft's inbox.
fn is_asked_by_agent(folder: &Folder, event: &Event, headless: bool) -> bool {
    let can_ask = event.agent.limits().can_ask;
    match folder.hook.ask.as_str() {
        "agent" => can_ask,
        "haft" => false,
        _ => can_ask && !headless && event.headless != Some(true) && knows_its_user(event.agent),
    }
}

/// Whether the agent's prompt ends by itself where no user is there. Gemini CLI waits for ever then, and nothing of its event tells.
fn knows_its_user(agent: Agent) -> bool {
    agent != Agent::Gemini
}

fn opened(slot: &Slot) -> Result<&Folder, Problem> {
    slot.get()
        .ok_or_else(|| Problem::failed("the application of the folder is gone"))
}

fn key(event: &Event) -> Key {
    Key {
        agent: event.agent,
        session: event.session.clone(),
    }
}

/// How long an answer may take to an agent that waits so long: a hook that is late decides nothing.
fn within(wait: Duration) -> Duration {
    let (share, most) = LEFT;
    wait.saturating_sub((wait / share).min(most))
}

fn in_words(problem: &Problem) -> String {
    match problem.advice() {
        Some(advice) => format!("{problem}; {advice}"),
        None => problem.to_string(),
    }
}

/// Whether the call is one command line and nothing else.
fn only_line(call: &Call) -> Option<&str> {
    match call.actions.as_slice() {
        [Action::Command(command)] if command.why_unknown.is_none() => command.line.as_deref(),
        _ => None,
    }
}
