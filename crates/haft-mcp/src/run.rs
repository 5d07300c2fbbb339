//! `Run`: a governed session with the protocol it is spoken to in, and what it has under way.

use std::sync::Arc;

use haft::call::{Origin, ToolCall};
use haft::executor::Executor;
use haft::result::Outcome;
use haft::session::Session;
use haft::skill::Skill;
use tokio::sync::{mpsc, watch};

use crate::era::Era;
use crate::in_flight::InFlight;
use crate::job::CallJob;
use crate::opener::Opener;
use crate::progress::ProgressLine;
use crate::wire::RpcError;

/// One run as the transports hold it.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) executor: Executor,
    pub(crate) session: Session,
    pub(crate) era: Era,
    pub(crate) in_flight: InFlight,
    opener: Arc<dyn Opener>,
    ended: watch::Sender<bool>,
}

impl Run {
    pub(crate) fn new(
        (executor, session): (Executor, Session),
        era: Era,
        opener: Arc<dyn Opener>,
    ) -> Self {
        Self {
            executor,
            session,
            era,
            opener,
            in_flight: InFlight::default(),
            ended: watch::Sender::new(false),
        }
    }

    /// One call through the executor. Dropping the future cancels it. `notes` takes its progress, where the client asked for it.
    pub(crate) async fn call(&self, job: CallJob, notes: Option<mpsc::Sender<Vec<u8>>>) -> Outcome {
        let call = ToolCall::new(job.name, job.arguments).from_origin(Origin::Mcp);
        let token = job.token.filter(|_| self.opener.shows_progress());
        let (Some(token), Some(notes)) = (token, notes) else {
            return self.executor.execute(&self.session, call).await;
        };
        let line = Arc::new(ProgressLine::new(token, notes));
        let watched = self.session.watched_by(Arc::clone(&line) as _);
        let outcome = self.executor.execute(&watched, call).await;
        line.end();
        outcome
    }

    /// The skills that this run may be shown.
    pub(crate) async fn skills(&self) -> Result<Vec<Skill>, RpcError> {
        let opener = Arc::clone(&self.opener);
        let found = tokio::task::spawn_blocking(move || opener.skills()).await;
        let mut skills = found.map_err(|error| {
            tracing::error!(%error, "look for skills");
            RpcError::new(RpcError::INTERNAL, "the skills could not be read")
        })?;
        skills.retain(|skill| self.session.sees_skill(skill.name()));
        Ok(skills)
    }

    /// Tells the host of a message that never became a call.
    pub(crate) fn refused(&self, reason: &str) {
        self.opener.refused(&self.session, reason);
    }

    /// Waits until the run is over.
    pub(crate) async fn over(&self) {
        let mut ended = self.ended.subscribe();
        // The sender lives in `self`: waiting cannot fail.
        let _closed = ended.wait_for(|ended| *ended).await;
    }

    /// Cancels what is under way, ends its streams and records the run's end. Once.
    pub(crate) fn end(&self) {
        let first = self.ended.send_if_modified(|ended| {
            let first = !*ended;
            *ended = true;
            first
        });
        if first {
            self.in_flight.cancel_all();
            if let Err(error) = self.executor.close(&self.session) {
                tracing::error!(run = %self.session.run(), %error, "close a run");
            }
            self.opener.closed(&self.session);
        }
    }
}
