//! Where a recorded conversation stands, without an agent that continues it.

use haft_wire::{Stop, Turn};

use crate::conversation::Entry;
use crate::end::{End, Finished};
use crate::history::History;

/// Returns whether calls of a conversation's last turn have no answer: it is continued before it gets another prompt.
pub fn has_open_calls(entries: Vec<Entry>) -> bool {
    history(entries).open().is_some()
}

/// Returns the end of a conversation whose last message is the model's answer; `None` if anything is left to do.
pub fn answered(entries: Vec<Entry>) -> Option<Finished> {
    let history = history(entries);
    let is_over = history.open().is_none() && matches!(history.stop(), Some(Stop::End));
    is_over.then(|| Finished {
        end: End::Done,
        text: history.last_turn().map(Turn::text).unwrap_or_default(),
        spent: history.spent,
    })
}

fn history(entries: Vec<Entry>) -> History {
    let mut history = History::default();
    for entry in entries {
        history.apply(entry);
    }
    history
}
