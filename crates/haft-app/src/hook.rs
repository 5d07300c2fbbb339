//! Hooks of coding agents: what an agent says before and after it runs a tool of its own, judged, asked about and recorded like
//! every call. The agent runs the tool; here the call is one of a tool that ends when the agent says so.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::call::ToolCall;
use haft::permission::Verdict as ByName;
use haft_hook::{Action, Call, Event, Kind, Report, Verdict};
pub use haft_hook::{Agent, Reply, refusal};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::OnceCell;

use crate::hook::ahead::Asking;
use crate::hook::arguments::{arguments, folder_of, input_of};
use crate::hook::folder::Folder;
use crate::hook::key::Key;
use crate::hook::location::{Doubt, Location};
use crate::hook::open_call::Made;
use crate::hook::readings::{Readings, readings};
use crate::hook::session::Terms;
use crate::hook::settings::HookSettings;
use crate::hook::wrap::Wrapped;
use crate::own_program::own_program;
use crate::problem::Problem;
use crate::site::Site;

mod agent_process;
mod ahead;
mod arguments;
pub mod client;
mod folder;
mod foreign;
mod kept_run;
mod key;
mod location;
mod name;
mod open_call;
mod prompt;
mod readings;
mod session;
mod session_runs;
pub(crate) mod settings;
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
    /// The agent's process, as far as the hook's process can see it: its sessions are kept apart by it where they have no names.
    pub process: Option<&'a str>,
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
            Kind::SessionEnd => {
                self.end(&key(&event, &incoming)).await;
                Ok(Verdict::NoOpinion)
            }
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
        let at = Location::of(event, incoming.folder, &self.0.site)?;
        let slot = self.folder(&at.workspace).await?;
        let folder = opened(&slot)?;
        let settings = folder.settings();
        let within = within(event.agent.limits().wait).min(settings.wait);
        let by_agent = is_asked_by_agent(&settings, event, incoming.headless);
        let session = folder
            .session(&key(event, incoming), self.0.follows)
            .await?;
        let place = folder.within(&at.start)?;
        let input = arguments(input_of(call), folder_of(call, &place), &at.doubts)?;
        let policy = folder.app.executor().policy();
        let named = readings(event.agent, &call.tool, &call.actions, &policy)?;
        let by_name = session.verdict_by_name(&named.first, &call.tool, &input);
        let mut doubts = at.doubts.clone();
        let wraps = settings.wraps && doubts.is_empty() && by_name != ByName::Deny;
        let jailed = if wraps {
            Jailed::of(folder, &at, event, call)?
        } else {
            None
        };
        // Before its own prompt an agent takes no other input: there only what is wrapped already is.
        let jailed = jailed.filter(|jailed| !again || jailed.input.is_none());
        let begun = Instant::now();
        let named = match &jailed {
            Some(jailed) => {
                if let Some(reason) = jailed.refusal(folder, event, within).await? {
                    return Ok(under_settings(folder, Verdict::Deny { reason }));
                }
                // Rules that name the tool hold in the jail, too.
                doubts.extend((by_name == ByName::Ask).then(|| Doubt::Named(call.tool.clone())));
                // One line of a shell has one name.
                Readings::only(named.first.jailed()?)
            }
            None => named,
        };
        let made = Made {
            tool: &call.tool,
            arguments: &input,
            folder: &place,
            actions: &call.actions,
            doubts: &doubts,
            id: call.id.as_deref(),
        };
        let terms = Terms {
            // What its prompt asks about would run as it is.
            by_agent: by_agent && jailed.is_none(),
            again,
            within: within.saturating_sub(begun.elapsed()),
        };
        let verdict = session.judge(named, made, terms).await?;
        Ok(under_settings(folder, answered(verdict, jailed)))
    }

    /// Passes on how a call ended, to the session that follows it.
    fn report(&self, event: &Event, report: &Report, incoming: &Incoming<'_>) {
        let key = key(event, incoming);
        let at = Location::of(event, incoming.folder, &self.0.site).ok();
        let doubts = at.as_ref().map_or(&[][..], |at| &at.doubts);
        // As the call was announced: with what was not certain about it or without, in a folder or in none.
        let inputs = |folder: &Folder| -> Vec<String> {
            let within = at.as_ref().and_then(|at| folder.within(&at.start).ok());
            let (Some(within), Some(input)) = (within, report.input.as_deref()) else {
                return Vec::new();
            };
            let given = [
                (Some(&*within), doubts),
                (Some(&*within), &[]),
                (None, doubts),
                (None, &[]),
            ];
            let given = given.map(|(within, doubts)| arguments(input, within, doubts).ok());
            given.into_iter().flatten().collect()
        };
        let heard = |slot: &Slot| {
            let folder = slot.get()?;
            let session = folder.known(&key)?;
            let inputs = inputs(folder);
            let mut inputs = inputs.iter().map(|input| Some(&**input)).chain([None]);
            inputs
                .any(|input| session.report(input, report.clone()))
                .then_some(())
        };
        let follows = self.of_session(&key, at.as_ref());
        let follows = follows.iter().any(|slot| heard(slot).is_some());
        if !follows {
            let (agent, tool) = (event.agent.name(), &report.tool);
            tracing::debug!(agent, tool, "an unknown call ended");
        }
    }

    async fn end(&self, key: &Key) {
        for slot in self.of_session(key, None) {
            if let Some(folder) = slot.get() {
                folder.end(key).await;
            }
        }
    }

    /// The folders in which an agent's session is open: it may work in several. That of this place comes first.
    fn of_session(&self, key: &Key, at: Option<&Location>) -> Vec<Slot> {
        let folders = self.0.folders.lock();
        let is_open = |slot: &Slot| slot.get().is_some_and(|one| one.known(key).is_some());
        let open = folders.iter().filter(|(_, slot)| is_open(slot));
        let mut open: Vec<_> = open.collect();
        open.sort_by_key(|(path, _)| at.is_none_or(|at| at.workspace != **path));
        open.into_iter().map(|(_, slot)| Arc::clone(slot)).collect()
    }

    /// The place of the folder's application, which is built where there is none.
    async fn folder(&self, place: &Path) -> Result<Slot, Problem> {
        self.0.forget_idle();
        let slot = {
            let mut folders = self.0.folders.lock();
            if !folders.contains_key(place) && folders.len() >= MOST && !make_room(&mut folders) {
                let what = format!("calls in {MOST} folders wait for decisions already");
                return Err(Problem::failed(what).advise("decide some of them: `haft approvals`"));
            }
            Arc::clone(folders.entry(place.to_owned()).or_default())
        };
        let site = &self.0.site;
        let opened = slot.get_or_try_init(|| async { Folder::open(site, place) });
        if let Err(problem) = opened.await {
            // What could not be opened takes no place.
            let mut folders = self.0.folders.lock();
            if folders.get(place).is_some_and(|slot| slot.get().is_none()) {
                folders.remove(place);
            }
            return Err(problem);
        }
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
    ///
    /// # Errors
    /// haft's program is gone.
    fn of(
        folder: &Folder,
        at: &Location,
        event: &Event,
        call: &Call,
    ) -> Result<Option<Self>, Problem> {
        if only_line(call).is_none() {
            return Ok(None);
        }
        let program = own_program().and_then(|path| path.to_str().map(str::to_owned));
        let program = program.ok_or_else(|| {
            Problem::failed(
                "haft's program was removed while it ran, so no command can be run in the jail",
            )
            .advise("install haft again, and end the old server: haft console --stop")
        })?;
        let found = command_folder(folder, at, call)
            .and_then(|start| Wrapped::of(&folder.app, &program, call, &start));
        let Some(Wrapped { line, call }) = found else {
            return Ok(None);
        };
        let input = match line.map(|line| haft_hook::rewritten(event, &line)) {
            Some(None) => return Ok(None),
            Some(input) => input,
            None => None,
        };
        Ok(Some(Self { input, call }))
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
            shut(slot);
        }
    }
}

/// Ends the application of the folder that has been quiet for longest; false where calls wait in all of them.
fn make_room(folders: &mut HashMap<PathBuf, Slot>) -> bool {
    let quiet = folders
        .iter()
        .filter_map(|(path, slot)| Some((slot.get()?.quiet()?, path)));
    let longest = quiet.max_by_key(|(quiet, _)| *quiet);
    let longest = longest.map(|(_, path)| path.clone());
    let slot = longest.and_then(|path| folders.remove(&path));
    slot.map(shut).is_some()
}

/// Ends a folder's application, in time.
fn shut(slot: Slot) {
    tokio::spawn(async move {
        if let Some(folder) = slot.get() {
            folder.shut().await;
        }
    });
}

/// The folder below the workspace in which a call's command starts: its own, where it names one. None where that lies elsewhere or is not
/// known: `haft exec` works in the workspace alone.
fn command_folder(folder: &Folder, at: &Location, call: &Call) -> Option<String> {
    let own = call.actions.iter().find_map(|action| match action {
        Action::Command(command) => command.cwd.as_deref(),
        _ => None,
    });
    if own.is_some_and(|own| own.starts_with('~')) {
        return None;
    }
    let start = own.map_or_else(|| at.start.clone(), |own| at.start.join(own));
    let place = folder.within(&start).ok()?;
    (!place.starts_with('/') && !place.starts_with("..")).then_some(place)
}

/// Whether the agent's own prompt asks, and not haft's inbox.
fn is_asked_by_agent(settings: &HookSettings, event: &Event, headless: bool) -> bool {
    let can_ask = event.agent.limits().can_ask;
    match settings.ask.as_str() {
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

fn key(event: &Event, incoming: &Incoming<'_>) -> Key {
    let process = incoming
        .process
        .filter(|name| event.session.is_empty() && agent_process::is_name(name));
    Key {
        agent: event.agent,
        session: event.session.clone(),
        process: process.map(str::to_owned),
    }
}

/// How long an answer may take to an agent that waits so long: a hook that is late decides nothing.
fn within(wait: Duration) -> Duration {
    let (share, most) = LEFT;
    wait.saturating_sub((wait / share).min(most))
}

/// What is answered where this was decided, in time or not: a command that is wrapped runs in that form.
fn answered(verdict: Option<Verdict>, jailed: Option<Jailed>) -> Verdict {
    match verdict {
        Some(Verdict::Allow { input: None }) => Verdict::Allow {
            input: jailed.and_then(|jailed| jailed.input),
        },
        Some(other) => other,
        None => Verdict::Deny {
            reason: "nothing was decided about this call in time: it did not run. Make the same call again later".to_owned(),
        },
    }
}

/// A verdict, and whether the settings that it comes from are those that the files hold now.
fn under_settings(folder: &Folder, verdict: Verdict) -> Verdict {
    match folder.app.settings_fault() {
        Some(fault) => in_spite_of(verdict, &fault),
        None => verdict,
    }
}

/// Adds to the reason of a verdict that it follows the previous settings, because the changed ones do not load.
fn in_spite_of(verdict: Verdict, fault: &str) -> Verdict {
    let with = |reason: &str| {
        format!("{reason} (haft's changed settings do not load, so the old ones hold: {fault})")
    };
    match verdict {
        Verdict::Ask { reason } => Verdict::Ask {
            reason: with(&reason),
        },
        Verdict::Deny { reason } => Verdict::Deny {
            reason: with(&reason),
        },
        other => other,
    }
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
