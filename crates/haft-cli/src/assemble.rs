//! `House`: the parts wired from settings: policy, tools, sandbox, archive, artifacts, executor.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft::approval::inbox::{Filter, RequestStatus};
use haft::artifact::ArtifactStore;
use haft::audit::archive::Archive;
use haft::audit::index::RunIndex;
use haft::audit::redact::Redactor;
use haft::audit::{AuditSink, CallEnd, CallRecord, Event, RunStart, What};
use haft::call::{CallId, Origin, Principal, RunId, ToolCall};
use haft::clock;
use haft::error::ErrorKind;
use haft::executor::Executor;
use haft::journal::Journal;
use haft::memory::MemoryStore;
use haft::progress;
use haft::progress::hub::Hub;
use haft::result::{Outcome, Status};
use haft::session::{Absent, Limits, Patience, Session, SessionBuilder};
use haft::skill::set::SkillSet;
use haft::toolset::Toolset;
use haft::toolset::registry::ToolRegistry;
use haft_builtins::command::CommandNetwork;
use haft_builtins::skills::SkillTools;
use haft_chain::TOOL_CHAIN;
use haft_sandbox::Sandbox;
use haft_sandbox::code::CodeJail;

use crate::approvals::webhook::Webhook;
use crate::assemble::feed::Feed;
use crate::invocation::Invocation;
use crate::problem::Problem;
use crate::screen::{Screen, visible};
use crate::settings::Settings;

mod approvals;
pub(crate) mod chain;
mod discover;
pub(crate) mod feed;
pub(crate) mod follow;
mod memory;
mod network;
mod parts;
mod policy;
mod selection;
mod skills;
mod stores;
mod web;

pub(crate) use policy::written;

/// How long the calls of a run that is left may take to note that they wait.
const LEAVE: Duration = Duration::from_millis(500);

/// How long the calls of an ending run may take to end.
const SETTLE: Duration = Duration::from_secs(3);

/// Everything a command or a door needs; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct House(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    executor: Executor,
    /// What callers see: enabled and configured.
    tools: Arc<dyn Toolset>,
    /// Every tool there is, on or off.
    all: Arc<ToolRegistry>,
    limits: Limits,
    principal: Principal,
    workspace: String,
    profile: String,
    archive: Arc<Archive>,
    redactor: Redactor,
    index: Arc<dyn RunIndex>,
    memory: Arc<dyn MemoryStore>,
    artifacts: Arc<dyn ArtifactStore>,
    journal: Arc<dyn Journal>,
    skills: Arc<SkillSet>,
    skill_tools: Arc<SkillTools>,
    /// Tokens of a run's active skills, where settings say so.
    skill_tokens: Option<u64>,
    sandbox: Sandbox,
    network: CommandNetwork,
    code: CodeJail,
    /// What happens here, for whoever watches.
    feed: Arc<Feed>,
    /// What running tools print, for whoever watches.
    hub: Arc<Hub>,
    memory_told: String,
    /// Whether the inbox outlives the process.
    durable: bool,
    /// Who else hears of what is asked.
    webhook: Option<Webhook>,
    /// What becomes of a call that nobody decided about in time.
    on_timeout: Patience,
    /// The runs that are open here.
    live: Mutex<HashMap<RunId, Session>>,
    python: bool,
    progress: bool,
    pace: progress::Pace,
    screen: Screen,
}

/// By which door a run is opened.
#[derive(Debug)]
pub(crate) struct Door {
    /// Its name in the record.
    pub(crate) name: &'static str,
    /// For whom, where the door has checked that.
    pub(crate) principal: Option<Principal>,
    /// Who shows progress.
    pub(crate) progress: Option<Arc<dyn progress::ProgressSink>>,
    /// Whether its calls wait for people.
    pub(crate) waits: Waits,
}

/// Whether the calls of a run wait for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Waits {
    /// As long as settings say.
    #[default]
    Limit,
    /// For so long.
    For(Duration),
    /// Not at all: nobody is at the terminal.
    Never,
}

/// A tool that is only switched off is told so.
#[derive(Debug)]
struct SwitchedOff {
    all: Arc<ToolRegistry>,
    /// Whether there is an interpreter for scripts.
    python: bool,
}

impl Absent for SwitchedOff {
    fn advice(&self, name: &str) -> Option<String> {
        let script = self.python && name == TOOL_CHAIN;
        if self.all.snapshot().entry(name).is_none() && !script {
            let unconfigured = selection::unconfigured(name).map(str::to_owned);
            return unconfigured.or_else(|| memory::absent(name));
        }
        Some(selection::how_to_enable(name))
    }
}

fn not_begun(why: impl std::fmt::Display) -> Problem {
    Problem::failed(format!("begin the run: {why}"))
        .advise("`haft doctor` says what is wrong with the state folder")
}

impl House {
    /// Wires the parts. `asks` is whether a person may be asked at this process's terminal.
    pub(crate) fn build(at: &Invocation, settings: &Settings, asks: bool) -> Result<Self, Problem> {
        at.home.create()?;
        let sandbox = parts::sandbox(settings)?;
        let policy = Arc::new(policy::build(at, settings)?);
        let archive = Archive::new(at.home.path(), Redactor::new(&settings.secrets.values));
        let archive = Arc::new(archive.map_err(|e| Problem::failed(e.to_string()))?);
        let stores = stores::stores(at, settings)?;
        let memory = memory::build(at, settings, &archive, &stores)?;
        let skills = Arc::new(skills::set(at, settings));
        let network = network::network(at, settings)?;
        let confined = (&sandbox, &network);
        let all = parts::standard(at, settings, &policy, confined, (&skills, memory))?;
        let on = parts::on(&all, settings)?;
        let skill_tools = skills::tools(at, settings, &skills, &on)?;
        let artifacts = parts::artifacts(at, settings)?;
        let journal = stores.journal;
        let code = chain::jail(settings, &sandbox)?;
        let tools = parts::view(&all, &on, &skill_tools, (settings, &policy))?;
        let tools = parts::with_chain(at, (settings, &policy), tools, &on, (&code, &journal))?;
        let feed = Feed::new();
        let kept = (&artifacts, &archive, &feed);
        let parts = (policy, kept, stores.inbox);
        let (executor, asked) = approvals::executor(at, settings, asks, parts)?;
        let durable = asked.durable;
        Ok(Self(Arc::new(Parts {
            executor,
            tools,
            all: all.registry,
            limits: parts::limits(settings)?,
            principal: parts::principal(&at.environment),
            workspace: at.workspace.display().to_string(),
            profile: settings
                .text("policy.profile")
                .unwrap_or_default()
                .to_owned(),
            archive,
            redactor: Redactor::new(&settings.secrets.values),
            index: stores.index,
            memory: stores.memory,
            artifacts,
            journal,
            skills,
            skill_tools,
            skill_tokens: settings.whole("skills.max_tokens"),
            sandbox,
            network,
            code,
            feed,
            hub: Hub::new(parts::pace(settings)),
            memory_told: memory::told(settings),
            durable,
            webhook: asked.webhook,
            on_timeout: approvals::on_timeout(settings, durable),
            live: Mutex::default(),
            python: chain::has_python(&at.environment),
            progress: settings.flag("progress.enabled").unwrap_or(true),
            pace: parts::pace(settings),
            screen: at.screen,
        })))
    }

    /// The tools callers see.
    pub(crate) fn tools(&self) -> &Arc<dyn Toolset> {
        &self.0.tools
    }

    /// Every tool, on or off.
    pub(crate) fn all(&self) -> &Arc<ToolRegistry> {
        &self.0.all
    }

    /// The executor, for what is not a call.
    pub(crate) fn executor(&self) -> &Executor {
        &self.0.executor
    }

    /// Where large results are.
    pub(crate) fn artifacts(&self) -> &Arc<dyn ArtifactStore> {
        &self.0.artifacts
    }

    /// The skills of workspace, settings and user; looked for when they are wanted.
    pub(crate) fn skills(&self) -> &Arc<SkillSet> {
        &self.0.skills
    }

    /// The tools over skills, live.
    pub(crate) fn skill_tools(&self) -> &Arc<SkillTools> {
        &self.0.skill_tools
    }

    /// What chains did, for those that were interrupted.
    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.0.journal
    }

    /// The run index.
    pub(crate) fn index(&self) -> &Arc<dyn RunIndex> {
        &self.0.index
    }

    /// What happens here, for whoever watches.
    pub(crate) fn feed(&self) -> &Feed {
        &self.0.feed
    }

    /// What running tools print, for whoever watches.
    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.0.hub
    }

    /// The sink of a served session's live output; none where settings switch it off.
    pub(crate) fn watched(&self) -> Option<Arc<dyn progress::ProgressSink>> {
        let hub = Arc::clone(&self.0.hub);
        self.0.progress.then_some(hub as _)
    }

    /// How live output is gathered.
    pub(crate) fn pace(&self) -> progress::Pace {
        self.0.pace
    }

    /// Tells the person at the terminal what went wrong beside what they asked for.
    pub(crate) fn warn(&self, text: &str) {
        self.0.screen.warn(&visible::line(text));
    }

    /// Who else hears of what is asked.
    pub(crate) fn webhook(&self) -> Option<&Webhook> {
        self.0.webhook.as_ref()
    }

    /// How memory is kept, in words.
    pub(crate) fn memory_told(&self) -> &str {
        &self.0.memory_told
    }

    /// What hides secrets from whoever reads.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.0.redactor
    }

    /// What is remembered across runs.
    pub(crate) fn memory(&self) -> &Arc<dyn MemoryStore> {
        &self.0.memory
    }

    /// haft's state folder.
    pub(crate) fn home(&self) -> &Path {
        self.0.archive.home()
    }

    /// For whom calls are made here.
    pub(crate) fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// What confines commands.
    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.0.sandbox
    }

    /// What commands reach.
    pub(crate) fn network(&self) -> &CommandNetwork {
        &self.0.network
    }

    /// Where scripts get their interpreters from.
    pub(crate) fn code(&self) -> &CodeJail {
        &self.0.code
    }

    /// Whether running tools show their output live.
    pub(crate) fn shows_progress(&self) -> bool {
        self.0.progress
    }

    /// What switches a tool on that is off; `None` for one that does not exist.
    pub(crate) fn how_to_enable(&self, name: &str) -> Option<String> {
        self.switched_off().advice(name)
    }

    /// The workspace's root.
    pub(crate) fn workspace(&self) -> &str {
        &self.0.workspace
    }

    /// The profile's name.
    pub(crate) fn profile(&self) -> &str {
        &self.0.profile
    }

    /// Begins a run: its record and its line in the index.
    pub(crate) async fn open(&self, door: Door) -> Result<Session, Problem> {
        let parts = &self.0;
        let name = door.name;
        let built = self.session(door).build();
        let session = built.map_err(|e| Problem::settings(e.to_string()))?;
        let start = RunStart {
            principal: session.principal().clone(),
            door: name.to_owned(),
            workspace: Some(parts.workspace.clone()),
            profile: parts.profile.clone(),
        };
        self.record_opening(&session).await?;
        self.note_live(&session);
        let indexed = parts.index.open(session.run(), &start, clock::now()).await;
        indexed.map_err(not_begun)?;
        Ok(session)
    }

    /// Begins the record of a run here that another machine began.
    pub(crate) async fn open_as(&self, door: Door, run: RunId) -> Result<Session, Problem> {
        let built = self.session(door).with_run(run).build();
        let session = built.map_err(|e| Problem::settings(e.to_string()))?;
        self.record_opening(&session).await?;
        self.note_live(&session);
        Ok(session)
    }

    /// Goes on with a run that another process began and did not end. `calls` is the highest number its calls had.
    pub(crate) async fn reopen(
        &self,
        door: Door,
        run: RunId,
        calls: u64,
    ) -> Result<Session, Problem> {
        let built = self.session(door).resuming(run, calls).build();
        let session = built.map_err(|e| Problem::settings(e.to_string()))?;
        self.record_opening(&session).await?;
        self.note_live(&session);
        let working = self.0.index.progress(session.run(), calls, false).await;
        if let Err(error) = working {
            tracing::warn!(run = %session.run(), %error, "note that a run goes on");
        }
        Ok(session)
    }

    fn switched_off(&self) -> SwitchedOff {
        SwitchedOff {
            all: Arc::clone(&self.0.all),
            python: self.0.python,
        }
    }

    fn session(&self, door: Door) -> SessionBuilder {
        let parts = &self.0;
        let mut limits = parts.limits.clone();
        let patience = match door.waits {
            Waits::Never if parts.durable => Patience::SuspendAtOnce,
            Waits::For(limit) => {
                limits.approval_timeout = limit;
                parts.on_timeout
            }
            Waits::Limit | Waits::Never => parts.on_timeout,
        };
        let mut builder = Session::builder(Arc::clone(&parts.tools))
            .with_patience(patience)
            .with_principal(door.principal.unwrap_or_else(|| parts.principal.clone()))
            .with_door(door.name)
            .with_workspace(&parts.workspace)
            .with_limits(limits)
            .with_pace(parts.pace)
            .with_absent(Arc::new(self.switched_off()));
        if let Some(tokens) = parts.skill_tokens {
            builder = builder.with_skill_tokens(usize::try_from(tokens).unwrap_or(usize::MAX));
        }
        if let Some(sink) = door.progress {
            builder = builder.with_progress(sink);
        }
        builder
    }

    /// The record's first line is safe before anybody else knows of the run.
    async fn record_opening(&self, session: &Session) -> Result<(), Problem> {
        let opened = self.0.executor.open(session);
        opened.map_err(not_begun)?;
        let begun = self.0.archive.flush().await;
        begun.map_err(not_begun)
    }

    /// One call through the executor.
    pub(crate) async fn call(&self, session: &Session, call: ToolCall) -> Outcome {
        self.0.executor.execute(session, call).await
    }

    /// A run that is open here.
    pub(crate) fn live(&self, run: &RunId) -> Option<Session> {
        self.lock_live().get(run).cloned()
    }

    /// Every run that is open here.
    pub(crate) fn all_live(&self) -> Vec<Session> {
        self.lock_live().values().cloned().collect()
    }

    fn note_live(&self, session: &Session) {
        self.lock_live()
            .insert(session.run().clone(), session.clone());
    }

    /// The runs that are open here.
    fn lock_live(&self) -> MutexGuard<'_, HashMap<RunId, Session>> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends this process's part in a run: what waits for a person goes on waiting, and the run with it; any other run is
    /// ended for good.
    pub(crate) async fn close(&self, session: &Session) {
        self.lock_live().remove(session.run());
        if session.has_asked() && self.leave(session).await {
            return;
        }
        self.end(session).await;
    }

    /// Leaves a run that waits for people; false where it waits for nobody.
    async fn leave(&self, session: &Session) -> bool {
        let parts = &self.0;
        session.leave();
        // Waits end at once; a call that runs has its own time.
        let _ = tokio::time::timeout(LEAVE, session.idle()).await;
        let waiting = Filter {
            tenant: parts.principal.tenant.to_string(),
            status: vec![RequestStatus::Pending, RequestStatus::Approved],
            run: Some(session.run().clone()),
            limit: 1,
            ..Filter::default()
        };
        let waiting = parts.executor.inbox().list(&waiting).await;
        let none = waiting.as_ref().is_ok_and(Vec::is_empty);
        if none || !parts.durable {
            return false;
        }
        if !parts.executor.leave(session) {
            return true;
        }
        let _ = tokio::time::timeout(SETTLE, session.idle()).await;
        let left = parts.archive.leave(session.run()).await;
        let noted = match left {
            Ok(()) => {
                let noted = parts
                    .index
                    .progress(session.run(), session.calls(), true)
                    .await;
                noted.map_err(|e| e.to_string())
            }
            Err(e) => Err(e.to_string()),
        };
        if let Err(e) = noted {
            tracing::warn!(run = %session.run(), error = %e, "note that a run waits");
        }
        parts.feed.suspended(session.run());
        true
    }

    /// Ends a run: cancels what runs, seals its record, notes that in the index.
    async fn end(&self, session: &Session) {
        let parts = &self.0;
        let ended = parts.executor.close(session);
        // A cancelled call ends at once unless it hangs where nothing can reach it; then it stays in doubt.
        if tokio::time::timeout(SETTLE, session.settled())
            .await
            .is_err()
        {
            tracing::warn!(run = %session.run(), "a call did not end");
        }
        let closed = parts.archive.close(session.run()).await;
        let noted = match (ended, closed) {
            (Ok(()), Ok(closed)) => {
                let noted = parts
                    .index
                    .close(session.run(), &closed, clock::now())
                    .await;
                noted.map_err(|e| e.to_string())
            }
            (Err(e), _) | (_, Err(e)) => Err(e.to_string()),
        };
        if let Err(e) = noted {
            parts.screen.warn(&format!(
                "the record of run {} stays open: {e}",
                session.run()
            ));
        }
    }

    /// Waits until all that has happened can be read.
    pub(crate) async fn flush(&self) -> Result<(), Problem> {
        let flushed = self.0.archive.flush().await;
        flushed.map_err(|e| Problem::failed(e.to_string()))
    }

    /// Writes what waits; nothing is recorded after.
    pub(crate) async fn shut(&self) {
        self.0.code.shut().await;
        let archive = Arc::clone(&self.0.archive);
        if tokio::task::spawn_blocking(move || archive.shut())
            .await
            .is_err()
        {
            self.0.screen.warn("the archive's writer broke off");
        }
    }

    /// Leaves a line about a message that was refused before it was a call.
    pub(crate) fn record_refusal(&self, session: &Session, number: u64, reason: &str) {
        let record = CallRecord {
            call: CallId::new(format!("refused-{number}")),
            parent: None,
            tool: String::new(),
            origin: Origin::Mcp,
            principal: session.principal().clone(),
            arguments: Arc::from(""),
            coerced: Vec::new(),
            verdict: None,
            rule: None,
            decided_by: None,
            approval: None,
        };
        let end = CallEnd {
            status: Status::Error,
            error: Some((ErrorKind::InvalidArguments, reason.to_owned())),
            duration: Duration::ZERO,
            artifacts: Vec::new(),
            summary: "message refused".to_owned(),
            strength: None,
        };
        let event = Event {
            run: session.run().clone(),
            at: clock::now(),
            what: What::CallEnded(Arc::new(record), end),
        };
        if let Err(e) = self.0.archive.record(event) {
            tracing::warn!(error = %e, "record a refused message");
        }
    }
}
