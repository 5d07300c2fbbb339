//! `CallContext`: everything that a running tool may access; only the executor creates it.
//!
//! Neither it nor the session names the executor: nested calls go through `NestedExecutor`, which the executor's parts implement.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::approval::ApprovalId;
use crate::approval::form::QuestionForm;
use crate::arguments::Arguments;
use crate::artifact::ArtifactStore;
use crate::bounds::ShareKey;
use crate::call::{CallId, Origin, Principal, RunId, ToolCall};
use crate::change::{ChangeLog, Changer};
use crate::error::ToolError;
use crate::future::{BoxFuture, run_blocking};
use crate::json::canonical::args_digest;
use crate::judgement::Judgement;
use crate::permission::Effect;
use crate::policy::{AllNames, Denials, Policy, RuleText, SecretFiles};
use crate::progress::{LiveOutput, Progress};
use crate::result::{Outcome, Status, TracedCall};
use crate::session::nest::CallScope;
use crate::session::{
    Activation, ActivationResult, ActiveSkill, CallEndReason, RunGroup, RunLimits, Session,
};
use crate::shape::long::{self, LongText, ShapedText, TextLimit, TextShare};
use crate::spec::{Overflow, ToolName};
use crate::tokens::Tokenizer;
use crate::toolset::{ToolEntry, Toolset, ToolsetSnapshot};
use crate::untrusted::UntrustedSource;
use crate::workspace::{PathFilter, Workspace, WorkspaceView};

mod artifacts;
mod caller;
mod input;
mod proposal;
mod resumption;
mod rules;

pub use artifacts::RunArtifacts;
pub use caller::CallerHandle;
pub use resumption::Resumption;
pub use rules::CurrentRules;

/// Runs nested calls through the executor, which this file must not name.
pub(crate) trait NestedExecutor: Send + Sync {
    /// Runs a nested call, with all checks.
    fn execute_nested(self: Arc<Self>, session: &Session, call: ToolCall)
    -> BoxFuture<'_, Outcome>;

    /// Runs a nested call of one of the host's internal tools.
    fn execute_internal(
        self: Arc<Self>,
        session: &Session,
        call: ToolCall,
    ) -> BoxFuture<'_, Outcome>;

    /// Returns the host's internal tools.
    fn internal_tools(&self) -> Arc<ToolsetSnapshot>;

    /// Returns whether the host has its own approver.
    fn has_approver(&self) -> bool;

    /// Returns whether a call of this session can get a decision: from an approver now, or from an operator who opens the inbox later.
    fn can_get_decision(&self, session: &Session) -> bool;

    /// Returns the artifact store, if there is one.
    fn artifacts(&self) -> Option<&Arc<dyn ArtifactStore>>;

    /// Returns the change log, if there is one.
    fn changes(&self) -> Option<&Arc<ChangeLog>>;

    /// Returns the current policy.
    fn policy(&self) -> Arc<Policy>;

    fn tokenizer(&self) -> &dyn Tokenizer;

    /// Applies a rule that a user accepted, and stores it.
    fn keep_rule(&self, rule: RuleText, approval: &ApprovalId, by: &str) -> Result<(), ToolError>;

    /// Asks the user a question and returns the answers.
    fn ask(
        self: Arc<Self>,
        question: UserQuestion<'_>,
    ) -> BoxFuture<'_, Result<Map<String, Value>, ToolError>>;
}

/// A question that a running tool asks the user.
pub(crate) struct UserQuestion<'a> {
    pub(crate) context: &'a CallContext,
    pub(crate) arguments: &'a Arguments,
    pub(crate) form: QuestionForm,
    pub(crate) wait: Duration,
}

/// Everything that a running tool may access. Only the executor can create one:
/// ```compile_fail
/// let context = haft::context::CallContext { };
/// ```
#[derive(Clone)]
pub struct CallContext {
    pub(crate) call: CallId,
    pub(crate) origin: Origin,
    pub(crate) session: Session,
    pub(crate) host: Arc<dyn NestedExecutor>,
    /// The state of the calls made within it.
    pub(crate) nest: Arc<CallScope>,
    /// Its side of the live channel, if there is a progress sink.
    pub(crate) live: Option<Arc<LiveOutput>>,
    /// The tool's entry, as the executor found it.
    pub(crate) entry: Arc<ToolEntry>,
    /// How it is resumed, if it is.
    pub(crate) resumption: Option<Resumption>,
    /// The call's time limit.
    pub(crate) limit: Duration,
    pub(crate) judgement: Arc<Judgement>,
}

impl CallContext {
    /// Returns the call's id.
    pub fn call_id(&self) -> &CallId {
        &self.call
    }

    /// Returns the run that the call belongs to.
    pub fn run(&self) -> &RunId {
        self.session.run()
    }

    /// Returns the call's origin.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the judgement of the call. A tool does only what it clears ([`Judgement::cleared`]).
    pub fn judgement(&self) -> &Arc<Judgement> {
        &self.judgement
    }

    /// Returns an error unless this effect was judged: [`Judgement::cleared`].
    ///
    /// # Errors
    /// `denied`: the call never declared this effect.
    pub fn cleared(&self, effect: &Effect) -> Result<(), ToolError> {
        self.judgement.cleared(effect)
    }

    /// Returns whether a user saw this very call, with the files it changes, and approved it.
    pub fn is_approved(&self) -> bool {
        self.judgement.is_approved()
    }

    /// Returns the tool's workspace as this call may see it: lists, searches and suggested names omit what the policy's rules do
    /// not let the tool read. The call was judged by the folder that it names, so its findings are filtered here.
    pub fn view(&self, workspace: &Workspace) -> WorkspaceView {
        let policy = self.host.policy();
        let tool = self.entry.spec().name.clone();
        let names = Arc::new(AllNames::new(Arc::clone(&policy), workspace));
        let filter = policy.withholds_from(tool.as_str()).then(|| {
            let names = Arc::clone(&names);
            let shows = move |path: &str| {
                names.all(path, &|policy, name| policy.may_show(tool.as_str(), name))
            };
            Arc::new(shows) as Arc<dyn Fn(&str) -> bool + Send + Sync>
        });
        let readable = self.secret_filter(names);
        workspace.filtered(filter).reading(readable)
    }

    /// Returns a filter for files whose content may be read although the call was not judged by their paths.
    fn secret_filter(&self, names: Arc<AllNames>) -> Option<Arc<PathFilter>> {
        if self.host.policy().secret_files() == SecretFiles::Allow {
            return None;
        }
        let (spec, released) = (Arc::clone(self.entry.spec()), self.session.released());
        let reads = move |path: &str| {
            names.all(path, &|policy, name| {
                !policy.withholds_secret(&spec, name, &released)
            })
        };
        Some(Arc::new(reads))
    }

    /// Returns the paths that deny rules and secret names hide from every program, for code that starts one.
    pub fn denials(&self) -> Denials {
        self.host.policy().denials_after(&self.session.released())
    }

    /// Returns the changer through which this call changes files. If the host has a change log, changes are logged first.
    pub fn changer(&self, workspace: &Workspace) -> Changer {
        self.changer_of(workspace, self.session.run(), &self.call)
    }

    /// Returns the changer for another call of the run, whose changes this one applies.
    pub fn changer_of(&self, workspace: &Workspace, run: &RunId, call: &CallId) -> Changer {
        match self.host.changes() {
            Some(log) => Changer::of(workspace, log, run, call),
            None => workspace.unrecorded(),
        }
    }

    /// Asks the user a question, in the same inbox as approval requests, and waits for at most `wait`. Some answers may be missing;
    /// all are if no answer came in time. `arguments` are those of the call, which is made again with them if it is suspended;
    /// in that case this returns an error that the tool must pass on.
    ///
    /// A concurrency-safe tool does not block other calls meanwhile: they may change what it has read.
    ///
    /// # Errors
    /// The form is invalid (`invalid_arguments`), there is no approver (`unavailable`), the question was declined (`denied`) or
    /// withdrawn, or the call is suspended until it is answered.
    pub async fn ask(
        &self,
        arguments: &Arguments,
        form: QuestionForm,
        wait: Duration,
    ) -> Result<Map<String, Value>, ToolError> {
        let question = UserQuestion {
            context: self,
            arguments,
            form,
            wait,
        };
        Arc::clone(&self.host).ask(question).await
    }

    /// Returns the principal that the session runs for.
    pub fn principal(&self) -> &Principal {
        self.session.principal()
    }

    /// Returns whose share of limited resources the call uses.
    pub fn share(&self) -> ShareKey {
        self.session.share()
    }

    /// Returns the live channel to screens.
    pub fn progress(&self) -> Progress {
        Progress::new(self.live.clone(), self.session.pace())
    }

    /// Returns the run's artifacts.
    ///
    /// # Errors
    /// `unavailable` if the host has no artifact store.
    pub fn artifacts(&self) -> Result<RunArtifacts, ToolError> {
        let store = self.host.artifacts();
        let store =
            store.ok_or_else(|| ToolError::unavailable("this host has no artifact store"))?;
        Ok(RunArtifacts {
            store: Arc::clone(store),
            owner: self.session.owner().clone(),
        })
    }

    /// Returns whether the session has been cancelled. If only the call is cancelled, it is dropped.
    pub fn is_cancelled(&self) -> bool {
        self.session.cancellation().is_cancelled()
    }

    /// Completes when the session is cancelled.
    pub async fn cancelled(&self) {
        self.session.cancellation().cancelled().await;
    }

    /// Completes when the call must end: its time is over, or the session was cancelled. A tool that waits for this has a short time
    /// to return what it has, which the outcome shows beside the failure; any other tool is dropped at once.
    pub async fn ending(&self) -> CallEndReason {
        self.nest.ending().await
    }

    /// Returns the call's time limit, not counting waits for decisions.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns how much of the inline limit a text uses; the whole limit if it exceeds it.
    pub fn cost(&self, text: &str) -> usize {
        let limits = self.session.limits();
        let (tokenizer, limit) = limits.inline(self.entry.spec(), self.host.tokenizer());
        tokenizer.fits(text, limit).unwrap_or(limit)
    }

    /// Returns the longest beginning of a text that a result may return inline, with `reserve` left for its other content.
    pub fn fitting<'t>(&self, text: &'t str, reserve: usize) -> &'t str {
        let limits = self.session.limits();
        let (tokenizer, limit) = limits.inline(self.entry.spec(), self.host.tokenizer());
        let room = limit.saturating_sub(reserve);
        if text.len() <= room || tokenizer.fits(text, room).is_some() {
            return text;
        }
        // Cutting the last token may turn it into two.
        let end = tokenizer.head(text, room.saturating_sub(2));
        text.get(..end).unwrap_or_default()
    }

    /// Fits long texts into what a result may return inline, less `reserve` for its other content (half at most). A text shown only
    /// in part is stored whole as an artifact, to be named in the result. `json` tells whether the texts become strings of the
    /// result's data.
    ///
    /// # Errors
    /// A text cannot be read back, or it is too long and the tool's overflow setting is to fail.
    pub async fn show(
        &self,
        texts: Vec<LongText>,
        json: bool,
        reserve: usize,
    ) -> Result<Vec<ShapedText>, ToolError> {
        let spec = self.entry.spec();
        let overflow = spec.overflow.unwrap_or(Overflow::Store);
        let texts: Arc<[LongText]> = texts.into();
        let read = Arc::clone(&texts);
        let shares = move |context: &Self| long::measure(&read, context.room(json, reserve));
        let shares = self.read_back(&texts, shares).await?;
        let artifacts = self.artifacts().ok().filter(|_| overflow != Overflow::Clip);
        let mut parts = Vec::with_capacity(shares.len());
        for (share, text) in shares.into_iter().zip(&*texts) {
            let kept = match (&share, &artifacts) {
                (TextShare::Part(_), Some(artifacts)) => Some(
                    artifacts
                        .put_from(long::TEXT, Arc::clone(&text.source))
                        .await,
                ),
                _ => None,
            };
            parts.push((share, kept));
        }
        let read = Arc::clone(&texts);
        let show =
            move |context: &Self| long::show(&read, context.room(json, reserve), overflow, parts);
        self.read_back(&texts, show).await
    }

    /// Reads texts; on a blocking thread, unless they are short.
    async fn read_back<T: Send + 'static>(
        &self,
        texts: &[LongText],
        read: impl FnOnce(&Self) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        if long::are_short(texts) {
            return read(self);
        }
        let context = self.clone();
        let read = run_blocking(move || read(&context)).await;
        read.map_err(|e| ToolError::unavailable("the host is shutting down").with_source(e))?
    }

    /// Returns the room that a result has for texts, less `reserve`.
    fn room(&self, json: bool, reserve: usize) -> TextLimit<'_> {
        let limits = self.session.limits();
        let (tokenizer, limit) = limits.inline(self.entry.spec(), self.host.tokenizer());
        TextLimit {
            tokenizer,
            limit: limit - reserve.min(limit / 2),
            json,
        }
    }

    /// Makes a nested call, on the same path as every other call.
    pub async fn call(&self, name: impl Into<String>, arguments: impl Into<String>) -> Outcome {
        let call = ToolCall::new(name, arguments).from_origin(Origin::Chain);
        let nested = self.session.nested(&self.nest, None, None);
        Arc::clone(&self.host).execute_nested(&nested, call).await
    }

    /// Makes a nested call of one of the host's internal tools, which no client sees
    /// ([`Executor::with_internal_tools`](crate::executor::Executor::with_internal_tools)). It is judged, approved and recorded
    /// like every call. If it is suspended, it continues by itself.
    pub async fn call_internal(
        &self,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Outcome {
        let call = ToolCall::new(name, arguments).from_origin(self.origin);
        let nested = self.session.nested(&self.nest, None, None);
        Arc::clone(&self.host).execute_internal(&nested, call).await
    }

    /// Like [`call_internal`](Self::call_internal), for a call that must be decided while it waits: it is denied at once if no one
    /// can decide now, denied if no one decides in time, and never suspended. When `ended` completes, the call is no longer needed
    /// and is cancelled. If it ends without a decision, its request is withdrawn.
    pub async fn call_internal_now(
        &self,
        name: impl Into<String>,
        arguments: impl Into<String>,
        ended: impl Future<Output = ()>,
    ) -> Outcome {
        let call = ToolCall::new(name, arguments).from_origin(self.origin);
        let nested = self.session.nested(&self.nest, None, None);
        let nested = nested.deciding_now(self.host.has_approver());
        let mut called = pin!(Arc::clone(&self.host).execute_internal(&nested, call));
        tokio::select! {
            biased;
            outcome = called.as_mut() => return outcome,
            () = ended => nested.cancel(),
        }
        called.await
    }

    /// Notes untrusted content that this call reads beyond what its effects state, by [`UntrustedSource`]s as they were recorded: for
    /// example, a memory that such a run wrote.
    pub fn note_untrusted(&self, sources: Vec<UntrustedSource>) {
        self.session.note_untrusted(sources);
    }

    /// Notes the addresses in a text that this call read, beyond what its result shows: such a link may be followed back to where the text
    /// came from.
    pub fn note_links(&self, text: &str) {
        self.session.links().note_all_in(text, "");
    }

    /// Returns the untrusted sources that the run has read.
    pub fn untrusted(&self) -> Arc<[UntrustedSource]> {
        self.session.untrusted()
    }

    /// Returns whether this session resumes a run that another process started and did not finish, or a suspended call.
    pub fn is_resumed(&self) -> bool {
        self.session.is_resumed()
    }

    /// Returns how this very call is resumed, if it was suspended or interrupted before. Such a call must not start over.
    pub fn resumption(&self) -> Option<&Resumption> {
        self.resumption.as_ref()
    }

    /// Returns the session's toolset, to be narrowed for a [`scope`](Self::scope).
    pub fn toolset(&self) -> Arc<dyn Toolset> {
        Arc::clone(self.session.view())
    }

    /// Returns the tools that the session sees now, for tools that find or expand others.
    pub fn tools(&self) -> Arc<ToolsetSnapshot> {
        self.session.tools()
    }

    /// Makes deferred tools listed and callable for this run; returns those that this call expanded.
    pub fn expand<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<ToolName> {
        self.session.expand(names)
    }

    /// Loads a skill into the run: from now on its limits apply to every call of the run, from any entry point.
    pub fn activate(&self, skill: &Activation<'_>) -> ActivationResult {
        let (policy, tokenizer) = (self.host.policy(), self.host.tokenizer());
        self.session.activate(skill, &policy, tokenizer)
    }

    /// Returns the skills active in this run, oldest first.
    pub fn active_skills(&self) -> Arc<Vec<Arc<ActiveSkill>>> {
        self.session.active_skills()
    }

    /// Returns the runs that the call's run belongs to, if it is one of several.
    pub fn group(&self) -> Option<&RunGroup> {
        self.session.group()
    }

    /// Returns whether the session sees a skill of this name.
    pub fn sees_skill(&self, name: &str) -> bool {
        self.session.sees_skill(name)
    }

    /// Creates a child session with its own limits and, if given, a narrower view: a scope for many nested calls.
    pub fn scope(&self, limits: RunLimits, view: Option<Arc<dyn Toolset>>) -> ChildRun {
        let session = self.session.nested(&self.nest, Some(limits), view);
        ChildRun {
            session,
            host: Arc::clone(&self.host),
            nest: Arc::clone(&self.nest),
            started: Instant::now(),
        }
    }
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallContext")
            .field("call", &self.call)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// A child session with its own budget and deadline; its view is never wider than the parent's.
#[derive(Clone)]
pub struct ChildRun {
    session: Session,
    host: Arc<dyn NestedExecutor>,
    nest: Arc<CallScope>,
    started: Instant,
}

impl ChildRun {
    /// Makes a call within the scope, with origin `chain`.
    pub async fn call(&self, name: impl Into<String>, arguments: impl Into<String>) -> Outcome {
        let call = ToolCall::new(name, arguments).from_origin(Origin::Chain);
        Arc::clone(&self.host)
            .execute_nested(&self.session, call)
            .await
    }

    /// Counts and traces a call that is answered from its record without running. Returns false if the budget is used up.
    pub fn replayed(&self, name: &str, arguments: &str, status: Status) -> bool {
        let traced = self.nest.begin(name, args_digest(arguments));
        let within = self.session.spend_call().is_ok();
        if let Some(seq) = traced {
            self.nest.end(seq, status, 0.0);
        }
        within
    }

    /// Returns the calls made so far, in the order in which they began. A running call is shown as cancelled, which it will be if it
    /// is dropped. The outcome of the call that the scope belongs to has the same trace.
    pub fn trace(&self) -> Vec<TracedCall> {
        self.nest.trace()
    }

    /// Completes when the scope has existed for `limit`, not counting time in which one of its calls waited for a decision.
    pub async fn elapsed(&self, limit: Duration) {
        self.nest.elapsed(self.started, limit).await;
    }

    /// Returns whether its calls have used up their time limit.
    pub fn is_late(&self) -> bool {
        self.session.time_left().is_zero()
    }

    /// Returns how long its calls have waited for decisions.
    pub fn waited(&self) -> Duration {
        self.nest.waited().0
    }

    /// Stops its calls from waiting for decisions: they are suspended.
    pub fn suspend(&self) {
        self.session.suspend();
    }

    /// Returns the child session.
    pub fn session(&self) -> &Session {
        &self.session
    }
}

impl std::fmt::Debug for ChildRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChildRun")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
