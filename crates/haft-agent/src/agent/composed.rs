//! Calls of provider-defined tools: the steps that each stands for, and the single answer at the end.

use haft::spec::Declaration;
use haft::{CallId, Outcome, ToolCall, Verdict};
use haft_wire::{Call, CallKind};

use crate::agent::calls::{CallPlan, RunnableCall};
use crate::agent::settle::text_of;
use crate::agent::{Agent, AgentError};
use crate::answers;
use crate::conversation::{AnswerText, ConversationEntry};
use crate::event::AgentEvent;
use crate::history::TurnCall;
use crate::provided::{BATCH_FAILED, Next, ProviderTool, pending_checks};

impl Agent {
    /// Decides what to do with a call of a provider-defined tool; returns `None` for every other call.
    pub(super) fn composed(&self, turn: u32, place: usize, slot: &TurnCall) -> Option<CallPlan> {
        let call = &slot.call;
        let Some(provided) = ProviderTool::of(call, self.offer.provided()) else {
            return self.defined_by_provider(turn, place, slot);
        };
        if self.batch_failed(place, call) {
            return Some(CallPlan::Answer(Box::new(AnswerText::error(BATCH_FAILED))));
        }
        let run = self.session.run();
        let done = slot.steps.iter().enumerate().map(|(number, text)| {
            let id = step_id(turn, place, number);
            Outcome::from_stored(text, run.clone(), id, provided.needs())
        });
        let done: Option<Vec<Outcome>> = done.collect();
        let next = match &done {
            Some(done) => provided.next(call, done),
            None => Next::failed("unknown: what the call came to cannot be read"),
        };
        Some(match next {
            Next::Answer(answer) if slot.steps.is_empty() => CallPlan::Answer(answer),
            Next::Answer(answer) => CallPlan::Composed(answer),
            Next::Call(step) => {
                let id = step_id(turn, place, slot.steps.len());
                let step = ToolCall::new(step.tool, step.arguments).with_id(id.as_str());
                match self.unseen(&step) {
                    Some(why) => CallPlan::Answer(Box::new(AnswerText::error(why))),
                    None => self.step(turn, place, slot, step),
                }
            }
        })
    }

    fn step(&self, turn: u32, place: usize, slot: &TurnCall, call: ToolCall) -> CallPlan {
        let ready = RunnableCall {
            is_step: true,
            beside_others: false,
            ..self.ready(turn, place, call)
        };
        if slot.begun {
            CallPlan::Unknown(ready)
        } else {
            CallPlan::Run(ready)
        }
    }

    /// Plans a call that a tool of the session answers, by the item's type; a refusal if there is no such tool.
    fn defined_by_provider(&self, turn: u32, place: usize, slot: &TurnCall) -> Option<CallPlan> {
        let CallKind::Provider(kind) = &slot.call.kind else {
            return None;
        };
        let tools = self.session.tools();
        let answers = |declaration: &Declaration| match declaration {
            Declaration::Provider { call_types, .. } => call_types.contains(kind),
            Declaration::Schema => false,
        };
        let mut entries = tools.entries().iter();
        let entry = entries.find(|entry| answers(&entry.spec().declaration));
        let Some(entry) = entry.filter(|entry| entry.is_local()) else {
            let kind = haft::text::clip(kind, 100);
            let why =
                format!("unavailable: nothing in this run answers calls of the sort {kind:?}");
            return Some(CallPlan::Answer(Box::new(AnswerText::error(why))));
        };
        let name = entry.spec().name.as_str();
        let call = ToolCall::new(name, slot.call.arguments.as_str());
        if let Some(text) = slot.steps.first() {
            let run = self.session.run().clone();
            let outcome = Outcome::from_stored(text, run, CallId::new(""), name);
            let answer = outcome.as_ref().map(answers::of).unwrap_or_default();
            // The tool's data is the provider's item.
            let item = outcome.and_then(|outcome| Some(outcome.data?.get().to_owned()));
            return Some(CallPlan::Composed(Box::new(AnswerText { item, ..answer })));
        }
        Some(self.step(turn, place, slot, call))
    }

    /// Returns whether an earlier call of the same toolset in this turn has failed.
    fn batch_failed(&self, place: usize, call: &Call) -> bool {
        let Some(open) = self.history.open() else {
            return false;
        };
        let of_same =
            |slot: &&TurnCall| call.toolset.is_some() && slot.call.toolset == call.toolset;
        let mut earlier = open.slots[..place].iter().filter(of_same);
        earlier.any(TurnCall::has_failed)
    }

    /// Returns why a call whose safety checks the user must see is not run: the policy would allow it without asking.
    fn unseen(&self, call: &ToolCall) -> Option<String> {
        if !pending_checks(call) {
            return None;
        }
        let tools = self.session.tools();
        let entry = tools.entry(&call.name)?;
        let explained = self.executor.explain(entry, &call.arguments).ok()?;
        (explained.verdict == Verdict::Allow).then(|| {
            "denied: the provider wants a person to see its safety checks, and the policy asks no one about calls of computer".to_owned()
        })
    }

    /// Records the outcome of a step.
    pub(super) async fn stepped(
        &mut self,
        ready: &RunnableCall,
        outcome: &Outcome,
    ) -> Result<(), AgentError> {
        self.end_requests(ready.place, &outcome.summary).await;
        let text = serde_json::to_string(outcome).map_err(std::io::Error::other)?;
        self.note(ConversationEntry::Stepped {
            place: ready.place,
            outcome: text,
        })?;
        let answer = answers::of(outcome);
        self.tell_watcher(AgentEvent::ToolResult {
            id: &ready.id(),
            tool: &ready.call.name,
            outcome: Some(outcome),
            text: text_of(&answer),
            is_error: answer.is_error,
        });
        Ok(())
    }

    /// Records the answer to a call whose steps were already reported.
    pub(super) async fn compose(
        &mut self,
        place: usize,
        answer: AnswerText,
    ) -> Result<(), AgentError> {
        self.keep_answer(place, answer, |_, _| {}).await
    }
}

/// Returns the id of a step: the call's own for the first one.
fn step_id(turn: u32, place: usize, number: usize) -> CallId {
    let place = place + 1;
    CallId::new(match number {
        0 => format!("turn-{turn}-{place}"),
        _ => format!("turn-{turn}-{place}-{}", number + 1),
    })
}
