//! Finds a hunk's lines in a text: exactly, or ignoring trailing blanks, all outer blanks, or typographic marks.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::hash::{BuildHasher, RandomState};

use crate::files::lines::TextLine;

/// How closely lines match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MatchLevel {
    Exact,
    Trailing,
    Outer,
    Marks,
}

impl MatchLevel {
    const ALL: [Self; 4] = [Self::Exact, Self::Trailing, Self::Outer, Self::Marks];

    /// Returns what the comparison ignores, for a note.
    pub(super) fn ignored_difference(self) -> &'static str {
        match self {
            Self::Exact => "nothing",
            Self::Trailing => "trailing blanks",
            Self::Outer => "blanks around lines",
            Self::Marks => "blanks and typographic marks",
        }
    }

    /// Returns the part of a line that is compared.
    fn key(self, line: &[u8]) -> Cow<'_, [u8]> {
        if self == Self::Exact {
            return Cow::Borrowed(line);
        }
        let Ok(text) = std::str::from_utf8(line) else {
            // In a line that is not UTF-8, only ASCII blanks are trimmed.
            return Cow::Borrowed(match self {
                Self::Exact | Self::Trailing => line.trim_ascii_end(),
                Self::Outer | Self::Marks => line.trim_ascii(),
            });
        };
        match self {
            Self::Exact | Self::Trailing => Cow::Borrowed(text.trim_end().as_bytes()),
            Self::Outer => Cow::Borrowed(text.trim().as_bytes()),
            Self::Marks if text.is_ascii() => Cow::Borrowed(text.trim().as_bytes()),
            Self::Marks => {
                let plain: String = text.trim().chars().map(plain).collect();
                Cow::Owned(plain.into_bytes())
            }
        }
    }

    /// Returns true if two lines match.
    pub(super) fn lines_match(self, one: &[u8], other: &[u8]) -> bool {
        self.key(one) == self.key(other)
    }
}

/// Returns the ASCII character for a typographic one: dashes, quotes, spaces of all widths.
fn plain(mark: char) -> char {
    match mark {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// A text to search. Each line has a hash at each level, computed on the first use of the level.
pub(super) struct HashedText<'a> {
    pub(super) lines: &'a [TextLine<'a>],
    keys: [OnceCell<Vec<u64>>; 4],
    // Keyed for each text, so that nobody can craft two lines with the same hash.
    hasher: RandomState,
}

impl<'a> HashedText<'a> {
    pub(super) fn new(lines: &'a [TextLine<'a>]) -> Self {
        Self {
            lines,
            keys: Default::default(),
            hasher: RandomState::new(),
        }
    }

    fn key(&self, level: MatchLevel, line: &[u8]) -> u64 {
        self.hasher.hash_one(level.key(line))
    }

    fn keys(&self, level: MatchLevel) -> &[u64] {
        self.keys[level as usize].get_or_init(|| {
            let key = |line: &TextLine<'_>| self.key(level, line.text);
            self.lines.iter().map(key).collect()
        })
    }

    /// Returns the places of the pattern from a line on, at the first level that has any; empty if there are none.
    pub(super) fn find(&self, pattern: &[&[u8]], from: usize) -> (MatchLevel, Vec<usize>) {
        for level in MatchLevel::ALL {
            let pattern: Vec<u64> = pattern.iter().map(|line| self.key(level, line)).collect();
            let found = occurrences(self.keys(level), &pattern, from);
            if !found.is_empty() {
                return (level, found);
            }
        }
        (MatchLevel::Marks, Vec::new())
    }

    /// Returns true if the pattern is exactly at this line.
    pub(super) fn is_at(&self, pattern: &[&[u8]], at: usize) -> bool {
        let end = at.checked_add(pattern.len());
        let lines = end.and_then(|end| self.lines.get(at..end));
        lines.is_some_and(|lines| {
            lines
                .iter()
                .map(|line| line.text)
                .eq(pattern.iter().copied())
        })
    }

    /// Returns the lines from `from` on that equal the anchor, or else begin with it.
    pub(super) fn anchor(&self, anchor: &str, from: usize) -> Vec<usize> {
        let (_, found) = self.find(&[anchor.as_bytes()], from);
        if !found.is_empty() || anchor.trim().is_empty() {
            return found;
        }
        let wanted = anchor.trim().as_bytes();
        let begins = |at: &usize| self.lines[*at].text.trim_ascii().starts_with(wanted);
        (from..self.lines.len()).filter(begins).collect()
    }

    /// Returns the place that matches most of the pattern's first lines, and their number, for an error message.
    pub(super) fn nearest(&self, pattern: &[&[u8]]) -> Option<(usize, usize)> {
        /// Maximum number of places checked.
        const MAX_TRIED: usize = 100;
        let (level, starts) = self.find(pattern.get(..1)?, 0);
        let alike = |at: usize| {
            let pairs = self.lines[at..].iter().zip(pattern);
            pairs
                .take_while(|(line, wanted)| level.lines_match(line.text, wanted))
                .count()
        };
        let tried = starts.into_iter().take(MAX_TRIED).map(|at| (at, alike(at)));
        tried.reduce(|best, one| if one.1 > best.1 { one } else { best })
    }
}

/// Returns all places of the pattern from a line on, in one pass (Knuth, Morris, Pratt).
fn occurrences(text: &[u64], pattern: &[u64], from: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let Some(rest) = text.get(from..).filter(|_| !pattern.is_empty()) else {
        return found;
    };
    // For each position in the pattern: the length of the longest proper prefix that ends there.
    let mut borders = vec![0; pattern.len()];
    let mut length = 0;
    for at in 1..pattern.len() {
        while length > 0 && pattern[at] != pattern[length] {
            length = borders[length - 1];
        }
        if pattern[at] == pattern[length] {
            length += 1;
        }
        borders[at] = length;
    }
    let mut length = 0;
    for (at, key) in rest.iter().enumerate() {
        while length > 0 && (length == pattern.len() || *key != pattern[length]) {
            length = borders[length - 1];
        }
        if *key == pattern[length] {
            length += 1;
        }
        if length == pattern.len() {
            found.push(from + at + 1 - length);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_alike_up_to_a_level() {
        for (one, other, expect) in [
            ("a b", "a b", Some(MatchLevel::Exact)),
            ("a b \t", "a b", Some(MatchLevel::Trailing)),
            ("a\r", "a", Some(MatchLevel::Trailing)),
            ("\ta b", "  a b ", Some(MatchLevel::Outer)),
            ("“a” – b’s\u{a0}c", "\"a\" - b's c", Some(MatchLevel::Marks)),
            ("a  b", "a b", None),
        ] {
            let level = MatchLevel::ALL
                .into_iter()
                .find(|level| level.lines_match(one.as_bytes(), other.as_bytes()));
            assert_eq!(level, expect, "{one:?} {other:?}");
        }
        assert!(MatchLevel::Outer.lines_match(b" \xff ", b"\xff"));
        assert!(!MatchLevel::Marks.lines_match(b"\xff", b"\xfe"));
    }

    proptest! {
        #[test]
        fn one_pass_finds_what_comparing_everywhere_finds(
            text in proptest::collection::vec(0u64..3, 0..40),
            pattern in proptest::collection::vec(0u64..3, 1..5),
            from in 0usize..45,
        ) {
            let expect: Vec<usize> = (from..text.len().max(from))
                .filter(|at| text[*at..].starts_with(&pattern))
                .collect();
            prop_assert_eq!(occurrences(&text, &pattern, from), expect);
        }
    }
}
