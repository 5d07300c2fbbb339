//! `Session`: one run's state: view, limits, budget, grants, cancellation.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use crate::approval::suspended::OtherRuns;
use crate::approval::{Approver, Grant};
use crate::artifact::Owner;
use crate::budget::RunUses;
use crate::call::{CallId, Principal, RunId};
use crate::input::CallInput;
use crate::policy::{JudgedCall, Policy, Ruling};
use crate::progress::{Fan, Pace, ProgressSink};
use crate::session::active::{Active, Narrowed};
use crate::session::at_work::AtWork;
use crate::session::budget::{Budget, Spent};
use crate::session::expanded::Expanded;
use crate::session::lane::Lane;
use crate::session::nest::Nest;
use crate::session::queue::Queue;
use crate::session::running::Running;
use crate::spec::{Risk, ToolName};
use crate::tokens::Tokenizer;
use crate::toolset::{Changes, Snapshot, Toolset};
use crate::untrusted::Sources;

mod activation;
mod active;
pub(crate) mod at_work;
pub(crate) mod budget;
mod builder;
mod hint;
mod called;
mod expanded;
pub(crate) mod lane;
mod limits;
pub(crate) mod nest;
mod wait_mode;
mod queue;
mod running;
mod standing;

pub use activation::{Activated, Activation, ActiveSkill};
pub use active::SKILL_TOKENS;
pub use builder::SessionBuilder;
pub use hint::UnknownToolHint;
pub use limits::{LimitsError, RunLimits};
pub use nest::Ending;
pub(crate) use queue::{BYTES_OF_CLIENTS, MOST_OF_CLIENTS, MOST_WAITING};
pub use wait_mode::WaitMode;

/// One run's state, as the calls made through it see it; clones share it.
///
/// ```
/// use std::sync::Arc;
/// use haft::{CancellationToken, RunLimits, Principal, Session, ToolRegistry};
///
/// let shutdown = CancellationToken::new();
/// let session = Session::builder(Arc::new(ToolRegistry::new()))
///     .with_principal(Principal::local("ann"))
///     .with_limits(RunLimits { max_calls: 100, ..RunLimits::default() })
///     .with_cancellation(&shutdown)
///     .build()?;
/// shutdown.cancel();
/// assert!(session.cancellation().is_cancelled());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    // One pointer: each call has a copy.
    parts: Arc<SessionParts>,
}

#[derive(Debug)]
struct SessionParts {
    run: Arc<RunState>,
    scope: SessionScope,
}

/// What all calls of a run share, however deep they are nested.
#[derive(Debug)]
struct RunState {
    owner: Owner,
    entry_point: String,
    client: Option<String>,
    ids: AtomicU64,
    wait_mode: WaitMode,
    /// A user was asked about one of its calls.
    asked: AtomicBool,
    queue: Queue,
    grants: Mutex<Vec<Grant>>,
    /// Secrets whose reading was approved.
    released: Mutex<Arc<[String]>>,
    /// What was read that strangers may have written.
    untrusted: Sources,
    /// What its calls have used of the budgets of effects.
    uses: Arc<RunUses>,
    expanded: Expanded,
    opened: AtomicBool,
    closed: AtomicBool,
    running: Running,
    /// The calls under way that may be resumed.
    at_work: Arc<AtWork>,
    /// Where the runs stand whose suspended calls it may take up besides its own.
    others: Option<Arc<dyn OtherRuns>>,
    /// The run is for one call alone.
    alone: bool,
    pace: Pace,
    /// What its client pipes in.
    input: Option<Arc<CallInput>>,
    unknown_tool_hint: Option<Arc<dyn UnknownToolHint>>,
    /// Its caller has a view of the tools.
    narrowed: bool,
    active: Active,
    /// The skills it sees; all of them where this is not set.
    skills: Option<BTreeSet<String>>,
}

/// What may differ between the calls of a run: those of a script see fewer tools under limits of their own.
#[derive(Debug, Clone)]
struct SessionScope {
    view: Arc<dyn Toolset>,
    limits: RunLimits,
    /// How it waits for people, where that is not as the run does.
    wait_mode: Option<WaitMode>,
    budget: Arc<Budget>,
    spent_nanoseconds: Arc<AtomicU64>,
    cancel: CancellationToken,
    leave: CancellationToken,
    /// The approver for the calls made through it, besides the executor's own.
    approver: Option<Arc<dyn Approver>>,
    caller: Option<Arc<dyn crate::caller::Caller>>,
    /// The run in whose name users are asked, where it is another.
    asks_in: Option<RunId>,
    lane: Lane,
    progress: Option<Arc<dyn ProgressSink>>,
    narrowed: Arc<Narrowed>,
    /// The call that it is nested in.
    nest: Option<Arc<Nest>>,
    /// It resumes a run that another process began, or a call that was suspended.
    resumed: bool,
    depth: u32,
}

/// Most nested scopes within one another.
pub const MAX_DEPTH: u32 = 8;

impl Session {
    /// A session of the local user over these tools, with the limits of direct calls.
    pub fn new(view: impl Toolset + 'static) -> Self {
        Self::builder(Arc::new(view)).into_session()
    }

    /// A session with options.
    pub fn builder(view: Arc<dyn Toolset>) -> SessionBuilder {
        let owner = Owner {
            principal: Principal::local("user"),
            run: RunId::generate(),
        };
        SessionBuilder {
            run: RunState {
                owner,
                entry_point: "library".into(),
                client: None,
                ids: AtomicU64::new(0),
                wait_mode: WaitMode::default(),
                asked: AtomicBool::new(false),
                queue: Queue::default(),
                grants: Mutex::default(),
                released: Mutex::default(),
                untrusted: Sources::default(),
                uses: Arc::default(),
                expanded: Expanded::default(),
                opened: AtomicBool::new(false),
                closed: AtomicBool::new(false),
                running: Running::default(),
                at_work: Arc::default(),
                others: None,
                alone: false,
                pace: Pace::default(),
                input: None,
                unknown_tool_hint: None,
                narrowed: false,
                active: Active::default(),
                skills: None,
            },
            scope: SessionScope {
                view,
                budget: Arc::new(Budget::of_run(RunLimits::default().max_calls)),
                limits: RunLimits::default(),
                wait_mode: None,
                spent_nanoseconds: Arc::default(),
                cancel: CancellationToken::new(),
                leave: CancellationToken::new(),
                approver: None,
                caller: None,
                asks_in: None,
                lane: Arc::default(),
                progress: None,
                narrowed: Arc::default(),
                nest: None,
                resumed: false,
                depth: 0,
            },
        }
    }

    /// The run's id.
    pub fn run(&self) -> &RunId {
        &self.parts.run.owner.run
    }

    /// For whom it runs.
    pub fn principal(&self) -> &Principal {
        &self.parts.run.owner.principal
    }

    /// Principal and run: the owner of its artifacts.
    pub fn owner(&self) -> &Owner {
        &self.parts.run.owner
    }

    /// What the client calls itself.
    pub(crate) fn client(&self) -> Option<&str> {
        self.parts.run.client.as_deref()
    }

    /// What its client pipes into the call; a call within another has none.
    pub(crate) fn input(&self) -> Option<&CallInput> {
        let of_run = self.parts.run.input.as_deref();
        of_run.filter(|_| self.nest().is_none())
    }

    /// The entry point by which it was started.
    pub fn entry_point(&self) -> &str {
        &self.parts.run.entry_point
    }

    /// Its bounds.
    pub fn limits(&self) -> &RunLimits {
        &self.parts.scope.limits
    }

    /// The tools it sees now: its view's, with what the run expanded among the listed ones, without what an active skill takes away.
    pub fn tools(&self) -> Arc<Snapshot> {
        let whole = self.reach();
        match self.parts.run.active.generation() {
            0 => whole,
            generation => self
                .parts
                .scope
                .narrowed
                .of(&self.parts.run.active, generation, whole),
        }
    }

    /// The same with what an active skill takes away: a call of that is denied, not unknown.
    pub(crate) fn reach(&self) -> Arc<Snapshot> {
        self.parts
            .run
            .expanded
            .over(self.parts.scope.view.snapshot())
    }

    /// Tells when the tools it sees change.
    pub fn changes(&self) -> Changes {
        let of_run = self
            .parts
            .run
            .expanded
            .changes()
            .and(self.parts.run.active.changes());
        self.parts.scope.view.changes().and(of_run)
    }

    /// The skills active in this run, oldest first.
    pub fn active_skills(&self) -> Arc<Vec<Arc<ActiveSkill>>> {
        self.parts.run.active.list()
    }

    /// Ends an active skill and its limits; false where it is not active.
    pub fn deactivate(&self, skill: &str) -> bool {
        self.parts.run.active.deactivate(skill)
    }

    /// Whether the session sees a skill of this name.
    pub fn sees_skill(&self, name: &str) -> bool {
        self.parts
            .run
            .skills
            .as_ref()
            .is_none_or(|seen| seen.contains(name))
    }

    /// Loads a skill into the run.
    pub(crate) fn activate(
        &self,
        skill: &Activation<'_>,
        policy: &Policy,
        tokenizer: &dyn Tokenizer,
    ) -> Activated {
        self.parts.run.active.activate(skill, policy, tokenizer)
    }

    /// What the active skills say against a call, if anything.
    pub(crate) fn restricted(
        &self,
        policy: &Policy,
        call: &JudgedCall<'_>,
        risk: Risk,
    ) -> Option<Ruling> {
        self.parts.run.active.judge(policy, call, risk)
    }

    /// Calls made so far, those of its scripts among them.
    pub fn calls(&self) -> u64 {
        self.parts.scope.budget.used()
    }

    /// Whether its budget of calls or of time is used up: further calls are refused.
    pub fn is_spent(&self) -> bool {
        self.calls() >= self.parts.scope.limits.max_calls || self.time_left().is_zero()
    }

    /// Ends it: running calls are cancelled, further ones refused.
    pub fn cancel(&self) {
        self.parts.scope.cancel.cancel();
    }

    /// Ends its waits for people: those calls are suspended, what they asked goes on waiting without them.
    pub fn suspend(&self) {
        self.parts.scope.leave.cancel();
    }

    /// Cancelled when the run stops waiting for approvals.
    pub(crate) fn leaving(&self) -> &CancellationToken {
        &self.parts.scope.leave
    }

    /// Whether a person was asked about one of its calls; a run that is gone on with was.
    pub fn has_asked(&self) -> bool {
        self.parts.scope.resumed || self.parts.run.asked.load(Ordering::Relaxed)
    }

    /// Whether one of its calls is being resumed, or ended before it was over: a host leaves such a run open, for whoever
    /// resumes the call.
    pub fn has_resumable(&self) -> bool {
        self.parts.run.at_work.has_resumable()
    }

    /// The requests that it has written.
    pub(crate) fn queue(&self) -> &Queue {
        &self.parts.run.queue
    }

    /// Notes that a person is asked.
    pub(crate) fn note_asked(&self) {
        self.parts.run.asked.store(true, Ordering::Relaxed);
    }

    /// Waits until no call is under way.
    pub async fn idle(&self) {
        self.parts.run.running.idle().await;
    }

    /// How it waits for people.
    pub(crate) fn wait_mode(&self) -> WaitMode {
        self.parts
            .scope
            .wait_mode
            .unwrap_or(self.parts.run.wait_mode)
    }

    /// Whether its calls wait for people at all.
    pub(crate) fn waits(&self) -> bool {
        !matches!(
            self.wait_mode(),
            WaitMode::SuspendAtOnce | WaitMode::DenyAtOnce
        )
    }

    /// The same for calls that are decided while they wait, or are denied: at once where no one can decide now.
    /// `approver` says whether the host has one.
    pub(crate) fn deciding_now(&self, approver: bool) -> Self {
        let idle = self.wait_mode() == WaitMode::WhileAsked;
        let idle = idle && !approver && self.approver().is_none();
        let mode = if idle || !self.waits() {
            WaitMode::DenyAtOnce
        } else {
            WaitMode::WaitThenWithdraw
        };
        self.with(|scope| scope.wait_mode = Some(mode))
    }

    /// Who is asked about its calls, besides the executor's own approver.
    pub(crate) fn approver(&self) -> Option<&Arc<dyn Approver>> {
        self.parts.scope.approver.as_ref()
    }

    /// The same session, with this approver for the calls made through it, besides the executor's own.
    pub fn with_approver(&self, approver: Arc<dyn Approver>) -> Self {
        self.with(|scope| scope.approver = Some(approver))
    }

    /// The same session, for calls that wait for people at most so long.
    pub fn with_approval_timeout(&self, limit: Duration) -> Self {
        self.with(|scope| scope.limits.approval_timeout = limit)
    }

    /// The same session, for a call that is made again: what an earlier run of the same principal asked a person for it is
    /// what is asked now, and how that ended is how this one does.
    pub fn retry_of(&self, run: RunId) -> Self {
        self.with(|scope| scope.asks_in = Some(run))
    }

    /// The run in whose name it asks people.
    pub(crate) fn asks_in(&self) -> &RunId {
        self.parts.scope.asks_in.as_ref().unwrap_or(self.run())
    }

    /// The same session, for a call that was suspended and is gone on with.
    pub fn continuing(&self) -> Self {
        self.with(|scope| scope.resumed = true)
    }

    /// Its view: where the tools it sees are found.
    pub(crate) fn view(&self) -> &Arc<dyn Toolset> {
        &self.parts.scope.view
    }

    /// The call that it is nested in, if it is.
    pub(crate) fn nest(&self) -> Option<&Arc<Nest>> {
        self.parts.scope.nest.as_ref()
    }

    /// Whether it goes on with a run that another process began and did not end.
    pub fn is_resumed(&self) -> bool {
        self.parts.scope.resumed
    }

    /// Its cancellation token.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.parts.scope.cancel
    }

    /// The same session, with this sink for the calls made through it, besides the session's own.
    pub fn watched_by(&self, sink: Arc<dyn ProgressSink>) -> Self {
        let sink = match &self.parts.scope.progress {
            Some(own) => Arc::new(Fan::new(Arc::clone(own), sink)),
            None => sink,
        };
        self.with(|scope| scope.progress = Some(sink))
    }

    /// A child for nested calls: same run, a lane of its own, a budget of its own where limits are given, view never wider than this one's.
    pub(crate) fn nested(
        &self,
        nest: &Arc<Nest>,
        limits: Option<RunLimits>,
        view: Option<Arc<dyn Toolset>>,
    ) -> Self {
        self.with(|child| {
            child.nest = Some(Arc::clone(nest));
            if view.is_some() {
                child.narrowed = Arc::default();
            }
            child.view = crate::toolset::within(&self.parts.scope.view, view);
            child.cancel = self.parts.scope.cancel.child_token();
            child.leave = self.parts.scope.leave.child_token();
            child.lane = Arc::default();
            // It runs inside its parent's time, which is counted there.
            child.spent_nanoseconds = Arc::default();
            child.depth += 1;
            if let Some(limits) = limits {
                child.budget = Arc::new(Budget::within(&self.parts.scope.budget, limits.max_calls));
                child.limits = limits;
            }
        })
    }

    /// The same run in another scope.
    fn with(&self, change: impl FnOnce(&mut SessionScope)) -> Self {
        let mut scope = self.parts.scope.clone();
        change(&mut scope);
        let run = Arc::clone(&self.parts.run);
        Self {
            parts: Arc::new(SessionParts { run, scope }),
        }
    }

    /// Whether its calls are those of a script, under limits of their own.
    pub(crate) fn is_script(&self) -> bool {
        self.parts.scope.budget.is_nested()
    }

    /// How deep this scope lies.
    pub(crate) fn depth(&self) -> u32 {
        self.parts.scope.depth
    }

    /// Makes deferred tools listed and callable for this run; tells which of the names were expanded now. A tool outside the view stays unknown.
    pub fn expand<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<ToolName> {
        self.parts.run.expanded.add(&self.tools(), names)
    }

    /// Takes one call off the budget, and off those of the sessions around this one.
    pub(crate) fn spend_call(&self) -> Result<(), Spent> {
        self.parts.scope.budget.spend()
    }

    /// What is left of the time for all calls.
    pub(crate) fn time_left(&self) -> Duration {
        let spent =
            Duration::from_nanos(self.parts.scope.spent_nanoseconds.load(Ordering::Relaxed));
        self.parts.scope.limits.total_timeout.saturating_sub(spent)
    }

    /// Counts time that a tool ran.
    pub(crate) fn spend_time(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.parts
            .scope
            .spent_nanoseconds
            .fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// An id that no other call of the run has.
    pub(crate) fn next_call(&self) -> CallId {
        CallId::numbered(self.parts.run.ids.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// What the person allowed for the session.
    pub(crate) fn grants(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.parts.run.grants.lock()
    }

    /// Who may run beside whom.
    pub(crate) fn lane(&self) -> &Lane {
        &self.parts.scope.lane
    }

    /// True the first time: the run's opening must be recorded.
    pub(crate) fn open_once(&self) -> bool {
        !self.parts.run.opened.load(Ordering::Acquire)
            && !self.parts.run.opened.swap(true, Ordering::AcqRel)
    }

    /// True the first time: the run's end must be recorded.
    pub(crate) fn close_once(&self) -> bool {
        !self.parts.run.closed.swap(true, Ordering::AcqRel)
    }

    /// The calls under way that may be resumed.
    pub(crate) fn at_work(&self) -> &Arc<AtWork> {
        &self.parts.run.at_work
    }

    /// Where other runs stand, where this session may take up their suspended calls.
    pub(crate) fn others(&self) -> Option<&Arc<dyn OtherRuns>> {
        self.parts.run.others.as_ref()
    }

    /// Whether the run is for one call alone.
    pub(crate) fn is_for_one_call(&self) -> bool {
        self.parts.run.alone
    }

    /// The calls under way.
    pub(crate) fn running(&self) -> &Running {
        &self.parts.run.running
    }

    /// Waits until no call is under way and the run's end is recorded; for a run that was closed.
    pub async fn settled(&self) {
        self.parts.run.running.settled().await;
    }

    /// Whether the run has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.parts.run.closed.load(Ordering::Acquire)
    }

    /// Who shows progress.
    pub(crate) fn progress_sink(&self) -> Option<&Arc<dyn ProgressSink>> {
        self.parts.scope.progress.as_ref()
    }

    /// How progress is gathered.
    pub(crate) fn pace(&self) -> Pace {
        self.parts.run.pace
    }
}
