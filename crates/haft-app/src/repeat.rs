//! Repeated commands: a call that was suspended before resumes in its own run when it is made again.

use haft::approval::inbox::RequestStatus;
use haft::approval::suspended::SuspendedCall;
use haft::call::ToolCall;
use haft::permission::Verdict;
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
        if let Some(earlier) = self.suspended_before(&call).await
            && let Ok(run) = self.runs().resume(&earlier.run, 0, options.clone()).await
        {
            return Ok((run, call.with_id(earlier.call.as_str())));
        }
        Ok((self.runs().start(options).await?, call))
    }

    /// Returns the newest suspended call like this one that was alone in its run and can be resumed.
    pub(crate) async fn suspended_before(&self, call: &ToolCall) -> Option<SuspendedCall> {
        let tools = self.tools().snapshot();
        let entry = tools.entry(&call.name)?;
        let executor = self.executor();
        // Settings may now allow or deny it without asking: then it is a new call.
        let explained = executor.explain(entry, &call.arguments);
        let asks = explained.is_ok_and(|explained| explained.verdict == Verdict::Ask);
        let key = executor.key(entry, self.principal(), self.workspace(), &call.arguments)?;
        // If the lookup fails, the executor reports the error.
        let found = executor.suspended().find(&key).await.ok()?;
        for call in found
            .into_iter()
            .filter(|call| call.alone && call.outcome.is_none())
        {
            let entry = executor.inbox().get(&call.approval).await.ok().flatten();
            let waits = entry.is_some_and(|entry| match entry.status {
                RequestStatus::Pending => entry.is_open(),
                RequestStatus::Approved => !entry.claimed,
                _ => false,
            });
            // A script resumes whatever happened to the call in it, and receives that outcome.
            if (waits && asks) || call.within {
                return Some(call);
            }
        }
        None
    }
}
