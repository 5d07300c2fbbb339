//! Settles a call that ended, was refused, or was interrupted: records and reports its answer.

use haft::approval::ApprovalId;
use haft::{CallId, Outcome, Status};
use haft_wire::ContentPart;

use crate::agent::calls::RunnableCall;
use crate::agent::{Agent, AgentError};
use crate::answers;
use crate::conversation::{AnswerText, ConversationEntry};
use crate::end::WaitingCall;
use crate::event::AgentEvent;
use crate::provided::failed_item;
use crate::repeats::Repeats;

impl Agent {
    /// Records the result of a call: its answer, or that it waits for a decision.
    pub(super) async fn settle(
        &mut self,
        ready: &RunnableCall,
        outcome: &Outcome,
    ) -> Result<Option<WaitingCall>, AgentError> {
        if outcome.status == Status::Suspended
            && let Some(approval) = &outcome.approval
        {
            self.note(ConversationEntry::Suspended {
                place: ready.place,
                approval: approval.clone(),
            })?;
            self.tell_watcher(AgentEvent::Approval {
                id: &outcome.call,
                tool: &outcome.tool,
                approval,
            });
            let id = ApprovalId::new(approval.as_str());
            return Ok(Some(self.waiting(ready, &id).await));
        }
        // Before its answer: a run that is interrupted in between keeps the restrictions of a skill.
        self.note_skills()?;
        if ready.is_step {
            self.stepped(ready, outcome).await?;
        } else {
            let answer = answers::of(outcome);
            self.answer(ready, answer, Some(outcome)).await?;
        }
        Ok(None)
    }

    /// Records the answer to a call.
    pub(super) async fn answer(
        &mut self,
        ready: &RunnableCall,
        answer: AnswerText,
        outcome: Option<&Outcome>,
    ) -> Result<(), AgentError> {
        let tool = ready.call.name.clone();
        self.keep_answer(ready.place, answer, |agent, answer| {
            agent.tell_watcher(AgentEvent::ToolResult {
                id: &ready.id(),
                tool: &tool,
                outcome,
                text: text_of(answer),
                is_error: answer.is_error,
            });
        })
        .await
    }

    /// Records an answer. What the call waited for is withdrawn first, so that no later decision runs it.
    pub(super) async fn keep_answer(
        &mut self,
        place: usize,
        mut answer: AnswerText,
        tell: impl FnOnce(&Self, &AnswerText),
    ) -> Result<(), AgentError> {
        self.end_requests(place, text_of(&answer)).await;
        if let Some(open) = self.history.open()
            && let Some(slot) = open.slots.get(place)
            && answer.is_error
            && let Some(notice) =
                Repeats::notice(self.history.repeats.next(&slot.call, open.number))
        {
            answer.parts.push(ContentPart::Text(notice));
        }
        if let Some(open) = self.history.open()
            && let Some(slot) = open.slots.get(place)
            && answer.item.is_none()
        {
            answer.item = failed_item(&slot.call, text_of(&answer));
        }
        let entry = ConversationEntry::Answered {
            place,
            answer: answer.clone(),
        };
        self.note(entry)?;
        tell(self, &answer);
        Ok(())
    }

    /// Answers a call that is not run.
    pub(super) async fn refuse(
        &mut self,
        place: usize,
        answer: AnswerText,
    ) -> Result<(), AgentError> {
        let Some(open) = self.history.open() else {
            return Ok(());
        };
        let id = CallId::new(format!("turn-{}-{}", open.number, place + 1));
        let call = open.slots[place].call.clone();
        self.tell_watcher(AgentEvent::ToolCall {
            id: &id,
            tool: &call.name,
            arguments: &call.arguments,
        });
        self.keep_answer(place, answer, |agent, answer| {
            agent.tell_watcher(AgentEvent::ToolResult {
                id: &id,
                tool: &call.name,
                outcome: None,
                text: text_of(answer),
                is_error: answer.is_error,
            });
        })
        .await
    }

    /// Answers a call that was cancelled while it ran.
    pub(super) async fn interrupted(&mut self, ready: &RunnableCall) -> Result<(), AgentError> {
        const WHY: &str =
            "cancelled: the user ended this call while it ran. It may have done part of its work.";
        if ready.is_step {
            let (run, id) = (self.session.run().clone(), ready.id());
            let mut outcome = Outcome::new(run, id, &ready.call.name, Status::Cancelled);
            WHY.clone_into(&mut outcome.summary);
            return self.stepped(ready, &outcome).await;
        }
        self.answer(ready, AnswerText::error(WHY), None).await
    }

    /// Answers all calls of the turn that have not started, so that the conversation can continue with another prompt.
    pub(super) async fn give_up(&mut self, why: &str) -> Result<(), AgentError> {
        let Some(open) = self.history.open() else {
            return Ok(());
        };
        let left = open.slots.iter().enumerate();
        let left: Vec<usize> = left
            .filter(|(_, slot)| !slot.is_answered() && slot.approval.is_none())
            .map(|(place, _)| place)
            .collect();
        for place in left {
            let answer = AnswerText::error(format!("not run: {why}"));
            self.refuse(place, answer).await?;
        }
        Ok(())
    }

    /// Reports that a call is about to run.
    pub(super) fn tell_call(&self, ready: &RunnableCall) {
        self.tell_watcher(AgentEvent::ToolCall {
            id: &ready.id(),
            tool: &ready.call.name,
            arguments: &ready.call.arguments,
        });
    }
}

/// Returns the first text of an answer.
pub(super) fn text_of(answer: &AnswerText) -> &str {
    answer.parts.iter().find_map(text_in).unwrap_or_default()
}

fn text_in(part: &ContentPart) -> Option<&str> {
    match part {
        ContentPart::Text(text) => Some(text),
        ContentPart::Image { .. } | ContentPart::Audio { .. } | ContentPart::File { .. } => None,
    }
}
