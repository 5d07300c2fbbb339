//! Words of a command that is not understood: the parts of each that may name a place.

use haft_shell::{AsWord, Options, base_name};

use crate::path_use::{PathAccess, PathCertainty, PathUse};
use crate::word::{ShellWord, WordForm};

/// Characters in a word that a path may follow.
const PATH_PREFIXES: [char; 4] = ['=', ':', '@', ','];
/// Characters that end a path within a text, such as code for an interpreter.
const PATH_TERMINATORS: &[char] = &[
    ' ', '\t', '\n', '"', '\'', '(', ')', '[', ']', '{', '}', ';', '&', '|', '<', '>', '`', ',',
];

/// Returns the places that the words after the first may name, without duplicates.
pub(super) fn places(words: &[ShellWord]) -> Vec<PathUse> {
    let mut found = Vec::new();
    let mut note = |place: PathUse| {
        if !place.path.is_empty() && !found.contains(&place) {
            found.push(place);
        }
    };
    for (at, word) in words.iter().enumerate().skip(1) {
        if is_message(words, at) {
            continue;
        }
        if matches!(word.form, WordForm::Unknown | WordForm::Printed { .. }) {
            note(PathUse::new(word, PathAccess::MayUse));
            continue;
        }
        if let Some(url) = url(&word.text) {
            note(url);
            continue;
        }
        if !word.text.starts_with('-') {
            note(PathUse::new(word, PathAccess::MayUse));
        }
        for text in within(&word.text) {
            let known = if word.form == WordForm::Known {
                PathCertainty::Whole
            } else {
                PathCertainty::Pattern
            };
            note(PathUse {
                known: if text.starts_with('~') {
                    PathCertainty::Home
                } else {
                    known
                },
                ..PathUse::known(text, PathAccess::MayUse)
            });
        }
    }
    found
}

/// Whether the word is a commit message, which is never a place: `git commit -m TEXT`.
fn is_message(words: &[ShellWord], at: usize) -> bool {
    let git = words
        .first()
        .is_some_and(|name| base_name(name.text()) == "git");
    let command = words.get(1).map(AsWord::text);
    let before = at
        .checked_sub(1)
        .and_then(|at| words.get(at))
        .map(AsWord::text);
    git && matches!(command, Some("commit" | "tag"))
        && before.is_some_and(|option| option == "--message" || is_short_message(option))
        && !words[at].text.starts_with('-')
        && !matches!(words[at].form, WordForm::Unknown | WordForm::Pattern)
}

/// Whether the option is `-m` or `-am`.
fn is_short_message(option: &str) -> bool {
    matches!(option, "-m" | "-am")
}

/// Returns a URL, or the path of a `file` URL.
fn url(text: &str) -> Option<PathUse> {
    let (before, rest) = text.split_once("://")?;
    let scheme = before
        .rsplit(|c: char| !c.is_ascii_alphanumeric())
        .next()
        .unwrap_or_default();
    if scheme.eq_ignore_ascii_case("file") {
        let path = rest.find('/').map_or(rest, |at| &rest[at..]);
        return Some(PathUse::known(path, PathAccess::MayUse));
    }
    (!scheme.is_empty())
        .then(|| PathUse::known(&text[before.len() - scheme.len()..], PathAccess::Connects))
}

/// Returns what follows a separator or an option in a word, and what looks like a path elsewhere in it.
fn within(text: &str) -> impl Iterator<Item = &str> {
    let behind = PATH_PREFIXES.into_iter().flat_map(|sign| {
        let parts = text.match_indices(sign);
        parts.map(|(at, sign)| &text[at + sign.len()..])
    });
    let before = text.split_once(':').map(|(first, _)| first);
    let pieces = text
        .split(PATH_TERMINATORS)
        .filter(|piece| leads_away(piece));
    behind.chain(before).chain(option_value(text)).chain(pieces)
}

/// Whether the path, by its text alone, may lead out of the folder.
fn leads_away(piece: &str) -> bool {
    (piece.starts_with('/') && piece.len() > 1)
        || piece.starts_with('~')
        || piece.split('/').any(|part| part == "..")
}

/// Returns what may be an option's value within the same word: `--from-file=x`, `-nfx`. Empty for a word that is not an option.
pub(super) fn option_value(text: &str) -> impl Iterator<Item = &str> {
    let long = text
        .strip_prefix("--")
        .and_then(|rest| rest.split_once('='));
    let short = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let ends = short.into_iter().flat_map(|letters| {
        letters
            .char_indices()
            .skip(1)
            .map(move |(at, _)| &letters[at..])
    });
    long.map(|(_, value)| value).into_iter().chain(ends)
}

/// Whether a word behind the first operand looks like an option. The programs of macOS and BSD take it, and the word after it, as files.
pub(super) fn has_late_option(options: &Options, words: &[ShellWord]) -> Option<bool> {
    let mut operands = words[options.count(words)?..].iter();
    Some(operands.any(|word| word.text.starts_with('-') && word.text != "-"))
}
