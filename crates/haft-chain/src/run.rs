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
use haft::session::Ending;

use crate::bridge::frame::Kind;
use crate::bridge::message::{Done, Message};
use crate::bridge::{BridgeError, reply};
use crate::engine::Worker;
use crate::run::end::End;
use crate::run::link::{Link, Received};
use crate::run::record::{Answer, CallRequest, Step};
use crate::run::requests::{Answered, Request, Requests};

mod end;
mod link;
mod media;
mod output;
mod record;
mod requests;
mod room;
mod start;
mod watch;

pub(crate) use output::Output;
pub(crate) use record::Record;
pub(crate) use start::Script;
pub(crate) use watch::Looking;

/// Maximum number of calls after the budget is used up; each is refused, and any further one ends the chain.
const REFUSED: u64 = 100;
/// How long calls still running when a script ends may take to finish.
const GRACE: Duration = Duration::from_secs(2);

/// A finished call.
struct Ended {
    id: u32,
    seq: u64,
    outcome: Outcome,
}

type Call = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// An event that the loop waits for.
#[expect(
    clippy::large_enum_variant,
    reason = "made once a call and taken apart at once"
)]
enum Event {
    Ended(Ended),
    Answered(Answered),
    Received(Result<Received, BridgeError>),
    Again,
    Stop(End),
}

/// A running script.
pub(crate) struct ChainRun<'a> {
    context: &'a CallContext,
    scope: ChildRun,
    worker: &'a dyn Worker,
    link: Link<'a>,
    record: Record,
    output: Output,
    calls: FuturesUnordered<Call>,
    requests: Requests,
    /// The number of calls received.
    seq: u64,
    limit: Duration,
    /// How often the script polls for an answer before it sleeps.
    looks: u32,
}

/// The terms on which a script runs.
pub(crate) struct Terms {
    /// Where its calls are recorded.
    pub(crate) record: Record,
    /// Where its output goes.
    pub(crate) output: Output,
    /// How long it may run.
    pub(crate) limit: Duration,
    /// How it polls for answers.
    pub(crate) looking: Looking,
}

impl<'a> ChainRun<'a> {
    /// Creates a run of the script that this worker is to serve.
    pub(crate) fn new(
        context: &'a CallContext,
        scope: ChildRun,
        worker: &'a dyn Worker,
        terms: Terms,
    ) -> Self {
        let Terms {
            record,
            output,
            limit,
            looking,
        } = terms;
        Self {
            context,
            scope,
            worker,
            link: Link::new(worker, looking.clone()),
            looks: looking.of_script(),
            record,
            output,
            calls: FuturesUnordered::new(),
            requests: Requests::new(),
            seq: 0,
            limit,
        }
    }

    /// Runs it to its end, whatever that is.
    pub(crate) async fn run(
        mut self,
        script: &Script<'_>,
        folder: Option<PathBuf>,
    ) -> Result<ToolResult, ToolError> {
        let room = room::fill(self.worker, folder).await;
        let start = script.message(&self.scope, &self.record, self.looks)?;
        self.record.sent();
        let end = match self.link.send(Kind::Start, 0, &start) {
            Ok(()) => self.serve().await,
            Err(error) => End::Broken(error),
        };
        let end = if self.context.is_cancelled() {
            end.of_cancelled()
        } else {
            end
        };
        // A script that has ended, or was killed, must not change anything any more.
        self.worker.kill();
        let end = self.settle(end).await;
        if !matches!(end, End::Done(_)) {
            room::gone(self.worker).await;
        }
        let left_out = room.empty(self.worker).await;
        if let End::Suspended { approval, words } = end {
            self.record.leave().await;
            self.output.close();
            return Err(ToolError::suspended(approval.into(), words));
        }
        if matches!(end, End::Cancelled) && self.record.is_left() {
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
    async fn serve(&mut self) -> End {
        let scope = self.scope.clone();
        let (context, limit) = (self.context, self.limit);
        let mut late = pin!(scope.elapsed(limit));
        let mut ending = pin!(context.ending());
        let ended = |ending| match ending {
            Ending::Late => End::Late(context.limit()),
            Ending::Cancelled => End::Cancelled,
        };
        loop {
            // The clock first: a script that sends messages without end must not keep it from being checked.
            let event = tokio::select! {
                biased;
                () = &mut late => Event::Stop(End::Late(limit)),
                ending = &mut ending => Event::Stop(ended(ending)),
                event = self.event() => event,
            };
            // The handler first, so that what completes at once completes. A journal or a store may take longer than the script has time.
            let handled = tokio::select! {
                biased;
                handled = self.handle(event) => handled,
                () = &mut late => Err(End::Late(limit)),
                ending = &mut ending => Err(ended(ending)),
            };
            if let Err(end) = handled {
                return end;
            }
        }
    }

    /// Waits for the next event.
    async fn event(&mut self) -> Event {
        let due = self.output.due();
        let (calls, requests, link) = (&mut self.calls, &mut self.requests, &mut self.link);
        let alone = calls.is_empty() && requests.is_empty();
        let hears = requests.len() < requests::AT_ONCE;
        tokio::select! {
            biased;
            Some(ended) = calls.next(), if !calls.is_empty() => Event::Ended(ended),
            Some(answered) = requests.next(), if !requests.is_empty() => Event::Answered(answered),
            () = gathered(due), if due.is_some() => {
                self.output.flush();
                Event::Again
            }
            event = talk(link, alone), if hears => event,
        }
    }

    async fn handle(&mut self, event: Event) -> Result<(), End> {
        match event {
            Event::Ended(ended) => self.answer(ended).await,
            Event::Answered(answered) => self.tell(answered),
            Event::Received(Ok(Received::Message(message))) => self.message(message).await,
            Event::Received(Ok(Received::Part)) | Event::Again => Ok(()),
            Event::Received(Ok(Received::Closed)) => Err(End::Silent),
            Event::Received(Err(error)) => Err(End::Broken(error)),
            Event::Stop(end) => Err(end),
        }
    }

    async fn message(&mut self, message: Message) -> Result<(), End> {
        match message {
            Message::Call {
                id,
                name,
                noise,
                arguments,
            } => self.call(id, name, noise, arguments).await?,
            Message::Out { err, text } => self.output.take(err, &text),
            Message::Put {
                id,
                media_type,
                bytes,
            } => self.request(id, Request::Put { media_type, bytes }),
            Message::Read {
                id,
                reference,
                offset,
                length,
            } => {
                let read = Request::Read {
                    reference,
                    offset,
                    length,
                };
                self.request(id, read);
            }
            Message::Info { id, reference } => self.request(id, Request::Info { reference }),
            Message::Done(done) => return Err(End::Done(done)),
        }
        Ok(())
    }

    fn request(&mut self, id: u32, request: Request) {
        self.requests.push(request.begin(id, self.context));
    }

    fn tell(&mut self, answered: Answered) -> Result<(), End> {
        let Answered { id, answer } = answered;
        let text = match answer {
            Ok(requests::Answer::Bytes(bytes)) => {
                return Ok(self.link.send(Kind::Bytes, id, &bytes)?);
            }
            Ok(requests::Answer::Artifact(text)) => text,
            Err(error) => reply::refused(error.kind(), error.message()),
        };
        Ok(self.link.send(Kind::Answer, id, text.as_bytes())?)
    }

    /// Takes a call: numbers it, records it, and starts it.
    async fn call(
        &mut self,
        id: u32,
        name: String,
        noise: String,
        arguments: String,
    ) -> Result<(), End> {
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
            return Err(End::Broken(BridgeError::Flood(REFUSED)));
        }
        let asked = CallRequest {
            seq,
            id,
            name: &name,
            noise,
            arguments: &arguments,
        };
        match self.record.call(asked).await.map_err(End::Stopped)? {
            Step::Run => {
                let scope = self.scope.clone();
                self.calls.push(Box::pin(async move {
                    let outcome = scope.call(name, arguments).await;
                    Ended { id, seq, outcome }
                }));
            }
            Step::Replay(status) => {
                self.scope.replayed(&name, &arguments, status);
            }
        }
        let due = self.record.due(seq);
        self.send_all(due).await
    }

    /// Answers a call: writes its media, records the answer, then sends it.
    async fn answer(&mut self, ended: Ended) -> Result<(), End> {
        let Ended { id, seq, outcome } = ended;
        if let Some(approval) = outcome.approval.clone() {
            // The script gets no answer: it will run again from its start, and make this call again.
            let words = outcome.text();
            return Err(End::Suspended { approval, words });
        }
        // A call may be cancelled a moment before the chain around it: the script must not see that.
        if self.context.is_cancelled() {
            return Err(End::Cancelled);
        }
        if outcome.status == Status::Timeout && self.scope.is_late() {
            return Err(End::Late(self.scope.session().limits().total_timeout));
        }
        let files = media::keep(self.context, self.worker, seq, &outcome).await;
        let answer = Answer {
            id,
            reply: reply::outcome(seq, &outcome, &files),
            recorded: false,
        };
        let due = self.record.end(seq, answer).await;
        let due = due.map_err(End::Stopped)?;
        self.send_all(due).await
    }

    async fn send_all(&mut self, answers: Vec<Answer>) -> Result<(), End> {
        for answer in answers {
            if answer.recorded {
                media::restore(self.context, self.worker, &answer.reply).await;
            }
            self.link
                .send(Kind::Answer, answer.id, answer.reply.as_bytes())?;
        }
        Ok(())
    }

    /// Waits briefly for running calls if the script ended by itself; calls still running then are dropped, and the executor
    /// records them as cancelled.
    async fn settle(&mut self, end: End) -> End {
        let suspended = matches!(end, End::Suspended { .. });
        if suspended {
            // Other approval requests stay pending without the script, too.
            self.scope.suspend();
        }
        if !(suspended || matches!(end, End::Done(Done { .. }))) || self.calls.is_empty() {
            self.calls.clear();
            return end;
        }
        let calls = &mut self.calls;
        let record = &mut self.record;
        let all = async {
            while let Some(Ended { id, seq, outcome }) = calls.next().await {
                if outcome.approval.is_some() {
                    continue;
                }
                let reply = reply::outcome(seq, &outcome, &[]);
                let answer = Answer {
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
    output: &Output,
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
async fn talk(link: &mut Link<'_>, alone: bool) -> Event {
    if !link.is_behind() {
        return Event::Received(link.recv(alone).await);
    }
    link.both().await.map_or(Event::Again, Event::Received)
}

async fn gathered(due: Option<Instant>) {
    if let Some(due) = due {
        tokio::time::sleep_until(due.into()).await;
    }
}

impl From<BridgeError> for End {
    fn from(error: BridgeError) -> Self {
        Self::Broken(error)
    }
}

/// Returns the workspace folder of a run, if it has one.
pub type Folders = Arc<dyn Fn(&haft::call::RunId) -> Option<PathBuf> + Send + Sync>;
