//! `Core`: what all transports share. It opens runs, does the jobs that clients ask for and writes the answers.

use std::sync::Arc;
use std::time::Duration;

use haft::approval::ApprovalId;
use haft::bounds::{Budget, Shares};
use haft::result::Status;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::era::{Era, Revision, SUPPORTED};
use crate::job::Job;
use crate::opener::{ClientInfo, OpenError, RunFactory, Transport};
use crate::outcome;
use crate::prompt;
use crate::resource;
use crate::run::{Run, Shared};
use crate::skill;
use crate::tool_list;
use crate::wire::reply;
use crate::wire::{Id, RpcError};

/// How long a client may keep what `server/discover` said: it changes with the binary alone.
const DISCOVER_TTL_MS: u64 = 3_600_000;
/// How long it may keep a list; one that listens for changes hears of them sooner.
const LIST_TTL_MS: u64 = 5_000;

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

/// Bounds of what clients may make the server hold. Over HTTP clients with the operator's token have a share of their own
/// beside these, an eighth as large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// The longest message, in bytes.
    pub message_bytes: usize,
    /// Tools or resources on one page of a list.
    pub page: usize,
    /// Requests under way on standard input; more wait unread.
    pub in_flight: usize,
    /// Calls under way over HTTP.
    pub calls: usize,
    /// Other requests under way over HTTP: lists, and what is read.
    pub reads: usize,
    /// Bytes of request bodies, and of the arguments of calls under way, held at once over HTTP.
    pub body_bytes: usize,
    /// Bytes of answers that clients have not taken yet, over HTTP.
    pub answer_bytes: usize,
    /// Bytes of progress that clients have not taken yet.
    pub progress_bytes: usize,
    /// Legacy HTTP sessions at once, and stateless clients at once. Where there are more, the one that is missed least ends.
    pub sessions: usize,
    /// Streams of changes at once over HTTP.
    pub streams: usize,
    /// How long a session may lie unused.
    pub idle: Duration,
    /// The same for one that was never used after it began.
    pub unused: Duration,
    /// Silence on a stream before a sign of life is sent; also how long an HTTP answer waits before it becomes a stream.
    pub keep_alive: Duration,
    /// How long requests under way may still take after the client closed standard input.
    pub grace: Duration,
    /// How long a client on standard input may leave standard output unread before it counts as gone.
    pub unread: Duration,
    /// How long a call waits for an approval where the client shows no progress: clients give up after a minute.
    pub hold: Duration,
    /// The longest artifact that `resources/read` gives whole, in bytes.
    pub resource_bytes: u64,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            page: 200,
            in_flight: 1024,
            calls: 512,
            reads: 32,
            body_bytes: 256 << 20,
            answer_bytes: 128 << 20,
            progress_bytes: 64 << 20,
            sessions: 1024,
            streams: 256,
            idle: Duration::from_mins(30),
            unused: Duration::from_mins(1),
            keep_alive: Duration::from_secs(15),
            grace: Duration::from_secs(1),
            unread: Duration::from_mins(2),
            hold: Duration::from_secs(50),
            resource_bytes: 4 << 20,
        }
    }
}

/// So many for clients, and the operator's part beside. Strangers have none.
pub(crate) fn shares(clients: usize) -> Shares<usize> {
    Shares {
        strangers: 0,
        clients,
        operator: (clients / 8).max(1),
    }
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
        let shared = Shared {
            opener,
            seal: Arc::default(),
            hold: limits.hold,
            untaken: Budget::new(limits.progress_bytes, OWN_PROGRESS),
        };
        Self {
            // A struct of strings is always JSON.
            info: serde_json::value::to_raw_value(info).unwrap_or_default(),
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

    async fn perform(
        &self,
        out: &mut Vec<u8>,
        run: &Run,
        job: Job,
        notes: Option<mpsc::Sender<Vec<u8>>>,
    ) -> Result<Option<ApprovalId>, RpcError> {
        let page = self.limits.page;
        match job {
            Job::Call(call) => {
                let (outcome, then) = run.call(call, notes).await?;
                outcome::write(out, &outcome, &then, run.era, &self.info);
                let waits = outcome
                    .approval
                    .filter(|_| outcome.status == Status::Suspended);
                return Ok(waits.map(ApprovalId::new));
            }
            Job::Ping | Job::SetLevel => out.extend_from_slice(b"{}"),
            Job::Initialize(revision, ..) => self.write_handshake(out, run, revision).await,
            Job::Discover => self.write_discovery(out, run).await,
            Job::ListTools(cursor) => {
                out.push(b'{');
                tool_list::write_page(out, &run.session.tools(), cursor.as_deref(), page)?;
                self.close(out, run.era, LIST_TTL_MS);
            }
            Job::ListTemplates => {
                out.push(b'{');
                skill::write_templates(out, run).await?;
                self.close(out, run.era, LIST_TTL_MS);
            }
            Job::ListPrompts(cursor) => {
                out.push(b'{');
                prompt::write_page(out, run, cursor.as_deref(), page).await?;
                self.close(out, run.era, LIST_TTL_MS);
            }
            Job::GetPrompt(name, arguments) => {
                out.push(b'{');
                prompt::write(out, run, &name, &arguments).await?;
                self.close(out, run.era, 0);
            }
            Job::ListResources(cursor) => {
                out.push(b'{');
                resource::write_page(out, run, cursor.as_deref(), page).await?;
                self.close(out, run.era, 0);
            }
            Job::ReadResource(uri) => {
                out.push(b'{');
                resource::write_contents(out, run, &uri, self.limits.resource_bytes).await?;
                self.close(out, run.era, resource::ttl_ms(&uri));
            }
            // The transports serve it: its answer is a stream.
            Job::Listen(_) => {
                let message = "subscriptions/listen is not served here";
                return Err(RpcError::new(RpcError::INTERNAL, message));
            }
        }
        Ok(None)
    }

    async fn write_handshake(&self, out: &mut Vec<u8>, run: &Run, revision: Revision) {
        out.extend_from_slice(b"{\"protocolVersion\":");
        reply::json(out, revision.as_str());
        out.push(b',');
        self.write_capabilities(out, run).await;
        out.extend_from_slice(b",\"serverInfo\":");
        out.extend_from_slice(self.info.get().as_bytes());
        out.push(b'}');
    }

    async fn write_discovery(&self, out: &mut Vec<u8>, run: &Run) {
        out.extend_from_slice(b"{\"supportedVersions\":");
        reply::json(out, &SUPPORTED);
        out.push(b',');
        self.write_capabilities(out, run).await;
        self.close(out, Era::Modern, DISCOVER_TTL_MS);
    }

    async fn write_capabilities(&self, out: &mut Vec<u8>, run: &Run) {
        out.extend_from_slice(
            b"\"capabilities\":{\"tools\":{\"listChanged\":true},\"resources\":{}",
        );
        // Said to a client that could use it: one that is told of prompts asks for them.
        if prompt::any(run).await {
            run.tell_prompts();
            out.extend_from_slice(b",\"prompts\":{}");
        }
        out.push(b'}');
        if let Some(instructions) = &self.instructions {
            out.extend_from_slice(b",\"instructions\":");
            reply::json(out, instructions);
        }
    }

    /// Ends a result that clients may keep for a while.
    fn close(&self, out: &mut Vec<u8>, era: Era, ttl_ms: u64) {
        if era.is_modern() {
            out.extend_from_slice(b",\"resultType\":\"complete\",\"ttlMs\":");
            reply::json(out, &ttl_ms);
            // What is listed depends on who asks.
            out.extend_from_slice(b",\"cacheScope\":\"private\",\"_meta\":{");
            write_tail(out, &self.info);
            out.push(b'}');
        }
        out.push(b'}');
    }
}

/// The server's account of itself, as a member of a result's `_meta`.
pub(crate) fn write_tail(out: &mut Vec<u8>, info: &RawValue) {
    out.extend_from_slice(b"\"io.modelcontextprotocol/serverInfo\":");
    out.extend_from_slice(info.get().as_bytes());
}
