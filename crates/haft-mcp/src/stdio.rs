//! MCP over standard input and output: one client, one message per line, many concurrent requests.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use haft::bounds::CallerClass;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::capabilities::ClientCapabilities;
use crate::core::{Core, EncodedResponse, ParsedRequest};
use crate::era::Era;
use crate::filter::SubscriptionFilter;
use crate::job::{Job, RequestEnvelope, unsupported_version};
use crate::limits::ServerLimits;
use crate::listen::{self, RunWatch};
use crate::opener::{ClientInfo, ClientOrigin, Transport};
use crate::replies::Reply;
use crate::run::ClientRun;
use crate::wire::params::{Implementation, RequestMeta, RequestParams};
use crate::wire::{
    self, InvalidMessage, RequestId, RpcError, RpcMessage, RpcNotification, RpcRequest,
    RpcResponse, reply,
};

pub mod backlog;
pub mod line;

use backlog::{Backlog, InputLine};
use line::PendingWrite;

/// Maximum number of messages queued for writing.
const MAX_QUEUED: usize = 64;
/// Time limit for writing the last of them.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval between checks whether the client still reads.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Why serving over standard input and output ended early.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// A stream's thread could not be started.
    #[error("start a thread for standard input or output: {0}")]
    Thread(#[source] std::io::Error),
    /// Standard input failed.
    #[error("read standard input: {0}")]
    Read(#[source] std::io::Error),
    /// The client does not read what is written to it.
    #[error("the client has not read standard output for {} s", .0.as_secs_f64())]
    Unread(Duration),
}

/// Serves one client until it disconnects.
pub(crate) async fn serve(
    core: Arc<Core>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), StdioError> {
    let limits = core.limits.clone();
    let lines = Backlog::new(2 * limits.message_bytes);
    let writing = Arc::new(PendingWrite::default());
    let (out, from_server) = mpsc::channel(MAX_QUEUED);
    line::reader(input, limits.message_bytes, Arc::clone(&lines)).map_err(StdioError::Thread)?;
    let written = line::writer(output, from_server, Arc::clone(&writing));
    let written = written.map_err(StdioError::Thread)?;
    let mut connection = StdioConnection {
        permits: Arc::new(Semaphore::new(limits.in_flight)),
        streams: Arc::new(Semaphore::new(limits.in_flight)),
        core,
        out: out.clone(),
        state: ConnectionState::Fresh,
        tasks: JoinSet::new(),
    };
    let ended = tokio::select! {
        ended = connection.run(&lines) => ended,
        stalled = client_stalled(&writing, &lines, &limits) => stalled,
    };
    lines.close();
    connection.wind_down(ended.is_ok()).await;
    drop((connection, out));
    // The last answers are on their way; do not wait for a client that does not read them.
    let _late = tokio::time::timeout(FLUSH_TIMEOUT, written).await;
    ended
}

/// Waits until the client counts as gone even though it has not closed standard output: it reads nothing for a long time, or it
/// closed standard input and reads nothing for a moment.
async fn client_stalled(
    writing: &PendingWrite,
    lines: &Backlog,
    limits: &ServerLimits,
) -> Result<(), StdioError> {
    loop {
        let ended = lines.has_ended();
        let most = if ended { limits.grace } else { limits.unread };
        if writing.stands_for() >= most {
            return if ended {
                Ok(())
            } else {
                Err(StdioError::Unread(most))
            };
        }
        tokio::time::sleep(CHECK_INTERVAL.min(most / 4)).await;
    }
}

/// The state of the connection, set by the client's first request.
#[derive(Debug, Clone)]
enum ConnectionState {
    Fresh,
    Open(Arc<ClientRun>),
}

#[derive(Debug)]
struct StdioConnection {
    core: Arc<Core>,
    out: mpsc::Sender<Vec<u8>>,
    state: ConnectionState,
    tasks: JoinSet<()>,
    /// Permits for concurrent jobs; `streams` holds those for streams of changes.
    permits: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

impl StdioConnection {
    /// Handles lines until the client disconnects, on either side.
    async fn run(&mut self, lines: &Backlog) -> Result<(), StdioError> {
        let out = self.out.clone();
        loop {
            let line = tokio::select! {
                biased;
                () = out.closed() => return Ok(()),
                Some(_) = self.tasks.join_next() => continue,
                line = lines.next() => line,
            };
            match line {
                Some(InputLine::Message(bytes)) => self.take(&bytes).await,
                Some(InputLine::TooLong) => {
                    self.refuse(&InvalidMessage::too_long(self.core.limits.message_bytes))
                        .await;
                }
                Some(InputLine::Broken(error)) => return Err(StdioError::Read(error)),
                None => return Ok(()),
            }
        }
    }

    /// Gives requests in progress a moment to finish, then cancels them and ends the run.
    async fn wind_down(&mut self, gently: bool) {
        if gently {
            let all = u32::try_from(self.core.limits.in_flight).unwrap_or(u32::MAX);
            tokio::select! {
                _ = self.permits.acquire_many(all) => {}
                () = self.out.closed() => {}
                () = tokio::time::sleep(self.core.limits.grace) => {}
            }
        }
        if let Some(run) = self.run_now() {
            run.end();
        }
        // Cancelled work ends at once; work that does not is dropped, which cancels it as well.
        let drain = async { while self.tasks.join_next().await.is_some() {} };
        let _late = tokio::time::timeout(self.core.limits.grace, drain).await;
        self.tasks.shutdown().await;
    }

    fn run_now(&self) -> Option<Arc<ClientRun>> {
        match &self.state {
            ConnectionState::Open(run) => Some(Arc::clone(run)),
            ConnectionState::Fresh => None,
        }
    }

    async fn take(&mut self, bytes: &[u8]) {
        match wire::parse(bytes) {
            Ok(RpcMessage::Request(request)) => self.request(&request).await,
            Ok(RpcMessage::Notification(notification)) => self.handle_notification(&notification),
            Ok(RpcMessage::Response(response)) => self.handle_response(&response),
            Err(refused) => self.refuse(&refused).await,
        }
    }

    async fn refuse(&self, refused: &InvalidMessage) {
        match &self.state {
            ConnectionState::Open(run) => {
                self.core
                    .refused(run, Transport::Stdio, &refused.error.message);
            }
            ConnectionState::Fresh => self.core.stray(Transport::Stdio, &refused.error.message),
        }
        self.send(EncodedResponse::error(refused.id.as_ref(), &refused.error).bytes)
            .await;
    }

    async fn request(&mut self, request: &RpcRequest<'_>) {
        // A client may check that the server is there before it introduces itself.
        if matches!(self.state, ConnectionState::Fresh) && is_plain_ping(request) {
            return self.send(reply::empty(&request.id)).await;
        }
        match self.prepare(request).await {
            // Requests sent after the handshake are answered after it as well.
            Ok((run, job @ Job::Initialize(..))) => {
                let answer = self.core.answer(&run, &request.id, job, None).await;
                self.send(answer.bytes).await;
                self.announce_changes(&run);
            }
            Ok((run, job)) => self.start(run, request.id.clone(), job).await,
            Err(error) => {
                let id = Some(request.id.clone());
                self.refuse(&InvalidMessage { id, error }).await;
            }
        }
    }

    /// Parses a request in the connection's era, which the first request determines.
    async fn prepare(
        &mut self,
        request: &RpcRequest<'_>,
    ) -> Result<(Arc<ClientRun>, Job), RpcError> {
        let params = RequestParams::parse(request.params)?;
        let method = &*request.method;
        let meta = params.meta()?;
        let version = meta.as_ref().and_then(|meta| meta.protocol_version);
        match (self.state.clone(), version, meta) {
            (ConnectionState::Open(run), _, meta) if run.era.is_modern() => {
                if method == "initialize" {
                    let requested = params.protocol_version().unwrap_or_default();
                    return Err(unsupported_version(&requested));
                }
                let job = modern_job(method, &params, meta)?;
                Ok((run, job))
            }
            (ConnectionState::Open(_), Some(_), _) if method != "initialize" => {
                Err(RpcError::invalid_request(
                    "this connection began with initialize: a request may not name a version of its own",
                ))
            }
            (ConnectionState::Open(run), _, _) => match Job::legacy(method, &params)? {
                Job::Initialize(..) => Err(RpcError::invalid_request(
                    "this connection is initialized already",
                )),
                job => Ok((run, job)),
            },
            (ConnectionState::Fresh, Some(_), Some(meta)) if method != "initialize" => {
                let client = meta.client_info();
                let can = ClientCapabilities::of(meta.client_capabilities, Era::Modern);
                let job = modern_job(method, &params, Some(meta))?;
                let run = self.open(client, can, Era::Modern).await?;
                Ok((run, job))
            }
            (ConnectionState::Fresh, _, _) => match Job::legacy(method, &params)? {
                Job::Initialize(revision, client, can) => {
                    let era = Era::Legacy(revision);
                    let run = self.open(client.clone(), can.clone(), era).await?;
                    Ok((run, Job::Initialize(revision, client, can)))
                }
                _ => Err(RpcError::invalid_request(
                    "the connection is not initialized: send initialize, or name the protocol version in _meta",
                )),
            },
        }
    }

    async fn open(
        &mut self,
        client: Implementation,
        can: ClientCapabilities,
        era: Era,
    ) -> Result<Arc<ClientRun>, RpcError> {
        let arrival = ClientOrigin {
            transport: Transport::Stdio,
            principal: None,
            view: None,
            class: CallerClass::Client,
        };
        let client = ClientInfo::new(client, can, era, arrival);
        let opened = self.core.open(client).await;
        let run = opened.map_err(|e| RpcError::new(RpcError::INTERNAL, e.to_string()))?;
        self.state = ConnectionState::Open(Arc::clone(&run));
        Ok(run)
    }

    /// Performs a job concurrently with the others. With too many in progress, nothing more is read until one ends.
    async fn start(&mut self, run: Arc<ClientRun>, id: RequestId, job: Job) {
        let Some(ticket) = run.in_flight.enter(&id) else {
            let error = RpcError::invalid_request("a request with this id is under way");
            return self
                .refuse(&InvalidMessage {
                    id: Some(id),
                    error,
                })
                .await;
        };
        // A stream of changes ends with its client, so shutdown does not wait for it.
        let permits = if matches!(job, Job::Listen(_)) {
            &self.streams
        } else {
            &self.permits
        };
        let Ok(permit) = Arc::clone(permits).acquire_owned().await else {
            return;
        };
        let (core, out) = (Arc::clone(&self.core), self.out.clone());
        self.tasks.spawn(async move {
            // Held until the answer is written and the work has ended.
            let permit = Arc::new(permit);
            let work = async {
                match job {
                    Job::Listen(filter) => listen_here(&core, &run, &id, filter, &out).await,
                    job => {
                        let request = ParsedRequest {
                            id: id.clone(),
                            job,
                            notes: Some(out.clone()),
                        };
                        let held = Arc::clone(&permit);
                        core.bounded(&run, request, held).await.bytes
                    }
                }
            };
            // A cancelled request gets no answer: the client has stopped waiting.
            if let Some(bytes) = ticket.run(Box::pin(work)).await {
                let _gone = out.send(bytes).await;
            }
            drop(permit);
        });
    }

    fn handle_response(&self, response: &RpcResponse<'_>) {
        if let (ConnectionState::Open(run), Some(id)) = (&self.state, &response.id) {
            let reply = Reply {
                result: response.result.map(ToOwned::to_owned),
                error: response.error.map(ToOwned::to_owned),
                // Standard input carries no token.
                operator: false,
            };
            run.replies.take(id, reply);
        }
    }

    fn handle_notification(&self, notification: &RpcNotification<'_>) {
        if notification.method == "notifications/cancelled"
            && let ConnectionState::Open(run) = &self.state
            && let Ok(params) = RequestParams::parse(notification.params)
            && let Some(id) = params.request_id()
        {
            run.in_flight.cancel(id);
        }
    }

    /// Tells a handshake-era client about changes of lists, and of what it is subscribed to.
    fn announce_changes(&mut self, run: &Arc<ClientRun>) {
        let (mut watch, out) = (
            RunWatch::new(run, SubscriptionFilter::LISTS),
            self.out.clone(),
        );
        self.tasks.spawn(async move {
            while let Some(notification) = watch.next().await.notification(None) {
                if out.send(notification).await.is_err() {
                    break;
                }
            }
        });
    }

    async fn send(&self, bytes: Vec<u8>) {
        // The loop notices a client that no longer reads.
        let _gone = self.out.send(bytes).await;
    }
}

/// Serves a `subscriptions/listen` over the connection's single stream.
async fn listen_here(
    core: &Core,
    run: &Arc<ClientRun>,
    id: &RequestId,
    filter: SubscriptionFilter,
    out: &mpsc::Sender<Vec<u8>>,
) -> Vec<u8> {
    let mut watch = RunWatch::subscribe(run, filter).await;
    let mut frame = listen::acknowledged(id, watch.filter());
    while out.send(frame).await.is_ok() {
        match watch.next().await.notification(Some(id)) {
            Some(told) => frame = told,
            None => break,
        }
    }
    listen::finished(id, core.info())
}

fn modern_job(
    method: &str,
    params: &RequestParams<'_>,
    meta: Option<RequestMeta<'_>>,
) -> Result<Job, RpcError> {
    RequestEnvelope::read(meta)?.served()?.job(method, params)
}

/// Returns whether a request is the handshake era's `ping`: the stateless era has none.
fn is_plain_ping(request: &RpcRequest<'_>) -> bool {
    let named = RequestParams::parse(request.params).and_then(|params| {
        let meta = params.meta()?;
        Ok(meta.and_then(|meta| meta.protocol_version).is_some())
    });
    request.method == "ping" && named.is_ok_and(|named| !named)
}
