//! `Running`: a client's call in progress. It can continue while the client is away, and ends if the client does not return.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use haft::progress::hub::Listener;
use haft::result::Outcome;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use crate::carrier::ClientApprover;
use crate::client_caller::{BatchedRequestsCall, ClientCaller};
use crate::progress::ProgressLine;
use crate::wire::RpcError;

/// How long an answer waits for a client that has not received the log messages before it.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// A call in progress. Dropping it cancels the call.
#[derive(Debug)]
pub(crate) struct Running {
    work: CallExecution,
    /// What the call reports, if its client asked for progress.
    listener: Option<Listener>,
    pub(crate) caller: Arc<ClientCaller>,
    /// Takes its requests to a user, if there is any way to reach one.
    pub(crate) carrier: Option<Arc<ClientApprover>>,
}

/// What to wait for besides the end of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitConditions {
    /// Until it has to ask its client something.
    pub(crate) asks: bool,
    /// Until this moment.
    pub(crate) late: Option<Instant>,
}

/// Where the call runs.
enum CallExecution {
    /// In the task that waits for it.
    Here(BatchedRequestsCall),
    /// In a task of its own.
    Apart(SpawnedCall),
}

/// A call in a task of its own. Dropping it cancels the call.
struct SpawnedCall(JoinHandle<Outcome>);

/// What happens next with a call.
pub(crate) enum WaitResult {
    Ended(Box<Outcome>),
    /// It waits for its client, which has to be asked.
    Asks,
    /// It took longer than the wait.
    Late,
}

impl Running {
    pub(crate) fn new(
        call: BatchedRequestsCall,
        caller: Arc<ClientCaller>,
        carrier: Option<Arc<ClientApprover>>,
        listener: Option<Listener>,
    ) -> Self {
        Self {
            work: CallExecution::Here(call),
            listener,
            caller,
            carrier,
        }
    }

    /// Waits for what happens next, and passes on progress meanwhile.
    pub(crate) async fn step(
        &mut self,
        line: Option<&ProgressLine>,
        until: WaitConditions,
    ) -> Result<WaitResult, RpcError> {
        let Self {
            work,
            listener,
            caller,
            ..
        } = self;
        let shown = async {
            match (line, listener.as_mut()) {
                (Some(line), Some(listener)) => match line.follow(listener).await {},
                _ => std::future::pending::<Infallible>().await,
            }
        };
        let outcome = tokio::select! {
            biased;
            outcome = work => outcome,
            () = caller.wait_for_requests(), if until.asks => return Ok(WaitResult::Asks),
            () = tokio::time::sleep_until(until.late.unwrap_or_else(Instant::now)), if until.late.is_some() => return Ok(WaitResult::Late),
            never = shown => match never {},
            never = caller.sends_logs() => match never {},
        };
        caller.send_last_logs(FLUSH_TIMEOUT).await;
        if let (Some(line), Some(listener)) = (line, listener.take()) {
            line.end(listener).await;
        }
        outcome
            .map(|outcome| WaitResult::Ended(Box::new(outcome)))
            .map_err(|error| {
                tracing::error!(%error, "a call under way ended early");
                RpcError::new(RpcError::INTERNAL, "the call failed")
            })
    }

    /// Moves the call to a task of its own.
    pub(crate) fn part(self) -> Self {
        let Self {
            work,
            listener,
            caller,
            carrier,
        } = self;
        let work = match work {
            CallExecution::Here(call) => CallExecution::Apart(SpawnedCall(tokio::spawn(call))),
            apart @ CallExecution::Apart(_) => apart,
        };
        caller.listens(None);
        Self {
            work,
            listener,
            caller,
            carrier,
        }
    }
}

impl Future for CallExecution {
    type Output = Result<Outcome, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Here(call) => Pin::new(call).poll(cx).map(Ok),
            Self::Apart(call) => Pin::new(&mut call.0).poll(cx),
        }
    }
}

impl Drop for SpawnedCall {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl std::fmt::Debug for CallExecution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Here(_) => "Here",
            Self::Apart(_) => "Apart",
        })
    }
}
