//! Commands that change files and do nothing else: each change is its own effect, for rules on files.

use haft_shell::{AsWord, Options, base_name};

use super::CommandUses;
use super::tables::{CP, MKDIR, MV, RM, TEE, TOUCH};
use crate::path_use::{PathAccess, PathUse};
use crate::word::ShellWord;

/// Returns what such a command does with files.
pub(super) fn of(name: &str, words: &[ShellWord]) -> Option<CommandUses> {
    let each = |options: &Options, how| Some(CommandUses::each(options.split(words)?.words, how));
    match name {
        "cp" => put(&CP.split(words)?.words, PathAccess::Reads),
        "mv" => put(&MV.split(words)?.words, PathAccess::Moves),
        "rm" => each(&RM, PathAccess::Removes),
        "rmdir" | "unlink" => each(&Options::NONE, PathAccess::Removes),
        "mkdir" => each(&MKDIR, PathAccess::Writes),
        "touch" => each(&TOUCH, PathAccess::Writes),
        "tee" => each(&TEE, PathAccess::Writes),
        _ => None,
    }
}

/// Returns the uses of a command whose last operand is a file, or a folder that the others go into.
fn put(operands: &[&ShellWord], how: PathAccess) -> Option<CommandUses> {
    let (to, from) = operands.split_last()?;
    if from.is_empty() || !operands.iter().all(|word| word.is_known()) {
        return None;
    }
    let mut paths = Vec::new();
    for file in from {
        let name = file
            .text
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or_default();
        if matches!(name, "" | "." | "..") {
            return None;
        }
        paths.push(PathUse::new(file, how));
        if how == PathAccess::Moves {
            paths.push(PathUse::new(file, PathAccess::Carries));
        }
        paths.push(PathUse {
            puts: Some(name.to_owned()),
            ..PathUse::new(to, PathAccess::Writes)
        });
    }
    Some(CommandUses::of(paths))
}

/// Returns the paths that a command which is not understood may put elsewhere as they are, links included.
pub(super) fn carried(words: &[ShellWord]) -> Vec<PathUse> {
    let Some((name, rest)) = words.split_first() else {
        return Vec::new();
    };
    if !matches!(base_name(name.text()), "mv" | "cp" | "ln" | "rsync") {
        return Vec::new();
    }
    let named = rest.iter().filter(|word| !word.text.starts_with('-'));
    named
        .map(|word| PathUse::new(word, PathAccess::Carries))
        .collect()
}

/// Whether a command creates links: what the rest of its line uses by their names cannot be known.
pub(super) fn links(words: &[ShellWord]) -> bool {
    let Some((name, rest)) = words.split_first() else {
        return false;
    };
    let symbolic = |word: &ShellWord| {
        let letters = word.text.strip_prefix('-').unwrap_or_default();
        word.text.starts_with("--s") || (!letters.starts_with('-') && letters.contains('s'))
    };
    match base_name(name.text()) {
        "ln" => true,
        "cp" => rest.iter().any(symbolic),
        _ => false,
    }
}
