//! `SessionRuns`: the runs of an agent's session. One is enough, except where alike calls wait for a person at the same time: each of them
//! gets a run of its own, since within a run they would share one request and one decision.

use std::sync::Arc;

use haft::call::RunId;
use parking_lot::Mutex;

use crate::app::App;
use crate::hook::key::SessionKey;
use crate::hook::open_call::CallKey;
use crate::hook::run_notes::SessionRunNotes;
use crate::hook::session_marks::SessionMarks;
use crate::problem::Problem;
use crate::run::{RunHandle, RunOptions};

/// Maximum number of runs per session besides the first.
const MOST: usize = 64;

/// The runs of a session.
#[derive(Debug)]
pub(super) struct SessionRuns {
    app: App,
    options: RunOptions,
    notes: SessionRunNotes,
    first: Arc<RunHandle>,
    more: Mutex<Vec<Arc<RunHandle>>>,
}

/// The run that a call is made in.
#[derive(Debug)]
pub(super) struct ChosenRun {
    pub(super) run: Arc<RunHandle>,
    /// The earlier run in which the same call has a pending request, or a decision.
    pub(super) asked_in: Option<RunId>,
}

impl SessionRuns {
    /// Starts the session's run, or resumes it if one of its calls was still to be decided.
    pub(super) async fn start(
        app: &App,
        key: &SessionKey,
        options: RunOptions,
    ) -> Result<Self, Problem> {
        let notes = SessionRunNotes::of(app, key);
        let first = if let Some(run) = notes.resume(app, &options).await {
            run
        } else {
            let run = app.runs().start(options.clone()).await?;
            notes.add(run.id());
            run
        };
        Ok(Self {
            app: app.clone(),
            options,
            notes,
            first: Arc::new(first),
            more: Mutex::default(),
        })
    }

    /// The session's first run, which stands for the session in lists.
    pub(super) fn first(&self) -> &RunHandle {
        &self.first
    }

    /// Notes what the session has read, whichever of its runs or processes did.
    ///
    /// # Errors
    /// The notes cannot be read.
    pub(super) fn recall(&self, marks: &SessionMarks) -> Result<(), Problem> {
        let more = self.more.lock();
        let mut all = [&self.first].into_iter().chain(&*more);
        all.try_for_each(|run| marks.recall(run.session()))
    }

    /// Chooses the run for a call. `busy` are the runs in which an alike call is open; `shares` is whether the call may be made there all
    /// the same.
    pub(super) async fn choose(
        &self,
        call: CallKey<'_>,
        busy: &[RunId],
        shares: bool,
    ) -> Result<ChosenRun, Problem> {
        let asked_in = self.notes.find_request(&self.app, busy, call).await;
        let asked_in = asked_in.map_err(|e| {
            Problem::failed(format!(
                "cannot look up what was decided about this call: {e}"
            ))
        })?;
        let run = if shares || !busy.contains(self.first.id()) {
            Arc::clone(&self.first)
        } else {
            self.free(busy).await?
        };
        let asked_in = asked_in.filter(|asked_in| asked_in != run.id());
        Ok(ChosenRun { run, asked_in })
    }

    /// Returns a run besides the first in which no such call is open.
    async fn free(&self, busy: &[RunId]) -> Result<Arc<RunHandle>, Problem> {
        {
            let more = self.more.lock();
            if let Some(run) = more.iter().find(|run| !busy.contains(run.id())) {
                return Ok(Arc::clone(run));
            }
            if more.len() >= MOST {
                let what = format!("{MOST} calls like this one already wait for decisions");
                return Err(Problem::failed(what).advise("decide some of them: `haft approvals`"));
            }
        }
        let run = Arc::new(self.app.runs().start(self.options.clone()).await?);
        self.notes.add(run.id());
        self.more.lock().push(Arc::clone(&run));
        Ok(run)
    }

    /// Ends all waits for decisions, waits until no call runs, and forgets the runs that are settled.
    pub(super) async fn suspend(&self) {
        let more = self.more.lock().clone();
        let all = [&self.first].into_iter().chain(&more);
        for run in all.clone() {
            run.session().suspend();
        }
        for run in all {
            run.session().idle().await;
            self.notes.forget_settled(&self.app, run.id()).await;
        }
    }
}
