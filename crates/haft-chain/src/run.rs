//! `ChainRun`: runs one script from start to end: its calls through the executor, its output, its result.

use std::future::Future;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use haft::context::{CallContext, ChildRun};
use haft::error::{ErrorKind, ToolError};
use haft::result::{Content, Outcome, Status, ToolResult};
use haft::session::CallEndReason;

use crate::bridge::frame::FrameKind;
use crate::bridge::message::{ScriptMessage, ScriptReport};
use crate::bridge::{BridgeError, reply};
use crate::engine::Worker;
use crate::run::end::ScriptEnd;
use crate::run::link::{ReceiveResult, ScriptLink};
use crate::run::record::{CallRequest, ReplayDecision, ScriptAnswer};
use crate::run::requests::{ArtifactRequest, ArtifactRequests, ArtifactResponse};

mod end;
mod link;
mod media;
mod output;
mod record;
mod requests;
mod room;
mod start;
mod watch;

pub(crate) use output::ScriptOutput;
pub(crate) use record::ChainRecord;
pub(crate) use start::ChainScript;
pub(crate) use watch::PollPolicy;

/// Maximum number of calls after the budget is used up; each is refused, and any further one ends the chain.
const REFUSED: u64 = 100;
/// How long calls still running when a script ends may take to finish.
const GRACE: Duration = Duration::from_secs(2);

/// A finished call.
struct FinishedCall {
    id: u32,
    seq: u64,
    outcome: Outcome,
}

type CallFuture = Pin<Box<dyn Future<Output = FinishedCall> + Send>>;

/// An event that the loop waits for.
#[expect(
    clippy::large_enum_variant,
    reason = "made once a call and taken apart at once"
)]
enum ChainEvent {
    Ended(FinishedCall),
    Answered(ArtifactResponse),
    Received(Result<ReceiveResult, BridgeError>),
    Again,
    Stop(ScriptEnd),
}

/// A running script.
pub(crate) struct ChainRun<'a> {
    context: &'a CallContext,
    scope: ChildRun,
    worker: &'a dyn Worker,
    link: ScriptLink<'a>,
    record: ChainRecord,
    output: ScriptOutput,
    calls: FuturesUnordered<CallFuture>,
    requests: ArtifactRequests,
    /// The number of calls received.
    seq: u64,
    limit: Duration,
    /// How often the script polls for an answer before it sleeps.
    looks: u32,
}

/// The terms on which a script runs.
pub(crate) struct ScriptTerms {
    /// Where its calls are recorded.
    pub(crate) record: ChainRecord,
    /// Where its output goes.
    pub(crate) output: ScriptOutput,
    /// How long it may run.
    pub(crate) limit: Duration,
    /// How it polls for answers.
    pub(crate) looking: PollPolicy,
}

impl<'a> ChainRun<'a> {
    /// Creates a run of the script that this worker is to serve.
    pub(crate) fn new(
        context: &'a CallContext,
        scope: ChildRun,
        worker: &'a dyn Worker,
        terms: ScriptTerms,
    ) -> Self {
        let ScriptTerms {
            record,
            output,
            limit,
            looking,
        } = terms;
        Self {
            context,
            scope,
            worker,
            link: ScriptLink::new(worker, looking.clone()),
            looks: looking.of_script(),
            record,
            output,
            calls: FuturesUnordered::new(),
            requests: ArtifactRequests::new(),
            seq: 0,
            limit,
        }
    }

    /// Runs it to its end, whatever that is.
    pub(crate) async fn run(
        mut self,
        script: &ChainScript<'_>,
        folder: Option<PathBuf>,
    ) -> Result<ToolResult, ToolError> {
        let room = room::fill(self.worker, folder).await;
        let start = script.message(&self.scope, &self.record, self.looks)?;
        self.record.sent();
        let end = match self.link.send(FrameKind::Start, 0, &start) {
            Ok(()) => self.serve().await,
            Err(error) => ScriptEnd::Broken(error),
        };
        let end = if self.context.is_cancelled() {
            end.of_cancelled()
        } else {
            end
        };
        // A script that has ended, or was killed, must not change anything any more.
        self.worker.kill();
        let end = self.settle(end).await;
        if !matches!(end, ScriptEnd::Done(_)) {
            room::gone(self.worker).await;
        }
        let left_out = room.empty(self.worker).await;
        if let ScriptEnd::Suspended(waits) = end {
            self.record.leave().await;
            self.output.close();
            return Err(*waits);
        }
        if matches!(end, ScriptEnd::Cancelled) && self.record.is_left() {
            self.record.leave().await;
            self.output.close();
            return Err(stopped());
        }
        self.record.close(end.status()).await;
        self.output.close();
        let strength = self.worker.strength();
        let (result, said) = end.result(&self.scope, self.output.total(), left_out);
        let mut result = printed(self.context, &self.output, result, said).await?;
        result.strength = Some(strength);
        Ok(result)
    }

    /// The main loop: the script's messages, the results of its calls, and the clock.
    async fn serve(&mut self) -> ScriptEnd {
        let scope = self.scope.clone();
        let (context, limit) = (self.context, self.limit);
        let mut late = pin!(scope.elapsed(limit));
        let mut ending = pin!(context.ending());
        let ended = |ending| match ending {
            CallEndReason::Late => ScriptEnd::Late(context.limit()),
            CallEndReason::Cancelled => ScriptEnd::Cancelled,
        };
        loop {
            // The clock first: a script that sends messages without end must not keep it from being checked.
            let event = tokio::select! {
                biased;
                () = &mut late => ChainEvent::Stop(ScriptEnd::Late(limit)),
                ending = &mut ending => ChainEvent::Stop(ended(ending)),
                event = self.event() => event,
            };
            // The handler first, so that what completes at once completes. A journal or a store may take longer than the script has time.
            let handled = tokio::select! {
                biased;
                handled = self.handle(event) => handled,
                () = &mut late => Err(ScriptEnd::Late(limit)),
                ending = &mut ending => Err(ended(ending)),
            };
            if let Err(end) = handled {
                return end;
            }
        }
    }

    /// Waits for the next event.
    async fn event(&mut self) -> ChainEvent {
        let due = self.output.due();
        let (calls, requests, link) = (&mut self.calls, &mut self.requests, &mut self.link);
        let alone = calls.is_empty() && requests.is_empty();
        let hears = requests.len() < requests::AT_ONCE;
        tokio::select! {
            biased;
            Some(ended) = calls.next(), if !calls.is_empty() => ChainEvent::Ended(ended),
            Some(answered) = requests.next(), if !requests.is_empty() => ChainEvent::Answered(answered),
            () = gathered(due), if due.is_some() => {
                self.output.flush();
                ChainEvent::Again
            }
            event = talk(link, alone), if hears => event,
        }
    }

    async fn handle(&mut self, event: ChainEvent) -> Result<(), ScriptEnd> {
        match event {
            ChainEvent::Ended(ended) => self.answer(ended).await,
            ChainEvent::Answered(answered) => self.tell(answered),
            ChainEvent::Received(Ok(ReceiveResult::Message(message))) => {
                self.message(message).await
            }
            ChainEvent::Received(Ok(ReceiveResult::Part)) | ChainEvent::Again => Ok(()),
            ChainEvent::Received(Ok(ReceiveResult::Closed)) => Err(ScriptEnd::Silent),
            ChainEvent::Received(Err(error)) => Err(ScriptEnd::Broken(error)),
            ChainEvent::Stop(end) => Err(end),
        }
    }

    async fn message(&mut self, message: ScriptMessage) -> Result<(), ScriptEnd> {
        match message {
            ScriptMessage::Call {
                id,
                name,
                noise,
                arguments,
            } => self.call(id, name, noise, arguments).await?,
            ScriptMessage::Out { err, text } => self.output.take(err, &text),
            ScriptMessage::Put {
                id,
                media_type,
                bytes,
            } => self.request(id, ArtifactRequest::Put { media_type, bytes }),
            ScriptMessage::Read {
                id,
                reference,
                offset,
                length,
            } => {
                let read = ArtifactRequest::Read {
                    reference,
                    offset,
                    length,
                };
                self.request(id, read);
            }
            ScriptMessage::Info { id, reference } => {
                self.request(id, ArtifactRequest::Info { reference });
            }
            ScriptMessage::Done(done) => return Err(ScriptEnd::Done(done)),
        }
        Ok(())
    }

    fn request(&mut self, id: u32, request: ArtifactRequest) {
        self.requests.push(request.begin(id, self.context));
    }

    fn tell(&mut self, answered: ArtifactResponse) -> Result<(), ScriptEnd> {
        let ArtifactResponse { id, answer } = answered;
        let text = match answer {
            Ok(requests::ArtifactAnswer::Bytes(bytes)) => {
                return Ok(self.link.send(FrameKind::Bytes, id, &bytes)?);
            }
            Ok(requests::ArtifactAnswer::Artifact(text)) => text,
            Err(error) => reply::refused(error.kind(), error.message()),
        };
        Ok(self.link.send(FrameKind::Answer, id, text.as_bytes())?)
    }

    /// Takes a call: numbers it, records it, and starts it.
    async fn call(
        &mut self,
        id: u32,
        name: String,
        noise: String,
        arguments: String,
    ) -> Result<(), ScriptEnd> {
        self.seq += 1;
        let seq = self.seq;
        if seq
            > self
                .scope
                .session()
                .limits()
                .max_calls
                .saturating_add(REFUSED)
        {
            return Err(ScriptEnd::Broken(BridgeError::Flood(REFUSED)));
        }
        let asked = CallRequest {
            seq,
            id,
            name: &name,
            noise,
            arguments: &arguments,
        };
        match self.record.call(asked).await.map_err(ScriptEnd::Stopped)? {
            ReplayDecision::Run => {
                let scope = self.scope.clone();
                self.calls.push(Box::pin(async move {
                    let outcome = scope.call(name, arguments).await;
                    FinishedCall { id, seq, outcome }
                }));
            }
            ReplayDecision::Replay(status) => {
                self.scope.replayed(&name, &arguments, status);
            }
        }
        let due = self.record.due(seq);
        self.send_all(due).await
    }

    /// Answers a call: writes its media, records the answer, then sends it.
    async fn answer(&mut self, ended: FinishedCall) -> Result<(), ScriptEnd> {
        let FinishedCall { id, seq, outcome } = ended;
        if let Some(approval) = outcome.approval.clone() {
            // The script gets no answer: it will run again from its start, and make this call again.
            let waits = ToolError::suspended(approval.into(), outcome.text());
            let waits = waits.for_operator(outcome.operator.unwrap_or_default());
            return Err(ScriptEnd::Suspended(Box::new(waits)));
        }
        // A call may be cancelled a moment before the chain around it: the script must not see that.
        if self.context.is_cancelled() {
            return Err(ScriptEnd::Cancelled);
        }
        if outcome.status == Status::Timeout && self.scope.is_late() {
            return Err(ScriptEnd::Late(self.scope.session().limits().total_timeout));
        }
        let files = media::keep(self.context, self.worker, seq, &outcome).await;
        let answer = ScriptAnswer {
            id,
            reply: reply::outcome(seq, &outcome, &files),
            recorded: false,
        };
        let due = self.record.end(seq, answer).await;
        let due = due.map_err(ScriptEnd::Stopped)?;
        self.send_all(due).await
    }

    async fn send_all(&mut self, answers: Vec<ScriptAnswer>) -> Result<(), ScriptEnd> {
        for answer in answers {
            if answer.recorded {
                media::restore(self.context, self.worker, &answer.reply).await;
            }
            self.link
                .send(FrameKind::Answer, answer.id, answer.reply.as_bytes())?;
        }
        Ok(())
    }

    /// Waits briefly for running calls if the script ended by itself; calls still running then are dropped, and the executor
    /// records them as cancelled.
    async fn settle(&mut self, end: ScriptEnd) -> ScriptEnd {
        let suspended = matches!(end, ScriptEnd::Suspended(_));
        if suspended {
            // Other approval requests stay pending without the script, too.
            self.scope.suspend();
        }
        if !(suspended || matches!(end, ScriptEnd::Done(ScriptReport { .. })))
            || self.calls.is_empty()
        {
            self.calls.clear();
            return end;
        }
        let calls = &mut self.calls;
        let record = &mut self.record;
        let all = async {
            while let Some(FinishedCall { id, seq, outcome }) = calls.next().await {
                if outcome.approval.is_some() {
                    continue;
                }
                let reply = reply::outcome(seq, &outcome, &[]);
                let answer = ScriptAnswer {
                    id,
                    reply,
                    recorded: false,
                };
                if record.end(seq, answer).await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(GRACE, all).await;
        self.calls.clear();
        end
    }
}

fn stopped() -> ToolError {
    let message = "haft stopped before the script ended; it can be resumed again";
    ToolError::new(ErrorKind::Cancelled, message)
}

/// Adds what the script printed to the result, in the room that the rest leaves; `said` follows it.
async fn printed(
    context: &CallContext,
    output: &ScriptOutput,
    mut result: ToolResult,
    said: String,
) -> Result<ToolResult, ToolError> {
    let data = result.data.as_ref().map_or("", |data| data.get());
    let reserve = context.cost(&said) + context.cost(data);
    let shown = context.show(vec![output.long()], false, reserve).await?;
    let shown = shown.into_iter().next().unwrap_or_default();
    let mut text = shown.text;
    if !(text.is_empty() || text.ends_with('\n') || said.is_empty()) {
        text.push('\n');
    }
    text.push_str(&said);
    if !text.is_empty() {
        result.content.push(Content::text(text));
    }
    result.artifacts.extend(shown.artifact);
    Ok(result)
}

/// Receives a frame, and sends queued ones.
async fn talk(link: &mut ScriptLink<'_>, alone: bool) -> ChainEvent {
    if !link.is_behind() {
        return ChainEvent::Received(link.recv(alone).await);
    }
    link.both()
        .await
        .map_or(ChainEvent::Again, ChainEvent::Received)
}

async fn gathered(due: Option<Instant>) {
    if let Some(due) = due {
        tokio::time::sleep_until(due.into()).await;
    }
}

impl From<BridgeError> for ScriptEnd {
    fn from(error: BridgeError) -> Self {
        Self::Broken(error)
    }
}

/// Returns the workspace folder of a run, if it has one.
pub type WorkspaceLookup = Arc<dyn Fn(&haft::call::RunId) -> Option<PathBuf> + Send + Sync>;
