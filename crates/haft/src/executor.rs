//! `Executor`: admits, clears, invokes and shapes calls, with a single exit that records and answers.

use std::sync::Arc;

use tracing::Instrument as _;

use crate::approval::inbox::{InboxError, RequestStatus, WaitingCalls};
use crate::approval::memory::MemoryInbox;
use crate::approval::review::Reviewer;
use crate::approval::suspended::RepeatScope;
use crate::approval::{ApprovalId, ApprovalRequest, Approver, Choice, RuleStore};
use crate::artifact::ArtifactStore;
use crate::audit::{AuditError, AuditEvent, AuditSink, EventKind, RunStart};
use crate::call::ToolCall;
use crate::change::ChangeLog;
use crate::clock;
use crate::error::ErrorKind;
use crate::executor::file_origins::FileOrigins;
use crate::permission::Verdict;
use crate::policy::Policy;
use crate::result::{Failure, Outcome};
use crate::session::{Activation, ActivationResult, Session};
use crate::spec::{CallPhrases, Suspension};
use crate::tokens::{self, Tokenizer};
use crate::toolset::registry::ToolRegistry;
use crate::toolset::{ToolEntry, Toolset};
use crate::untrusted;

mod admit;
mod again;
mod ahead;
mod approve;
mod ask;
mod batch;
mod budgets;
mod call_result;
mod carried;
mod claim;
mod clear;
mod draft;
mod early_end;
mod effects;
mod exit;
mod file_origins;
mod host;
mod inspect;
mod incoming;
mod invoke;
mod judge;
mod learning;
mod named;
mod noted;
mod question;
mod record_draft;
mod refs;
mod running;
mod settlement;
mod shape;
mod shared_permissions;
mod shown_links;
mod sinks;
mod span;
mod reviewed;
mod superseded;
mod no_open_request;

use admit::Admission;
use call_result::OutcomeContent;
use carried::CarriedCall;
use early_end::EarlyEnd;
use exit::OpenCall;
use incoming::{CallMode, IncomingCall};
use learning::LivePolicy;
use settlement::{ResumeDecision, Settlement};
use shape::ShapedResult;
use shared_permissions::PendingPermissions;

/// Runs calls; nothing else calls a tool. Holds no per-run state; clones share its parts.
///
/// Missing parts fail safe: without an approver, a call that needs a decision is denied, or suspended at once if the inbox
/// outlives the process; without an artifact store, oversized results are cut; without rules, only safe calls run.
///
/// ```
/// use std::sync::Arc;
/// use haft::artifact::memory::MemoryArtifacts;
/// use haft::{AutoApprove, Executor, Policy, Risk, Session, ToolCall, ToolRegistry, tool};
///
/// /// Add two numbers.
/// #[tool(concurrency_safe)]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let executor = Executor::new(Policy::workspace())
///     .with_approver(AutoApprove::up_to(Risk::High))
///     .with_artifacts(Arc::new(MemoryArtifacts::new()));
/// let session = Session::new(ToolRegistry::new().with(add)?);
/// let calls = [r#"{"a":2,"b":3}"#, r#"{"a":"x","b":3}"#];
/// let calls = calls.map(|arguments| ToolCall::new("add", arguments));
/// let outcomes = executor.execute_all(&session, calls.into()).await;
/// assert_eq!(outcomes[0].to_model(), r#"{"result":5}"#);
/// assert!(outcomes[1].to_model().starts_with("invalid_arguments: "));
/// executor.close(&session)?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Executor {
    parts: Arc<ExecutorParts>,
}

#[derive(Debug, Clone)]
struct ExecutorParts {
    policy: LivePolicy,
    approver: Option<Arc<dyn Approver>>,
    reviewer: Option<Arc<dyn Reviewer>>,
    inbox: Arc<dyn WaitingCalls>,
    artifacts: Option<Arc<dyn ArtifactStore>>,
    changes: Option<Arc<ChangeLog>>,
    internal: Arc<dyn Toolset>,
    sinks: Vec<Arc<dyn AuditSink>>,
    tokenizer: Arc<dyn Tokenizer>,
    waiting: Arc<PendingPermissions>,
}

impl Executor {
    /// Creates an executor with this policy, without an approver and without audit sinks.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Self {
        let parts = ExecutorParts {
            policy: LivePolicy::new(policy.into()),
            approver: None,
            reviewer: None,
            inbox: Arc::new(MemoryInbox::new()),
            artifacts: None,
            changes: None,
            internal: Arc::new(ToolRegistry::new()),
            sinks: Vec::new(),
            tokenizer: tokens::standard(),
            waiting: Arc::default(),
        };
        Self {
            parts: Arc::new(parts),
        }
    }

    fn with(self, change: impl FnOnce(&mut ExecutorParts)) -> Self {
        let mut parts = Arc::unwrap_or_clone(self.parts);
        change(&mut parts);
        Self {
            parts: Arc::new(parts),
        }
    }

    /// Sends approval requests to this approver.
    pub fn with_approver(self, approver: impl Approver + 'static) -> Self {
        self.with(|parts| parts.approver = Some(Arc::new(approver)))
    }

    /// Has this reviewer say what it thinks of each request before a person is asked. It decides what its powers hold, never more.
    pub fn with_reviewer(self, reviewer: Arc<dyn Reviewer>) -> Self {
        self.with(|parts| parts.reviewer = Some(reviewer))
    }

    /// Stores approval requests, and the calls that wait for them, in this inbox instead of in memory.
    pub fn with_inbox(self, inbox: Arc<dyn WaitingCalls>) -> Self {
        self.with(|parts| parts.inbox = inbox)
    }

    /// Stores large results here.
    pub fn with_artifacts(self, store: Arc<dyn ArtifactStore>) -> Self {
        self.with(|parts| parts.artifacts = Some(store))
    }

    /// Logs here what calls change in the workspace, with the content they replace, so that changes can be undone.
    pub fn with_changes(self, log: Arc<ChangeLog>) -> Self {
        self.with(|parts| parts.changes = Some(log))
    }

    /// Adds tools that no client sees: other tools call them, from within their own calls, and the host when it resumes such a call.
    pub fn with_internal_tools(self, tools: Arc<dyn Toolset>) -> Self {
        self.with(|parts| parts.internal = tools)
    }

    /// Adds an audit sink after those added before. If a sink fails, the call is refused.
    pub fn with_audit(self, sink: Arc<dyn AuditSink>) -> Self {
        self.with(|parts| parts.sinks.push(sink))
    }

    /// Counts tokens with this tokenizer instead of o200k.
    pub fn with_tokenizer(self, tokenizer: Arc<dyn Tokenizer>) -> Self {
        self.with(|parts| parts.tokenizer = tokenizer)
    }

    /// Stores rules that users choose to keep. Without a store, they last as long as the executor.
    pub fn with_rule_store(self, store: Arc<dyn RuleStore>) -> Self {
        self.with(|parts| parts.policy = parts.policy.with_store(store))
    }

    /// Judges calls in all sessions by this policy from now on. A call that is already judged runs as judged; a pending one is judged
    /// again before it runs, and no decision lowers a deny.
    pub fn replace_policy(&self, policy: impl Into<Arc<Policy>>) {
        self.parts.policy.replace(policy.into());
    }

    /// Returns the current policy.
    pub fn policy(&self) -> Arc<Policy> {
        self.parts.policy.now()
    }

    /// Returns the reviewer, if there is one.
    pub fn reviewer(&self) -> Option<&Arc<dyn Reviewer>> {
        self.parts.reviewer.as_ref()
    }

    /// Returns the artifact store, if there is one.
    pub fn artifacts(&self) -> Option<&Arc<dyn ArtifactStore>> {
        self.parts.artifacts.as_ref()
    }

    /// Returns the change log, if there is one.
    pub fn changes(&self) -> Option<&Arc<ChangeLog>> {
        self.parts.changes.as_ref()
    }

    /// Runs one call and returns its outcome. Dropping the future cancels the call; it is recorded as cancelled.
    pub async fn execute(&self, session: &Session, call: ToolCall) -> Outcome {
        execute(&self.parts, session, CallMode::ByClient.incoming(call)).await
    }

    /// Like [`execute`](Self::execute), but for one of the host's internal tools ([`with_internal_tools`](Self::with_internal_tools)):
    /// client requests that are not tool calls, such as reading a server's resource, take the same path.
    pub async fn execute_internal(&self, session: &Session, call: ToolCall) -> Outcome {
        let incoming = IncomingCall {
            internal: true,
            ..CallMode::ByClient.incoming(call)
        };
        execute(&self.parts, session, incoming).await
    }

    /// Resumes a suspended call under its own id, in its run, which the session resumes. The outcome is stored for the client
    /// until it makes the call again. A call that is no longer suspended is a conflict.
    pub async fn resume_suspended(&self, session: &Session, call: ToolCall) -> Outcome {
        execute(&self.parts, session, CallMode::Resumed.incoming(call)).await
    }

    /// Like [`resume_suspended`](Self::resume_suspended), but for an interrupted call, whether or not it had been suspended before.
    pub async fn recover(&self, session: &Session, call: ToolCall) -> Outcome {
        execute(&self.parts, session, CallMode::Recovered.incoming(call)).await
    }

    /// Runs the call of a decided request in its run, which the session resumes. It takes the same path as every call; the decision
    /// answers the policy's request for approval.
    ///
    /// An approval holds only for what the request shows. A call that would now do anything else is a `conflict`; one that a rule
    /// or guard now denies is denied. Both leave the approval unclaimed: it can be resumed once the call matches the request again.
    /// Otherwise the decision is claimed before anything runs, so that only one of several resumers runs it.
    ///
    /// # Errors
    /// The request is not decided, or another call has claimed it, or the inbox does not answer.
    pub async fn resume(&self, session: &Session, id: &ApprovalId) -> Result<Outcome, InboxError> {
        let inbox = &self.parts.inbox;
        let entry = inbox.get(id).await?;
        let entry = entry.ok_or_else(|| InboxError::NotFound(id.clone()))?;
        let request = &entry.request;
        let call = ToolCall::new(request.tool.as_str(), request.arguments.as_str())
            .from_origin(request.origin)
            .with_id(request.call.as_str());
        if request.is_question() {
            inbox.claim(id).await?;
            // The call finds the answer at the point where it asked.
            let outcome = execute(&self.parts, session, CallMode::ByClient.incoming(call)).await;
            if let Ok(text) = outcome.to_stored() {
                inbox.finish(id, &text, true).await?;
            }
            return Ok(outcome);
        }
        let internal = self.parts.is_internal(request);
        let carried = CarriedCall::of(&self.parts, request);
        let choice = entry.decision.as_ref().map(|decision| &decision.choice);
        let ticket = match choice {
            Some(Choice::Approve { .. }) if entry.status == RequestStatus::Approved => {
                ResumeDecision::Approved(Box::new(entry.request))
            }
            _ => ResumeDecision::Claimed(Box::new(ask::ClaimedDecision::of(
                inbox,
                inbox.claim(id).await?,
            )?)),
        };
        let incoming = IncomingCall {
            internal,
            ..CallMode::ByClient.incoming(call)
        };
        let open = OpenCall::new(&self.parts, session, incoming);
        execute_decided(Settlement::with_ticket(ticket), open, carried).await
    }

    /// Checks whether a decided request could run in this session now and would do what the request shows: the checks of
    /// [`resume`](Self::resume) without its effects.
    ///
    /// # Errors
    /// The reason it could not run: the tool does not exist, its arguments do not fit, the policy denies the call, or it would now
    /// do something else (`conflict`).
    pub async fn check_request(
        &self,
        session: &Session,
        request: &ApprovalRequest,
    ) -> Result<(), Failure> {
        let call = ToolCall::new(request.tool.as_str(), request.arguments.as_str())
            .from_origin(request.origin)
            .with_id(request.call.as_str());
        let checked = approve::check(&self.parts, session, call, request).await;
        checked.map_err(EarlyEnd::into_failure)
    }

    /// Returns whether a request is for one of the executor's internal tools.
    pub fn is_internal(&self, request: &ApprovalRequest) -> bool {
        self.parts.is_internal(request)
    }

    /// Returns what is said of the call of a request where it did not run.
    pub fn phrases(&self, request: &ApprovalRequest) -> CallPhrases {
        self.parts.phrases(request)
    }

    /// Returns the key that identifies a call when it is made again; `None` if its arguments do not fit.
    pub fn key(
        &self,
        entry: &ToolEntry,
        scope: RepeatScope<'_>,
        arguments: &str,
    ) -> Option<String> {
        admit::admit_for_inspection(entry, arguments).ok()?;
        Some(again::key_in(scope, entry, arguments))
    }

    /// Returns the inbox of approval requests and of the calls that wait for them.
    pub fn inbox(&self) -> &Arc<dyn WaitingCalls> {
        &self.parts.inbox
    }

    /// Runs the calls of one reply: concurrency-safe calls in parallel, the others in order. Outcomes come in the order of the calls.
    pub async fn execute_all(&self, session: &Session, calls: Vec<ToolCall>) -> Vec<Outcome> {
        batch::execute_all(&self.parts, session, calls).await
    }

    /// Loads a skill into a run for its host. A model, script or client does so by calling `load_skill`, which is recorded.
    pub fn activate(&self, session: &Session, skill: &Activation<'_>) -> ActivationResult {
        session.activate(skill, &self.parts.policy.now(), &*self.parts.tokenizer)
    }

    /// Records the start of the run, once. If the host does not call this, the first call does.
    ///
    /// # Errors
    /// The sink cannot write the record, so no call may run.
    pub fn open(&self, session: &Session) -> Result<(), AuditError> {
        self.parts.open(session)
    }

    /// Suspends a run that has pending requests: cancels running calls and starts no new ones, but does not record the end of the
    /// run. Returns false if the run has already ended.
    pub fn suspend(&self, session: &Session) -> bool {
        session.suspend();
        session.cancel();
        session.close_once()
    }

    /// Finishes a run, once: cancels running calls, unpins its artifacts and records the end after that of the last call.
    ///
    /// # Errors
    /// The sink cannot write the record of the end.
    pub fn close(&self, session: &Session) -> Result<(), AuditError> {
        session.cancel();
        if !session.close_once() {
            return Ok(());
        }
        if let Some(store) = &self.parts.artifacts {
            store.unpin(session.owner());
        }
        self.parts.open(session)?;
        if session.running().finish() {
            return self.parts.end_run(session);
        }
        Ok(())
    }
}

impl ExecutorParts {
    fn open(&self, session: &Session) -> Result<(), AuditError> {
        if !session.open_once() {
            return Ok(());
        }
        if let Some(store) = &self.artifacts {
            store.pin(session.owner());
        }
        let policy = self.policy.now();
        let start = RunStart {
            principal: session.principal().clone(),
            entry_point: session.entry_point().to_owned(),
            workspace: policy.workspace_root().map(str::to_owned),
            profile: policy.profile().as_str().to_owned(),
        };
        let start = Arc::new(start);
        self.record(
            session,
            if session.is_resumed() {
                EventKind::RunResumed(start)
            } else {
                EventKind::RunStarted(start)
            },
        )
    }

    /// Records the end of a run that has no running calls left.
    fn end_run(&self, session: &Session) -> Result<(), AuditError> {
        let recorded = self.record(session, EventKind::RunClosed);
        session.running().recorded();
        recorded
    }

    /// Sends the event to every sink, in order, and returns the first failure.
    fn record(&self, session: &Session, what: EventKind) -> Result<(), AuditError> {
        if self.sinks.is_empty() {
            return Ok(());
        }
        let event = AuditEvent {
            run: session.run().clone(),
            at: clock::now(),
            what,
        };
        sinks::record(&self.sinks, event)
    }

    /// Sends the event to every sink and waits until each has stored it durably.
    async fn record_durably(&self, session: &Session, what: EventKind) -> Result<(), AuditError> {
        let event = AuditEvent {
            run: session.run().clone(),
            at: clock::now(),
            what,
        };
        sinks::record_durably(&self.sinks, &event).await
    }
}

/// The path of every call: direct, nested, batched, from any entry point.
async fn execute(parts: &Arc<ExecutorParts>, session: &Session, incoming: IncomingCall) -> Outcome {
    // Declared first so that the call is dropped before its settlement.
    let mut settlement = Settlement::default();
    let incoming = incoming.resolved(session);
    let mut open = OpenCall::new(parts, session, incoming);
    let end = run_in_span(&mut open, &mut settlement).await;
    if settlement.needs_settling() {
        let heard = open.mode() == CallMode::ByClient;
        // Boxed: few calls have anything to settle, and the future of every call would be as large.
        return Box::pin(settlement.settle(&mut open, end, heard)).await;
    }
    open.close(end)
}

/// The same path for a call with an earlier decision. If another call has claimed the decision, nothing is delivered and no record
/// is left.
async fn execute_decided(
    mut settlement: Settlement,
    mut open: OpenCall<'_>,
    carried: Option<CarriedCall>,
) -> Result<Outcome, InboxError> {
    let end = run_in_span(&mut open, &mut settlement).await;
    let end = match carried {
        Some(carried) => carried.complete(end),
        None => end,
    };
    if let Some(refused) = settlement.take_refusal() {
        open.discard();
        return Err(refused);
    }
    Ok(settlement.settle(&mut open, end, false).await)
}

/// Runs the stages, in the call's tracing span if a subscriber listens.
async fn run_in_span(open: &mut OpenCall<'_>, settlement: &mut Settlement) -> OutcomeContent {
    let span = span::for_call(open);
    if span.is_disabled() {
        let end = stages(open, settlement).await;
        return end.unwrap_or_else(OutcomeContent::from);
    }
    // Boxed: few hosts listen, and the future of every call would be as large.
    let end = Box::pin(stages(open, settlement).instrument(span.clone())).await;
    let end = end.unwrap_or_else(OutcomeContent::from);
    span::end(&span, &end);
    end
}

/// The stages: admit, judge, clear, invoke, shape. Each takes a value that only the stage before can make.
async fn stages(
    open: &mut OpenCall<'_>,
    settlement: &mut Settlement,
) -> Result<OutcomeContent, EarlyEnd> {
    let (parts, session) = (open.parts(), open.session());
    parts.open(session)?;
    let admitted = match admit::admit(parts, session, open)? {
        Admission::Admitted(admitted) => admitted,
        // Boxed, like everything that few calls need: the future of every call would be as large.
        Admission::Unbound(call) => Box::pin(call.admit(open)).await?,
    };
    let entry = admitted.entry();
    // Computed before a user can edit the arguments: the client repeats the call with the arguments it wrote.
    let key = (entry.spec().suspension == Suspension::Within)
        .then(|| again::of(parts, session, entry, admitted.written()));
    let judged = judge::judge(open, admitted)?;
    let cleared = if judged.ruling().verdict == Verdict::Allow && !settlement.has_ticket() {
        clear::clear_allowed(open, settlement, judged).await?
    } else {
        Box::pin(clear::clear(open, settlement, judged)).await?
    };
    if cleared.spec().suspension == Suspension::After && !settlement.is_noted() {
        let (entry, written) = cleared.tool_and_arguments();
        let need = again::DecisionNeed::None;
        Box::pin(again::earlier_outcome(
            open, settlement, entry, written, need,
        ))
        .await?;
    }
    let mut resumed = None;
    if let Some(key) = key {
        resumed = Box::pin(again::find_suspended(open, settlement, key)).await?;
    }
    if open.mode() != CallMode::ByClient && open.resumption().is_none() {
        return Err(
            EarlyEnd::failed(ErrorKind::Conflict, "this call cannot be resumed")
                .advise("nothing ran; make the call again"),
        );
    }
    let session = resumed.as_ref().unwrap_or(session);
    let mut strangers = untrusted::sources(cleared.spec(), cleared.judgement().permissions());
    // A file that the run wrote holds the model's own words: its addresses are none that strangers gave.
    let links = shown_links::LinkReader::of(session, &cleared, &strangers);
    let files = FileOrigins::before(parts, session, &cleared, &mut strangers)?;
    open.record.untrusted(&strangers);
    open.record.properties = cleared.properties(parts, session);
    session.note_properties(open.record.properties);
    open.record.uses = cleared.uses();
    if open.is_internal() {
        // For example, a command's network connection: its output is read while the outer call runs.
        session.note_untrusted(strangers.clone());
    }
    let invoked = invoke::invoke(parts, session, open, cleared).await;
    session.note_untrusted(strangers);
    if let Some(files) = files {
        files.after(session);
    }
    let invoked = invoked?;
    if let Some(links) = links {
        links.read(&invoked);
    }
    match shape::shape(parts, session, invoked)? {
        ShapedResult::Inline(result) => Ok(result),
        ShapedResult::Oversized(result) => Box::pin(result.store(parts, session)).await,
    }
}
