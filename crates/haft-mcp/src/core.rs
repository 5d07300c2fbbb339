//! `Core`: what all transports share. It opens runs, does the jobs that clients ask for and writes the answers.

use std::sync::Arc;

use haft::approval::ApprovalId;
use haft::bounds::Budget;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::job::Job;
use crate::limits::ServerLimits;
use crate::opener::{ClientInfo, OpenError, RunFactory, Transport};
use crate::parked::Parked;
use crate::run::{Run, Shared};
use crate::tasks::Tasks;
use crate::wire::reply;
use crate::wire::{Id, RpcError};

/// What the server says of itself.
#[derive(Debug, Clone, Serialize)]
pub struct ServerInfo {
    /// A name for programs.
    pub name: String,
    /// A name for people.
    pub title: String,
    /// The version.
    pub version: String,
    /// How to use the server, for a model.
    #[serde(skip)]
    pub instructions: Option<String>,
}

/// What each client's progress may hold in any case, in bytes.
const OWN_PROGRESS: usize = 64 << 10;

/// What all transports share.
#[derive(Debug)]
pub(crate) struct Core {
    info: Box<RawValue>,
    instructions: Option<String>,
    pub(crate) limits: ServerLimits,
    shared: Shared,
}

/// An answer as it goes out, and its error code where it is an error.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) error: Option<i32>,
    /// The request to a person that the call still waits for.
    pub(crate) waits: Option<ApprovalId>,
}

impl Answer {
    pub(crate) fn error(id: Option<&Id>, error: &RpcError) -> Self {
        Self {
            bytes: reply::error(id, error),
            error: Some(error.code),
            waits: None,
        }
    }
}

/// A request as its transport has read it.
pub(crate) struct ParsedRequest {
    /// Its id, for the answer.
    pub(crate) id: Id,
    /// What to do.
    pub(crate) job: Job,
    /// Takes the notifications that go before the answer.
    pub(crate) notes: Option<mpsc::Sender<Vec<u8>>>,
}

impl Core {
    /// What a server of this name shares, with these bounds, over runs of this opener.
    pub(crate) fn new(
        info: &ServerInfo,
        limits: ServerLimits,
        opener: Arc<dyn RunFactory>,
    ) -> Self {
        // A struct of strings is always JSON.
        let said = serde_json::value::to_raw_value(info).unwrap_or_default();
        let shared = Shared {
            opener,
            seal: Arc::default(),
            hold: limits.hold,
            untaken: Budget::new(limits.progress_bytes, OWN_PROGRESS),
            parked: Parked::new(&limits),
            tasks: Tasks::new(&limits, said.clone()),
            task_after: limits.task_after,
        };
        Self {
            info: said,
            instructions: info.instructions.clone(),
            limits,
            shared,
        }
    }

    /// Tells the host of a message that belongs to no run.
    pub(crate) fn stray(&self, transport: Transport, reason: &str) {
        self.shared.opener.stray(transport, reason);
    }

    /// Tells the host of a message that never became a call of this run.
    pub(crate) fn refused(&self, run: &Run, transport: Transport, reason: &str) {
        if run.has_begun() {
            run.refused(reason);
        } else {
            self.stray(transport, reason);
        }
    }

    /// Opens a run for a client; its record begins with its first call.
    pub(crate) async fn open(&self, client: ClientInfo) -> Result<Arc<Run>, OpenError> {
        let (executor, session) = self.shared.opener.open(client.clone()).await?;
        Ok(Arc::new(Run::new(
            executor,
            session,
            client,
            self.shared.clone(),
        )))
    }

    /// The server's account of itself, as raw JSON.
    pub(crate) fn info(&self) -> &RawValue {
        &self.info
    }

    /// How to use the server, for a model.
    pub(crate) fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Does one job and writes the answer. `notes` takes the notifications that go before it.
    pub(crate) async fn answer(
        &self,
        run: &Run,
        id: &Id,
        job: Job,
        notes: Option<mpsc::Sender<Vec<u8>>>,
    ) -> Answer {
        let mut out = reply::begin(id, 512);
        match self.perform(&mut out, run, job, notes).await {
            Ok(waits) => {
                reply::end(&mut out);
                Answer {
                    bytes: out,
                    error: None,
                    waits,
                }
            }
            Err(error) => Answer::error(Some(id), &error),
        }
    }

    /// Does one job of many, each of which holds a share of some bound until its work ends. For a read that may be after
    /// nobody waits for its answer any more: a thread that reads a disk goes on.
    pub(crate) async fn bounded(
        self: &Arc<Self>,
        run: &Arc<Run>,
        asked: ParsedRequest,
        held: impl Send + 'static,
    ) -> Answer {
        let ParsedRequest { id, job, notes } = asked;
        if job.is_call() {
            let answer = self.answer(run, &id, job, notes).await;
            drop(held);
            return answer;
        }
        let (core, run, own) = (Arc::clone(self), Arc::clone(run), id.clone());
        let read = tokio::spawn(async move {
            let answer = core.answer(&run, &own, job, None).await;
            drop(held);
            answer
        });
        read.await.unwrap_or_else(|_| {
            let error = RpcError::new(RpcError::INTERNAL, "the request failed");
            Answer::error(Some(&id), &error)
        })
    }
}

/// The server's account of itself, as a member of a result's `_meta`.
pub(crate) fn write_tail(out: &mut Vec<u8>, info: &RawValue) {
    out.extend_from_slice(b"\"io.modelcontextprotocol/serverInfo\":");
    out.extend_from_slice(info.get().as_bytes());
}
