//! Parts of a call in words, short enough for a sentence.

use super::JudgedCall;
use crate::permission::Effect;

/// Maximum length of a quoted part of a call in a sentence, in characters.
const MAX_QUOTE: usize = 160;

/// Returns the text on one line, short enough for a sentence.
pub(super) fn clip(text: &str) -> String {
    let mut short: String = text
        .chars()
        .take(MAX_QUOTE)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(MAX_QUOTE).is_some() {
        short.push('…');
    }
    short
}

/// Describes an effect in words: `writing src/a.rs`.
pub(super) fn phrase(call: &JudgedCall<'_>, effect: &Effect) -> String {
    let value = clip(effect.value());
    match effect {
        Effect::Call => format!("calls of {}", call.spec.name),
        Effect::Read(_) => format!("reading {value}"),
        Effect::Write(_) => format!("writing {value}"),
        Effect::Remove(_) => format!("removing {value}"),
        Effect::Run { jailed: true, .. } => format!("running {value}"),
        Effect::Run { jailed: false, .. } => format!("running {value} without the jail"),
        Effect::Apply { .. } => format!("applying what {value} changed"),
        Effect::Connect { .. } => format!("connecting to {value}"),
        Effect::Remember { .. } => format!("writing to the memory {value}"),
        Effect::Question => "asking the user".to_owned(),
        Effect::Other { kind, .. } => format!("{} {value}", clip(kind)),
    }
}
