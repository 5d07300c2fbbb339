//! `Run`: a governed session with the protocol it is spoken to in, and what it has under way.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use haft::approval::ApprovalId;
use haft::approval::inbox::RequestStatus;
use haft::bounds::Budget;
use haft::call::{Origin, RunId, ToolCall};
use haft::executor::Executor;
use haft::progress::hub::Hub;
use haft::result::{Outcome, Status};
use haft::session::Session;
use haft::skill::Skill;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OnceCell, mpsc, watch};
use tokio::time::Instant;

use crate::carrier::{Back, Carrier, PendingQuestion};
use crate::elicit::ElicitReply;
use crate::era::Era;
use crate::in_flight::InFlight;
use crate::job::CallJob;
use crate::opener::{ClientInfo, RunFactory};
use crate::progress::ProgressLine;
use crate::replies::Replies;
use crate::seal::{Bound, Seal, State};
use crate::wire::RpcError;

/// How often a request is looked at though nothing was heard of it.
const LOOK: Duration = Duration::from_secs(60);

/// One run as the transports hold it.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) executor: Executor,
    pub(crate) session: Session,
    pub(crate) era: Era,
    pub(crate) in_flight: InFlight,
    /// Whose answers to our requests are waited for.
    pub(crate) replies: Arc<Replies>,
    /// What the client said at the handshake.
    pub(crate) client: ClientInfo,
    /// The requests for whose decision the run is kept open.
    kept: Mutex<HashSet<ApprovalId>>,
    shared: Shared,
    /// Set when its record has begun, with its first call.
    begun: OnceCell<()>,
    /// The client was told of prompts.
    told_prompts: AtomicBool,
    ended: watch::Sender<bool>,
}

/// What a server's runs share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) opener: Arc<dyn RunFactory>,
    /// Made at first use.
    pub(crate) seal: Arc<OnceLock<Option<Seal>>>,
    /// How long a call without progress waits for an approval.
    pub(crate) hold: Duration,
    /// What all clients' progress that was not taken yet is charged to.
    pub(crate) untaken: Arc<Budget>,
}

/// What the client of a call is told beside its outcome.
#[derive(Debug)]
pub(crate) enum Then {
    /// Nothing.
    Nothing,
    /// The address at which a person decides.
    Decide(String),
    /// To ask its person, and to come back with this state (2026-07-28).
    Ask(Vec<PendingQuestion>, String),
}

impl Shared {
    /// What closes states; none where the system gives no random bytes: nobody is asked by states then.
    fn seal(&self) -> Option<&Seal> {
        let make = || Seal::new(self.opener.state_key());
        self.seal.get_or_init(make).as_ref()
    }
}

impl Run {
    pub(crate) fn new(
        executor: Executor,
        session: Session,
        client: ClientInfo,
        shared: Shared,
    ) -> Self {
        Self {
            executor,
            session,
            era: client.era,
            client,
            shared,
            replies: Arc::default(),
            kept: Mutex::default(),
            in_flight: InFlight::default(),
            begun: OnceCell::new(),
            told_prompts: AtomicBool::new(false),
            ended: watch::Sender::new(false),
        }
    }

    /// One call through the executor. Dropping the future cancels it. `notes` takes what goes to the client before the answer.
    pub(crate) async fn call(
        &self,
        mut job: CallJob,
        notes: Option<mpsc::Sender<Vec<u8>>>,
    ) -> Result<(Outcome, Then), RpcError> {
        self.begin().await?;
        let back = self.brought_back(&mut job)?;
        let earlier = self.earlier(&back).await;
        let token = job.token.take().zip(notes.clone());
        let line = token.map(|(token, notes)| Arc::new(ProgressLine::new(token, notes)));
        let carrier = self.carrier(&job, notes, line.clone(), back);
        // What a state is bound to; the call itself takes the arguments along.
        let bound = carrier
            .as_ref()
            .filter(|c| c.era.is_modern() && c.can.any());
        let bound = bound.map(|_| (job.name.clone(), job.arguments.clone()));
        let call = ToolCall::new(job.name, job.arguments).from_origin(Origin::Mcp);
        let asking = carrier
            .clone()
            .map(|carrier| self.session.with_approver(carrier));
        let session = asking.as_ref().unwrap_or(&self.session);
        let again = earlier.map(|run| session.retry_of(run));
        let session = again.as_ref().unwrap_or(session);
        let outcome = match line.filter(|_| self.shared.opener.shows_progress()) {
            Some(line) => self.watched(session, call, &line).await,
            None => Box::pin(self.executor.execute(session, call)).await,
        };
        let Some(carrier) = carrier else {
            return Ok((outcome, Then::Nothing));
        };
        if outcome.status != Status::Suspended {
            carrier.complete().await;
            return Ok((outcome, Then::Nothing));
        }
        if let (Some((tool, arguments)), Some(seal)) = (bound, self.shared.seal()) {
            let asked = carrier.take_questions();
            if !asked.is_empty() {
                let to = Bound {
                    principal: self.session.principal(),
                    tool: &tool,
                    arguments: &arguments,
                };
                let state = seal.close(&state_of(&asked), &to);
                return Ok((outcome, Then::Ask(asked, state)));
            }
        }
        let place = outcome.approval.as_deref();
        let place = place.and_then(|id| carrier.address(id));
        Ok((outcome, place.map_or(Then::Nothing, Then::Decide)))
    }

    /// A call whose progress the client is shown.
    async fn watched(&self, session: &Session, call: ToolCall, line: &ProgressLine) -> Outcome {
        let budget = Arc::clone(&self.shared.untaken);
        let hub = Hub::within(self.shared.opener.pace(), budget);
        let mut listener = hub.listen(None);
        let watched = session.watched_by(hub);
        let outcome = {
            let call = Box::pin(self.executor.execute(&watched, call));
            tokio::select! {
                biased;
                outcome = call => outcome,
                never = line.follow(&mut listener) => match never {},
            }
        };
        line.end(listener).await;
        outcome
    }

    /// What a stateless client brings back, once it is known to be ours.
    fn brought_back(&self, job: &mut CallJob) -> Result<Back, RpcError> {
        let Some(alone) = &mut job.alone else {
            return Ok(Back::default());
        };
        let (Some(state), Some(seal)) = (alone.state.take(), self.shared.seal()) else {
            return Ok(Back::default());
        };
        let to = Bound {
            principal: self.session.principal(),
            tool: &job.name,
            arguments: &job.arguments,
        };
        let state = seal.open(&state, &to).map_err(|error| {
            let message = format!("params.requestState: {error}");
            RpcError::invalid_params(message)
        })?;
        let back = state.approvals.into_iter().map(|id| {
            let said = alone.responses.remove(id.as_str());
            (id, ElicitReply::of(said.as_deref()))
        });
        Ok(Back(Mutex::new(back.collect())))
    }

    /// The run in which a call that comes back was asked about, where that was another of this caller: before a restart, or
    /// before it lay idle too long.
    async fn earlier(&self, back: &Back) -> Option<RunId> {
        let id = back.first()?;
        let entry = self.executor.inbox().get(&id).await.ok()??;
        let theirs = entry.request.principal == *self.session.principal();
        let other = entry.request.run != *self.session.run();
        (theirs && other && entry.answers_again()).then_some(entry.request.run)
    }

    /// Who takes the call's requests to a person, where there is any way to one.
    fn carrier(
        &self,
        job: &CallJob,
        notes: Option<mpsc::Sender<Vec<u8>>>,
        line: Option<Arc<ProgressLine>>,
        back: Back,
    ) -> Option<Arc<Carrier>> {
        let opener = &self.shared.opener;
        if !opener.asks() {
            return None;
        }
        let (can, client) = match &job.alone {
            Some(alone) => (alone.can, alone.client.as_str()),
            None => (self.client.elicitation, self.client.name.as_str()),
        };
        let elsewhere = opener.console().is_some() || self.executor.inbox().is_durable();
        let trusted = can.form && job.operator && opener.trusts(client);
        (elsewhere || can.form).then(|| {
            Arc::new(Carrier {
                era: self.era,
                can,
                trusted,
                opener: Arc::clone(opener),
                console: OnceLock::new(),
                elsewhere,
                notes,
                line,
                replies: Arc::clone(&self.replies),
                back,
                until: Instant::now() + self.shared.hold,
                asked: Mutex::default(),
            })
        })
    }

    /// Waits until a request of this run is decided and acted on, or cannot be any more, or the run is over.
    pub(crate) async fn settled(&self, id: &ApprovalId) {
        if !self.lock_kept().insert(id.clone()) {
            // Somebody waits for it already.
            return;
        }
        let inbox = self.executor.inbox();
        let mut changes = inbox.changes();
        let watching = async {
            while let Ok(Some(entry)) = inbox.get(id).await
                && matches!(
                    entry.status,
                    RequestStatus::Approved | RequestStatus::Running | RequestStatus::Pending
                )
                && (entry.is_open() || entry.status != RequestStatus::Pending)
            {
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    heard = async {
                        while changes.recv().await.is_ok_and(|changed| changed != *id) {}
                    } => heard,
                }
            }
        };
        tokio::select! {
            () = watching => {}
            () = self.over() => {}
        }
        self.lock_kept().remove(id);
    }

    fn lock_kept(&self) -> MutexGuard<'_, HashSet<ApprovalId>> {
        self.kept.lock()
    }

    /// The skills that this run may be shown.
    pub(crate) async fn skills(&self) -> Result<Vec<Skill>, RpcError> {
        let opener = Arc::clone(&self.shared.opener);
        let found = tokio::task::spawn_blocking(move || opener.skills()).await;
        let mut skills = found.map_err(|error| {
            tracing::error!(%error, "look for skills");
            RpcError::new(RpcError::INTERNAL, "the skills could not be read")
        })?;
        skills.retain(|skill| self.session.sees_skill(skill.name()));
        Ok(skills)
    }

    /// Begins the run's record, once: before its first call, since a client may come and go without one.
    pub(crate) async fn begin(&self) -> Result<(), RpcError> {
        let begun = self.begun.get_or_try_init(|| async {
            // A run that cannot be recorded is not started.
            self.shared.opener.start(&self.session).await
        });
        match begun.await {
            Ok(()) => Ok(()),
            Err(error) => Err(RpcError::new(RpcError::INTERNAL, error.to_string())),
        }
    }

    /// Whether its record has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.initialized()
    }

    /// Whether it takes no more calls: its budget is used up, or a person has stopped it.
    pub(crate) fn is_over(&self) -> bool {
        self.session.is_spent() || self.session.cancellation().is_cancelled()
    }

    /// Notes that the client is told of prompts.
    pub(crate) fn tell_prompts(&self) {
        self.told_prompts.store(true, Ordering::Relaxed);
    }

    /// Whether the client was told of prompts.
    pub(crate) fn has_told_prompts(&self) -> bool {
        self.told_prompts.load(Ordering::Relaxed)
    }

    /// Tells the host of a message that never became a call.
    pub(crate) fn refused(&self, reason: &str) {
        self.shared.opener.refused(&self.session, reason);
    }

    /// Waits until the run is over.
    pub(crate) async fn over(&self) {
        let mut ended = self.ended.subscribe();
        // The sender lives in `self`: waiting cannot fail.
        let _closed = ended.wait_for(|ended| *ended).await;
    }

    /// Cancels what is under way, ends its streams and releases the run. Once.
    pub(crate) fn end(&self) {
        let first = self.ended.send_if_modified(|ended| {
            let first = !*ended;
            *ended = true;
            first
        });
        if first {
            // What waits for an approval goes on waiting without the client.
            self.session.suspend();
            self.in_flight.cancel_all();
            self.shared.opener.release(&self.session);
        }
    }
}

/// What a state says of what was asked.
fn state_of(asked: &[PendingQuestion]) -> State {
    let last = asked.iter().map(|asked| asked.expires).max();
    State {
        approvals: asked.iter().map(|asked| asked.id.clone()).collect(),
        expires: i64::try_from(last.unwrap_or(0) / 1_000_000).unwrap_or(i64::MAX),
    }
}
