//! What a conversation needs next: the model, the calls of its last turn, or nothing.

use haft_wire::StopReason;

use crate::budget::Budget;
use crate::end::{End, Exceeded};
use crate::history::History;

/// What to do next.
pub(crate) enum Next {
    Ask,
    Calls,
    End(End),
}

/// Decides from the history alone. `asked` says whether the model was asked in this run.
pub(crate) fn next(history: &History, asked: bool) -> Next {
    if let Some(denial) = &history.denied {
        return Next::End(End::Denied(denial.clone()));
    }
    if history.open().is_some() {
        return Next::Calls;
    }
    if let Some((name, times)) = history.repeats.stopped() {
        let tool = name.to_owned();
        return Next::End(End::Repeating { tool, times });
    }
    match history.stop() {
        None if history.messages().is_empty() => Next::End(End::Done),
        None | Some(StopReason::Pause) => Next::Ask,
        // After a truncated reply, ask again.
        Some(StopReason::Length) if !asked => Next::Ask,
        Some(StopReason::Length) => Next::End(End::Length),
        Some(StopReason::Filter) => Next::End(End::Filtered),
        Some(StopReason::End | StopReason::Calls) => Next::End(End::Done),
        Some(StopReason::Other(word)) => Next::End(End::Stopped(word.clone())),
    }
}

/// Returns the budget that a conversation has used up. Time is not checked here: each run counts its own.
pub(crate) fn exceeded(budget: &Budget, history: &History) -> Option<Exceeded> {
    let spent = &history.spent;
    match (budget.turns, budget.tokens, budget.money) {
        (Some(limit), _, _) if spent.turns_of_prompt >= limit => Some(Exceeded::Turns(limit)),
        (_, Some(limit), _) if spent.tokens() >= limit => Some(Exceeded::Tokens(limit)),
        (_, _, Some(limit)) if spent.money.unwrap_or_default() >= limit => {
            Some(Exceeded::Money(limit))
        }
        _ => {
            let full = |limit: &u64| history.bytes() as u64 > *limit;
            budget.bytes.filter(full).map(Exceeded::Bytes)
        }
    }
}
