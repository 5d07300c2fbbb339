//! A call of a command that was made before and suspended: made again, it goes on in the run that it had.

use haft::approval::inbox::RequestStatus;
use haft::approval::suspended::SuspendedCall;
use haft::call::ToolCall;
use haft::permission::Verdict;
use haft::toolset::Toolset as _;

use crate::app::App;
use crate::problem::Problem;
use crate::run::{RunHandle, RunOptions};

impl App {
    /// Starts the run for a command's one call, and gives the call: the run and the id that it had where it was suspended before and
    /// no other process resumes it, else a new one. The outcome of one that has ended is told by the executor, in a run of its own.
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

    /// The newest call like this one that was suspended in a run for it alone, and that can be resumed.
    pub(crate) async fn suspended_before(&self, call: &ToolCall) -> Option<SuspendedCall> {
        let tools = self.tools().snapshot();
        let entry = tools.entry(&call.name)?;
        let executor = self.executor();
        // Settings may let it run, or deny it, that had it asked about: then it is a call of its own.
        let explained = executor.explain(entry, &call.arguments);
        let asks = explained.is_ok_and(|explained| explained.verdict == Verdict::Ask);
        let key = executor.key(entry, self.principal(), self.workspace(), &call.arguments)?;
        // Where it cannot be looked up the executor says so.
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
            // A script goes on whatever became of the call in it: it hears that.
            if (waits && asks) || call.within {
                return Some(call);
            }
        }
        None
    }
}
