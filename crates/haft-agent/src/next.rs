//! What a conversation needs next: the model, the calls of its last turn, or nothing.

use haft_wire::StopReason;

use crate::budget::Budget;
use crate::end::{ExceededBudget, RunEnd};
use crate::history::History;

/// What to do next.
pub(crate) enum NextAction {
    Ask,
    Calls,
    End(RunEnd),
}

/// Decides from the history alone. `asked` says whether the model was asked in this run.
pub(crate) fn next(history: &History, asked: bool) -> NextAction {
    if let Some(denial) = &history.denied {
        return NextAction::End(RunEnd::Denied(denial.clone()));
    }
    if history.open().is_some() {
        return NextAction::Calls;
    }
    if let Some((name, times)) = history.repeats.stopped() {
        let tool = name.to_owned();
        return NextAction::End(RunEnd::Repeating { tool, times });
    }
    match history.stop() {
        None if history.messages().is_empty() => NextAction::End(RunEnd::Done),
        None | Some(StopReason::Pause) => NextAction::Ask,
        // After a truncated reply, ask again.
        Some(StopReason::Length) if !asked => NextAction::Ask,
        Some(StopReason::Length) => NextAction::End(RunEnd::Length),
        Some(StopReason::Filter) => NextAction::End(RunEnd::Filtered),
        Some(StopReason::End | StopReason::Calls) => NextAction::End(RunEnd::Done),
        Some(StopReason::Other(word)) => NextAction::End(RunEnd::Stopped(word.clone())),
    }
}

/// Returns the budget that a conversation has used up. Time is not checked here: each run counts its own.
pub(crate) fn exceeded(budget: &Budget, history: &History) -> Option<ExceededBudget> {
    let spent = &history.spent;
    match (budget.turns, budget.tokens, budget.money) {
        (Some(limit), _, _) if spent.turns_of_prompt >= limit => Some(ExceededBudget::Turns(limit)),
        (_, Some(limit), _) if spent.tokens() >= limit => Some(ExceededBudget::Tokens(limit)),
        (_, _, Some(limit)) if spent.money.unwrap_or_default() >= limit => {
            Some(ExceededBudget::Money(limit))
        }
        _ => {
            let full = |limit: &u64| history.bytes() as u64 > *limit;
            budget.bytes.filter(full).map(ExceededBudget::Bytes)
        }
    }
}
