//! A client's call, from its request to the answer: asks back if its era allows it, and joins the call again when the client returns.

use std::sync::atomic::AtomicU8;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use haft::bounds::ByteBudget;
use haft::call::{RunId, ToolCall};
use haft::progress::hub::{Hub, Listener};
use haft::result::{Outcome, Status};
use haft::toolset::ToolEntry;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::ClientRun;
use crate::call_follow_up::CallFollowUp;
use crate::capabilities::undeclared;
use crate::carrier::{ClientApprover, PendingQuestion, ReturnedReplies};
use crate::client_caller::{
    BatchedRequestsCall, ClientCaller, ClientCallerConfig, InputRequest, NO_LOG_LEVEL,
};
use crate::elicit::ElicitReply;
use crate::job::CallJob;
use crate::owner::Owner;
use crate::progress::ProgressLine;
use crate::running::{Running, WaitConditions, WaitResult};
use crate::seal::{CallBinding, RequestState, random_name};
use crate::tasks::CallTask;
use crate::wire::RpcError;

/// How much longer than its requests a call waits for its client.
const CLIENT_GRACE: Duration = Duration::from_secs(30);
/// Bytes that each call's progress may hold in any case.
const RESERVED_PROGRESS: usize = 64 << 10;

/// A call made by a client's request.
pub(crate) struct ClientCall {
    pub(crate) call: ToolCall,
    /// Whether it is of one of the executor's internal tools.
    pub(crate) internal: bool,
}

/// How long to wait for a call, and what to do then.
struct WaitPolicy {
    /// What the state of a call that waits for its client is bound to.
    bound: Option<StateBinding>,
    /// When it becomes a task.
    late: Option<Instant>,
}

/// How a call's client receives messages before the answer.
struct CallNotifier {
    notes: Option<mpsc::Sender<Vec<u8>>>,
    /// The call's progress, if the client asked for it.
    line: Option<Arc<ProgressLine>>,
}

/// The result of a client's call.
pub(crate) enum ClientCallEnd {
    /// It ended, or waits for a decision.
    Outcome(Box<Outcome>, CallFollowUp),
    /// It continues and waits for its client, which has to ask and bring back this state (2026-07-28).
    Asks(Vec<InputRequest>, String),
    /// It continues as a task (2026-07-28).
    Task(Arc<CallTask>),
}

impl ClientRun {
    /// Makes one call through the executor. Dropping the future cancels it. `notes` takes what the client is sent before the answer.
    pub(crate) async fn call(
        &self,
        made: impl FnOnce(&mut CallJob) -> ClientCall,
        mut job: CallJob,
        notes: Option<mpsc::Sender<Vec<u8>>>,
    ) -> Result<ClientCallEnd, RpcError> {
        self.begin().await?;
        let state = self.state(&mut job)?;
        let token = job.token.take().zip(notes.clone());
        let line = token.map(|(token, notes)| Arc::new(ProgressLine::new(token, notes)));
        // What a state is bound to, if there may be one; the call itself takes the arguments.
        let alone = job.alone.as_ref().filter(|alone| alone.can.any());
        let bound = alone.map(|_| StateBinding::of(&job));
        let late = self.becomes_task(&job)?;
        let name = state.as_ref().and_then(|state| state.parked.as_deref());
        let running = if let Some(name) = name {
            self.join(name, &mut job, notes)?
        } else {
            let line = line.clone();
            self.start(made, job, state, CallNotifier { notes, line })
                .await
        };
        let late = late.map(|after| Instant::now() + after);
        self.wait(running, line.as_deref(), WaitPolicy { bound, late })
            .await
    }

    /// Returns the time after which the call becomes a task, if it may; an error if it must, and its client does not support tasks.
    fn becomes_task(&self, job: &CallJob) -> Result<Option<Duration>, RpcError> {
        let Some(alone) = job.alone.as_ref().filter(|_| job.is_tool()) else {
            return Ok(None);
        };
        let only = self.is_only_task(&job.name);
        match (alone.can.tasks, only) {
            (true, true) => Ok(Some(Duration::ZERO)),
            (true, false) => Ok(Some(self.shared.task_after)),
            (false, false) => Ok(None),
            (false, true) => Err(undeclared()),
        }
    }

    /// Returns whether calls of a tool are tasks from the start: the host or the tool's server says so.
    fn is_only_task(&self, tool: &str) -> bool {
        let says = |entry: &ToolEntry| {
            let listing = entry.spec().listing.as_ref();
            listing.is_some_and(|listing| listing.is_only_task())
        };
        self.shared.opener.is_only_task(tool)
            || self
                .session
                .tools()
                .entry(tool)
                .is_some_and(|entry| says(entry))
    }

    /// Starts the call.
    async fn start(
        &self,
        made: impl FnOnce(&mut CallJob) -> ClientCall,
        mut job: CallJob,
        state: Option<RequestState>,
        outlet: CallNotifier,
    ) -> Running {
        let back = take_replies(&mut job, state);
        let earlier = self.earlier_run(&back).await;
        let caller = self.caller(&mut job);
        caller.listens(outlet.notes.clone());
        let line = outlet.line.clone();
        let carrier = self.carrier(&job, outlet, back);
        let mut session = self.session.with_caller(Arc::clone(&caller) as _);
        if let Some(carrier) = &carrier {
            session = session.with_approver(Arc::clone(carrier) as _);
        }
        if let Some(run) = earlier {
            session = session.retry_of(run);
        }
        let listener = line
            .filter(|_| self.shared.opener.shows_progress())
            .map(|_| self.hub());
        let listener = listener.map(|(hub, listener)| {
            session = session.watched_by(hub);
            listener
        });
        let executor = self.executor.clone();
        let ClientCall { call, internal } = made(&mut job);
        let call = async move {
            if internal {
                executor.execute_internal(&session, call).await
            } else {
                executor.execute(&session, call).await
            }
        };
        let call = BatchedRequestsCall::new(Box::pin(call), &caller);
        Running::new(call, caller, carrier, listener)
    }

    /// Joins a call that continued while its client was away.
    fn join(
        &self,
        name: &str,
        job: &mut CallJob,
        notes: Option<mpsc::Sender<Vec<u8>>>,
    ) -> Result<Running, RpcError> {
        let running = self.shared.parked.take(name).ok_or_else(|| {
            let message = "params.requestState: was used before, or the call that it is for has ended: call again without it";
            RpcError::invalid_params(message)
        })?;
        if let Some(alone) = &mut job.alone {
            running.caller.listens(notes);
            running.caller.set_log_level(alone.log);
            let responses = std::mem::take(&mut alone.responses);
            running.caller.take_responses(responses, false);
        }
        Ok(running)
    }

    /// Waits for the end of the call, or until its client has to be asked.
    async fn wait(
        &self,
        mut running: Running,
        line: Option<&ProgressLine>,
        mut patience: WaitPolicy,
    ) -> Result<ClientCallEnd, RpcError> {
        loop {
            let until = WaitConditions {
                asks: true,
                late: patience.late,
            };
            match running.step(line, until).await? {
                WaitResult::Ended(outcome) => {
                    return self.ended(outcome, running, patience.bound).await;
                }
                WaitResult::Asks => match self.park(running, patience.bound.as_ref()) {
                    Ok(asks) => return Ok(asks),
                    Err(back) => {
                        running = *back;
                        running.caller.refuse();
                    }
                },
                WaitResult::Late => {
                    match self.shared.tasks.begin(running, self.owner()) {
                        Ok(task) => return Ok(ClientCallEnd::Task(task)),
                        // Without room for another task, wait as for a client without tasks.
                        Err(back) => running = *back,
                    }
                    patience.late = None;
                }
            }
        }
    }

    /// Returns the owner of calls that continue while their client is away.
    fn owner(&self) -> Owner {
        Owner {
            principal: self.session.principal().clone(),
            share: self.client.share(),
            run_over: self.ended.subscribe(),
            work: self.working.begin(),
        }
    }

    /// Lets the call continue by itself until its client returns; returns it if that is impossible.
    fn park(
        &self,
        running: Running,
        bound: Option<&StateBinding>,
    ) -> Result<ClientCallEnd, Box<Running>> {
        let patience = self.session.limits().approval_timeout + CLIENT_GRACE;
        let Some((name, state)) = bound.and_then(|bound| self.parking_name(bound, patience)) else {
            return Err(Box::new(running));
        };
        let notified = running.caller.open();
        let until = Instant::now() + patience;
        let parked = &self.shared.parked;
        parked.park(name, running, self.owner(), until)?;
        Ok(ClientCallEnd::Asks(notified, state))
    }

    /// Returns a name for a call that waits this long for its client, and the state for joining it.
    fn parking_name(&self, bound: &StateBinding, patience: Duration) -> Option<(Box<str>, String)> {
        let name = random_name()?;
        let wait = i128::try_from(patience.as_nanos()).unwrap_or(0);
        let state = RequestState {
            approvals: Vec::new(),
            parked: Some(name.clone()),
            expires: to_milliseconds(haft::clock::now() + wait),
        };
        let state = self.shared.seal()?.close(&state, &bound.to(self))?;
        Some((name, state))
    }

    /// Returns what the client of an ended call is told.
    async fn ended(
        &self,
        outcome: Box<Outcome>,
        running: Running,
        bound: Option<StateBinding>,
    ) -> Result<ClientCallEnd, RpcError> {
        if let Some(error) = running.caller.missing_capability(&outcome) {
            return Err(error);
        }
        let Some(carrier) = &running.carrier else {
            return Ok(ClientCallEnd::Outcome(outcome, CallFollowUp::Nothing));
        };
        if outcome.status != Status::Suspended {
            carrier.complete().await;
            return Ok(ClientCallEnd::Outcome(outcome, CallFollowUp::Nothing));
        }
        if let (Some(bound), Some(seal)) = (bound, self.shared.seal()) {
            let questions = carrier.take_questions();
            let state = seal.close(&state_of(&questions), &bound.to(self));
            if let Some(state) = state.filter(|_| !questions.is_empty()) {
                let questions = questions.into_iter().map(PendingQuestion::into_request);
                return Ok(ClientCallEnd::Outcome(
                    outcome,
                    CallFollowUp::Ask(questions.collect(), state),
                ));
            }
        }
        let place = outcome.approval.as_deref();
        let place = place.and_then(|id| carrier.address(id));
        Ok(ClientCallEnd::Outcome(
            outcome,
            place.map_or(CallFollowUp::Nothing, CallFollowUp::Decide),
        ))
    }

    /// Returns the hub and listener for the call's progress, on the budget shared with its principal's other calls.
    fn hub(&self) -> (Arc<Hub>, Listener) {
        let share = self.client.share();
        let budget = ByteBudget::of(&self.shared.untaken, &share, RESERVED_PROGRESS);
        let hub = Hub::within(self.shared.opener.pace(), budget);
        let listener = hub.listen(None);
        (hub, listener)
    }

    /// Returns the state that a stateless client brings back, once it is verified as ours.
    fn state(&self, job: &mut CallJob) -> Result<Option<RequestState>, RpcError> {
        let state = job.alone.as_mut().and_then(|alone| alone.state.take());
        let (Some(state), Some(seal)) = (state, self.shared.seal()) else {
            return Ok(None);
        };
        let bound = StateBinding::of(job);
        let state = seal.open(&state, &bound.to(self));
        state.map(Some).map_err(|error| {
            let message = format!("params.requestState: {error}");
            RpcError::invalid_params(message)
        })
    }

    /// Returns the run in which a returning call's approval was requested, if that was another run of this caller: before a
    /// restart, or before it was idle too long.
    async fn earlier_run(&self, back: &ReturnedReplies) -> Option<RunId> {
        let id = back.first()?;
        let entry = self.executor.inbox().get(&id).await.ok()??;
        let theirs = entry.request.principal == *self.session.principal();
        let other = entry.request.run != *self.session.run();
        (theirs && other && entry.answers_again()).then_some(entry.request.run)
    }

    /// Returns the client as the call's tool reaches it.
    fn caller(&self, job: &mut CallJob) -> Arc<ClientCaller> {
        let (can, log) = match &job.alone {
            Some(alone) => (alone.can.clone(), Arc::new(AtomicU8::new(NO_LOG_LEVEL))),
            None => (self.client.capabilities.clone(), Arc::clone(&self.log)),
        };
        let caller = ClientCaller::new(ClientCallerConfig {
            era: self.era,
            can,
            replies: Arc::clone(&self.replies),
            log,
            charge: self.shared.parked.charge(&self.client.share()),
            console: self.shared.opener.console(),
        });
        if let Some(alone) = &mut job.alone {
            caller.set_log_level(alone.log);
            if !alone.responses.is_empty() {
                caller.take_responses(std::mem::take(&mut alone.responses), true);
            }
        }
        Arc::new(caller)
    }

    /// Returns the carrier of the call's requests to a user, if there is any way to reach one.
    fn carrier(
        &self,
        job: &CallJob,
        outlet: CallNotifier,
        back: ReturnedReplies,
    ) -> Option<Arc<ClientApprover>> {
        let opener = &self.shared.opener;
        if !opener.asks() {
            return None;
        }
        let (can, client) = match &job.alone {
            Some(alone) => (alone.can.elicitation, alone.client.as_str()),
            None => (
                self.client.capabilities.elicitation,
                self.client.name.as_str(),
            ),
        };
        let elsewhere = opener.console().is_some() || self.executor.inbox().is_durable();
        let trusted = can.form && job.operator && opener.trusts(client);
        (elsewhere || can.form).then(|| {
            Arc::new(ClientApprover {
                era: self.era,
                can,
                trusted,
                opener: Arc::clone(opener),
                console: OnceLock::new(),
                elsewhere,
                notes: outlet.notes,
                line: outlet.line,
                replies: Arc::clone(&self.replies),
                back,
                until: Instant::now() + self.shared.hold,
                questions: Mutex::default(),
            })
        })
    }
}

/// The request that a state is bound to; the call itself takes the arguments.
struct StateBinding {
    what: String,
    arguments: String,
}

impl StateBinding {
    fn of(job: &CallJob) -> Self {
        Self {
            what: job.bound(),
            arguments: job.arguments.clone(),
        }
    }

    fn to<'a>(&'a self, run: &'a ClientRun) -> CallBinding<'a> {
        CallBinding {
            principal: run.session.principal(),
            view: run.client.view.as_ref().map_or("", |view| &view.0),
            tool: &self.what,
            arguments: &self.arguments,
        }
    }
}

/// Returns the replies to the requests that a state names.
fn take_replies(job: &mut CallJob, state: Option<RequestState>) -> ReturnedReplies {
    let (Some(state), Some(alone)) = (state, &mut job.alone) else {
        return ReturnedReplies::default();
    };
    let back = state.approvals.into_iter().map(|id| {
        let response = alone.responses.remove(id.as_str());
        (id, ElicitReply::of(response.as_deref()))
    });
    ReturnedReplies(Mutex::new(back.collect()))
}

/// Returns the state for the questions asked.
fn state_of(questions: &[PendingQuestion]) -> RequestState {
    let last = questions.iter().map(|questions| questions.expires).max();
    RequestState {
        approvals: questions
            .iter()
            .map(|questions| questions.id.clone())
            .collect(),
        parked: None,
        expires: to_milliseconds(last.unwrap_or(0)),
    }
}

fn to_milliseconds(nanoseconds: i128) -> i64 {
    i64::try_from(nanoseconds / 1_000_000).unwrap_or(i64::MAX)
}
