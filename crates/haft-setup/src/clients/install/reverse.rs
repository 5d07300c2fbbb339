//! `ReverseEdit`: what an edit changed, as the one stretch of text that differs, so that the edit can be undone to the byte.

use serde::{Deserialize, Serialize};

use crate::clients::install::digest::digest;

/// Maximum size in bytes of the text that is recorded.
const MAX_REMOVED: usize = 256 * 1024;

/// What undoes an edit of a text that has not changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReverseEdit {
    /// SHA-256 of the text after the edit.
    after: String,
    /// The position of the first byte that differs.
    at: usize,
    /// The length of what the edit wrote there.
    added: usize,
    /// What stood there before.
    removed: String,
}

impl ReverseEdit {
    /// Returns what undoes the edit that made `after` of `before`; `None` if that is too much text.
    pub(crate) fn of(before: &str, after: &str) -> Option<Self> {
        let shorter = before.len().min(after.len());
        let pairs = before.bytes().zip(after.bytes());
        let mut at = pairs.take_while(|(one, other)| one == other).count();
        while !(before.is_char_boundary(at) && after.is_char_boundary(at)) {
            at -= 1;
        }
        let pairs = before.bytes().rev().zip(after.bytes().rev());
        let same = pairs.take_while(|(one, other)| one == other).count();
        let mut end = same.min(shorter - at);
        while !before.is_char_boundary(before.len() - end) {
            end -= 1;
        }
        let removed = &before[at..before.len() - end];
        (removed.len() <= MAX_REMOVED).then(|| Self {
            after: digest(after),
            at,
            added: after.len() - end - at,
            removed: removed.to_owned(),
        })
    }

    /// Returns the text before the edit, if `text` is the one after it.
    pub(crate) fn undo(&self, text: &str) -> Option<String> {
        if digest(text) != self.after {
            return None;
        }
        let head = text.get(..self.at)?;
        let tail = text.get(self.at.checked_add(self.added)?..)?;
        Some(format!("{head}{}{tail}", self.removed))
    }
}

#[cfg(test)]
mod tests {
    use super::ReverseEdit;

    #[test]
    fn an_edit_is_undone_to_the_byte_unless_the_text_changed() {
        for (before, after) in [
            ("", ""),
            ("", "a"),
            ("a", ""),
            ("{}", "{\"a\": 1}"),
            ("aaa", "aaaa"),
            ("aaaa", "aa"),
            ("é", "è"),
            ("xéy", "xèéy"),
            ("é\u{1f600}é", "é\u{1f601}\u{1f600}é"),
            ("one\ntwo\n", "two\none\n"),
        ] {
            let reverse = ReverseEdit::of(before, after).unwrap();
            assert_eq!(
                reverse.undo(after).as_deref(),
                Some(before),
                "{before:?} {after:?}"
            );
            assert_eq!(reverse.undo(&format!("{after} ")), None);
        }
    }
}
