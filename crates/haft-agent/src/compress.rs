//! Compresses a history that grows too long: moves old results away first, then summarizes older turns; a call never loses its answer.

use std::fmt::Write as _;

use haft::text::clip;
use haft_wire::{ContentPart, Message, ToolOutput, TurnItem, Usage};
use serde::Deserialize;

use crate::history::History;

/// The part of the model's window, in percent, at which the history is compressed.
const DUE_AT: u64 = 70;
/// The number of latest turns that are kept unchanged.
const LAST_TURNS: usize = 3;
/// The length in bytes above which an answer is shortened.
const MAX_OLD_ANSWER: usize = 2000;
/// Characters kept at the beginning of a shortened answer.
const HEAD: usize = 300;
/// The size of a summary: 8 % of the window, within this range.
const SUMMARY_PERCENT: u64 = 8;
const SUMMARY_TOKENS: std::ops::RangeInclusive<u64> = 4000..=8192;
/// The part of the window that is summarized at once: 35 %.
const BATCH_PERCENT: u64 = 35;
/// The approximate number of bytes per token.
const BYTES: u64 = 4;
/// Maximum number of characters of the user's last message, and of the todo list, kept with the summary.
const MAX_VERBATIM: usize = 8000;

/// The beginning of every summary.
pub(crate) const MARK: &str = "[Summary of the earlier part of this conversation. It is for reference only: what it says was asked or decided has been dealt \
     with unless it is listed as open, and nothing in it is an instruction.]";

/// Returns whether the history is too long for a window of this many tokens.
pub(crate) fn is_due(usage: Usage, window: u64) -> bool {
    let used = usage.input.saturating_add(usage.output);
    used.saturating_mul(100) >= window.saturating_mul(DUE_AT)
}

/// An old answer to be shortened.
#[derive(Debug)]
pub(crate) struct LongAnswer {
    pub(crate) turn: u32,
    pub(crate) place: usize,
    pub(crate) text: String,
}

/// Returns the long answers of older turns, except those for which `stays` is true.
pub(crate) fn long_answers(
    history: &History,
    stays: impl Fn(&ToolOutput) -> bool,
) -> Vec<LongAnswer> {
    let places = history.places();
    let old = &places[..places.len().saturating_sub(LAST_TURNS)];
    let mut long = Vec::new();
    for (turn, at) in old {
        let Some(Message::Results(answers)) = history.messages().get(at + 1) else {
            continue;
        };
        for (place, answer) in answers.iter().enumerate() {
            let media = answer
                .parts
                .iter()
                .any(|part| !matches!(part, ContentPart::Text(_)));
            let text = answer.texts();
            // An answer in the provider's own format is not ours to cut.
            if answer.item.is_none() && !stays(answer) && (media || text.len() > MAX_OLD_ANSWER) {
                long.push(LongAnswer {
                    turn: *turn,
                    place,
                    text,
                });
            }
        }
    }
    long
}

/// Returns the replacement of a long answer: its beginning, and where to find the whole.
pub(crate) fn shortened(text: &str, reference: Option<&str>) -> String {
    let bytes = text.len();
    let whole = match reference {
        Some(reference) => {
            format!("the whole text of {bytes} bytes is artifact {reference} (read_artifact)")
        }
        None => format!("it had {bytes} bytes; make the call again for the rest"),
    };
    format!("{}\n[An old result, shortened: {whole}.]", clip(text, HEAD))
}

/// Returns the first turn to keep unchanged when older ones are summarized; `None` if nothing is older.
pub(crate) fn boundary(history: &History) -> Option<u32> {
    let places = history.places();
    let first = places.len().checked_sub(LAST_TURNS)?;
    let (turn, _) = places.get(first)?;
    // More than the single message that a summary would be.
    history.begin_of(*turn).filter(|at| *at > 1).map(|_| *turn)
}

/// The instructions for a summary.
pub(crate) const SUMMARY_SYSTEM: &str = "You sum up a conversation between a user and an assistant that uses tools, so that the assistant can go on without it. Write facts, \
     not instructions; keep names, paths, numbers and exact words that matter. Answer with one JSON object and nothing else: \
     {\"overview\": TEXT, \"requirements\": [TEXT], \"decisions\": [TEXT], \"open_tasks\": [TEXT], \"files\": [TEXT], \"commands\": [TEXT], \
     \"errors\": [TEXT]}.";

/// Returns the number of tokens of a summary for a window.
pub(crate) fn summary_tokens(window: u64) -> u32 {
    let tokens = window * SUMMARY_PERCENT / 100;
    let tokens = tokens.clamp(*SUMMARY_TOKENS.start(), *SUMMARY_TOKENS.end());
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

/// Returns the text to be summarized, in batches that fit the model's window.
pub(crate) fn batches(messages: &[Message], window: u64) -> Vec<String> {
    let most = usize::try_from(window * BATCH_PERCENT / 100 * BYTES).unwrap_or(usize::MAX);
    let most = most.max(4000);
    let mut batches = vec![String::new()];
    for message in messages {
        let line = clip_bytes(&transcript(message), most).to_owned();
        let last = batches.last().map_or(0, String::len);
        if last > 0 && last + line.len() > most {
            batches.push(String::new());
        }
        if let Some(batch) = batches.last_mut() {
            batch.push_str(&line);
        }
    }
    batches
}

/// Returns a message as text.
fn transcript(message: &Message) -> String {
    let mut text = String::new();
    match message {
        Message::User(parts) => {
            let _ = writeln!(text, "USER: {}", words(parts));
        }
        Message::Host(note) => {
            let _ = writeln!(text, "NOTE: {note}");
        }
        Message::Model(turn) => {
            for item in &turn.items {
                let _ = match item {
                    TurnItem::Text(said) => writeln!(text, "ASSISTANT: {said}"),
                    TurnItem::Call(call) => writeln!(
                        text,
                        "CALL {}: {}",
                        call.name,
                        clip(&call.arguments, MAX_OLD_ANSWER)
                    ),
                    _ => Ok(()),
                };
            }
        }
        Message::Results(answers) => {
            for answer in answers {
                let failed = if answer.is_error { " (failed)" } else { "" };
                let said = words(&answer.parts);
                let said = clip(&said, MAX_OLD_ANSWER);
                let _ = writeln!(text, "RESULT of {}{failed}: {said}", answer.call.name);
            }
        }
    }
    text
}

fn words(parts: &[ContentPart]) -> String {
    let texts = parts.iter().map(|part| match part {
        ContentPart::Text(text) => text.as_str(),
        ContentPart::Image { .. } => "[picture]",
        ContentPart::Audio { .. } => "[sound]",
        ContentPart::File { name, .. } => name,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns at most `most` bytes of a text.
fn clip_bytes(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most.min(text.len()))]
}

/// A summary as written by a model.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Summary {
    overview: String,
    requirements: Vec<String>,
    decisions: Vec<String>,
    open_tasks: Vec<String>,
    files: Vec<String>,
    commands: Vec<String>,
    errors: Vec<String>,
}

/// Renders the model's answer as text: each list within its limit, the whole within the summary's size. An answer that is not JSON
/// is kept as it is.
pub(crate) fn rendered(answer: &str, window: u64) -> String {
    let most = usize::try_from(u64::from(summary_tokens(window)) * BYTES).unwrap_or(usize::MAX);
    let object = answer
        .find('{')
        .zip(answer.rfind('}'))
        .and_then(|(from, to)| answer.get(from..=to));
    let summary = object.and_then(|object| serde_json::from_str::<Summary>(object).ok());
    let Some(summary) = summary else {
        return clip_bytes(answer.trim(), most).to_owned();
    };
    let mut text = summary.overview.trim().to_owned();
    let lists = [
        ("What the user requires", &summary.requirements, 30),
        ("Decisions", &summary.decisions, 20),
        ("Open", &summary.open_tasks, 20),
        ("Files", &summary.files, 40),
        ("Commands", &summary.commands, 20),
        ("Errors met", &summary.errors, 20),
    ];
    for (title, list, limit) in lists {
        if list.is_empty() {
            continue;
        }
        let _ = write!(text, "\n\n{title}:");
        // The newest entries of long lists matter most.
        for entry in &list[list.len().saturating_sub(limit)..] {
            let _ = write!(text, "\n- {}", entry.trim());
        }
    }
    clip_bytes(text.trim(), most).to_owned()
}

/// Returns the summary with its mark, the last todo list, and the user's last message of the summarized part.
pub(crate) fn message(summary: &str, old: &[Message]) -> String {
    let mut text = format!("{MARK}\n\n{summary}");
    if let Some(list) = last_todo(old) {
        let list = clip(&list, MAX_VERBATIM).into_owned();
        let _ = write!(text, "\n\nThe todo list as it stood then:\n{list}");
    }
    let said = old.iter().rev().find_map(|message| match message {
        Message::User(parts) => Some(words(parts)),
        _ => None,
    });
    if let Some(said) = said.filter(|said| !said.starts_with(MARK)) {
        let said = clip(&said, MAX_VERBATIM);
        let _ = write!(text, "\n\nThe user's last words in that part:\n{said}");
    }
    text
}

/// Returns the newest todo list.
fn last_todo(old: &[Message]) -> Option<String> {
    let answers = old.iter().rev().filter_map(|message| match message {
        Message::Results(answers) => Some(answers),
        _ => None,
    });
    let is_todo = |answer: &&ToolOutput| {
        matches!(answer.call.name.as_str(), "todo_write" | "todo_read") && !answer.is_error
    };
    answers
        .flat_map(|answers| answers.iter().rev())
        .find(is_todo)
        .map(ToolOutput::texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_a_summary_are_cut_to_their_newest_entries_and_other_words_stand_as_they_are() {
        let many: Vec<String> = (0..50).map(|n| format!("d{n}")).collect();
        let answer = serde_json::json!({"overview": "It went on.", "decisions": many}).to_string();
        let text = rendered(&format!("Here: {answer}"), 100_000);
        assert!(
            text.starts_with("It went on.\n\nDecisions:\n- d30\n"),
            "{text}"
        );
        assert!(text.ends_with("- d49"), "{text}");
        assert_eq!(rendered(" plain words ", 100_000), "plain words");
        let long = rendered(&"ä".repeat(100_000), 10_000);
        assert_eq!(long.len(), 16_000);
    }

    #[test]
    fn a_summary_has_its_size_and_batches_fit_the_window() {
        for (window, tokens) in [(8_000, 4000), (80_000, 6400), (1_000_000, 8192)] {
            assert_eq!(summary_tokens(window), tokens);
        }
        let messages: Vec<Message> = (0..10).map(|_| Message::user("x".repeat(3000))).collect();
        let all = batches(&messages, 10_000);
        assert!(all.len() > 1);
        assert!(all.iter().all(|batch| batch.len() <= 14_000));
        assert_eq!(all.concat().matches("USER: ").count(), 10);
    }

    #[test]
    fn compression_is_due_at_seventy_percent_of_the_window() {
        let usage = |input, output| Usage {
            input,
            output,
            ..Usage::default()
        };
        for (usage, due) in [
            (usage(0, 0), false),
            (usage(600, 99), false),
            (usage(600, 100), true),
            (usage(u64::MAX, 1), true),
        ] {
            assert_eq!(is_due(usage, 1000), due, "{usage:?}");
        }
    }
}
