//! `O200k`: the tokens of current `OpenAI` models, used as a measure for all models.

use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};

use crate::encode::{Encoded, Encoder, SETTLED};
use crate::table::Table;
use crate::{Bytes, Tokenizer};

/// The encoding `o200k_base`. Its table (less than 2 MB in the binary, 9 MB unpacked) is loaded for the first text
/// whose tokens are counted; to cut a text, only if it has more bytes than the limit: a shorter one fits whatever its
/// tokens are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct O200k;

/// The table and the pattern, both constants, so one instance serves the whole process.
static LOADED: LazyLock<Option<(Table, Regex)>> =
    LazyLock::new(|| Some((Table::load()?, Regex::new_many(&PATTERNS).ok()?)));

/// Patterns that split a text into pieces before merging: the pattern of `o200k_base`. Its `\s+(?!\S)` is a separate pattern
/// here (the second), whose last character is given back.
const PATTERNS: [&str; 3] = [
    concat!(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|\p{N}{1,3}",
        r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"|\s*[\r\n]+",
        r"|\s+$",
    ),
    r"\s+\s",
    r"\s+",
];
/// The index of the pattern that matches one character too many.
const LOOKS_AHEAD: usize = 1;

/// Number of bytes inspected per token of a tail; with longer tokens, the tail is shorter than possible.
const TAIL_BYTES: usize = 6;

/// Iterator over the pieces of a text, as ranges.
struct Pieces<'t> {
    pattern: &'t Regex,
    text: &'t str,
    at: usize,
}

impl Iterator for Pieces<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let rest = self.text.get(self.at..)?;
        let found = self
            .pattern
            .find(Input::new(rest).anchored(Anchored::Yes))?;
        let start = self.at;
        let mut end = start + found.end();
        if found.pattern().as_usize() == LOOKS_AHEAD {
            let last = self.text.get(start..end)?.chars().next_back()?;
            end -= last.len_utf8();
        }
        self.at = end;
        (start < end).then_some(start..end)
    }
}

/// Measures the text in at most `limit` tokens: all of it, or up to a byte. Ignores bytes that `limit` tokens cannot reach.
fn measure(text: &str, limit: usize) -> Option<Encoded> {
    let (table, pattern) = LOADED.as_ref()?;
    let reach = limit
        .saturating_add(SETTLED + 1)
        .saturating_mul(table.most_bytes());
    let text = text.get(..text.floor_char_boundary(reach))?;
    let mut encoder = Encoder::new(table);
    let mut sum = 0;
    for piece in (Pieces {
        pattern,
        text,
        at: 0,
    }) {
        let bytes = text.as_bytes().get(piece.clone())?;
        match encoder.encode(bytes, limit - sum) {
            Encoded::Whole(count) => sum += count,
            Encoded::Cut(end) => return Some(Encoded::Cut(piece.start + end)),
        }
    }
    Some(Encoded::Whole(sum))
}

impl Tokenizer for O200k {
    fn fits(&self, text: &str, limit: usize) -> Option<usize> {
        match measure(text, limit) {
            Some(Encoded::Whole(count)) => Some(count),
            Some(Encoded::Cut(_)) => None,
            None => Bytes.fits(text, limit),
        }
    }

    fn head(&self, text: &str, limit: usize) -> usize {
        if text.len() <= limit {
            return text.len();
        }
        match measure(text, limit) {
            Some(Encoded::Whole(_)) => text.len(),
            Some(Encoded::Cut(end)) => text.floor_char_boundary(end),
            None => Bytes.head(text, limit),
        }
    }

    fn tail(&self, text: &str, limit: usize) -> usize {
        let least = Bytes.tail(text, limit);
        let Some((table, pattern)) = LOADED.as_ref().filter(|_| least > 0) else {
            return least;
        };
        let from = tail_start(text, limit);
        let mut encoder = Encoder::new(table);
        let mut ends: Vec<(usize, usize)> = Vec::new();
        for piece in (Pieces {
            pattern,
            text,
            at: from,
        }) {
            let bytes = text.as_bytes().get(piece.clone()).unwrap_or_default();
            let count = match encoder.encode(bytes, limit) {
                Encoded::Whole(count) => count,
                Encoded::Cut(_) => limit + 1,
            };
            ends.push((piece.start, count));
        }
        let mut sum = 0;
        let mut start = text.len();
        for (at, count) in ends.into_iter().rev() {
            sum += count;
            if sum > limit {
                break;
            }
            start = at;
        }
        start.min(least)
    }
}

/// Returns a position some bytes before a tail of `limit` tokens where pieces also start in the whole text: after the end of a
/// line, or any character in a text without lines.
fn tail_start(text: &str, limit: usize) -> usize {
    let from = text.len().saturating_sub(limit.saturating_mul(TAIL_BYTES));
    let from = text.ceil_char_boundary(from);
    let rest = text.get(from..).unwrap_or_default();
    let line = rest.match_indices('\n').map(|(at, _)| at + 1).find(|&at| {
        let next = rest.get(at..).and_then(|rest| rest.chars().next());
        next.is_some_and(|next| !next.is_whitespace() && next != '/')
    });
    from + line.filter(|_| from > 0).unwrap_or_default()
}
