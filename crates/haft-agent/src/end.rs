//! `RunResult`: how a run of the loop ended.

use std::time::Duration;

use haft::CallId;
use haft::budget::Period;

use crate::budget::Spending;

/// The result of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct RunResult {
    /// How it ended.
    pub end: RunEnd,
    /// The text of the last reply; empty if there was none.
    pub text: String,
    /// What the conversation has used up so far.
    pub spent: Spending,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RunEnd {
    /// The model has answered.
    Done,
    /// Calls wait for a decision: [`Agent::resume`](crate::Agent::resume) continues from there.
    Suspended(Vec<WaitingCall>),
    /// A budget is used up.
    Budget(ExceededBudget),
    /// The run was cancelled.
    Cancelled,
    /// A user denied a call and ended the run with that: who denied what.
    Denied(String),
    /// The model repeated the same failing call.
    Repeating {
        /// The tool's name.
        tool: String,
        /// How often it failed.
        times: u32,
    },
    /// The reply reached the limit of output tokens.
    Length,
    /// A filter of the provider ended the reply.
    Filtered,
    /// The model stopped for another reason, given in the provider's word.
    Stopped(String),
}

impl RunEnd {
    /// Returns its word in events: `done`, `suspended`, `budget`, `cancelled`, `denied`, `repeating`, `length`, `filtered`, `stopped`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Suspended(_) => "suspended",
            Self::Budget(_) => "budget",
            Self::Cancelled => "cancelled",
            Self::Denied(_) => "denied",
            Self::Repeating { .. } => "repeating",
            Self::Length => "length",
            Self::Filtered => "filtered",
            Self::Stopped(_) => "stopped",
        }
    }

    /// Returns a sentence for the user, with what to do next if there is something to do.
    pub fn describe(&self) -> String {
        match self {
            Self::Done => "the model has answered".to_owned(),
            Self::Suspended(calls) => suspended(calls),
            Self::Budget(exceeded) => exceeded.describe(),
            Self::Cancelled => "the run was cancelled".to_owned(),
            Self::Denied(why) => why.clone(),
            Self::Repeating { tool, times } => format!(
                "the model made the same failing call of {tool} {times} times; the run was stopped: say what it should do instead"
            ),
            Self::Length => {
                "the reply reached the limit of output tokens; raise it, or ask the model to continue"
                    .to_owned()
            }
            Self::Filtered => {
                "a filter of the provider ended the reply; rephrase the prompt".to_owned()
            }
            Self::Stopped(word) => format!("the provider ended the reply: {word}"),
        }
    }
}

/// Returns the sentence for a run whose calls wait.
fn suspended(calls: &[WaitingCall]) -> String {
    let ids = |is_decided: bool| {
        let these = calls.iter().filter(|call| call.is_decided == is_decided);
        let ids: Vec<&str> = these.map(|call| call.approval.as_str()).collect();
        (!ids.is_empty()).then(|| ids.join(", "))
    };
    match (ids(false), ids(true)) {
        (Some(pending), _) => {
            format!("waiting for a decision on {pending}; resume the run once it is made")
        }
        (None, decided) => format!(
            "another process carries out the decision on {}; resume the run once it is done",
            decided.unwrap_or_default()
        ),
    }
}

/// A call that waits for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCall {
    /// The call's id.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// The id of its approval request.
    pub approval: String,
    /// Whether it is decided: another process carries the decision out.
    pub is_decided: bool,
}

/// The budget that is used up.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ExceededBudget {
    /// Replies of the model to one prompt.
    Turns(u32),
    /// Tokens read and written in the whole conversation.
    Tokens(u64),
    /// Money in the whole conversation, in the currency of the prices.
    Money(f64),
    /// Money per run or day, set by the policy: no operator let the run continue.
    MoneyOf {
        /// The budget, in the currency of the prices.
        limit: f64,
        /// The period of the budget.
        period: Period,
    },
    /// Bytes of the history as sent to the model.
    Bytes(u64),
    /// Wall-clock time of one prompt, including the time spent waiting for users.
    Time(Duration),
}

impl ExceededBudget {
    /// Returns a sentence that describes it.
    pub fn describe(&self) -> String {
        match self {
            Self::Turns(limit) => {
                format!(
                    "the budget of {limit} turns for one prompt is used up; prompt again to continue"
                )
            }
            Self::Tokens(limit) => {
                format!("the budget of {limit} tokens is used up; raise it to continue")
            }
            Self::Money(limit) => {
                format!("the budget of {limit} (money) is used up; raise it to continue")
            }
            Self::MoneyOf { limit, period } => {
                let period = period.as_str();
                format!(
                    "the budget of {limit} of money a {period} is used up, and nobody let the run continue; raise budgets.{period}.money to continue"
                )
            }
            Self::Bytes(limit) => format!(
                "the conversation holds more than {limit} bytes; begin a new run, and set the model's `window`, with which long conversations are compressed"
            ),
            Self::Time(limit) => format!(
                "the budget of {} s for one prompt is used up; prompt again to continue",
                limit.as_secs()
            ),
        }
    }
}
