//! Where a recorded conversation stands, without an agent that continues it.

use haft_wire::Turn;

use crate::agent::MAY_HAVE_RUN;
use crate::budget::Prices;
use crate::conversation::{AnswerText, ConversationEntry};
use crate::end::{RunEnd, RunResult};
use crate::history::{History, TurnCall};
use crate::next::{NextAction, exceeded, next};
use crate::options::AgentOptions;

/// Returns whether calls of a conversation's last turn have no answer: it has to be continued before it gets another
/// prompt.
pub fn has_open_calls(entries: Vec<ConversationEntry>) -> bool {
    history(entries, None).open().is_some()
}

/// Returns whether the model has not answered yet, so that the conversation can be continued without another prompt.
pub fn owes_reply(entries: Vec<ConversationEntry>) -> bool {
    !matches!(next(&history(entries, None), false), NextAction::End(_))
}

/// Returns the end of a conversation in which nothing is left to do: an agent with these options that resumed it would do nothing.
pub fn over(entries: Vec<ConversationEntry>, options: &AgentOptions) -> Option<RunResult> {
    let history = history(entries, options.prices);
    let end = match next(&history, false) {
        NextAction::End(end) => end,
        NextAction::Ask => RunEnd::Budget(exceeded(&options.budget, &history)?),
        NextAction::Calls => return None,
    };
    Some(RunResult {
        end,
        text: history.last_turn().map(Turn::text).unwrap_or_default(),
        spent: history.spent,
    })
}

/// Returns what is to be added to the conversation of a run that a denial ended: the answers to the calls that have none, and the denial.
/// `denied` returns the answer to a call whose approval request was denied.
pub fn closed_by_denial(
    entries: Vec<ConversationEntry>,
    denial: &str,
    denied: &dyn Fn(&str) -> Option<String>,
) -> Vec<ConversationEntry> {
    let history = history(entries, None);
    let slots = history.open().map(|open| open.slots.iter().enumerate());
    let open = slots.into_iter().flatten();
    let open = open.filter(|(_, slot)| !slot.is_answered());
    let answers = open.map(|(place, slot)| ConversationEntry::Answered {
        place,
        answer: AnswerText::error(closing(slot, denial, denied)),
    });
    answers
        .chain([ConversationEntry::Denied(denial.to_owned())])
        .collect()
}

/// Returns the answer to a call of a run that was ended.
fn closing(slot: &TurnCall, denial: &str, denied: &dyn Fn(&str) -> Option<String>) -> String {
    match slot.approval.as_deref().and_then(denied) {
        Some(said) => said,
        None if slot.begun => MAY_HAVE_RUN.to_owned(),
        None => format!("not run: {denial}"),
    }
}

fn history(entries: Vec<ConversationEntry>, prices: Option<Prices>) -> History {
    let mut history = History::new(prices);
    for entry in entries {
        history.apply(entry);
    }
    history
}
