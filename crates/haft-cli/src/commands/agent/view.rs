//! `RunView`: shows a run of the agent: on the user's screen, or as lines of JSON.

use haft::call::RunId;
use haft::progress::ProgressSink;
use haft_agent::Watcher;
use haft_app::problem::Problem;
use serde_json::Value;

/// Shows a run.
pub(super) trait RunView: Watcher + ProgressSink {
    /// The run has started.
    fn begins(&self, run: &RunId, model: &str);

    /// Shows a notice.
    fn notice(&self, text: &str);

    /// Work on a prompt starts or ends.
    fn works(&self, _works: bool) {}

    /// Takes the report of a dry run, to show it with the end of the run; returns false if the caller has to show it.
    fn accept_dry_run_report(&self, _report: Value) -> bool {
        false
    }

    /// The run failed.
    fn failed(&self, problem: &Problem);
}
