//! Runs one prompt to its end.

use std::pin::pin;

use haft_agent::{AgentError, ExceededBudget, RunEnd, RunResult};
use haft_app::agent::{AgentRun, problem};
use haft_app::problem::Problem;
use haft_wire::ContentPart;
use serde_json::{Value, json};

use super::{RunningPrompt, Session};
use crate::blocks::PromptContent;
use crate::limits::AGAIN;
use crate::rpc::{INVALID_REQUEST, RpcError};

/// The loop's next step.
enum TurnInput {
    Prompt(Vec<ContentPart>),
    /// Continues with calls that have no answer.
    Resume,
}

impl RunningPrompt {
    /// Runs a prompt; returns the answer to the request.
    pub(crate) async fn work(self, mut prompt: PromptContent) -> Result<Value, RpcError> {
        let session = &self.session;
        let mut agent = session.agent.lock().await;
        let Some(agent) = agent.as_mut() else {
            return Err(RpcError::no_session(&session.id));
        };
        if agent.agent().session().cancellation().is_cancelled() {
            let message =
                "a decision ended the run of this session; load the session again to go on";
            return Err(RpcError::new(INVALID_REQUEST, message));
        }
        session.updates.say_notices();
        if agent.agent().is_open() {
            // A call of an earlier prompt waited for a decision, or its process exited.
            let finished = self.drive(agent, TurnInput::Resume).await?;
            if finished.end != RunEnd::Done {
                return Ok(session.stopped(&finished));
            }
        }
        if let Some(name) = prompt.command.take()
            && session.app.skills().current().find(&name).is_some()
        {
            let loaded = agent.agent_mut().load_skill(&name).await;
            loaded.map_err(|error| session.failed(problem(&error)))?;
            if !prompt.without_command() {
                session.updates.say(&format!("The skill {name} is active."));
                return Ok(json!({"stopReason": "end_turn"}));
            }
        }
        let finished = self.drive(agent, TurnInput::Prompt(prompt.parts)).await?;
        Ok(session.stopped(&finished))
    }

    /// Runs the loop until it ends; a cancellation ends it.
    async fn drive(&self, agent: &mut AgentRun, step: TurnInput) -> Result<RunResult, RpcError> {
        let control = &self.session.control;
        let agent = agent.agent_mut();
        let work = async move {
            match step {
                TurnInput::Prompt(parts) => agent.run_with(parts).await,
                TurnInput::Resume => agent.resume().await,
            }
        };
        let mut work = pin!(work);
        let done: Result<RunResult, AgentError> = tokio::select! {
            biased;
            done = &mut work => done,
            () = self.stop.cancelled() => loop {
                control.cancel();
                if let Ok(done) = tokio::time::timeout(AGAIN, &mut work).await {
                    break done;
                }
            },
        };
        done.map_err(|error| self.session.failed(problem(&error)))
    }
}

impl Session {
    fn failed(&self, problem: Problem) -> RpcError {
        problem.redacted(self.app.redactor()).into()
    }

    /// Returns the protocol's stop reason for the end of a run. An end without such a reason is explained in a message.
    fn stopped(&self, finished: &RunResult) -> Value {
        let reason = reason(&finished.end);
        match &finished.end {
            RunEnd::Done | RunEnd::Length | RunEnd::Filtered => {}
            RunEnd::Cancelled if !self.is_ended_by_decision() => {}
            RunEnd::Suspended(calls) => {
                let ids = calls.iter().map(|call| call.approval.as_str());
                let ids: Vec<&str> = ids.collect();
                self.updates.say(&format!(
                    "Waits for a decision about {}: `haft approvals`, or the console. Then prompt again to go on.",
                    ids.join(", ")
                ));
            }
            end => self.updates.say(&end.describe()),
        }
        json!({"stopReason": reason})
    }

    /// Returns whether a decision ended the whole run: it was cancelled, although this prompt was not.
    fn is_ended_by_decision(&self) -> bool {
        let turn = self.turn.lock();
        turn.as_ref().is_some_and(|stop| !stop.is_cancelled())
    }
}

/// Returns the `stopReason` of ACP for an end.
fn reason(end: &RunEnd) -> &'static str {
    match end {
        RunEnd::Length => "max_tokens",
        RunEnd::Filtered => "refusal",
        RunEnd::Cancelled | RunEnd::Denied(_) => "cancelled",
        RunEnd::Budget(ExceededBudget::Turns(_)) => "max_turn_requests",
        _ => "end_turn",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_a_reason_of_the_protocol() {
        let repeating = RunEnd::Repeating {
            tool: "x".to_owned(),
            times: 3,
        };
        for (end, expect) in [
            (RunEnd::Done, "end_turn"),
            (RunEnd::Suspended(Vec::new()), "end_turn"),
            (
                RunEnd::Budget(ExceededBudget::Turns(1)),
                "max_turn_requests",
            ),
            (RunEnd::Budget(ExceededBudget::Tokens(1)), "end_turn"),
            (RunEnd::Cancelled, "cancelled"),
            (RunEnd::Denied("x".to_owned()), "cancelled"),
            (repeating, "end_turn"),
            (RunEnd::Length, "max_tokens"),
            (RunEnd::Filtered, "refusal"),
            (RunEnd::Stopped("x".to_owned()), "end_turn"),
        ] {
            assert_eq!(reason(&end), expect, "{end:?}");
        }
    }
}
