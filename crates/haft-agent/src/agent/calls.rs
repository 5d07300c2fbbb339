//! The calls of a turn: parallel-safe ones run side by side, the rest in order; each call is recorded before it runs.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use haft::approval::ApprovalId;
use haft::call::Origin;
use haft::future::BoxFuture;
use haft::{CallId, CancellationToken, Outcome, Risk, ToolCall};
use haft_wire::{Call, CallKind};
use tokio::time::Instant;

use crate::agent::{Agent, AgentError, ticket, until};
use crate::conversation::{AnswerText, ConversationEntry};
use crate::end::{RunEnd, WaitingCall};
use crate::history::{OpenTurn, TurnCall};

/// Maximum number of calls running at once.
const SIDE_BY_SIDE: usize = 16;
/// Maximum number of calls of one reply that are run; the others are answered with that reason.
pub(crate) const MAX_CALLS: usize = 128;

/// A call that can run now.
pub(super) struct RunnableCall {
    pub(super) place: usize,
    pub(super) call: ToolCall,
    /// Whether it may run in parallel with others.
    pub(super) beside_others: bool,
    /// Whether it is one of the steps that the model's call stands for.
    pub(super) is_step: bool,
    /// Whether it only reads, so that nothing is lost if the machine fails.
    pub(super) reads: bool,
    /// The decided request that it acts on.
    pub(super) decided: Option<ApprovalId>,
}

impl RunnableCall {
    /// Returns the id, which every call of the loop has.
    pub(super) fn id(&self) -> CallId {
        self.call.id.clone().unwrap_or_else(|| CallId::new(""))
    }
}

/// What to do with a call.
pub(super) enum CallPlan {
    Run(RunnableCall),
    /// Answers without running anything.
    Answer(Box<AnswerText>),
    /// Answers after all its steps have run.
    Composed(Box<AnswerText>),
    /// It may have run in a process that has exited.
    Unknown(RunnableCall),
    /// Its outcome is recorded; its next step follows, if it has more.
    Settled,
    /// It still waits for its decision.
    Waits(WaitingCall),
}

impl Agent {
    /// Runs the calls of the open turn that have no answer; returns the end if the run ends with them.
    pub(super) async fn run_calls(
        &mut self,
        stop: &CancellationToken,
        deadline: Option<Instant>,
    ) -> Result<Option<RunEnd>, AgentError> {
        // From the first call to the last, including those in between that have not started: one stop applies to all of them.
        self.control.begin_calls();
        let end = self.each_call(stop, deadline).await;
        self.control.end_calls();
        end
    }

    async fn each_call(
        &mut self,
        stop: &CancellationToken,
        deadline: Option<Instant>,
    ) -> Result<Option<RunEnd>, AgentError> {
        let mut group = Vec::new();
        let mut from = 0;
        loop {
            if self.session.ended_by_denial().is_some() {
                return self.after(Vec::new(), false, stop).await;
            }
            let place = self.history.open().and_then(|open| open.unanswered(from));
            let Some(place) = place else {
                let end = self
                    .together(std::mem::take(&mut group), stop, deadline)
                    .await?;
                return Ok(end);
            };
            from = place + 1;
            let plan = match self.plan(place) {
                CallPlan::Run(ready) => self.plan_asked(ready).await?,
                plan => plan,
            };
            match plan {
                CallPlan::Answer(answer) => self.refuse(place, *answer).await?,
                CallPlan::Composed(answer) => self.compose(place, *answer).await?,
                CallPlan::Settled => from = place,
                CallPlan::Run(ready) if ready.beside_others && group.len() < SIDE_BY_SIDE => {
                    group.push(ready);
                }
                other => {
                    let before = std::mem::take(&mut group);
                    let end = self.together(before, stop, deadline).await?;
                    let end = match (end, other) {
                        (end, CallPlan::Waits(waiting)) => Some(also_waits(end, waiting)),
                        (Some(end), _) => Some(end),
                        (None, CallPlan::Unknown(ready)) => {
                            self.settle_unknown(ready).await?;
                            None
                        }
                        (None, CallPlan::Run(ready)) if ready.beside_others => {
                            group.push(ready);
                            continue;
                        }
                        (None, CallPlan::Run(ready)) => {
                            self.together(vec![ready], stop, deadline).await?
                        }
                        (None, _) => None,
                    };
                    if end.is_some() {
                        return Ok(end);
                    }
                    // A call that waits for a decision is made again in its place, and the steps of one call continue before the
                    // calls that follow it.
                    from = place;
                }
            }
        }
    }

    /// Decides what to do with the call at this place.
    fn plan(&self, place: usize) -> CallPlan {
        let Some(open) = self.history.open() else {
            return CallPlan::Answer(Box::default());
        };
        let slot = &open.slots[place];
        if let Some(why) = refused(open, place) {
            return CallPlan::Answer(Box::new(AnswerText::error(why)));
        }
        if let Some(plan) = self.composed(open.number, place, slot) {
            return plan;
        }
        let (name, arguments) = (self.name_of(&slot.call), arguments(&slot.call));
        let ready = self.ready(open.number, place, ToolCall::new(name, arguments));
        if slot.begun {
            return CallPlan::Unknown(ready);
        }
        CallPlan::Run(ready)
    }

    pub(super) fn ready(&self, turn: u32, place: usize, call: ToolCall) -> RunnableCall {
        let call = match call.id {
            Some(_) => call,
            None => call.with_id(format!("turn-{turn}-{}", place + 1)),
        };
        let call = call.from_origin(Origin::Model);
        let tools = self.session.tools();
        let spec = tools.entry(&call.name).map(|entry| entry.spec());
        let reads = spec.is_none_or(|spec| {
            spec.risk == Risk::Safe && spec.annotations.read_only_hint == Some(true)
        });
        RunnableCall {
            place,
            call,
            is_step: false,
            decided: None,
            beside_others: spec.is_some_and(|spec| spec.concurrency_safe),
            reads,
        }
    }

    /// Returns the tool that a call names. An undeclared name is looked up among all tools, so that the refusal can name the tool.
    fn name_of(&self, call: &Call) -> String {
        if let Some(name) = self.offer.now().called(call) {
            return name.to_owned();
        }
        let tools = self.session.tools();
        let names = tools.findable().map(|entry| entry.spec().name.as_str());
        let all = haft_wire::names::ToolNames::new(self.model.dialect(), names);
        let name = all.called(call.namespace.as_deref(), &call.name);
        name.unwrap_or(&call.name).to_owned()
    }

    /// Runs calls side by side, and records the result of each as soon as it is available.
    async fn together(
        &mut self,
        group: Vec<RunnableCall>,
        stop: &CancellationToken,
        deadline: Option<Instant>,
    ) -> Result<Option<RunEnd>, AgentError> {
        if group.is_empty() {
            return Ok(None);
        }
        let ended = self.control.calls();
        if ended.is_cancelled() {
            return self.after(Vec::new(), false, stop).await;
        }
        self.begin(&group).await?;
        let mut left: Vec<RunnableCall> = Vec::new();
        let mut running: FuturesUnordered<BoxFuture<'static, (usize, Outcome)>> =
            FuturesUnordered::new();
        for ready in group {
            let (executor, session) = (self.executor.clone(), self.session.clone());
            let (place, call) = (ready.place, ready.call.clone());
            let decided = ready.decided.clone();
            left.push(ready);
            running.push(Box::pin(async move {
                (place, ticket::run(&executor, &session, call, decided).await)
            }));
        }
        let mut waiting = Vec::new();
        let mut late = false;
        while !left.is_empty() {
            tokio::select! {
                biased;
                Some((place, outcome)) = running.next() => {
                    let Some(at) = left.iter().position(|ready| ready.place == place) else {
                        continue;
                    };
                    let ready = left.swap_remove(at);
                    waiting.extend(self.settle(&ready, &outcome).await?);
                }
                () = ended.cancelled() => break,
                () = until(deadline) => { late = true; break }
            }
        }
        // Dropping them cancels them.
        drop(running);
        for ready in &left {
            self.interrupted(ready).await?;
        }
        self.after(waiting, late, stop).await
    }

    /// Returns the end if the run ends with these calls.
    async fn after(
        &mut self,
        waiting: Vec<WaitingCall>,
        late: bool,
        stop: &CancellationToken,
    ) -> Result<Option<RunEnd>, AgentError> {
        if late {
            self.give_up("the time of the run was used up before")
                .await?;
            return Ok(Some(RunEnd::Budget(self.out_of_time())));
        }
        if let Some(end) = self.stopped(stop) {
            self.give_up(match &end {
                RunEnd::Denied(denial) => denial,
                _ => "the user ended the run before",
            })
            .await?;
            return Ok(Some(end));
        }
        if self.control.calls().is_cancelled() {
            self.give_up("the user stopped the calls of this reply before")
                .await?;
            // A call that waited for a decision before this run still waits.
            if waiting.is_empty() && self.is_open() {
                return Ok(Some(RunEnd::Cancelled));
            }
        }
        // Later calls of the turn may depend on the pending one: they are not started.
        Ok((!waiting.is_empty()).then_some(RunEnd::Suspended(waiting)))
    }

    /// Records that calls are about to run, before they do.
    async fn begin(&mut self, group: &[RunnableCall]) -> Result<(), AgentError> {
        let places = group.iter().map(|ready| ready.place).collect();
        self.note(ConversationEntry::Begun(places))?;
        if let Some(conversation) = &self.conversation
            && group.iter().any(|ready| !ready.reads)
        {
            conversation.sync().await?;
        }
        for ready in group {
            self.tell_call(ready);
        }
        Ok(())
    }
}

/// Adds a waiting call to the end that the calls before it came to.
fn also_waits(end: Option<RunEnd>, waiting: WaitingCall) -> RunEnd {
    match end {
        None => RunEnd::Suspended(vec![waiting]),
        Some(RunEnd::Suspended(mut all)) => {
            all.push(waiting);
            RunEnd::Suspended(all)
        }
        Some(end) => end,
    }
}

/// Returns why a call must not run, whatever tool it calls.
fn refused(open: &OpenTurn, place: usize) -> Option<String> {
    let call = &open.slots[place].call;
    if open.cut == Some(place) {
        return Some(
            "not run: the reply reached its limit of output tokens in this call, so that it may be cut. Make it again, with shorter \
             arguments or alone."
                .to_owned(),
        );
    }
    if place >= MAX_CALLS {
        let all = open.slots.len();
        return Some(format!(
            "not run: the reply holds {all} calls, and the first {MAX_CALLS} of a reply are run. Make this call again in the next reply."
        ));
    }
    let same = |slot: &TurnCall| slot.call.id == call.id;
    open.slots[..place].iter().any(same).then(|| {
        format!(
            "not run: an earlier call of this reply has the id {:?}, too. Make the call again.",
            haft::text::clip(&call.id, 100)
        )
    })
}

/// Returns the arguments as JSON text. A freeform call's text becomes the single argument `input`.
fn arguments(call: &Call) -> String {
    match call.kind {
        CallKind::Freeform => serde_json::json!({"input": call.arguments}).to_string(),
        _ => call.arguments.clone(),
    }
}

impl OpenTurn {
    /// Returns the first place from this one on whose call has no answer.
    fn unanswered(&self, from: usize) -> Option<usize> {
        let mut places = from..self.slots.len();
        places.find(|place| !self.slots[*place].is_answered())
    }
}
