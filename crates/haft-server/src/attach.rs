//! `Attach`: the console of a server that opens no port: the one of a server on the same state, started in the background if necessary.

use std::time::{Duration, Instant};

use haft_app::app::App;
use haft_app::running::background::ConsoleRequest;
use tokio::sync::Mutex;

/// How long to wait after a failed start before starting a server again.
const RESTART_DELAY: Duration = Duration::from_secs(60);

/// Finds the console when a user is about to be asked.
#[derive(Debug)]
pub(crate) struct Attach {
    app: App,
    wanted: ConsoleRequest,
    /// The time of the last failed start. The lock lets one request at a time look.
    failed: Mutex<Option<Instant>>,
}

impl Attach {
    /// Creates the finder for this application's requests. `starts` says whether it may start a server.
    pub(crate) fn new(app: &App, starts: bool) -> Self {
        let wanted = app.wanted_console().clone().unasked();
        Self {
            app: app.clone(),
            wanted: if starts {
                wanted
            } else {
                wanted.without_start()
            },
            failed: Mutex::default(),
        }
    }

    /// Returns the console's address; `None` if there is none and none can be started.
    pub(crate) async fn console(&self) -> Option<String> {
        let mut failed = self.failed.lock().await;
        let starts = self.wanted.starts() && failed.is_none_or(|at| at.elapsed() >= RESTART_DELAY);
        let wanted = self.wanted.clone();
        let looked = tokio::task::spawn_blocking(move || {
            if starts {
                wanted.find_or_start().map(|found| Some(found.server))
            } else {
                wanted.find()
            }
        });
        match looked.await {
            Ok(Ok(server)) => server.map(|server| server.record.url.clone()),
            Ok(Err(problem)) => {
                *failed = Some(Instant::now());
                let advice = problem.advice().unwrap_or_default();
                self.app.warn(&format!(
                    "there is no console for pending requests: {problem}; {advice}"
                ));
                None
            }
            Err(error) => {
                tracing::error!(%error, "look for a console");
                None
            }
        }
    }
}
