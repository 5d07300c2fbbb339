//! `SessionBuilder`: a session with options, its limits checked.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio_util::sync::CancellationToken;

use crate::approval::suspended::OtherRuns;
use crate::bounds::Class;
use crate::budget::Uses;
use crate::call::{Principal, RunId};
use crate::input::CallInput;
use crate::progress::{Pace, ProgressSink};
use crate::session::budget::Budget;
use crate::session::queue::Queue;
use crate::session::{
    LimitsError, RunLimits, RunState, Session, SessionParts, SessionScope, UnknownToolHint,
    WaitMode,
};
use crate::untrusted::UntrustedSource;

/// Builds a session.
#[derive(Debug)]
pub struct SessionBuilder {
    pub(super) run: RunState,
    pub(super) scope: SessionScope,
}

impl SessionBuilder {
    /// For whom.
    pub fn with_principal(mut self, principal: Principal) -> Self {
        self.run.owner.principal = principal;
        self
    }

    /// Under this run id instead of a fresh one.
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

    /// What the run has read already that strangers may have written, for one that is resumed.
    pub fn with_untrusted(self, sources: Vec<UntrustedSource>) -> Self {
        self.run.untrusted.note(sources);
        self
    }

    /// What the run has used of the budgets of effects already, for one that is resumed.
    pub fn with_uses(self, uses: Uses) -> Self {
        self.run.uses.add(uses);
        self
    }

    /// What the client calls itself, for the person who is asked.
    pub fn with_client(mut self, client: Option<String>) -> Self {
        self.run.client = client;
        self
    }

    /// Who opened it. Runs of clients leave room in the inbox for the operator's; default: the operator.
    pub fn with_class(mut self, class: Class) -> Self {
        self.run.queue = Queue::of(class);
        self
    }

    /// The entry point by which it is started, for the record.
    pub fn with_entry_point(mut self, entry_point: impl Into<String>) -> Self {
        self.run.entry_point = entry_point.into();
        self
    }

    /// Ends with this token: cancelling it cancels the session, as [`Session::cancel`] does, and not the other way round.
    pub fn with_cancellation(mut self, parent: &CancellationToken) -> Self {
        self.scope.cancel = parent.child_token();
        self
    }

    /// Within these bounds.
    pub fn with_limits(mut self, limits: RunLimits) -> Self {
        self.scope.budget = Arc::new(Budget::of_run(limits.max_calls));
        self.scope.limits = limits;
        self
    }

    /// How it waits for people.
    pub fn with_wait_mode(mut self, wait_mode: WaitMode) -> Self {
        self.run.wait_mode = wait_mode;
        self
    }

    /// Who shows progress.
    pub fn with_progress(mut self, sink: Arc<dyn ProgressSink>) -> Self {
        self.scope.progress = Some(sink);
        self
    }

    /// What its client pipes in, for the command that it runs.
    pub fn with_input(mut self, input: Arc<CallInput>) -> Self {
        self.run.input = Some(input);
        self
    }

    /// How live output is gathered before it is shown.
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.run.pace = pace;
        self
    }

    /// Its caller has a view of the host's tools: see [`Session::is_narrowed`].
    pub fn narrowed(mut self) -> Self {
        self.run.narrowed = true;
        self
    }

    /// What to say of tools that the session does not see.
    pub fn with_unknown_tool_hint(mut self, absent: Arc<dyn UnknownToolHint>) -> Self {
        self.run.unknown_tool_hint = Some(absent);
        self
    }

    /// A call that was suspended in a run that is not in use any more is the same when it is made again here: it hears how
    /// it ended.
    pub fn with_other_runs(mut self, others: Arc<dyn OtherRuns>) -> Self {
        self.run.others = Some(others);
        self
    }

    /// The run is for one call alone: one like it that was suspended, in a run for it alone, is the same.
    pub fn for_one_call(mut self) -> Self {
        self.run.alone = true;
        self
    }

    /// Only these skills, by name; all of them where this is not said.
    pub fn with_skills(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.run.skills = Some(names.into_iter().collect());
        self
    }

    /// Tokens of all active skills together ([`SKILL_TOKENS`](super::SKILL_TOKENS) where this is not said): the oldest go when it is exceeded.
    pub fn with_skill_tokens(self, max: usize) -> Self {
        self.run.active.limit(max);
        self
    }

    /// Checks the limits and builds.
    ///
    /// # Errors
    /// [`LimitsError`] where a limit is zero, or a call could outlast the run.
    pub fn build(self) -> Result<Session, LimitsError> {
        self.scope.limits.check()?;
        Ok(self.into_session())
    }

    pub(super) fn into_session(self) -> Session {
        let run = Arc::new(self.run);
        let scope = self.scope;
        Session {
            parts: Arc::new(SessionParts { run, scope }),
        }
    }
}
