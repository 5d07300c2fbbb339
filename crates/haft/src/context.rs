//! `CallContext`: all that a running tool may touch; made only by the executor.

use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::approval::ApprovalId;
use crate::approval::form::Form;
use crate::arguments::Arguments;
use crate::artifact::source::Source;
use crate::artifact::{ArtifactError, ArtifactInfo, ArtifactRef, ArtifactStore, Owner};
use crate::call::{CallId, Origin, Principal, RunId, ToolCall};
use crate::change::{ChangeLog, Changer};
use crate::error::ToolError;
use crate::future::{BoxFuture, run_blocking};
use crate::json::canonical::args_digest;
use crate::judgement::Judgement;
use crate::permission::{Effect, Permission, Verdict};
use crate::policy::{Denials, EffectVerdict, JudgedCall, Policy, RuleText, SecretFiles};
use crate::progress::{Live, Progress};
use crate::result::{Outcome, Status, TracedCall};
use crate::session::nest::Nest;
use crate::session::{Activated, Activation, ActiveSkill, Ending, RunLimits, Session};
use crate::shape::long::{self, Long, Room, ShapedText, Share};
use crate::spec::{Overflow, ToolName};
use crate::tokens::Tokenizer;
use crate::toolset::{Snapshot, ToolEntry, Toolset};
use crate::untrusted::UntrustedSource;
use crate::workspace::{PathFilter, Workspace, WorkspaceView};

mod caller;
mod input;
mod proposal;
mod resumption;
mod rules;

pub use caller::CallerHandle;
pub use resumption::Resumption;
pub use rules::CurrentRules;

/// Runs nested calls through the executor, which this file must not name.
pub(crate) trait Host: Send + Sync {
    /// One nested call, all checks included.
    fn execute_nested(self: Arc<Self>, session: &Session, call: ToolCall)
    -> BoxFuture<'_, Outcome>;

    /// The same for a call of one of the host's own tools.
    fn execute_internal(
        self: Arc<Self>,
        session: &Session,
        call: ToolCall,
    ) -> BoxFuture<'_, Outcome>;

    /// The host's own tools.
    fn internal_tools(&self) -> Arc<Snapshot>;

    /// Whether it has an approver of its own.
    fn has_approver(&self) -> bool;

    /// Where artifacts are kept, if anywhere.
    fn artifacts(&self) -> Option<&Arc<dyn ArtifactStore>>;

    /// Where it is noted what calls change, if anywhere.
    fn changes(&self) -> Option<&Arc<ChangeLog>>;

    /// The policy, which reads what a skill restricts a run to.
    fn policy(&self) -> Arc<Policy>;

    /// How tokens are counted.
    fn tokenizer(&self) -> &dyn Tokenizer;

    /// Puts a rule in force that a user accepted, and keeps it.
    fn keep_rule(&self, rule: RuleText, approval: &ApprovalId, by: &str) -> Result<(), ToolError>;

    /// A question to the person, and what they answered.
    fn ask(
        self: Arc<Self>,
        question: Asking<'_>,
    ) -> BoxFuture<'_, Result<Map<String, Value>, ToolError>>;
}

/// A question that a running tool puts to the person.
pub(crate) struct Asking<'a> {
    pub(crate) context: &'a CallContext,
    pub(crate) arguments: &'a Arguments,
    pub(crate) form: Form,
    pub(crate) wait: Duration,
}

/// All that a running tool may touch. Nobody outside the executor can make one:
/// ```compile_fail
/// let context = haft::context::CallContext { };
/// ```
#[derive(Clone)]
pub struct CallContext {
    pub(crate) call: CallId,
    pub(crate) origin: Origin,
    pub(crate) session: Session,
    pub(crate) host: Arc<dyn Host>,
    /// What the call keeps of those made within it.
    pub(crate) nest: Arc<Nest>,
    /// Its side of the live channel, where somebody watches.
    pub(crate) live: Option<Arc<Live>>,
    /// The tool, as the executor found it.
    pub(crate) entry: Arc<ToolEntry>,
    /// How it is resumed, if it is.
    pub(crate) resumption: Option<Resumption>,
    /// How long it may take.
    pub(crate) limit: Duration,
    /// What was judged of the call.
    pub(crate) judgement: Arc<Judgement>,
}

impl CallContext {
    /// The call's id.
    pub fn call_id(&self) -> &CallId {
        &self.call
    }

    /// The run it belongs to.
    pub fn run(&self) -> &RunId {
        self.session.run()
    }

    /// Who made the call.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// What was judged of the call. A tool does what this clears ([`Judgement::cleared`]) and nothing else.
    pub fn judgement(&self) -> &Arc<Judgement> {
        &self.judgement
    }

    /// Fails unless this effect was judged: [`Judgement::cleared`].
    ///
    /// # Errors
    /// `denied`: the call never said that it would do this.
    pub fn cleared(&self, effect: &Effect) -> Result<(), ToolError> {
        self.judgement.cleared(effect)
    }

    /// Whether a user saw this very call, with the files it changes, and approved it.
    pub fn is_approved(&self) -> bool {
        self.judgement.is_approved()
    }

    /// The tool's workspace as this call may see it: lists, searches and near names leave out what the policy's rules do
    /// not let the tool read. Rules judged the call by the folder that it names, so what it finds below is filtered here.
    pub fn view(&self, workspace: &Workspace) -> WorkspaceView {
        let policy = self.host.policy();
        let tool = self.entry.spec().name.clone();
        let filter = policy.withholds_from(tool.as_str()).then(|| {
            let shows = move |path: &str| policy.may_show(tool.as_str(), path);
            Arc::new(shows) as Arc<dyn Fn(&str) -> bool + Send + Sync>
        });
        let readable = self.secret_filter();
        workspace.filtered(filter).reading(readable)
    }

    /// Says whether what a file holds may be read, though the call was not judged by its path.
    fn secret_filter(&self) -> Option<Arc<PathFilter>> {
        let policy = self.host.policy();
        if policy.secret_files() == SecretFiles::Allow {
            return None;
        }
        let (spec, released) = (Arc::clone(self.entry.spec()), self.session.released());
        let reads = move |path: &str| !policy.withholds_secret(&spec, path, &released);
        Some(Arc::new(reads))
    }

    /// The paths that the policy's deny rules, and the names of secrets, keep from every program, for what starts one.
    pub fn denials(&self) -> Denials {
        self.host.policy().denials_after(&self.session.released())
    }

    /// What this call changes files with: what it does is noted first, where the host keeps notes.
    pub fn changer(&self, workspace: &Workspace) -> Changer {
        self.changer_of(workspace, self.session.run(), &self.call)
    }

    /// The same for what another call of the run did, whose changes this one applies.
    pub fn changer_of(&self, workspace: &Workspace, run: &RunId, call: &CallId) -> Changer {
        match self.host.changes() {
            Some(log) => Changer::of(workspace, log, run, call),
            None => workspace.unrecorded(),
        }
    }

    /// Puts a question to the person, in the same place where calls wait for them, and waits for at most `wait`. Some
    /// answers may be missing; all are where nobody answered in time. `arguments` are those of the call, which is made
    /// again with them should it be suspended: that is an error here, to be passed on.
    ///
    /// A tool that is safe beside others does not keep them waiting meanwhile: other calls of the run may change what it has
    /// looked at.
    ///
    /// # Errors
    /// The form is not valid (`invalid_arguments`), there is no approver (`unavailable`), the question was declined (`denied`) or
    /// withdrawn, or the call is suspended until it is answered.
    pub async fn ask(
        &self,
        arguments: &Arguments,
        form: Form,
        wait: Duration,
    ) -> Result<Map<String, Value>, ToolError> {
        let question = Asking {
            context: self,
            arguments,
            form,
            wait,
        };
        Arc::clone(&self.host).ask(question).await
    }

    /// For whom the session runs.
    pub fn principal(&self) -> &Principal {
        self.session.principal()
    }

    /// The live channel to screens.
    pub fn progress(&self) -> Progress {
        Progress::new(self.live.clone(), self.session.pace())
    }

    /// The run's artifacts; an error where the host keeps none.
    ///
    /// # Errors
    /// `unavailable` where the host has no artifact store.
    pub fn artifacts(&self) -> Result<RunArtifacts, ToolError> {
        let store = self.host.artifacts();
        let store = store.ok_or_else(|| ToolError::unavailable("this host keeps no artifacts"))?;
        Ok(RunArtifacts {
            store: Arc::clone(store),
            owner: self.session.owner().clone(),
        })
    }

    /// Whether the session has been cancelled. A call that is cancelled alone is dropped.
    pub fn is_cancelled(&self) -> bool {
        self.session.cancellation().is_cancelled()
    }

    /// Completes when the session is cancelled.
    pub async fn cancelled(&self) {
        self.session.cancellation().cancelled().await;
    }

    /// Completes when the call must end: its time is over, or the session was cancelled. A tool that waits for this has a
    /// moment to return what it has so far, which the outcome shows beside the failure; any other is dropped at once.
    pub async fn ending(&self) -> Ending {
        self.nest.ending().await
    }

    /// How long the call may take, without waits for people.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// What a text costs of what a result may return inline; all of it where it is over that.
    pub fn cost(&self, text: &str) -> usize {
        let limits = self.session.limits();
        let (tokenizer, limit) = limits.inline(self.entry.spec(), self.host.tokenizer());
        tokenizer.fits(text, limit).unwrap_or(limit)
    }

    /// The longest beginning of a text that a result may return inline beside `reserve` for what else it holds.
    pub fn fitting<'t>(&self, text: &'t str, reserve: usize) -> &'t str {
        let limits = self.session.limits();
        let (tokenizer, limit) = limits.inline(self.entry.spec(), self.host.tokenizer());
        let room = limit.saturating_sub(reserve);
        if text.len() <= room || tokenizer.fits(text, room).is_some() {
            return text;
        }
        // Where it is cut, the last token may become two.
        let end = tokenizer.head(text, room.saturating_sub(2));
        text.get(..end).unwrap_or_default()
    }

    /// Shows long texts within what a result may return inline, less `reserve` for what else it holds (half at most). What is shown
    /// in part is kept whole as an artifact, to be named in the result. `json` is whether the texts become strings of the
    /// result's data.
    ///
    /// # Errors
    /// A text cannot be read back; or it is too long and the tool is to fail then.
    pub async fn show(
        &self,
        texts: Vec<Long>,
        json: bool,
        reserve: usize,
    ) -> Result<Vec<ShapedText>, ToolError> {
        let spec = self.entry.spec();
        let overflow = spec.overflow.unwrap_or(Overflow::Store);
        let texts: Arc<[Long]> = texts.into();
        let read = Arc::clone(&texts);
        let shares = move |context: &Self| long::measure(&read, context.room(json, reserve));
        let shares = self.read_back(&texts, shares).await?;
        let artifacts = self.artifacts().ok().filter(|_| overflow != Overflow::Clip);
        let mut parts = Vec::with_capacity(shares.len());
        for (share, text) in shares.into_iter().zip(&*texts) {
            let kept = match (&share, &artifacts) {
                (Share::Part(_), Some(artifacts)) => Some(
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

    /// Reads texts, away from where others run unless they are short.
    async fn read_back<T: Send + 'static>(
        &self,
        texts: &[Long],
        read: impl FnOnce(&Self) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        if long::are_short(texts) {
            return read(self);
        }
        let context = self.clone();
        let read = run_blocking(move || read(&context)).await;
        read.map_err(|e| ToolError::unavailable("the host is shutting down").with_source(e))?
    }

    /// The room that a result has for texts, less `reserve`.
    fn room(&self, json: bool, reserve: usize) -> Room<'_> {
        let limits = self.session.limits();
        let (tokenizer, limit) = limits.inline(self.entry.spec(), self.host.tokenizer());
        Room {
            tokenizer,
            limit: limit - reserve.min(limit / 2),
            json,
        }
    }

    /// A nested call, by the same path as every other.
    pub async fn call(&self, name: impl Into<String>, arguments: impl Into<String>) -> Outcome {
        let call = ToolCall::new(name, arguments).from_origin(Origin::Chain);
        let nested = self.session.nested(&self.nest, None, None);
        Arc::clone(&self.host).execute_nested(&nested, call).await
    }

    /// A nested call of one of the host's own tools, which no caller sees
    /// ([`Executor::with_internal_tools`](crate::executor::Executor::with_internal_tools)): judged, asked about and recorded
    /// like every call. One that is suspended goes on by itself.
    pub async fn call_internal(
        &self,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Outcome {
        let call = ToolCall::new(name, arguments).from_origin(self.origin);
        let nested = self.session.nested(&self.nest, None, None);
        Arc::clone(&self.host).execute_internal(&nested, call).await
    }

    /// The same for a call that is decided while it waits: it is denied at once where no one can decide now, and when no one
    /// did in time, and is never suspended. When `ended` completes it is of no use any more, and is cancelled. What is asked
    /// about it is withdrawn however it ends without a decision.
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

    /// What the policy says of each permission by itself, were it that of one of the host's own tools; denied where
    /// there is no such tool.
    pub fn verdicts(&self, name: &str, permissions: &[Permission]) -> Vec<EffectVerdict> {
        self.rules().verdicts(name, permissions)
    }

    /// What the policy says, also when the call has ended. It holds nothing of the call or its session but what the run
    /// has used of the budgets.
    pub fn rules(&self) -> CurrentRules {
        CurrentRules::of(&self.host, self.session.run_uses())
    }

    /// Notes that this call reads what strangers may have written beyond what its effects say, by [`UntrustedSource`]s as they were recorded: a
    /// memory that such a run wrote.
    pub fn note_untrusted(&self, sources: Vec<UntrustedSource>) {
        self.session.note_untrusted(sources);
    }

    /// What the run has read that strangers may have written.
    pub fn untrusted(&self) -> Arc<[UntrustedSource]> {
        self.session.untrusted()
    }

    /// Whether the policy allows this call's tool these permissions without a person.
    pub fn allows(&self, permissions: &[Permission]) -> bool {
        let arguments = Arguments::new("{}".to_owned());
        let (released, untrusted) = (self.session.released(), self.session.untrusted());
        let call = JudgedCall {
            released: &released,
            untrusted: &untrusted,
            ..JudgedCall::new(self.entry.spec(), &arguments, permissions)
        };
        self.host.policy().judge(&call).verdict == Verdict::Allow
    }

    /// Whether the run was begun by another process that did not end it, and is gone on with here.
    pub fn is_resumed(&self) -> bool {
        self.session.is_resumed()
    }

    /// How this very call is resumed, if it was suspended or interrupted before. Nothing of such a call may run from its
    /// start.
    pub fn resumption(&self) -> Option<&Resumption> {
        self.resumption.as_ref()
    }

    /// Where the session's tools are found: to be narrowed for a [`scope`](Self::scope).
    pub fn toolset(&self) -> Arc<dyn Toolset> {
        Arc::clone(self.session.view())
    }

    /// The tools that the session sees now, for tools that find or expand others.
    pub fn tools(&self) -> Arc<Snapshot> {
        self.session.tools()
    }

    /// Makes deferred tools listed and callable for this run; tells which were expanded now.
    pub fn expand<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<ToolName> {
        self.session.expand(names)
    }

    /// Loads a skill into the run: from now on its limits hold for every call of the run, whatever its entry point.
    pub fn activate(&self, skill: &Activation<'_>) -> Activated {
        let (policy, tokenizer) = (self.host.policy(), self.host.tokenizer());
        self.session.activate(skill, &policy, tokenizer)
    }

    /// The skills active in this run, oldest first.
    pub fn active_skills(&self) -> Arc<Vec<Arc<ActiveSkill>>> {
        self.session.active_skills()
    }

    /// Whether the session sees a skill of this name.
    pub fn sees_skill(&self, name: &str) -> bool {
        self.session.sees_skill(name)
    }

    /// A child session with limits of its own (and, if given, a narrower view): a scope for many nested calls.
    pub fn scope(&self, limits: RunLimits, view: Option<Arc<dyn Toolset>>) -> ChildRun {
        let session = self.session.nested(&self.nest, Some(limits), view);
        ChildRun {
            session,
            host: Arc::clone(&self.host),
            nest: Arc::clone(&self.nest),
            begun: Instant::now(),
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

/// A child session: own budget, own deadline; its view is never wider than the parent's.
#[derive(Clone)]
pub struct ChildRun {
    session: Session,
    host: Arc<dyn Host>,
    nest: Arc<Nest>,
    begun: Instant,
}

impl ChildRun {
    /// A call within the scope, origin `chain`.
    pub async fn call(&self, name: impl Into<String>, arguments: impl Into<String>) -> Outcome {
        let call = ToolCall::new(name, arguments).from_origin(Origin::Chain);
        Arc::clone(&self.host)
            .execute_nested(&self.session, call)
            .await
    }

    /// Counts and traces a call that is answered from a record of it: nothing runs. False when the budget is used up.
    pub fn replayed(&self, name: &str, arguments: &str, status: Status) -> bool {
        let traced = self.nest.begin(name, args_digest(arguments));
        let within = self.session.spend_call().is_ok();
        if let Some(seq) = traced {
            self.nest.end(seq, status, 0.0);
        }
        within
    }

    /// The calls made so far, in the order in which they began; one under way is shown as cancelled, which it will be
    /// should nobody wait for it. The same trace is in the outcome of the call that the scope belongs to.
    pub fn trace(&self) -> Vec<TracedCall> {
        self.nest.trace()
    }

    /// Completes when the scope has been there for `limit`, without the time in which one of its calls waited for a person.
    pub async fn elapsed(&self, limit: Duration) {
        self.nest.elapsed(self.begun, limit).await;
    }

    /// Whether its calls have used up the time that its limits give them.
    pub fn is_late(&self) -> bool {
        self.session.time_left().is_zero()
    }

    /// For how long calls have waited for a person.
    pub fn waited(&self) -> Duration {
        self.nest.waited().0
    }

    /// Ends the waits of its calls for people: those calls are suspended.
    pub fn suspend(&self) {
        self.session.suspend();
    }

    /// The child session.
    pub fn session(&self) -> &Session {
        &self.session
    }
}

impl std::fmt::Debug for ChildRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// The artifacts of one run.
#[derive(Debug, Clone)]
pub struct RunArtifacts {
    store: Arc<dyn ArtifactStore>,
    owner: Owner,
}

impl RunArtifacts {
    /// Stores bytes for this run. The store finishes it where the call is dropped.
    ///
    /// # Errors
    /// [`ArtifactError::Quota`] where the store is full of what runs in use hold, [`ArtifactError::Io`] where it cannot be written.
    pub async fn put(&self, media_type: &str, bytes: Bytes) -> Result<ArtifactRef, ArtifactError> {
        self.store.put(&self.owner, media_type, bytes).await
    }

    /// The same for what may be too large for memory.
    ///
    /// # Errors
    /// Those of [`put`](Self::put), and [`ArtifactError::Io`] where the source cannot be read.
    pub async fn put_from(
        &self,
        media_type: &str,
        source: Arc<dyn Source>,
    ) -> Result<ArtifactRef, ArtifactError> {
        self.store.put_from(&self.owner, media_type, source).await
    }

    /// What is known of one of the run's artifacts.
    ///
    /// # Errors
    /// [`ArtifactError::NotFound`] where this run has no such artifact, [`ArtifactError::Io`] where the store cannot be read.
    pub async fn info(&self, reference: &ArtifactRef) -> Result<ArtifactInfo, ArtifactError> {
        self.store.info(&self.owner, reference).await
    }

    /// Bytes of one of the run's artifacts.
    ///
    /// # Errors
    /// [`ArtifactError::NotFound`] where this run has no such artifact, [`ArtifactError::Damaged`] where its bytes do not match its hash,
    /// [`ArtifactError::Io`] where the store cannot be read.
    pub async fn read(
        &self,
        reference: &ArtifactRef,
        range: Range<u64>,
    ) -> Result<Bytes, ArtifactError> {
        self.store.read(&self.owner, reference, range).await
    }
}
