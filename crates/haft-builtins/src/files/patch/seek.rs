//! Finding a hunk's lines in a text: as they are, else but for trailing blanks, all outer blanks, typographic marks.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::hash::{BuildHasher, RandomState};

use crate::files::patch::lines::Line;

/// How alike lines are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Exact,
    Trailing,
    Outer,
    Marks,
}

impl Level {
    const ALL: [Self; 4] = [Self::Exact, Self::Trailing, Self::Outer, Self::Marks];

    /// What is left out of account, for a note.
    pub(super) fn but_for(self) -> &'static str {
        match self {
            Self::Exact => "nothing",
            Self::Trailing => "trailing blanks",
            Self::Outer => "blanks around lines",
            Self::Marks => "blanks and typographic marks",
        }
    }

    /// What of a line is compared.
    fn key(self, line: &[u8]) -> Cow<'_, [u8]> {
        if self == Self::Exact {
            return Cow::Borrowed(line);
        }
        let Ok(text) = std::str::from_utf8(line) else {
            // Blanks beyond ASCII are not looked for in what is not UTF-8.
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

    /// Whether two lines are alike.
    pub(super) fn same(self, one: &[u8], other: &[u8]) -> bool {
        self.key(one) == self.key(other)
    }
}

/// The mark of ASCII that a keyboard has for a typographic one: dashes, quotes, spaces of all widths.
fn plain(mark: char) -> char {
    match mark {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// A text to search: each line as a number at each level, made when that level is first asked for.
pub(super) struct Text<'a> {
    pub(super) lines: &'a [Line<'a>],
    keys: [OnceCell<Vec<u64>>; 4],
    // Keyed anew for each text, so that nobody can write two lines of one number.
    hasher: RandomState,
}

impl<'a> Text<'a> {
    pub(super) fn new(lines: &'a [Line<'a>]) -> Self {
        Self {
            lines,
            keys: Default::default(),
            hasher: RandomState::new(),
        }
    }

    fn key(&self, level: Level, line: &[u8]) -> u64 {
        self.hasher.hash_one(level.key(line))
    }

    fn keys(&self, level: Level) -> &[u64] {
        self.keys[level as usize].get_or_init(|| {
            let key = |line: &Line<'_>| self.key(level, line.text);
            self.lines.iter().map(key).collect()
        })
    }

    /// Where the pattern occurs from a line on, at the first level where it does; empty where it does not.
    pub(super) fn find(&self, pattern: &[&[u8]], from: usize) -> (Level, Vec<usize>) {
        for level in Level::ALL {
            let pattern: Vec<u64> = pattern.iter().map(|line| self.key(level, line)).collect();
            let found = occurrences(self.keys(level), &pattern, from);
            if !found.is_empty() {
                return (level, found);
            }
        }
        (Level::Marks, Vec::new())
    }

    /// Whether the pattern is at this line as it is.
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

    /// Lines that are the anchor, else that begin with it, from a line on.
    pub(super) fn anchor(&self, anchor: &str, from: usize) -> Vec<usize> {
        let (_, found) = self.find(&[anchor.as_bytes()], from);
        if !found.is_empty() || anchor.trim().is_empty() {
            return found;
        }
        let wanted = anchor.trim().as_bytes();
        let begins = |at: &usize| self.lines[*at].text.trim_ascii().starts_with(wanted);
        (from..self.lines.len()).filter(begins).collect()
    }

    /// Where most of the pattern's first lines are, and how many of them; for an error's advice.
    pub(super) fn nearest(&self, pattern: &[&[u8]]) -> Option<(usize, usize)> {
        /// Most places looked at.
        const MAX_TRIED: usize = 100;
        let (level, starts) = self.find(pattern.get(..1)?, 0);
        let alike = |at: usize| {
            let pairs = self.lines[at..].iter().zip(pattern);
            pairs
                .take_while(|(line, wanted)| level.same(line.text, wanted))
                .count()
        };
        let tried = starts.into_iter().take(MAX_TRIED).map(|at| (at, alike(at)));
        tried.reduce(|best, one| if one.1 > best.1 { one } else { best })
    }
}

/// All places of the pattern from a line on, in one pass (Knuth, Morris, Pratt).
fn occurrences(text: &[u64], pattern: &[u64], from: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let Some(rest) = text.get(from..).filter(|_| !pattern.is_empty()) else {
        return found;
    };
    // For each end in the pattern: how long the longest proper beginning is that ends there.
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
            ("a b", "a b", Some(Level::Exact)),
            ("a b \t", "a b", Some(Level::Trailing)),
            ("a\r", "a", Some(Level::Trailing)),
            ("\ta b", "  a b ", Some(Level::Outer)),
            ("“a” – b’s\u{a0}c", "\"a\" - b's c", Some(Level::Marks)),
            ("a  b", "a b", None),
        ] {
            let level = Level::ALL
                .into_iter()
                .find(|level| level.same(one.as_bytes(), other.as_bytes()));
            assert_eq!(level, expect, "{one:?} {other:?}");
        }
        assert!(Level::Outer.same(b" \xff ", b"\xff"));
        assert!(!Level::Marks.same(b"\xff", b"\xfe"));
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
