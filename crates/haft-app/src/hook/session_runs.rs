//! `SessionRuns`: the runs of an agent's session. It is one, but alike calls about which a person is asked at the same moment have one each:
//! within a run they would share one request, and one decision.

use std::sync::Arc;

use haft::call::RunId;
use parking_lot::Mutex;

use crate::app::App;
use crate::hook::kept_run::{KeptRuns, SameCall};
use crate::hook::key::Key;
use crate::problem::Problem;
use crate::run::{RunHandle, RunOptions};

/// Most runs of a session beside the first.
const MOST: usize = 64;

/// The runs of a session.
#[derive(Debug)]
pub(super) struct SessionRuns {
    app: App,
    options: RunOptions,
    kept: KeptRuns,
    first: Arc<RunHandle>,
    more: Mutex<Vec<Arc<RunHandle>>>,
}

/// Where a call is made, and in whose name it asks.
#[derive(Debug)]
pub(super) struct ChosenRun {
    pub(super) run: Arc<RunHandle>,
    /// The earlier run in which the same call waits for a decision, or has one.
    pub(super) asked_in: Option<RunId>,
}

impl SessionRuns {
    /// Starts the session's run, or resumes it where a person was still to decide about a call of it.
    pub(super) async fn start(app: &App, key: &Key, options: RunOptions) -> Result<Self, Problem> {
        let kept = KeptRuns::of(app, key);
        let first = if let Some(run) = kept.resume(app, &options).await {
            run
        } else {
            let run = app.runs().start(options.clone()).await?;
            kept.note(run.id());
            run
        };
        Ok(Self {
            app: app.clone(),
            options,
            kept,
            first: Arc::new(first),
            more: Mutex::default(),
        })
    }

    /// The session's first run, by which others know it.
    pub(super) fn first(&self) -> &RunHandle {
        &self.first
    }

    /// The run for a call. `busy` are those in which a call like it is open, and `shares` is whether it may be made there all the same.
    pub(super) async fn choose(
        &self,
        call: SameCall<'_>,
        busy: &[RunId],
        shares: bool,
    ) -> Result<ChosenRun, Problem> {
        let asked_in = self.kept.asked_in(&self.app, busy, call).await;
        let asked_in = asked_in.map_err(|e| {
            Problem::failed(format!("look up what was decided about this call: {e}"))
        })?;
        let run = if shares || !busy.contains(self.first.id()) {
            Arc::clone(&self.first)
        } else {
            self.free(busy).await?
        };
        let asked_in = asked_in.filter(|asked_in| asked_in != run.id());
        Ok(ChosenRun { run, asked_in })
    }

    /// A run beside the first in which no such call is open.
    async fn free(&self, busy: &[RunId]) -> Result<Arc<RunHandle>, Problem> {
        {
            let more = self.more.lock();
            if let Some(run) = more.iter().find(|run| !busy.contains(run.id())) {
                return Ok(Arc::clone(run));
            }
            if more.len() >= MOST {
                let what = format!("{MOST} calls like this one wait for decisions already");
                return Err(Problem::failed(what).advise("decide some of them: `haft approvals`"));
            }
        }
        let run = Arc::new(self.app.runs().start(self.options.clone()).await?);
        self.kept.note(run.id());
        self.more.lock().push(Arc::clone(&run));
        Ok(run)
    }

    /// Ends all waits for decisions, waits until no call runs, and forgets the runs in which nothing waits any more.
    pub(super) async fn suspend(&self) {
        let more = self.more.lock().clone();
        let all = [&self.first].into_iter().chain(&more);
        for run in all.clone() {
            run.session().suspend();
        }
        for run in all {
            run.session().idle().await;
            self.kept.forget_settled(&self.app, run.id()).await;
        }
    }
}
