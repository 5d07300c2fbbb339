//! `Core`: what all transports share: it opens runs, performs jobs for clients and writes the answers.

use std::sync::Arc;

use haft::approval::ApprovalId;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::job::Job;
use crate::limits::{ServerLimits, shares};
use crate::opener::{ClientInfo, OpenError, RunFactory, Transport};
use crate::parked::ParkedCalls;
use crate::run::{ClientRun, SharedRunState};
use crate::tasks::CallTasks;
use crate::wire::reply;
use crate::wire::{RequestId, RpcError};

/// The server's description of itself.
#[derive(Debug, Clone, Serialize)]
pub struct ServerInfo {
    /// The name, for programs.
    pub name: String,
    /// The title, for users.
    pub title: String,
    /// The version.
    pub version: String,
    /// Instructions for models.
    #[serde(skip)]
    pub instructions: Option<String>,
}

/// State that all transports share.
#[derive(Debug)]
pub(crate) struct Core {
    info: Box<RawValue>,
    instructions: Option<String>,
    pub(crate) limits: ServerLimits,
    shared: SharedRunState,
}

/// An answer as sent, with its code if it is an error.
#[derive(Debug)]
pub(crate) struct EncodedResponse {
    pub(crate) bytes: Vec<u8>,
    pub(crate) error: Option<i32>,
    /// The approval request that the call still waits for.
    pub(crate) waits: Option<ApprovalId>,
}

impl EncodedResponse {
    pub(crate) fn error(id: Option<&RequestId>, error: &RpcError) -> Self {
        Self {
            bytes: reply::error(id, error),
            error: Some(error.code),
            waits: None,
        }
    }
}

/// A request as parsed by its transport.
pub(crate) struct ParsedRequest {
    /// Its id, for the answer.
    pub(crate) id: RequestId,
    /// The job to perform.
    pub(crate) job: Job,
    /// Takes the notifications that precede the answer.
    pub(crate) notes: Option<mpsc::Sender<Vec<u8>>>,
}

impl Core {
    /// Creates the shared state of a server with these limits and this opener of runs.
    pub(crate) fn new(
        info: &ServerInfo,
        limits: ServerLimits,
        opener: Arc<dyn RunFactory>,
    ) -> Self {
        // A struct of strings always serializes.
        let server_info = serde_json::value::to_raw_value(info).unwrap_or_default();
        let shared = SharedRunState {
            opener,
            seal: Arc::default(),
            hold: limits.hold,
            untaken: shares(limits.progress_bytes),
            parked: ParkedCalls::new(&limits),
            tasks: CallTasks::new(&limits, server_info.clone()),
            task_after: limits.task_after,
        };
        Self {
            info: server_info,
            instructions: info.instructions.clone(),
            limits,
            shared,
        }
    }

    /// Tells the host about a message that belongs to no run.
    pub(crate) fn stray(&self, transport: Transport, reason: &str) {
        self.shared.opener.stray(transport, reason);
    }

    /// Tells the host about a message that never became a call of this run.
    pub(crate) fn refused(&self, run: &ClientRun, transport: Transport, reason: &str) {
        if run.has_begun() {
            run.refused(reason);
        } else {
            self.stray(transport, reason);
        }
    }

    /// Opens a run for a client; its record begins with its first call.
    pub(crate) async fn open(&self, client: ClientInfo) -> Result<Arc<ClientRun>, OpenError> {
        let (executor, session) = self.shared.opener.open(client.clone()).await?;
        Ok(Arc::new(ClientRun::new(
            executor,
            session,
            client,
            self.shared.clone(),
        )))
    }

    /// Returns the server's description of itself, as raw JSON.
    pub(crate) fn info(&self) -> &RawValue {
        &self.info
    }

    /// Returns the instructions for models.
    pub(crate) fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Performs one job and writes the answer. `notes` takes the notifications that precede it.
    pub(crate) async fn answer(
        &self,
        run: &ClientRun,
        id: &RequestId,
        job: Job,
        notes: Option<mpsc::Sender<Vec<u8>>>,
    ) -> EncodedResponse {
        let mut out = reply::begin(id, 512);
        match self.perform(&mut out, run, job, notes).await {
            Ok(waits) => {
                reply::end(&mut out);
                EncodedResponse {
                    bytes: out,
                    error: None,
                    waits,
                }
            }
            Err(error) => EncodedResponse::error(Some(id), &error),
        }
    }

    /// Performs one job while holding a share of some limit until the work ends. A read may outlive the wait for its answer,
    /// since a thread that reads a disk cannot be stopped.
    pub(crate) async fn bounded(
        self: &Arc<Self>,
        run: &Arc<ClientRun>,
        request: ParsedRequest,
        held: impl Send + 'static,
    ) -> EncodedResponse {
        let ParsedRequest { id, job, notes } = request;
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
            EncodedResponse::error(Some(&id), &error)
        })
    }
}

/// Writes the server's description of itself as a member of a result's `_meta`.
pub(crate) fn write_tail(out: &mut Vec<u8>, info: &RawValue) {
    out.extend_from_slice(b"\"io.modelcontextprotocol/serverInfo\":");
    out.extend_from_slice(info.get().as_bytes());
}
