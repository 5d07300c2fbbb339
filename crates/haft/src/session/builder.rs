//! `SessionBuilder`: builds a session with options and checks its limits.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio_util::sync::CancellationToken;

use crate::approval::suspended::OtherRuns;
use crate::bounds::CallerClass;
use crate::budget::EffectCounts;
use crate::call::{Principal, RunId};
use crate::input::CallInput;
use crate::policy::RunProperties;
use crate::progress::{Pace, ProgressSink};
use crate::provenance::MarkStore;
use crate::session::budget::CallBudget;
use crate::session::denial::Denial;
use crate::session::queue::RequestQueue;
use crate::session::{
    LimitsError, RunGroup, RunLimits, Session, SessionParts, SessionScope, SessionState,
    UnknownToolHint, WaitMode,
};
use crate::shell_report::ShellReport;
use crate::untrusted::UntrustedSource;

/// Builds a session.
#[derive(Debug)]
pub struct SessionBuilder {
    pub(super) run: SessionState,
    pub(super) scope: SessionScope,
}

impl SessionBuilder {
    /// Sets the principal that the session runs for.
    pub fn with_principal(mut self, principal: Principal) -> Self {
        self.run.owner.principal = principal;
        self
    }

    /// Sets the run id, instead of a fresh one.
    pub fn with_run(mut self, run: RunId) -> Self {
        self.run.owner.run = run;
        self
    }

    /// Resumes the run of this id, which another process started and did not finish; its calls were numbered up to `calls`.
    pub fn resume(mut self, run: RunId, calls: u64) -> Self {
        self.run.owner.run = run;
        self.run.ids = AtomicU64::new(calls);
        self.scope.resumed = true;
        self
    }

    /// Sets the untrusted sources that a resumed run has already read.
    pub fn with_untrusted(self, sources: Vec<UntrustedSource>) -> Self {
        self.run.origins.untrusted.restore(sources);
        self
    }

    /// Sets which properties of the Rule of Two a resumed run already holds.
    pub fn with_properties(self, properties: RunProperties) -> Self {
        *self.run.origins.properties.lock() = properties;
        self
    }

    /// Sets where the untrusted content that the run reads is noted beyond the run, and what is noted there already.
    pub fn with_provenance(
        mut self,
        provenance: Arc<dyn MarkStore>,
        known: Vec<UntrustedSource>,
    ) -> Self {
        self.run.origins.provenance = Some(provenance);
        self.run.origins.untrusted.note(known);
        self
    }

    /// Sets what a resumed run has already used of the effect budgets.
    pub fn with_uses(self, uses: EffectCounts) -> Self {
        self.run.uses.add(uses);
        self
    }

    /// Sets the client's name for itself, shown in approval requests.
    pub fn with_client(mut self, client: Option<String>) -> Self {
        self.run.client = client;
        self
    }

    /// Sets who opened the session. Runs of clients leave room in the inbox for the operator's. Default: the operator.
    pub fn with_class(mut self, class: CallerClass) -> Self {
        self.run.queue = RequestQueue::of(class);
        self
    }

    /// Sets the entry point by which it is started, for the record.
    pub fn with_entry_point(mut self, entry_point: impl Into<String>) -> Self {
        self.run.entry_point = entry_point.into();
        self
    }

    /// Links the session to this token: cancelling it cancels the session like [`Session::cancel`], but not the other way round.
    pub fn with_cancellation(mut self, parent: &CancellationToken) -> Self {
        self.scope.cancel = parent.child_token();
        self
    }

    /// Sets the limits.
    pub fn with_limits(mut self, limits: RunLimits) -> Self {
        self.scope.budget = Arc::new(CallBudget::of_run(limits.max_calls));
        self.scope.limits = limits;
        self
    }

    /// Sets how it waits for decisions.
    pub fn with_wait_mode(mut self, wait_mode: WaitMode) -> Self {
        self.run.wait_mode = wait_mode;
        self
    }

    /// Sets the progress sink.
    pub fn with_progress(mut self, sink: Arc<dyn ProgressSink>) -> Self {
        self.scope.progress = Some(sink);
        self
    }

    /// Sets the input that its client pipes into the command that it runs.
    pub fn with_input(mut self, input: Arc<CallInput>) -> Self {
        self.run.input = Some(input);
        self
    }

    /// Sets where the shell that runs its client's command line reports what it holds in the end, if the client wants to know.
    pub fn with_shell_report(mut self, report: Option<Arc<ShellReport>>) -> Self {
        self.run.shell_report = report;
        self
    }

    /// States that the client stays with a command in the background until that ends, and passes its output on. The limits of the run
    /// must have room for that.
    pub fn attending(mut self) -> Self {
        self.run.attends = true;
        self
    }

    /// Makes it a run of this group.
    pub fn with_group(mut self, group: Option<Arc<RunGroup>>) -> Self {
        self.run.group = group;
        self
    }

    /// Sets how live output is batched before it is shown.
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.run.pace = pace;
        self
    }

    /// Marks the caller as having a view of the host's tools: see [`Session::is_narrowed`].
    pub fn narrowed(mut self) -> Self {
        self.run.narrowed = true;
        self
    }

    /// Sets the hints for tools that the session does not see.
    pub fn with_unknown_tool_hint(mut self, absent: Arc<dyn UnknownToolHint>) -> Self {
        self.run.unknown_tool_hint = Some(absent);
        self
    }

    /// Lets a call that was suspended in a run no longer in use be repeated here: it gets the outcome of the first.
    pub fn with_other_runs(mut self, others: Arc<dyn OtherRuns>) -> Self {
        self.run.others = Some(others);
        self
    }

    /// Makes the run exist for a single call: an identical call that was suspended in such a run counts as the same.
    pub fn for_one_call(mut self) -> Self {
        self.run.alone = true;
        self
    }

    /// Restricts the session to these skills, by name. Default: all.
    pub fn with_skills(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.run.skills = Some(names.into_iter().collect());
        self
    }

    /// Sets the token limit of all active skills together (default [`SKILL_TOKENS`](super::SKILL_TOKENS)); the oldest are evicted above it.
    pub fn with_skill_tokens(self, max: usize) -> Self {
        self.run.active.limit(max);
        self
    }

    /// Checks the limits and builds the session.
    ///
    /// # Errors
    /// [`LimitsError`] if a limit is zero, or a call could outlast the run.
    pub fn build(self) -> Result<Session, LimitsError> {
        self.scope.limits.check()?;
        Ok(self.into_session())
    }

    pub(super) fn into_session(self) -> Session {
        let (mut run, scope) = (self.run, self.scope);
        run.denial = Denial::ending(&scope.cancel);
        let run = Arc::new(run);
        Session {
            parts: Arc::new(SessionParts { run, scope }),
        }
    }
}
