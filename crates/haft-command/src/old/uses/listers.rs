//! Commands that print names, kinds and sizes of files, whatever their options.

use super::CommandUses;
use super::plain::tests_plainly;
use super::readers::files;
use crate::path_use::{PathAccess, PathUse};
use crate::word::ShellWord;

/// Returns what such a command does with files.
pub(super) fn of(name: &str, words: &[ShellWord]) -> Option<CommandUses> {
    match name {
        "ls" | "du" if words.iter().any(follows) => below(name, words),
        "ls" | "stat" | "du" | "which" | "readlink" | "realpath" => {
            files(name, words, PathAccess::Names)
        }
        "test" | "[" if tests_plainly(words) => files(name, words, PathAccess::Names),
        _ => None,
    }
}

/// Whether an option may make `ls` or `du` follow the links that it meets: `-L`, `--dereference`.
fn follows(word: &ShellWord) -> bool {
    let letters = word.text.strip_prefix('-').unwrap_or_default();
    match letters.strip_prefix('-') {
        Some(long) => long.starts_with("de"),
        None => letters.contains('L'),
    }
}

fn below(name: &str, words: &[ShellWord]) -> Option<CommandUses> {
    let mut uses = files(name, words, PathAccess::NamesBelow)?;
    if words.iter().all(|word| word.text.starts_with('-')) {
        uses.paths.push(PathUse::known(".", PathAccess::NamesBelow));
    }
    Some(uses)
}
