//! Question: a running tool asks the user something, through the same inbox as approval requests.

use serde_json::{Map, Value};

use crate::approval::form::QuestionForm;
use crate::approval::{ApprovalRequest, Choice, Decision};
use crate::context::{CallContext, UserQuestion};
use crate::error::{ErrorKind, ToolError};
use crate::executor::ExecutorParts;
use crate::executor::ask::{self, ClaimedDecision, DecisionWait};
use crate::executor::draft::{CallIdentity, UndecidedCall};
use crate::executor::early_end::EarlyEnd;
use crate::executor::question::again::{EarlierQuestion, QuestionKey};

mod again;

/// Asks the question and waits; returns the answers, as far as they were given.
pub(super) async fn ask(
    parts: &ExecutorParts,
    question: UserQuestion<'_>,
) -> Result<Map<String, Value>, ToolError> {
    let UserQuestion {
        context,
        arguments,
        form,
        wait,
    } = question;
    let problems = form.validate();
    if !problems.is_empty() {
        return Err(ToolError::invalid_arguments(problems.join("; ")));
    }
    let session = &context.session;
    if !ask::can_get_decision(parts, session) {
        return Err(ToolError::unavailable("no approver is available")
            .with_advice("decide without an answer, and state what you assumed"));
    }
    let again = QuestionKey::of(parts, context, arguments);
    let request = match again.find_earlier(parts, session).await? {
        EarlierQuestion::None => None,
        EarlierQuestion::Waits(request) => Some(*request),
        EarlierQuestion::Decided(decision) => return to_answers(context, *decision),
    };
    let draft = UndecidedCall {
        entry: &context.entry,
        caller: CallIdentity {
            call: &context.call,
            parent: session.nest().map(|nest| nest.call()),
            origin: context.origin,
        },
        arguments: arguments.as_str(),
    };
    let drafted = || {
        draft
            .request(parts, session)
            .map(|drafted| to_request(form, drafted))
    };
    let request = request.map_or_else(drafted, Ok)?;
    again.add_to(&context.nest);
    let limits = DecisionWait::for_answer(session, wait, &|_| Ok(()));
    let claimed = {
        let _waiting = context.nest.begin_wait();
        let asking = ask::ask(parts, session, &context.nest, request, limits);
        let asked = context.nest.seat().yield_for(session.lane(), asking).await;
        asked.decision
    };
    if !matches!(claimed, Err(EarlyEnd::Suspended(_))) {
        again.forget(parts, &context.nest).await;
    }
    match claimed {
        Ok(claimed) => user_answers(context, claimed).await,
        Err(stop) if stop.kind() == Some(ErrorKind::Denied) => Ok(Map::new()),
        Err(stop) => Err(stop.into()),
    }
}

/// Returns the request as the user sees it.
fn to_request(form: QuestionForm, drafted: ApprovalRequest) -> ApprovalRequest {
    ApprovalRequest {
        reason: form.title.chars().take(200).collect(),
        rule: "question".to_owned(),
        form: Some(form),
        ..drafted
    }
}

/// Returns the user's answers to a question.
async fn user_answers(
    context: &CallContext,
    claimed: ClaimedDecision,
) -> Result<Map<String, Value>, ToolError> {
    claimed.claimed.mark_answered().await;
    to_answers(context, claimed.decided.decision)
}

fn to_answers(context: &CallContext, decision: Decision) -> Result<Map<String, Value>, ToolError> {
    let Decision { choice, by, .. } = decision;
    match choice {
        Choice::Answer { answers } => serde_json::from_str(&answers)
            .map_err(|e| ToolError::failed("the answers are not a JSON object").with_source(e)),
        Choice::Approve { .. } => Ok(Map::new()),
        Choice::Deny { message, stop } => {
            if stop {
                let tool = context.entry.spec().name.as_str();
                context.session.end_by_denial(&by, tool);
            }
            let detail = message.map_or_else(String::new, |m| format!(": {m}"));
            Err(ToolError::denied(format!("{by} will not answer{detail}")))
        }
    }
}
