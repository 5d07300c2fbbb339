//! Starts, resumes, suspends and finishes runs, for every entry point.
//!
//! ```text
//! prepare ──► prepared ──start──► running ──finish──► finished
//!                                  ▲   │
//!                            resume│   │suspend     requests are pending, a call can be resumed,
//!                                  │   ▼            or calls of a conversation have no answer
//!     a process that died ──► suspended or interrupted
//! ```
//!
//! A [`RunHandle`] is held by an MCP session, an API slot, a command or an embedding program. Releasing it (or dropping it) suspends or
//! finishes the run, once; [`suspend`](RunHandle::suspend) and [`finish`](RunHandle::finish) choose one and report errors.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft::CancellationToken;
use haft::approval::Approver;
use haft::audit::archive::Archive;
use haft::audit::index::{RunEntry, RunIndex, RunNotes};
use haft::audit::runs::Holder;
use haft::audit::{RunStart, runs};
use haft::bounds::CallerClass;
use haft::budget::EffectCounts;
use haft::call::{Principal, RunId, ToolCall};
use haft::clock;
use haft::executor::Executor;
use haft::input::CallInput;
use haft::policy::RunProperties;
use haft::progress::{Pace, ProgressSink};
use haft::result::Outcome;
use haft::session::{RunGroup, RunLimits, Session, SessionBuilder, UnknownToolHint, WaitMode};
use haft::shell_report::ShellReport;
use haft::toolset::Toolset;
use haft::toolset::view::ToolsetExt as _;
use haft::untrusted::UntrustedSource;
use parking_lot::{Mutex, RwLock};
use tokio::task::JoinSet;

use crate::conversation_file;
use crate::feed::AuditFeed;
use crate::notices::Notices;
use crate::problem::Problem;
use crate::provenance::FileLabels;
use crate::record_log::RecordLog;
use crate::run::ending::{ReleaseMode, end, release};
use crate::run::live::{HeldRun, LiveRuns};
use crate::run::phase::{PhaseEvent, RunPhase};
use crate::run::refusal::{busy, not_started, over, principal_of};
use crate::run::tally::Tally;

mod approval_wait;
mod change_count;
pub(crate) mod continued;
pub(crate) mod ending;
mod group;
mod limits;
pub(crate) mod live;
mod narrowed;
mod session;
pub mod selection;
pub mod verify;
pub(crate) mod phase;
pub(crate) mod refusal;
pub(crate) mod tally;

pub use approval_wait::ApprovalWait;

/// The options with which a run is started or resumed.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The entry point, as recorded: `call`, `mcp http`, …
    pub entry: &'static str,
    /// The principal, if the entry point has authenticated one; otherwise the user of this process.
    pub principal: Option<Principal>,
    /// The class whose share of bounded resources it uses.
    pub class: CallerClass,
    /// The client's own name, if it gave one: displayed, never trusted.
    pub client: Option<String>,
    /// Input that the client pipes into the command that it runs.
    pub input: Option<Arc<CallInput>>,
    /// Where the shell of its command line reports what it holds in the end.
    pub shell_report: Option<Arc<ShellReport>>,
    /// The runs that it belongs to, if it is one of several.
    pub group: Option<Arc<RunGroup>>,
    /// Whether the client stays with a command in the background until that ends: then its call has no time limit but the longest life of
    /// such a command.
    pub attends: bool,
    /// The sink that displays progress.
    pub progress: Option<Arc<dyn ProgressSink>>,
    /// How long its calls wait for decisions.
    pub wait: ApprovalWait,
    /// The only tools of the run; `None` for those of the application.
    pub tools: Option<Arc<dyn Toolset>>,
    /// The application's tools as served to its client, if that is a different list of the same tools.
    pub served: Option<Arc<dyn Toolset>>,
    /// A token that ends the run, as [`Session::cancel`] does.
    pub cancellation: Option<CancellationToken>,
    /// The finished run that this one continues: it has that run's tools, and what that run read and used of the budgets counts here, too.
    pub continues: Option<RunId>,
    /// Whether another program runs its tools, in which case their total time is not limited here.
    pub is_foreign: bool,
    /// Whether a user works in its one call at a terminal, and ends it: it may take as long as a background command.
    pub on_terminal: bool,
}

impl RunOptions {
    /// Returns the options of a run of the operator, whose calls wait for decisions as long as the settings say, without progress.
    pub fn new(entry: &'static str) -> Self {
        Self {
            entry,
            principal: None,
            class: CallerClass::Operator,
            client: None,
            input: None,
            shell_report: None,
            group: None,
            attends: false,
            progress: None,
            wait: ApprovalWait::Limit,
            tools: None,
            served: None,
            cancellation: None,
            continues: None,
            is_foreign: false,
            on_terminal: false,
        }
    }

    /// Returns whether the run is for a single call.
    fn is_for_one_call(&self) -> bool {
        matches!(self.entry, "call" | "chain")
    }
}

/// Terms of one call that differ from those of its run.
#[derive(Debug, Default)]
pub(crate) struct CallOptions {
    /// How long the call waits for a decision.
    pub(crate) wait: Option<Duration>,
    /// Another approver to ask.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    /// The earlier run that asked about the same call, whose decision holds.
    pub(crate) asked_in: Option<RunId>,
}

/// The components that runs need.
#[derive(Debug)]
pub(crate) struct RunParts {
    pub(crate) executor: Executor,
    /// The tools that callers see.
    pub(crate) tools: Arc<dyn Toolset>,
    pub(crate) archive: Arc<Archive>,
    pub(crate) index: Arc<dyn RunIndex>,
    pub(crate) live: Arc<LiveRuns>,
    pub(crate) feed: Arc<AuditFeed>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) notices: Notices,
    /// The log of finished runs.
    pub(crate) log: Option<RecordLog>,
    /// Explains why a tool is unavailable.
    pub(crate) absent: Arc<dyn UnknownToolHint>,
    /// Which files marked runs wrote.
    pub(crate) files: Arc<FileLabels>,
    pub(crate) terms: RwLock<Arc<RunSettings>>,
}

impl RunParts {
    /// Returns the current settings for every run.
    pub(crate) fn terms(&self) -> Arc<RunSettings> {
        Arc::clone(&self.terms.read())
    }
}

/// The settings that apply to every run.
#[derive(Debug, Clone)]
pub(crate) struct RunSettings {
    pub(crate) principal: Principal,
    pub(crate) workspace: String,
    pub(crate) profile: String,
    pub(crate) limits: RunLimits,
    pub(crate) pace: Pace,
    /// Maximum number of tokens of a run's active skills.
    pub(crate) skill_tokens: usize,
    /// How long marks of a client are kept; zero if only within a run.
    pub(crate) keep_marks: Duration,
    /// Whether the inbox outlives the process.
    pub(crate) durable: bool,
    /// What happens to a call that is not decided in time.
    pub(crate) on_timeout: WaitMode,
}

/// The runs of an application. Clones share them.
#[derive(Debug, Clone)]
pub struct Runs {
    parts: Arc<RunParts>,
    /// Tasks that suspend or finish runs whose handles were dropped.
    releasing: Arc<Mutex<JoinSet<()>>>,
}

impl Runs {
    pub(crate) fn new(parts: RunParts) -> Self {
        Self {
            parts: Arc::new(parts),
            releasing: Arc::default(),
        }
    }

    /// Changes the terms of runs that start from now on.
    pub(crate) fn change_terms(&self, change: impl FnOnce(&mut RunSettings)) {
        let mut terms = self.parts.terms.write();
        change(Arc::make_mut(&mut *terms));
    }

    /// Prepares a run in memory: nothing is stored unless it is started.
    ///
    /// # Errors
    /// The options contradict each other, or the run that this one continues cannot be read.
    pub fn prepare(&self, options: RunOptions) -> Result<RunHandle, Problem> {
        let mut options = options;
        let mut read = Vec::new();
        let mut used = EffectCounts::NONE;
        let mut held = RunProperties::NONE;
        if let Some(earlier) = &options.continues {
            let home = self.parts.archive.home();
            let unreadable = |e: runs::RunsError| Problem::failed(e.to_string());
            let folder = runs::run_dir(home, earlier.as_str())?;
            read = continued::untrusted(home, earlier).map_err(unreadable)?;
            used = continued::uses(home, earlier).map_err(unreadable)?;
            held = runs::properties(home, earlier.as_str()).map_err(unreadable)?;
            if let (None, Some(names)) = (&options.tools, narrowed::names_of(earlier, &folder)?) {
                options.tools = Some(Arc::new(Arc::clone(&self.parts.tools).only(names)));
            }
        }
        let (narrowed, client) = (options.tools.is_some(), options.client.clone());
        let continues = options.continues.clone();
        let builder = self.builder(options);
        let builder = builder.with_untrusted(read).with_uses(used);
        let builder = builder.with_properties(held);
        let mut run = self.handle(builder, narrowed)?;
        if let Some(life) = Arc::get_mut(&mut run.life) {
            life.client = client;
            life.continues = continues;
        }
        Ok(run)
    }

    /// Starts a run: creates its record and its entry in the index.
    ///
    /// # Errors
    /// The record or the index cannot be written.
    pub async fn start(&self, options: RunOptions) -> Result<RunHandle, Problem> {
        let run = self.prepare(options)?;
        run.start().await?;
        Ok(run)
    }

    /// Resumes a run that is suspended, or that was interrupted when its process ended. `least` is the highest known number of its calls,
    /// besides those in its record. The run keeps its principal.
    ///
    /// # Errors
    /// The record or the index cannot be read, the run is finished or belongs to another principal than `options` name, or it is being
    /// resumed already.
    pub async fn resume(
        &self,
        run: &RunId,
        least: u64,
        mut options: RunOptions,
    ) -> Result<RunHandle, Problem> {
        let known = self.parts.index.get(run).await;
        let known = known.map_err(|e| Problem::failed(format!("cannot look up run {run}: {e}")))?;
        options.principal = principal_of(run, known.as_ref(), options.principal)?;
        if self.parts.live.get(run).is_some() {
            return Err(busy(self.parts.archive.home(), run));
        }
        let unreadable = |e: runs::RunsError| Problem::failed(e.to_string());
        let home = self.parts.archive.home();
        let folder = runs::run_dir(home, run.as_str())?;
        if let (None, Some(names)) = (&options.tools, narrowed::names_of(run, &folder)?) {
            options.tools = Some(Arc::new(Arc::clone(&self.parts.tools).only(names)));
        }
        if options.group.is_none() {
            options.group = group::read(home, &folder);
        }
        let builder = self.builder(options);
        if !folder.is_dir() {
            // Another machine has the run's record; what happens here is recorded here, under the same id.
            let elsewhere = UntrustedSource::recorded("a record that is kept on another machine");
            let builder = builder
                .with_run(run.clone())
                .with_untrusted(vec![elsewhere]);
            let handle = self.handle(builder, false)?;
            handle.record(&mut *handle.life.phase.lock().await).await?;
            self.resume_tally(run, known);
            return Ok(handle);
        }
        let calls = runs::last_call(home, run.as_str()).map_err(unreadable)?;
        let calls = calls.max(least);
        let untrusted = continued::untrusted(home, run).map_err(unreadable)?;
        let used = continued::uses(home, run).map_err(unreadable)?;
        let builder = builder.resume(run.clone(), calls);
        let held = runs::properties(home, run.as_str()).map_err(unreadable)?;
        let builder = builder.with_untrusted(untrusted).with_uses(used);
        let builder = builder.with_properties(held);
        let handle = self.handle(builder, false)?;
        {
            let mut phase = handle.life.phase.lock().await;
            handle.record(&mut phase).await?;
            phase.transition(PhaseEvent::Start);
        }
        self.resume_tally(run, known);
        let noted = self.parts.index.progress(run, calls, false).await;
        if let Err(error) = noted {
            tracing::warn!(%run, %error, "note that a run is resumed");
        }
        Ok(handle)
    }

    /// Starts to gather figures about a resumed run, from those noted before.
    fn resume_tally(&self, run: &RunId, known: Option<RunEntry>) {
        let started = known.as_ref().map(|entry| entry.started.parse());
        let started = started.and_then(|time: Result<jiff::Timestamp, _>| time.ok());
        let started = started.map_or_else(clock::now, jiff::Timestamp::as_nanosecond);
        let notes = known.and_then(|entry| entry.notes);
        self.parts
            .tally
            .begin(run, started, notes.unwrap_or_default());
    }

    /// Returns the time limit of a call in a run that starts now.
    pub(crate) fn call_limit(&self) -> Duration {
        self.parts.terms().limits.call_timeout
    }

    /// Returns how long a call of a run that starts now waits for a decision.
    pub(crate) fn approval_limit(&self) -> Duration {
        self.parts.terms().limits.approval_timeout
    }

    /// Returns the session of a run of this process.
    pub fn session(&self, run: &RunId) -> Option<Session> {
        let life = self.parts.live.get(run)?;
        Some(life.session.clone())
    }

    /// Returns the number of runs of this process.
    pub fn running(&self) -> usize {
        self.parts.live.all().len()
    }

    /// Ends all waits for decisions: the calls are suspended, and their requests stay pending until haft serves again.
    pub fn stop_waiting(&self) {
        for life in self.parts.live.all() {
            life.session.suspend();
        }
    }

    /// Suspends or finishes every run of this process, and waits until that is done.
    pub async fn release_all(&self) {
        let dropped = std::mem::take(&mut *self.releasing.lock());
        dropped.join_all().await;
        for life in self.parts.live.all() {
            release(&self.parts, &life).await;
        }
    }

    fn handle(&self, builder: SessionBuilder, narrowed: bool) -> Result<RunHandle, Problem> {
        let session = builder
            .build()
            .map_err(|e| Problem::settings(e.to_string()))?;
        Ok(RunHandle {
            runs: self.clone(),
            life: Arc::new(HeldRun::new(session, narrowed)),
        })
    }
}

/// A run held by this process: for an MCP session, an API slot or a command. Dropping it suspends or finishes the run.
#[derive(Debug)]
pub struct RunHandle {
    runs: Runs,
    life: Arc<HeldRun>,
}

impl RunHandle {
    /// Returns the run's session.
    pub fn session(&self) -> &Session {
        &self.life.session
    }

    /// Starts a prepared run. Does nothing if it is running.
    ///
    /// # Errors
    /// The record or the index cannot be written: then nothing runs, and the caller may try again.
    pub async fn start(&self) -> Result<(), Problem> {
        let mut phase = self.life.phase.lock().await;
        if *phase == RunPhase::Running {
            return Ok(());
        }
        if *phase == RunPhase::Prepared {
            self.record(&mut phase).await?;
        }
        let (parts, session) = (&self.runs.parts, &self.life.session);
        if let Some(earlier) = &self.life.continues {
            continued::keep(&self.folder()?, earlier).map_err(not_started)?;
        }
        if let Some(group) = session.group() {
            group::keep(&self.folder()?, group).map_err(not_started)?;
        }
        if self.life.narrowed {
            let folder = self.folder()?;
            let tools = session.tools();
            let known = parts.tools.snapshot();
            let names = tools.entries().iter();
            // Tools that only a served list has cannot be used to resume.
            let names = names
                .map(|entry| entry.spec().name.as_str())
                .filter(|name| known.entry(name).is_some());
            narrowed::keep(&folder, names).map_err(not_started)?;
        }
        let terms = parts.terms();
        let start = RunStart {
            principal: session.principal().clone(),
            entry_point: session.entry_point().to_owned(),
            workspace: Some(terms.workspace.clone()),
            profile: terms.profile.clone(),
        };
        let now = clock::now();
        let indexed = parts.index.open(session.run(), &start, now).await;
        indexed.map_err(not_started)?;
        let notes = RunNotes {
            client: self.life.client.clone(),
            ..RunNotes::default()
        };
        parts.tally.begin(session.run(), now, notes);
        phase.transition(PhaseEvent::Start);
        Ok(())
    }

    /// Returns the run's id.
    pub fn id(&self) -> &RunId {
        self.life.session.run()
    }

    /// Returns the folder of its record, which exists once the run is started.
    pub(crate) fn folder(&self) -> Result<PathBuf, Problem> {
        let home = self.runs.parts.archive.home();
        Ok(runs::run_dir(home, self.id().as_str())?)
    }

    /// Makes a call in the run.
    pub async fn call(&self, call: ToolCall) -> Outcome {
        let executor = &self.runs.parts.executor;
        executor.execute(&self.life.session, call).await
    }

    /// Obtains the decision about a call without running it: see [`Executor::ask_ahead`].
    pub(crate) async fn ask_ahead(&self, call: ToolCall) -> Outcome {
        let executor = &self.runs.parts.executor;
        executor.ask_ahead(&self.life.session, call).await
    }

    /// Makes a call in the run, on its own terms.
    pub(crate) async fn call_on(&self, call: ToolCall, terms: CallOptions) -> Outcome {
        let mut session = self.life.session.clone();
        if let Some(limit) = terms.wait {
            session = session.with_approval_timeout(limit);
        }
        if let Some(approver) = terms.approver {
            session = session.with_approver(approver);
        }
        if let Some(run) = terms.asked_in {
            session = session.retry_of(run);
        }
        self.runs.parts.executor.execute(&session, call).await
    }

    /// Makes the calls of one model reply: those that are safe to run in parallel at the same time, the others in order. Returns the
    /// outcomes in the order of the calls.
    pub async fn call_all(&self, calls: Vec<ToolCall>) -> Vec<Outcome> {
        let executor = &self.runs.parts.executor;
        executor.execute_all(&self.life.session, calls).await
    }

    /// Ends this process's part in the run, and waits until that is recorded. A run with pending requests, with a call
    /// that can be resumed or with a conversation whose calls have no answer is suspended, if requests outlive the
    /// process; any other is finished. If that cannot be recorded, the application warns.
    pub async fn release(self) {
        release(&self.runs.parts, &self.life).await;
    }

    /// Suspends the run, so that it can be resumed, here or in another process. A run with nothing to resume is finished.
    ///
    /// # Errors
    /// The suspension could not be recorded.
    pub async fn suspend(self) -> Result<(), Problem> {
        Ok(end(&self.runs.parts, &self.life, ReleaseMode::Release).await?)
    }

    /// Finishes the run for good: cancels running calls, withdraws requests that are pending or not acted on, and seals the record.
    ///
    /// # Errors
    /// The record could not be sealed.
    pub async fn finish(self) -> Result<(), Problem> {
        Ok(end(&self.runs.parts, &self.life, ReleaseMode::Finish).await?)
    }

    /// Creates the record. Its first line is on disk before anything else refers to the run.
    async fn record(&self, phase: &mut RunPhase) -> Result<(), Problem> {
        let (parts, session) = (&self.runs.parts, &self.life.session);
        if let Some(log) = &parts.log {
            log.admit().await?;
        }
        parts.executor.open(session).map_err(not_started)?;
        let held = parts.archive.holds(session.run()).await;
        if held.is_err() {
            // Another process holds it: this one withdraws its attempt.
            let _ = parts.archive.suspend(session.run()).await;
        }
        held.map_err(|why| {
            let (home, run) = (parts.archive.home(), session.run());
            match runs::holder(home, run.as_str()) {
                Ok(Holder::Owner | Holder::Resumer) => busy(home, run),
                Ok(Holder::Free) | Err(_) => match self.folder() {
                    Ok(folder) if matches!(runs::closed(&folder), Ok(Some(_))) => {
                        over(run, conversation_file::is_kept(&folder))
                    }
                    _ => not_started(why),
                },
            }
        })?;
        phase.transition(PhaseEvent::Record);
        parts.live.add(&self.life);
        Ok(())
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        let over = |phase: &RunPhase| matches!(phase, RunPhase::Suspended | RunPhase::Finished);
        if self.life.phase.try_lock().is_ok_and(|phase| over(&phase)) {
            return;
        }
        let (parts, life) = (Arc::clone(&self.runs.parts), Arc::clone(&self.life));
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // Without a runtime nothing can be written: the run is interrupted, and can be resumed.
            return life.session.cancel();
        };
        let mut releasing = self.runs.releasing.lock();
        while releasing.try_join_next().is_some() {}
        releasing.spawn_on(async move { release(&parts, &life).await }, &runtime);
    }
}
