//! The API's own runs: one for callers with the call token and one for the operator, so that neither can read the other's. A run
//! is replaced when it takes no more calls.

use std::collections::VecDeque;
use std::time::Duration;

use haft::call::RunId;
use haft::session::Session;
use parking_lot::RwLock;
use tokio::sync::Mutex;

use crate::caller::ApiCaller;
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::run::{RunHandle, RunOptions};

/// Maximum number of runs that a caller may still read: the current one and those before it.
const MAX_KNOWN_RUNS: usize = 64;
/// How long the calls of a replaced run may take to end before the run is closed anyway.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Debug, Default)]
pub(crate) struct OwnRuns {
    client: CallerRuns,
    operator: CallerRuns,
}

/// The runs of one caller.
#[derive(Debug, Default)]
struct CallerRuns {
    /// Locked while a run is started.
    now: Mutex<Option<RunHandle>>,
    /// Its runs so far, newest last.
    known: RwLock<VecDeque<RunId>>,
}

impl OwnRuns {
    fn slot(&self, caller: ApiCaller) -> &CallerRuns {
        match caller {
            ApiCaller::Client => &self.client,
            ApiCaller::Operator => &self.operator,
        }
    }

    /// Returns the session of the caller's run, started with its first call. Replaces a run whose budget is used up or that a user stopped.
    pub(crate) async fn session(&self, app: &App, caller: ApiCaller) -> Result<Session, Problem> {
        let slot = self.slot(caller);
        let mut now = slot.now.lock().await;
        if let Some(run) = now.as_ref() {
            let session = run.session();
            let over = session.is_spent() || session.cancellation().is_cancelled();
            if !over {
                return Ok(session.clone());
            }
        }
        let options = RunOptions {
            class: caller.class(),
            progress: app.watched(),
            ..RunOptions::new("http api")
        };
        let run = app.runs().start(options).await?;
        let session = run.session().clone();
        slot.remember_run(session.run());
        if let Some(over) = now.replace(run) {
            tokio::spawn(async move {
                let _late = tokio::time::timeout(SETTLE_TIMEOUT, over.session().idle()).await;
                over.release().await;
            });
        }
        Ok(session)
    }

    /// Returns the caller's runs, newest first.
    pub(crate) fn of(&self, caller: ApiCaller) -> Vec<RunId> {
        let known = self.slot(caller).known.read();
        known.iter().rev().cloned().collect()
    }

    /// Returns whether the run is one of the caller's.
    pub(crate) fn has(&self, caller: ApiCaller, run: &str) -> bool {
        let known = self.slot(caller).known.read();
        known.iter().any(|own| own.as_str() == run)
    }

    /// Suspends or finishes the current runs.
    pub(crate) async fn release(&self) {
        for slot in [&self.client, &self.operator] {
            let run = slot.now.lock().await.take();
            if let Some(run) = run {
                run.release().await;
            }
        }
    }
}

impl CallerRuns {
    fn remember_run(&self, run: &RunId) {
        let mut known = self.known.write();
        if known.len() >= MAX_KNOWN_RUNS {
            known.pop_front();
        }
        known.push_back(run.clone());
    }
}
