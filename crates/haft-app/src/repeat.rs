//! Repeated commands: a call that was suspended before resumes in its own run when it is made again.

use haft::approval::inbox::RequestStatus;
use haft::approval::suspended::{RepeatScope, SuspendedCall, SuspendedEntry};
use haft::call::ToolCall;
use haft::permission::Verdict;
use haft::session::RunGroup;
use haft::toolset::Toolset as _;

use crate::app::App;
use crate::problem::Problem;
use crate::run::{RunHandle, RunOptions};

impl App {
    /// Starts the run for a command's only call and returns both: the earlier run and call id if the call was suspended before and no other
    /// process resumes it, new ones otherwise. If the earlier call has ended, the executor reports its outcome in a run of its own.
    ///
    /// # Errors
    /// The run cannot be started.
    pub async fn start_for(
        &self,
        options: RunOptions,
        call: ToolCall,
    ) -> Result<(RunHandle, ToolCall), Problem> {
        self.follow_decided(&call, &options).await;
        if let Some(earlier) = self.suspended_before(&call, options.group.as_deref()).await
            && let Ok(run) = self.runs().resume(&earlier.run, 0, options.clone()).await
        {
            return Ok((run, call.with_id(earlier.call.as_str())));
        }
        Ok((self.runs().start(options).await?, call))
    }

    /// Acts on the decision about an earlier call like this one if nobody does: the process that stored it may have ended before it acted.
    async fn follow_decided(&self, call: &ToolCall, options: &RunOptions) {
        let is_left = |noted: &&SuspendedEntry| {
            let decided = matches!(
                noted.state.status,
                RequestStatus::Approved | RequestStatus::Denied | RequestStatus::Answered
            );
            noted.call.alone && !noted.has_ended() && decided && !noted.state.claimed
        };
        let noted = self.noted_calls(call, options.group.as_deref()).await;
        let Some(left) = noted.iter().find(is_left) else {
            return;
        };
        // If it fails, the call that is made now says how the decision stands.
        if let Err(problem) = self.follow(&left.call.approval, options.clone()).await {
            tracing::warn!(%problem, approval = %left.call.approval, "act on a decision that nobody acted on");
        }
    }

    /// Returns the noted calls like this one of this group of runs, newest first. If the lookup fails, the executor reports the error.
    async fn noted_calls(&self, call: &ToolCall, group: Option<&RunGroup>) -> Vec<SuspendedEntry> {
        let tools = self.tools().snapshot();
        let executor = self.executor();
        let scope = RepeatScope {
            principal: self.principal(),
            workspace: self.workspace(),
            group: group.map(RunGroup::name),
        };
        let entry = tools.entry(&call.name);
        let key = entry.and_then(|entry| executor.key(entry, scope, &call.arguments));
        let Some(key) = key else { return Vec::new() };
        let found = executor.inbox().find_suspended(&key).await;
        found.unwrap_or_default()
    }

    /// Returns the newest suspended call like this one of this group of runs that was alone in its run and can be resumed.
    pub(crate) async fn suspended_before(
        &self,
        call: &ToolCall,
        group: Option<&RunGroup>,
    ) -> Option<SuspendedCall> {
        let tools = self.tools().snapshot();
        let entry = tools.entry(&call.name)?;
        let executor = self.executor();
        // Settings may now allow or deny it without asking: then it is a new call.
        let explained = executor.explain(entry, &call.arguments);
        let asks = explained.is_ok_and(|explained| explained.verdict == Verdict::Ask);
        let resumes = |noted: &SuspendedEntry| {
            let waits = matches!(
                noted.state.status,
                RequestStatus::Pending | RequestStatus::Approved
            );
            // A script resumes whatever happened to the call in it, and receives that outcome.
            let resumes = waits && asks || noted.call.within;
            noted.call.alone && !noted.has_ended() && resumes
        };
        let newest = self
            .noted_calls(call, group)
            .await
            .into_iter()
            .find(resumes)?;
        Some(newest.call)
    }
}
