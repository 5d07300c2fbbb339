//! `Session`: the state of one run: view, limits, budget, grants, cancellation.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::approval::suspended::OtherRuns;
use crate::approval::{Approver, Grant};
use crate::artifact::ArtifactOwner;
use crate::bounds::ShareKey;
use crate::budget::RunEffectCounts;
use crate::call::{CallId, Principal, RunId};
use crate::input::CallInput;
use crate::progress::{Pace, ProgressSink, Tee};
use crate::session::active::{ActiveSkills, NarrowingCache};
use crate::session::budget::{BudgetExhausted, CallBudget};
use crate::session::expanded::ExpandedTools;
use crate::session::lane::Lane;
use crate::session::nest::CallScope;
use crate::session::queue::RequestQueue;
use crate::session::running::CallCounter;
use crate::session::running_calls::RunningCalls;
use crate::session::standing::ContentOrigins;
use crate::shell_report::ShellReport;
use crate::spec::ToolName;
use crate::toolset::{Toolset, ToolsetChanges, ToolsetSnapshot};

mod activation;
mod active;
pub(crate) mod running_calls;
pub(crate) mod budget;
mod builder;
mod denial;
mod hint;
mod called;
mod expanded;
mod group;
pub(crate) mod lane;
mod limits;
pub(crate) mod nest;
mod wait_mode;
mod queue;
mod running;
mod skills;
mod standing;

pub use activation::{Activation, ActivationResult, ActiveSkill};
pub use active::SKILL_TOKENS;
pub use builder::SessionBuilder;
pub use group::{GrantStore, RunGroup};
pub use hint::UnknownToolHint;
pub use limits::{LimitsError, RunLimits};
pub use nest::CallEndReason;
pub(crate) use queue::{MAX_CLIENT_BYTES, MAX_CLIENT_REQUESTS, MAX_PENDING};
pub use wait_mode::WaitMode;

/// The state of one run, as seen by the calls made through it; clones share it.
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
    // A single pointer, because every call has a copy.
    parts: Arc<SessionParts>,
}

#[derive(Debug)]
struct SessionParts {
    run: Arc<SessionState>,
    scope: SessionScope,
}

/// State that all calls of a run share, however deeply nested.
#[derive(Debug)]
struct SessionState {
    owner: ArtifactOwner,
    entry_point: String,
    client: Option<String>,
    ids: AtomicU64,
    wait_mode: WaitMode,
    /// Whether one of its calls has asked a user.
    asked_user: AtomicBool,
    denial: denial::Denial,
    queue: RequestQueue,
    grants: Mutex<Vec<Grant>>,
    /// The runs that it belongs to, if it is one of several.
    group: Option<Arc<RunGroup>>,
    /// Secrets whose reading was approved.
    released: Mutex<Arc<[String]>>,
    origins: ContentOrigins,
    /// What its calls have used of the effect budgets.
    uses: Arc<RunEffectCounts>,
    expanded: ExpandedTools,
    opened: AtomicBool,
    closed: AtomicBool,
    running: CallCounter,
    /// The running calls that may be resumed.
    at_work: Arc<RunningCalls>,
    /// The state of other runs whose suspended calls this one may take up.
    others: Option<Arc<dyn OtherRuns>>,
    /// Whether the run exists for a single call.
    alone: bool,
    pace: Pace,
    /// The input that its client pipes in.
    input: Option<Arc<CallInput>>,
    /// What its client wants to know of the shell that runs its command line.
    shell_report: Option<Arc<ShellReport>>,
    /// Whether its client stays with a command in the background until that ends.
    attends: bool,
    unknown_tool_hint: Option<Arc<dyn UnknownToolHint>>,
    /// Whether its caller has a view of the tools.
    narrowed: bool,
    active: ActiveSkills,
    /// The skills it sees; all of them if `None`.
    skills: Option<BTreeSet<String>>,
}

/// What may differ between the calls of a run: those of a script see fewer tools and have their own limits.
#[derive(Debug, Clone)]
struct SessionScope {
    view: Arc<dyn Toolset>,
    limits: RunLimits,
    /// How it waits for decisions, if that differs from the run.
    wait_mode: Option<WaitMode>,
    budget: Arc<CallBudget>,
    spent_nanoseconds: Arc<AtomicU64>,
    cancel: CancellationToken,
    leave: CancellationToken,
    /// The approver for the calls made through it, in addition to the executor's own.
    approver: Option<Arc<dyn Approver>>,
    caller: Option<Arc<dyn crate::caller::Caller>>,
    /// The run that its requests are stored under, if it is another one.
    asks_in: Option<RunId>,
    lane: Lane,
    progress: Option<Arc<dyn ProgressSink>>,
    narrowed: Arc<NarrowingCache>,
    /// The call that it is nested in.
    nest: Option<Arc<CallScope>>,
    /// Whether it resumes a run that another process started, or a suspended call.
    resumed: bool,
    depth: u32,
}

/// Maximum nesting depth of scopes.
pub const MAX_DEPTH: u32 = 8;

impl Session {
    /// Creates a session of the local user over these tools, with the limits of direct calls.
    pub fn new(view: impl Toolset + 'static) -> Self {
        Self::builder(Arc::new(view)).into_session()
    }

    /// Creates a builder for a session with options.
    pub fn builder(view: Arc<dyn Toolset>) -> SessionBuilder {
        let owner = ArtifactOwner {
            principal: Principal::local("user"),
            run: RunId::generate(),
        };
        SessionBuilder {
            run: SessionState {
                owner,
                entry_point: "library".into(),
                client: None,
                ids: AtomicU64::new(0),
                wait_mode: WaitMode::default(),
                asked_user: AtomicBool::new(false),
                denial: denial::Denial::default(),
                queue: RequestQueue::default(),
                grants: Mutex::default(),
                group: None,
                released: Mutex::default(),
                origins: ContentOrigins::default(),
                uses: Arc::default(),
                expanded: ExpandedTools::default(),
                opened: AtomicBool::new(false),
                closed: AtomicBool::new(false),
                running: CallCounter::default(),
                at_work: Arc::default(),
                others: None,
                alone: false,
                pace: Pace::default(),
                input: None,
                shell_report: None,
                attends: false,
                unknown_tool_hint: None,
                narrowed: false,
                active: ActiveSkills::default(),
                skills: None,
            },
            scope: SessionScope {
                view,
                budget: Arc::new(CallBudget::of_run(RunLimits::default().max_calls)),
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

    /// Returns the run's id.
    pub fn run(&self) -> &RunId {
        &self.parts.run.owner.run
    }

    /// Returns the principal that it runs for.
    pub fn principal(&self) -> &Principal {
        &self.parts.run.owner.principal
    }

    /// Returns whose share of limited resources its calls use.
    pub fn share(&self) -> ShareKey {
        ShareKey {
            class: self.parts.run.queue.class(),
            principal: Some(self.principal().clone()),
        }
    }

    /// Returns the principal and run that own its artifacts.
    pub fn owner(&self) -> &ArtifactOwner {
        &self.parts.run.owner
    }

    /// Returns the client's name for itself.
    pub(crate) fn client(&self) -> Option<&str> {
        self.parts.run.client.as_deref()
    }

    /// Returns the input that its client pipes in; `None` for a nested call.
    pub(crate) fn input(&self) -> Option<&CallInput> {
        let of_run = self.parts.run.input.as_deref();
        of_run.filter(|_| self.nest().is_none())
    }

    /// Returns where the shell of its client's command line reports what it holds in the end; `None` for a nested call.
    pub(crate) fn shell_report(&self) -> Option<&Arc<ShellReport>> {
        let of_run = self.parts.run.shell_report.as_ref();
        of_run.filter(|_| self.nest().is_none())
    }

    /// Returns whether the client stays with a command in the background until that ends; false for a nested call.
    pub(crate) fn attends(&self) -> bool {
        self.parts.run.attends && self.nest().is_none()
    }

    /// Returns the entry point by which it was started.
    pub fn entry_point(&self) -> &str {
        &self.parts.run.entry_point
    }

    /// Returns its limits.
    pub fn limits(&self) -> &RunLimits {
        &self.parts.scope.limits
    }

    /// Returns the tools it sees now: its view with the tools that the run expanded, minus those that active skills
    /// take away.
    pub fn tools(&self) -> Arc<ToolsetSnapshot> {
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

    /// Like [`tools`](Self::tools), including what active skills take away: a call of such a tool is denied, not
    /// unknown.
    pub(crate) fn reach(&self) -> Arc<ToolsetSnapshot> {
        self.parts
            .run
            .expanded
            .over(self.parts.scope.view.snapshot())
    }

    /// Returns a receiver of changes to the tools it sees.
    pub fn changes(&self) -> ToolsetChanges {
        let of_run = self
            .parts
            .run
            .expanded
            .changes()
            .and(self.parts.run.active.changes());
        self.parts.scope.view.changes().and(of_run)
    }

    /// Returns the number of calls made so far, including those of its scripts.
    pub fn calls(&self) -> u64 {
        self.parts.scope.budget.used()
    }

    /// Returns whether its budget of calls or time is used up: further calls are refused.
    pub fn is_spent(&self) -> bool {
        self.calls() >= self.parts.scope.limits.max_calls || self.time_left().is_zero()
    }

    /// Cancels its running calls and refuses further ones.
    pub fn cancel(&self) {
        self.parts.scope.cancel.cancel();
    }

    /// Stops its calls from waiting for decisions: they are suspended, and their requests stay pending.
    pub fn suspend(&self) {
        self.parts.scope.leave.cancel();
    }

    /// Cancelled when the run stops waiting for approvals.
    pub(crate) fn waits_cancelled(&self) -> &CancellationToken {
        &self.parts.scope.leave
    }

    /// Returns whether one of its calls has asked a user; always true for a resumed run.
    pub fn has_asked(&self) -> bool {
        self.parts.scope.resumed || self.parts.run.asked_user.load(Ordering::Relaxed)
    }

    /// Returns whether one of its calls is being resumed, or was cut off before its end. A host leaves such a run open, so that the
    /// call can be resumed.
    pub fn has_resumable(&self) -> bool {
        self.parts.run.at_work.has_resumable()
    }

    /// Returns the queue of its requests.
    pub(crate) fn queue(&self) -> &RequestQueue {
        &self.parts.run.queue
    }

    /// Notes that a user is asked.
    pub(crate) fn note_asked(&self) {
        self.parts.run.asked_user.store(true, Ordering::Relaxed);
    }

    /// Waits until no call is running.
    pub async fn idle(&self) {
        self.parts.run.running.idle().await;
    }

    /// Returns how it waits for decisions.
    pub(crate) fn wait_mode(&self) -> WaitMode {
        self.parts
            .scope
            .wait_mode
            .unwrap_or(self.parts.run.wait_mode)
    }

    /// Returns whether its calls wait for decisions at all.
    pub(crate) fn waits_for_decisions(&self) -> bool {
        !matches!(
            self.wait_mode(),
            WaitMode::SuspendAtOnce | WaitMode::DenyAtOnce
        )
    }

    /// Returns the session for calls that are decided while they wait, or denied; at once if no one can decide now. `approver` tells
    /// whether the host has an approver.
    pub(crate) fn deciding_now(&self, approver: bool) -> Self {
        let idle = self.wait_mode() == WaitMode::WhileAsked;
        let idle = idle && !approver && self.approver().is_none();
        let mode = if idle || !self.waits_for_decisions() {
            WaitMode::DenyAtOnce
        } else {
            WaitMode::WaitThenWithdraw
        };
        self.with(|scope| scope.wait_mode = Some(mode))
    }

    /// Returns the approver for its calls, in addition to the executor's own.
    pub(crate) fn approver(&self) -> Option<&Arc<dyn Approver>> {
        self.parts.scope.approver.as_ref()
    }

    /// Returns how long its calls wait for what other processes do: as for decisions, but no longer than its client waits.
    pub(crate) fn patience(&self) -> Duration {
        let limit = self.limits().approval_timeout;
        let client = self.approver().and_then(Approver::patience);
        client.map_or(limit, |client| client.min(limit))
    }

    /// Returns the same session with this approver for the calls made through it, in addition to the executor's own.
    pub fn with_approver(&self, approver: Arc<dyn Approver>) -> Self {
        self.with(|scope| scope.approver = Some(approver))
    }

    /// Returns the same session with this limit on how long calls wait for decisions.
    pub fn with_approval_timeout(&self, limit: Duration) -> Self {
        self.with(|scope| scope.limits.approval_timeout = limit)
    }

    /// Returns the same session for a call that is made again: it shares the requests of an earlier run of the same principal, and
    /// their outcomes.
    pub fn retry_of(&self, run: RunId) -> Self {
        self.with(|scope| scope.asks_in = Some(run))
    }

    /// Returns the run that its requests are stored under.
    pub(crate) fn approval_run(&self) -> &RunId {
        self.parts.scope.asks_in.as_ref().unwrap_or(self.run())
    }

    /// Returns the same session for a suspended call that is resumed.
    pub fn continuing(&self) -> Self {
        self.with(|scope| scope.resumed = true)
    }

    /// Returns its view: the toolset of the tools it sees.
    pub(crate) fn view(&self) -> &Arc<dyn Toolset> {
        &self.parts.scope.view
    }

    /// Returns the call that it is nested in, if any.
    pub(crate) fn nest(&self) -> Option<&Arc<CallScope>> {
        self.parts.scope.nest.as_ref()
    }

    /// Returns whether it resumes a run that another process started and did not finish, or a suspended call.
    pub fn is_resumed(&self) -> bool {
        self.parts.scope.resumed
    }

    /// Returns its cancellation token.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.parts.scope.cancel
    }

    /// Returns the same session with this sink for the calls made through it, in addition to the session's own.
    pub fn watched_by(&self, sink: Arc<dyn ProgressSink>) -> Self {
        let sink = match &self.parts.scope.progress {
            Some(own) => Arc::new(Tee::new(Arc::clone(own), sink)),
            None => sink,
        };
        self.with(|scope| scope.progress = Some(sink))
    }

    /// Creates a child for nested calls: same run, its own lane, its own budget if limits are given, and a view no wider than this one's.
    pub(crate) fn nested(
        &self,
        nest: &Arc<CallScope>,
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
            // It runs within its parent's time, which is counted there.
            child.spent_nanoseconds = Arc::default();
            child.depth += 1;
            if let Some(limits) = limits {
                child.budget = Arc::new(CallBudget::within(
                    &self.parts.scope.budget,
                    limits.max_calls,
                ));
                // Its caller waits no longer.
                let patience = child.limits.approval_timeout;
                child.limits = limits;
                child.limits.approval_timeout = child.limits.approval_timeout.min(patience);
            }
        })
    }

    /// Returns the same run with a changed scope.
    fn with(&self, change: impl FnOnce(&mut SessionScope)) -> Self {
        let mut scope = self.parts.scope.clone();
        change(&mut scope);
        let run = Arc::clone(&self.parts.run);
        Self {
            parts: Arc::new(SessionParts { run, scope }),
        }
    }

    /// Returns whether its calls are those of a script with its own limits.
    pub(crate) fn is_script(&self) -> bool {
        self.parts.scope.budget.is_nested()
    }

    /// Returns the nesting depth of this scope.
    pub(crate) fn depth(&self) -> u32 {
        self.parts.scope.depth
    }

    /// Makes deferred tools listed and callable for this run; returns those that this call expanded. A tool outside the view stays unknown.
    pub fn expand<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<ToolName> {
        self.parts.run.expanded.add(&self.tools(), names)
    }

    /// Spends one call of the budget, and of the budgets around it.
    pub(crate) fn spend_call(&self) -> Result<(), BudgetExhausted> {
        self.parts.scope.budget.spend()
    }

    /// Returns the time left for all calls.
    pub(crate) fn time_left(&self) -> Duration {
        let spent =
            Duration::from_nanos(self.parts.scope.spent_nanoseconds.load(Ordering::Relaxed));
        self.parts.scope.limits.total_timeout.saturating_sub(spent)
    }

    /// Counts the time that a tool ran.
    pub(crate) fn spend_time(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.parts
            .scope
            .spent_nanoseconds
            .fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Returns an id that no other call of the run has.
    pub(crate) fn next_call(&self) -> CallId {
        CallId::numbered(self.parts.run.ids.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns the lane, which decides which calls run in parallel.
    pub(crate) fn lane(&self) -> &Lane {
        &self.parts.scope.lane
    }

    /// Returns true the first time, when the start of the run must be recorded.
    pub(crate) fn open_once(&self) -> bool {
        !self.parts.run.opened.load(Ordering::Acquire)
            && !self.parts.run.opened.swap(true, Ordering::AcqRel)
    }

    /// Returns true the first time, when the end of the run must be recorded.
    pub(crate) fn close_once(&self) -> bool {
        !self.parts.run.closed.swap(true, Ordering::AcqRel)
    }

    /// Returns the running calls that may be resumed.
    pub(crate) fn at_work(&self) -> &Arc<RunningCalls> {
        &self.parts.run.at_work
    }

    /// Returns the state of other runs, if this session may take up their suspended calls.
    pub(crate) fn others(&self) -> Option<&Arc<dyn OtherRuns>> {
        self.parts.run.others.as_ref()
    }

    /// Returns whether the run exists for a single call.
    pub(crate) fn is_for_one_call(&self) -> bool {
        self.parts.run.alone
    }

    pub(crate) fn running(&self) -> &CallCounter {
        &self.parts.run.running
    }

    /// Waits until no call is running and the run's end is recorded; for a closed run.
    pub async fn settled(&self) {
        self.parts.run.running.settled().await;
    }

    /// Returns whether the run has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.parts.run.closed.load(Ordering::Acquire)
    }

    pub(crate) fn progress_sink(&self) -> Option<&Arc<dyn ProgressSink>> {
        self.parts.scope.progress.as_ref()
    }

    /// Returns how progress is batched.
    pub(crate) fn pace(&self) -> Pace {
        self.parts.run.pace
    }
}
