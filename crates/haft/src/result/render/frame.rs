//! The frame that tells the parts of a rendered outcome apart in one text.
//!
//! A head is a line of dashes, a word and as many dashes. haft's heads have more dashes than any line of a part that looks like one, so
//! the lines with the most dashes are the heads. The first part needs none if its beginning cannot be taken for another part's.

use crate::error::ErrorKind;
use crate::result::Status;
use crate::result::render::{PartMark, RenderedPart};

/// The least number of dashes on each side of a head.
const DASHES: usize = 3;
/// Maximum number of letters of the word in a line that looks like a head.
const MAX_WORD: usize = 24;

/// Returns the parts as one text.
pub(super) fn write(parts: &[RenderedPart<'_>]) -> String {
    if let [only] = parts
        && stands_alone(only)
    {
        return only.text.clone().into_owned();
    }
    let likeness = likeness(parts);
    if likeness.is_none() && !parts.iter().any(|part| part.mark.is_output()) {
        // haft says all of it.
        let texts: Vec<&str> = parts.iter().map(|part| &*part.text).collect();
        return texts.join("\n");
    }
    let begins_plainly = match parts {
        [] => true,
        [first, rest @ ..] => {
            let names = |mark| rest.iter().any(|part| part.mark == mark);
            let is_only_stream = first.mark == PartMark::Stdout && !names(PartMark::Stderr);
            likeness.is_none()
                && match first.mark {
                    PartMark::Status => true,
                    PartMark::Stdout | PartMark::Stderr if !is_only_stream => false,
                    _ => !begins_with_status(&first.text),
                }
        }
    };
    let dashes = likeness.map_or(DASHES, |most| most.max(DASHES - 1) + 1);
    write_framed(parts, dashes, begins_plainly)
}

/// Returns the notes among the parts, with heads that fit the other parts.
pub(super) fn write_notes(parts: &[RenderedPart<'_>]) -> Option<String> {
    let notes = parts.iter().filter(|part| part.mark == PartMark::Note);
    let notes: Vec<RenderedPart<'_>> = notes.cloned().collect();
    if notes.is_empty() {
        return None;
    }
    let dashes = likeness(parts).map_or(DASHES, |most| most.max(DASHES - 1) + 1);
    Some(write_framed(&notes, dashes, false))
}

/// Writes the parts, with a head wherever the mark changes.
fn write_framed(parts: &[RenderedPart<'_>], dashes: usize, begins_plainly: bool) -> String {
    let room: usize = parts
        .iter()
        .map(|part| part.text.len() + 2 * dashes + 12)
        .sum();
    let mut out = String::with_capacity(room);
    let mut before = parts
        .first()
        .map(|part| part.mark)
        .filter(|_| begins_plainly);
    for part in parts {
        if !(out.is_empty() || out.ends_with('\n')) {
            out.push('\n');
        }
        if before != Some(part.mark) {
            let line = "-".repeat(dashes);
            for piece in [&line, " ", part.mark.as_str(), " ", &line, "\n"] {
                out.push_str(piece);
            }
        }
        before = Some(part.mark);
        out.push_str(&part.text);
    }
    out
}

/// Returns whether a single part needs no head: nothing in it looks like one, and it begins as what it is.
fn stands_alone(part: &RenderedPart<'_>) -> bool {
    let is_plain = match part.mark {
        PartMark::Status => true,
        PartMark::Stderr => false,
        _ => !begins_with_status(&part.text),
    };
    is_plain && likeness(std::slice::from_ref(part)).is_none()
}

/// Returns the most dashes in a line that looks like a head.
fn likeness(parts: &[RenderedPart<'_>]) -> Option<usize> {
    parts
        .iter()
        .filter_map(|part| most_dashes(&part.text))
        .max()
}

fn most_dashes(text: &str) -> Option<usize> {
    // Quick: most texts have no two dashes in a row.
    if text.is_ascii() && !text.contains("--") {
        return None;
    }
    let lines = text.split(is_line_end);
    lines.filter_map(dashes_of_likeness).max()
}

/// Returns whether some reader takes the character for the end of a line.
fn is_line_end(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

fn is_dash(c: char) -> bool {
    matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{ad}')
}

/// Returns the most dashes on a side of a line that a reader may take for a head: dashes, a word, dashes.
fn dashes_of_likeness(line: &str) -> Option<usize> {
    let line = line.trim();
    let inner = line.trim_start_matches(is_dash);
    let word = inner.trim_end_matches(is_dash);
    let count = |dashes: &str| dashes.chars().count();
    let before = line.get(..line.len() - inner.len()).map_or(0, count);
    let after = inner.get(word.len()..).map_or(0, count);
    let word = word.trim();
    let is_word = !word.is_empty()
        && word.len() <= MAX_WORD
        && word.chars().all(|c| c.is_alphabetic() || c == '_');
    (before >= 2 && after >= 2 && is_word).then(|| before.max(after))
}

/// Returns whether a text begins as a call that did not succeed does.
fn begins_with_status(text: &str) -> bool {
    let text = text.trim_start();
    let Some((word, _)) = text
        .get(..text.floor_char_boundary(32))
        .unwrap_or_default()
        .split_once(':')
    else {
        return false;
    };
    let word = word.trim_end().to_ascii_lowercase();
    ErrorKind::ALL.iter().any(|kind| kind.as_str() == word)
        || Status::ALL.iter().any(|status| status.as_str() == word)
}

/// Returns the parts of a text that [`write`] wrote, or its beginning. The first part is a text if nothing says what it is.
pub(super) fn read(text: &str) -> Vec<RenderedPart<'_>> {
    let mut lines = Vec::new();
    let mut from = 0;
    for line in text.split_inclusive('\n') {
        if let Some((dashes, mark)) = head(line.strip_suffix('\n').unwrap_or(line)) {
            lines.push((dashes, mark, from, from + line.len()));
        }
        from += line.len();
    }
    let most = lines.iter().map(|line| line.0).max().unwrap_or_default();
    let mut parts = Vec::new();
    let mut push = |mark, from: usize, to: usize| {
        let piece = text.get(from..to).unwrap_or_default();
        if !piece.is_empty() {
            parts.push(RenderedPart {
                mark,
                text: piece.into(),
            });
        }
    };
    let first = if begins_with_status(text) {
        PartMark::Status
    } else {
        PartMark::Text
    };
    let (mut mark, mut from) = (first, 0);
    for (_, next, start, end) in lines.into_iter().filter(|line| line.0 == most) {
        push(mark, from, start);
        (mark, from) = (next, end);
    }
    push(mark, from, text.len());
    parts
}

/// Returns the dashes and the mark of a line that is a head.
pub(super) fn head(line: &str) -> Option<(usize, PartMark)> {
    let inner = line.trim_start_matches('-');
    let word = inner.trim_end_matches('-');
    let (before, after) = (line.len() - inner.len(), inner.len() - word.len());
    let word = word.strip_prefix(' ')?.strip_suffix(' ')?;
    let mark = PartMark::ALL
        .into_iter()
        .find(|mark| mark.as_str() == word)?;
    (before == after && before >= DASHES).then_some((before, mark))
}
