//! Commands that print names, kinds and sizes of files, whatever their options.

use super::plain::tests_plainly;
use super::readers::files;
use super::{How, Use, Uses};
use crate::policy::spelled::Spelled;

/// Returns what such a command does with files.
pub(super) fn of(name: &str, words: &[Spelled]) -> Option<Uses> {
    match name {
        "ls" | "du" if words.iter().any(follows) => below(name, words),
        "ls" | "stat" | "du" | "which" | "readlink" | "realpath" => files(name, words, How::Names),
        "test" | "[" if tests_plainly(words) => files(name, words, How::Names),
        _ => None,
    }
}

/// Whether an option may make `ls` or `du` follow the links that it meets: `-L`, `--dereference`.
fn follows(word: &Spelled) -> bool {
    let letters = word.text.strip_prefix('-').unwrap_or_default();
    match letters.strip_prefix('-') {
        Some(long) => long.starts_with("de"),
        None => letters.contains('L'),
    }
}

fn below(name: &str, words: &[Spelled]) -> Option<Uses> {
    let mut uses = files(name, words, How::NamesBelow)?;
    if words.iter().all(|word| word.text.starts_with('-')) {
        uses.paths.push(Use::known(".", How::NamesBelow));
    }
    Some(uses)
}
