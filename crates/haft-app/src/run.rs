//! The life of runs: each is started or resumed here, and suspended or finished here, whichever entry point it belongs to.
//!
//! ```text
//! prepare ──► prepared ──start──► running ──finish──► finished
//!                                  ▲   │
//!                            resume│   │suspend     requests of the run are pending, or a call of it can be resumed
//!                                  │   ▼
//!     a process that died ──► suspended or interrupted
//! ```
//!
//! A [`RunHandle`] is what an MCP session, an API slot, a command or an embedding program holds. Releasing it (or dropping it) suspends or
//! finishes the run, once; [`suspend`](RunHandle::suspend) and [`finish`](RunHandle::finish) say which, and how that went.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft::CancellationToken;
use haft::approval::Approver;
use haft::audit::archive::Archive;
use haft::audit::index::{RunEntry, RunIndex, RunNotes};
use haft::audit::{RunStart, runs};
use haft::bounds::Class;
use haft::budget::Uses;
use haft::call::{Principal, RunId, ToolCall};
use haft::clock;
use haft::executor::Executor;
use haft::input::CallInput;
use haft::progress::{Pace, ProgressSink};
use haft::result::Outcome;
use haft::session::{RunLimits, Session, SessionBuilder, UnknownToolHint, WaitMode};
use haft::toolset::Toolset;
use haft::toolset::view::View as _;
use haft::untrusted::UntrustedSource;
use haft_builtins::skills::SKILL_TOOLS;
use parking_lot::{Mutex, RwLock};
use tokio::task::JoinSet;

use crate::feed::Feed;
use crate::notices::Notices;
use crate::problem::Problem;
use crate::run::ending::{LetGo, end, release};
use crate::run::live::{Life, Live};
use crate::run::phase::{Event, Phase};
use crate::run::tally::Tally;

mod change_count;
mod continued;
pub(crate) mod ending;
pub(crate) mod live;
mod narrowed;
pub(crate) mod phase;
pub(crate) mod tally;

/// How a run is started or resumed.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The entry point, as the record names it: `call`, `mcp http`, …
    pub entry: &'static str,
    /// For whom, where the entry point has checked that; the user of this process otherwise.
    pub principal: Option<Principal>,
    /// Whose share of bounded resources it uses.
    pub class: Class,
    /// The client's own name, where there is one: shown, never trusted.
    pub client: Option<String>,
    /// What the client pipes into the command that it runs.
    pub input: Option<Arc<CallInput>>,
    /// What shows progress.
    pub progress: Option<Arc<dyn ProgressSink>>,
    /// Whether its calls wait for decisions.
    pub wait: ApprovalWait,
    /// The only tools that it has; those of the application otherwise.
    pub tools: Option<Arc<dyn Toolset>>,
    /// The application's tools as its client is served them, where that is another list of the same.
    pub served: Option<Arc<dyn Toolset>>,
    /// Ends it with this token, as [`Session::cancel`] does.
    pub cancellation: Option<CancellationToken>,
    /// The finished run that this one goes on with: it has that run's tools, and what that run has read and
    /// used of the budgets counts here, too.
    pub continues: Option<RunId>,
    /// Another program runs its tools: how long they take together is not limited here.
    pub is_foreign: bool,
}

impl RunOptions {
    /// A run of the operator's, whose calls wait for decisions as long as settings say, without progress.
    pub fn new(entry: &'static str) -> Self {
        Self {
            entry,
            principal: None,
            class: Class::Operator,
            client: None,
            input: None,
            progress: None,
            wait: ApprovalWait::Limit,
            tools: None,
            served: None,
            cancellation: None,
            continues: None,
            is_foreign: false,
        }
    }

    /// Whether the run is for one call alone.
    fn is_for_one_call(&self) -> bool {
        matches!(self.entry, "call" | "chain")
    }
}

/// What holds for one call of a run, where it is not what holds for all of them.
#[derive(Debug, Default)]
pub(crate) struct CallTerms {
    /// How long it waits for a decision.
    pub(crate) wait: Option<Duration>,
    /// Who is asked, too.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    /// The earlier run that asked about the same call: what was decided there holds.
    pub(crate) asked_in: Option<RunId>,
}

/// Whether the calls of a run wait for decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalWait {
    /// As long as settings say.
    #[default]
    Limit,
    /// For so long.
    For(Duration),
    /// Not at all: they are suspended at once.
    Never,
}

/// The parts that a run's life needs.
#[derive(Debug)]
pub(crate) struct RunParts {
    pub(crate) executor: Executor,
    /// What callers see.
    pub(crate) tools: Arc<dyn Toolset>,
    pub(crate) archive: Arc<Archive>,
    pub(crate) index: Arc<dyn RunIndex>,
    pub(crate) live: Arc<Live>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) notices: Notices,
    /// What is said of tools that are off.
    pub(crate) absent: Arc<dyn UnknownToolHint>,
    pub(crate) terms: RwLock<Arc<Terms>>,
}

impl RunParts {
    /// What settings say of every run, now.
    pub(crate) fn terms(&self) -> Arc<Terms> {
        Arc::clone(&self.terms.read())
    }
}

/// What settings say of every run.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) principal: Principal,
    pub(crate) workspace: String,
    pub(crate) profile: String,
    pub(crate) limits: RunLimits,
    pub(crate) pace: Pace,
    /// Tokens of a run's active skills.
    pub(crate) skill_tokens: usize,
    /// Whether the inbox outlives the process.
    pub(crate) durable: bool,
    /// What becomes of a call about which no decision came in time.
    pub(crate) on_timeout: WaitMode,
}

/// The runs of an application. Clones share them.
#[derive(Debug, Clone)]
pub struct Runs {
    parts: Arc<RunParts>,
    /// Runs whose handles were dropped, on their way to being suspended or finished.
    releasing: Arc<Mutex<JoinSet<()>>>,
}

impl Runs {
    pub(crate) fn new(parts: RunParts) -> Self {
        Self {
            parts: Arc::new(parts),
            releasing: Arc::default(),
        }
    }

    /// Changes what holds for the runs that start from now on.
    pub(crate) fn change_terms(&self, change: impl FnOnce(&mut Terms)) {
        let mut terms = self.parts.terms.write();
        change(Arc::make_mut(&mut *terms));
    }

    /// Prepares a run in memory: nothing is kept of it unless it is started.
    ///
    /// # Errors
    /// The options do not fit together, or the run that this one goes on with cannot be read.
    pub fn prepare(&self, options: RunOptions) -> Result<RunHandle, Problem> {
        let mut options = options;
        let mut read = Vec::new();
        let mut used = Uses::NONE;
        if let Some(earlier) = &options.continues {
            let home = self.parts.archive.home();
            let unreadable = |e: runs::RunsError| Problem::failed(e.to_string());
            let folder = runs::run_dir(home, earlier.as_str()).map_err(unreadable)?;
            read = continued::untrusted(home, earlier).map_err(unreadable)?;
            used = continued::uses(home, earlier).map_err(unreadable)?;
            if let (None, Some(names)) = (&options.tools, names_of(earlier, &folder)?) {
                options.tools = Some(Arc::new(Arc::clone(&self.parts.tools).only(names)));
            }
        }
        let (narrowed, client) = (options.tools.is_some(), options.client.clone());
        let continues = options.continues.clone();
        let builder = self.builder(options);
        let builder = builder.with_untrusted(read).with_uses(used);
        let mut run = self.handle(builder, narrowed)?;
        if let Some(life) = Arc::get_mut(&mut run.life) {
            life.client = client;
            life.continues = continues;
        }
        Ok(run)
    }

    /// Starts a run: its record and its line in the index.
    ///
    /// # Errors
    /// The record or the index cannot be written.
    pub async fn start(&self, options: RunOptions) -> Result<RunHandle, Problem> {
        let run = self.prepare(options)?;
        run.start().await?;
        Ok(run)
    }

    /// Resumes a run that is suspended, or that was interrupted when its process ended. `least` is the highest number that its
    /// calls are known to have, beside those in its record. The run keeps its principal.
    ///
    /// # Errors
    /// The record or the index cannot be read, the run is finished or another principal's than `options` name, or another process
    /// holds it.
    pub async fn resume(
        &self,
        run: &RunId,
        least: u64,
        mut options: RunOptions,
    ) -> Result<RunHandle, Problem> {
        let known = self.parts.index.get(run).await;
        let known = known.map_err(|e| Problem::failed(format!("look up run {run}: {e}")))?;
        options.principal = principal_of(run, known.as_ref(), options.principal)?;
        let unreadable = |e: runs::RunsError| Problem::failed(e.to_string());
        let home = self.parts.archive.home();
        let folder = runs::run_dir(home, run.as_str()).map_err(unreadable)?;
        if let (None, Some(names)) = (&options.tools, names_of(run, &folder)?) {
            options.tools = Some(Arc::new(Arc::clone(&self.parts.tools).only(names)));
        }
        let builder = self.builder(options);
        if !folder.is_dir() {
            // Another machine keeps the run's record; what happens here is recorded here, under the same name.
            let elsewhere = UntrustedSource::recorded("a record that is kept on another machine");
            let builder = builder
                .with_run(run.clone())
                .with_untrusted(vec![elsewhere]);
            let handle = self.handle(builder, false)?;
            handle.record(&mut *handle.life.phase.lock().await).await?;
            self.tally_on(run, known);
            return Ok(handle);
        }
        let calls = runs::last_call(home, run.as_str()).map_err(unreadable)?;
        let calls = calls.max(least);
        let untrusted = continued::untrusted(home, run).map_err(unreadable)?;
        let used = continued::uses(home, run).map_err(unreadable)?;
        let builder = builder.resume(run.clone(), calls);
        let builder = builder.with_untrusted(untrusted).with_uses(used);
        let handle = self.handle(builder, false)?;
        {
            let mut phase = handle.life.phase.lock().await;
            handle.record(&mut phase).await?;
            phase.go(Event::Start);
        }
        self.tally_on(run, known);
        let noted = self.parts.index.progress(run, calls, false).await;
        if let Err(error) = noted {
            tracing::warn!(%run, %error, "note that a run is resumed");
        }
        Ok(handle)
    }

    /// Gathers what is said of a run that is resumed, from what was noted of it.
    fn tally_on(&self, run: &RunId, known: Option<RunEntry>) {
        let started = known.as_ref().map(|entry| entry.started.parse());
        let started = started.and_then(|time: Result<jiff::Timestamp, _>| time.ok());
        let started = started.map_or_else(clock::now, jiff::Timestamp::as_nanosecond);
        let notes = known.and_then(|entry| entry.notes);
        self.parts
            .tally
            .begin(run, started, notes.unwrap_or_default());
    }

    /// How long a call may take that a run of now makes.
    pub(crate) fn call_limit(&self) -> Duration {
        self.parts.terms().limits.call_timeout
    }

    /// The state of a run that is running here.
    pub fn session(&self, run: &RunId) -> Option<Session> {
        let life = self.parts.live.get(run)?;
        Some(life.session.clone())
    }

    /// How many runs are running here.
    pub fn running(&self) -> usize {
        self.parts.live.all().len()
    }

    /// Ends all waits for decisions: the calls are suspended; what they asked stays pending, and is there when haft serves again.
    pub fn stop_waiting(&self) {
        for life in self.parts.live.all() {
            life.session.suspend();
        }
    }

    /// Suspends or finishes every run that is running here, and waits until each is.
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
            life: Arc::new(Life::new(session, narrowed)),
        })
    }

    fn builder(&self, options: RunOptions) -> SessionBuilder {
        let (parts, terms) = (&self.parts, self.parts.terms());
        let mut limits = terms.limits.clone();
        let alone = options.is_for_one_call();
        let wait_mode = match options.wait {
            ApprovalWait::Never if terms.durable => WaitMode::SuspendAtOnce,
            ApprovalWait::For(limit) => {
                limits.approval_timeout = limit;
                terms.on_timeout
            }
            ApprovalWait::Limit | ApprovalWait::Never => terms.on_timeout,
        };
        if options.is_foreign {
            limits.total_timeout = Duration::MAX;
        }
        let narrowed = options.tools.is_some();
        let tools = options.tools.or(options.served);
        let tools = tools.unwrap_or_else(|| Arc::clone(&parts.tools));
        // Who may load no skill is shown none.
        let without_skills = narrowed && !has_skills(&*tools);
        let principal = options.principal.unwrap_or_else(|| terms.principal.clone());
        let mut builder = Session::builder(tools)
            .with_wait_mode(wait_mode)
            .with_principal(principal)
            .with_class(options.class)
            .with_entry_point(options.entry)
            .with_client(options.client)
            .with_limits(limits)
            .with_pace(terms.pace)
            .with_skill_tokens(terms.skill_tokens)
            .with_other_runs(Arc::clone(&parts.live) as _)
            .with_unknown_tool_hint(Arc::clone(&parts.absent));
        if narrowed {
            builder = builder.narrowed();
        }
        if alone {
            builder = builder.for_one_call();
        }
        if without_skills {
            builder = builder.with_skills([]);
        }
        if let Some(input) = options.input {
            builder = builder.with_input(input);
        }
        if let Some(sink) = options.progress {
            builder = builder.with_progress(sink);
        }
        if let Some(parent) = &options.cancellation {
            builder = builder.with_cancellation(parent);
        }
        builder
    }
}

/// Whether any of these tools is over skills.
fn has_skills(tools: &dyn Toolset) -> bool {
    let tools = tools.snapshot();
    SKILL_TOOLS.iter().any(|name| tools.entry(name).is_some())
}

/// For whom a run that is resumed was started; `asked` where the index does not know the run.
fn principal_of(
    run: &RunId,
    known: Option<&RunEntry>,
    asked: Option<Principal>,
) -> Result<Option<Principal>, Problem> {
    let Some(owner) = known.map(|entry| entry.start.principal.clone()) else {
        return Ok(asked);
    };
    if let Some(other) = asked.filter(|asked| *asked != owner) {
        let foreign = format!("run {run} was started for {owner}, not for {other}");
        return Err(Problem::usage(foreign)
            .advise("resume it for the principal that it was started for, or for none"));
    }
    Ok(Some(owner))
}

/// The names of the tools that the run was started with, where it has not all.
fn names_of(run: &RunId, folder: &Path) -> Result<Option<Vec<String>>, Problem> {
    narrowed::names(folder).map_err(|e| {
        Problem::failed(format!("read which tools run {run} has: {e}"))
            .advise("without that it is not resumed; deny what it waits for")
    })
}

/// A run that this process holds: what an MCP session, an API slot or a command has. Dropping it suspends or finishes the run.
#[derive(Debug)]
pub struct RunHandle {
    runs: Runs,
    life: Arc<Life>,
}

impl RunHandle {
    /// The run's state in memory.
    pub fn session(&self) -> &Session {
        &self.life.session
    }

    /// Starts a run that was prepared. One that is running stays as it is.
    ///
    /// # Errors
    /// The record or the index cannot be written: nothing is run then, and it may be tried again.
    pub async fn start(&self) -> Result<(), Problem> {
        let mut phase = self.life.phase.lock().await;
        if *phase == Phase::Running {
            return Ok(());
        }
        if *phase == Phase::Prepared {
            self.record(&mut phase).await?;
        }
        let (parts, session) = (&self.runs.parts, &self.life.session);
        if let Some(earlier) = &self.life.continues {
            continued::keep(&self.folder()?, earlier).map_err(not_started)?;
        }
        if self.life.narrowed {
            let folder = self.folder()?;
            let tools = session.tools();
            let known = parts.tools.snapshot();
            let names = tools.entries().iter();
            // What a served list has beside them is no tool to resume with.
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
        phase.go(Event::Start);
        Ok(())
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        self.life.session.run()
    }

    /// The folder of its record, which is there once the run was started.
    pub(crate) fn folder(&self) -> Result<PathBuf, Problem> {
        let home = self.runs.parts.archive.home();
        runs::run_dir(home, self.id().as_str()).map_err(|e| Problem::failed(e.to_string()))
    }

    /// Makes a call in the run.
    pub async fn call(&self, call: ToolCall) -> Outcome {
        let executor = &self.runs.parts.executor;
        executor.execute(&self.life.session, call).await
    }

    /// Settles what stands in a call's way, and runs nothing: see [`Executor::ask_ahead`].
    pub(crate) async fn ask_ahead(&self, call: ToolCall) -> Outcome {
        let executor = &self.runs.parts.executor;
        executor.ask_ahead(&self.life.session, call).await
    }

    /// Makes a call in the run, on terms of its own.
    pub(crate) async fn call_on(&self, call: ToolCall, terms: CallTerms) -> Outcome {
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

    /// Makes the calls of one reply of a model: those that are safe beside others side by side, the rest in their order. The outcomes
    /// come in the order of the calls.
    pub async fn call_all(&self, calls: Vec<ToolCall>) -> Vec<Outcome> {
        let executor = &self.runs.parts.executor;
        executor.execute_all(&self.life.session, calls).await
    }

    /// Ends this process's part in the run, and waits until that is recorded: a run with pending requests or with a call that can be
    /// resumed is suspended, any other is finished for good. What cannot be recorded is a warning of the application.
    pub async fn release(self) {
        release(&self.runs.parts, &self.life).await;
    }

    /// Suspends the run, so that it can be resumed, here or in another process. A run of which nothing can be resumed is finished.
    ///
    /// # Errors
    /// That could not be recorded.
    pub async fn suspend(self) -> Result<(), Problem> {
        Ok(end(&self.runs.parts, &self.life, LetGo::Release).await?)
    }

    /// Finishes the run for good: calls that run are cancelled, requests that are pending or not acted on are withdrawn, the record is
    /// sealed.
    ///
    /// # Errors
    /// The record could not be sealed.
    pub async fn finish(self) -> Result<(), Problem> {
        Ok(end(&self.runs.parts, &self.life, LetGo::Finish).await?)
    }

    /// Begins the record. Its first line is safe before anyone else knows of the run.
    async fn record(&self, phase: &mut Phase) -> Result<(), Problem> {
        let (parts, session) = (&self.runs.parts, &self.life.session);
        parts.executor.open(session).map_err(not_started)?;
        let held = parts.archive.holds(session.run()).await;
        if held.is_err() {
            // Another process has it: this one forgets that it tried.
            let _ = parts.archive.suspend(session.run()).await;
        }
        held.map_err(not_started)?;
        phase.go(Event::Record);
        parts.live.add(&self.life);
        Ok(())
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        let over = |phase: &Phase| matches!(phase, Phase::Suspended | Phase::Finished);
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

fn not_started(why: impl std::fmt::Display) -> Problem {
    Problem::failed(format!("start the run: {why}"))
        .advise("`haft doctor` says what is wrong with the state folder")
}
