//! `View`: who shows a run of the agent: a person's screen, or lines of JSON.

use haft::call::RunId;
use haft::progress::ProgressSink;
use haft_agent::Watcher;
use haft_app::problem::Problem;
use serde_json::Value;

/// Shows a run.
pub(super) trait View: Watcher + ProgressSink {
    /// The run is there.
    fn begins(&self, run: &RunId, model: &str);

    /// A sentence beside what happens.
    fn notice(&self, text: &str);

    /// A prompt is being worked at, or no more.
    fn works(&self, _works: bool) {}

    /// What a dry run would have done, where this is shown with how the run ended; false where somebody else has to.
    fn would_have(&self, _report: Value) -> bool {
        false
    }

    /// The run broke off.
    fn failed(&self, problem: &Problem);

    /// Whether the last call that ended was denied.
    fn was_denied(&self) -> bool;
}
