//! Words of a command that is not understood: the parts of each that may name a place.

use crate::forms::option_values;
use crate::path_use::{PathAccess, PathCertainty, PathUse};
use crate::programs::is_message;
use crate::word::{ShellWord, WordForm};

/// Characters in a word that a path may follow.
const PATH_PREFIXES: [char; 4] = ['=', ':', '@', ','];
/// Characters that end a path within a text, such as code for an interpreter.
const PATH_TERMINATORS: &[char] = &[
    ' ', '\t', '\n', '"', '\'', '(', ')', '[', ']', '{', '}', ';', '&', '|', '<', '>', '`', ',',
];

/// Returns the places that the words after the first may name, without duplicates.
pub(crate) fn places(words: &[ShellWord]) -> Vec<PathUse> {
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
        if matches!(
            word.form,
            WordForm::Unknown | WordForm::Fact | WordForm::Printed { .. }
        ) {
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
    behind
        .chain(before)
        .chain(option_values(text))
        .chain(pieces)
}

/// Whether the path, by its text alone, may lead out of the folder.
fn leads_away(piece: &str) -> bool {
    (piece.starts_with('/') && piece.len() > 1)
        || piece.starts_with('~')
        || piece.split('/').any(|part| part == "..")
}
