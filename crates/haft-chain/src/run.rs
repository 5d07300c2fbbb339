//! `ChainRun`: one script from its start to its end: its calls through the executor, its output, what it came to.

use std::future::Future;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use haft::artifact::ArtifactRef;
use haft::context::{CallContext, ChildRun};
use haft::error::{ErrorKind, ToolError};
use haft::result::{Content, Outcome, Status, ToolResult};
use haft::session::Ending;

use crate::bridge::frame::Kind;
use crate::bridge::message::{Done, Message};
use crate::bridge::{BridgeError, RANGE, reply};
use crate::engine::Worker;
use crate::run::end::End;
use crate::run::link::{Link, Received};
use crate::run::record::{Answer, CallRequest, Step};
use haft::text::clip;

mod end;
mod link;
mod media;
mod output;
mod record;
mod room;
mod start;
mod watch;

pub(crate) use output::Output;
pub(crate) use record::Record;
pub(crate) use start::Script;
pub(crate) use watch::Looking;

/// Calls after the last that the budget allows; each is refused, and more of them end the chain.
const REFUSED: u64 = 100;
/// How long calls that are under way when a script ends may take to end, too.
const GRACE: Duration = Duration::from_secs(2);

/// A call that has ended.
struct Ended {
    id: u32,
    seq: u64,
    outcome: Outcome,
}

type Call = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// What the loop waits for.
#[expect(
    clippy::large_enum_variant,
    reason = "made once a call and taken apart at once"
)]
enum Event {
    Ended(Ended),
    Received(Result<Received, BridgeError>),
    Again,
    Stop(End),
}

/// One script that runs.
pub(crate) struct ChainRun<'a> {
    context: &'a CallContext,
    scope: ChildRun,
    worker: &'a dyn Worker,
    link: Link<'a>,
    record: Record,
    output: Output,
    calls: FuturesUnordered<Call>,
    /// Calls that came in.
    seq: u64,
    limit: Duration,
    /// How often the script looks for an answer before it sleeps.
    looks: u32,
}

/// What a script runs with.
pub(crate) struct Terms {
    /// Where its calls are written down.
    pub(crate) record: Record,
    /// Where its prints go.
    pub(crate) output: Output,
    /// How long it may run.
    pub(crate) limit: Duration,
    /// How it looks for answers.
    pub(crate) looking: Looking,
}

impl<'a> ChainRun<'a> {
    /// A run of the script that this worker is to serve.
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
        // A script that has ended, or was ended, changes nothing any more.
        self.worker.kill();
        let end = self.settle(end).await;
        if !matches!(end, End::Done(_)) {
            room::gone(self.worker).await;
        }
        let left_out = room.empty(self.worker).await;
        if let End::Suspended { approval, words } = end {
            self.record.leave();
            self.output.close();
            return Err(ToolError::suspended(approval.into(), words));
        }
        if matches!(end, End::Cancelled) && self.record.is_left() {
            self.record.leave();
            self.output.close();
            return Err(stopped());
        }
        self.record.close(end.status());
        self.output.close();
        let strength = self.worker.strength();
        let (result, said) = end.result(&self.scope, self.output.total(), left_out);
        let mut result = printed(self.context, &self.output, result, said).await?;
        result.strength = Some(strength);
        Ok(result)
    }

    /// The loop: what the script says, what its calls come to, and the clock.
    async fn serve(&mut self) -> End {
        let scope = self.scope.clone();
        let mut late = pin!(scope.elapsed(self.limit));
        let mut ending = pin!(self.context.ending());
        loop {
            let due = self.output.due();
            let (calls, link) = (&mut self.calls, &mut self.link);
            let alone = calls.is_empty();
            // The clock first: a script that talks without end must not keep it from being looked at.
            let event = tokio::select! {
                biased;
                () = &mut late => Event::Stop(End::Late(self.limit)),
                ending = &mut ending => Event::Stop(match ending {
                    Ending::Late => End::Late(self.context.limit()),
                    Ending::Cancelled => End::Cancelled,
                }),
                Some(ended) = calls.next(), if !calls.is_empty() => Event::Ended(ended),
                () = gathered(due), if due.is_some() => {
                    self.output.flush();
                    Event::Again
                }
                event = talk(link, alone) => event,
            };
            let handled = match event {
                Event::Ended(ended) => self.answer(ended),
                Event::Received(Ok(Received::Message(message))) => self.message(message),
                Event::Received(Ok(Received::Part)) | Event::Again => Ok(()),
                Event::Received(Ok(Received::Closed)) => Err(End::Silent),
                Event::Received(Err(error)) => Err(End::Broken(error)),
                Event::Stop(end) => Err(end),
            };
            if let Err(end) = handled {
                return end;
            }
        }
    }

    fn message(&mut self, message: Message) -> Result<(), End> {
        match message {
            Message::Call {
                id,
                name,
                noise,
                arguments,
            } => self.call(id, name, noise, arguments),
            Message::Out { err, text } => {
                self.output.take(err, &text);
                Ok(())
            }
            Message::Put {
                id,
                media_type,
                bytes,
            } => {
                let size = bytes.len() as u64;
                let kept = self.context.artifacts().and_then(|artifacts| {
                    artifacts
                        .put(&media_type, bytes)
                        .map_err(|error| ToolError::failed(format!("keep an artifact: {error}")))
                });
                let kept = kept.map(|kept| reply::artifact(kept.as_str(), &media_type, size));
                self.tell(id, kept)
            }
            Message::Read {
                id,
                reference,
                offset,
                length,
            } => match self.read(&reference, offset, length) {
                Ok(bytes) => Ok(self.link.send(Kind::Bytes, id, &bytes)?),
                Err(error) => self.tell(id, Err(error)),
            },
            Message::Info { id, reference } => {
                let info = self.info(&reference);
                self.tell(id, info)
            }
            Message::Done(done) => Err(End::Done(done)),
        }
    }

    fn tell(&mut self, id: u32, said: Result<String, ToolError>) -> Result<(), End> {
        let said = said.unwrap_or_else(|e| reply::refused(e.kind(), e.message()));
        Ok(self.link.send(Kind::Answer, id, said.as_bytes())?)
    }

    /// Takes a call in: numbered, written down, and begun.
    fn call(&mut self, id: u32, name: String, noise: String, arguments: String) -> Result<(), End> {
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
        match self.record.call(asked).map_err(End::Stopped)? {
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
        self.send_all(due)
    }

    /// Answers a call: its media first, then written down, then told.
    fn answer(&mut self, ended: Ended) -> Result<(), End> {
        let Ended { id, seq, outcome } = ended;
        if let Some(approval) = outcome.approval.clone() {
            // The script is told nothing: it runs again from its start, and asks this again.
            let words = outcome.text();
            return Err(End::Suspended { approval, words });
        }
        // A call ends a moment before the chain around it does: the script is told nothing of that.
        if self.context.is_cancelled() {
            return Err(End::Cancelled);
        }
        if outcome.status == Status::Timeout && self.scope.is_late() {
            return Err(End::Late(self.scope.session().limits().total_timeout));
        }
        let files = media::keep(self.context, self.worker, seq, &outcome);
        let answer = Answer {
            id,
            reply: reply::outcome(seq, &outcome, &files),
            recorded: false,
        };
        let due = self.record.end(seq, answer).map_err(End::Stopped)?;
        self.send_all(due)
    }

    fn send_all(&mut self, answers: Vec<Answer>) -> Result<(), End> {
        for answer in answers {
            if answer.recorded {
                media::restore(self.context, self.worker, &answer.reply);
            }
            self.link
                .send(Kind::Answer, answer.id, answer.reply.as_bytes())?;
        }
        Ok(())
    }

    fn read(&self, reference: &str, offset: u64, length: u64) -> Result<bytes::Bytes, ToolError> {
        let reference = known(reference)?;
        let end = offset.saturating_add(length.min(RANGE));
        let read = self.context.artifacts()?.read(&reference, offset..end);
        read.map_err(|error| ToolError::not_found(error.to_string()))
    }

    fn info(&self, reference: &str) -> Result<String, ToolError> {
        let info = self.context.artifacts()?.info(&known(reference)?);
        let info = info.map_err(|error| ToolError::not_found(error.to_string()))?;
        Ok(reply::artifact(
            info.reference.as_str(),
            &info.media_type,
            info.bytes,
        ))
    }

    /// Waits a little for calls under way where the script ended by itself; what then still runs is dropped, and the
    /// executor records it as cancelled.
    async fn settle(&mut self, end: End) -> End {
        let suspended = matches!(end, End::Suspended { .. });
        if suspended {
            // What else waits for an approval goes on waiting without the script, too.
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
                if record.end(seq, answer).is_err() {
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

/// The result with what the script printed, which gets the room that the rest leaves; `said` comes behind it.
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

/// A ref, as a script writes it.
fn known(reference: &str) -> Result<ArtifactRef, ToolError> {
    ArtifactRef::parse(reference).ok_or_else(|| {
        let shown = clip(reference, 80);
        ToolError::not_found(format!("no artifact {shown:?}"))
    })
}

/// Receives a frame, and sends what waits for room.
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

/// Where a run's own workspace folder is, if it has one.
pub type Folders = Arc<dyn Fn(&haft::call::RunId) -> Option<PathBuf> + Send + Sync>;
