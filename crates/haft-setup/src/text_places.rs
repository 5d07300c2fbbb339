//! `TextPlaces`: the places of many ranges of one text, each found without reading the text again.
//!
//! A file of settings may hold ten thousand rules in one line: their places share the line, and none counts its characters anew.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::problem::{SourceLocation, SourcePosition};

/// Number of bytes between two positions whose characters are counted beforehand.
const STEP: usize = 1024;

/// A text, by whose positions places are made.
#[derive(Debug)]
pub struct TextPlaces<'t> {
    source: Arc<str>,
    text: &'t str,
    /// Whether places hold their lines.
    quotes: bool,
    /// The starts of its lines, in bytes.
    lines: Vec<usize>,
    /// The number of characters before each step.
    counted: Vec<usize>,
    /// The lines that places hold, by their starts.
    quoted: RefCell<HashMap<usize, Arc<str>>>,
}

impl<'t> TextPlaces<'t> {
    /// Returns the places of a text that was read from `source`; they hold their lines, for messages that quote them.
    pub fn new(source: &str, text: &'t str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let blocks = text.as_bytes().chunks(STEP).scan(0, |count, block| {
            *count += characters(block);
            Some(*count)
        });
        Self {
            source: source.into(),
            text,
            quotes: true,
            lines: std::iter::once(0).chain(ends).collect(),
            counted: std::iter::once(0).chain(blocks).collect(),
            quoted: RefCell::default(),
        }
    }

    /// Returns the same without the text of any line.
    pub fn without_quotes(self) -> Self {
        Self {
            quotes: false,
            ..self
        }
    }

    /// Whether its places hold their lines.
    pub fn quotes(&self) -> bool {
        self.quotes
    }

    /// Returns the text.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the place of a range of bytes.
    pub fn at(&self, range: Range<usize>) -> SourceLocation {
        let start = floor(self.text, range.start);
        let end = floor(self.text, range.end.max(range.start));
        let line = self.lines.partition_point(|begin| *begin <= start);
        let begin = self.lines[line.saturating_sub(1)];
        let here = first_line(&self.text[start..end]);
        SourceLocation {
            source: Arc::clone(&self.source),
            spot: Some(SourcePosition {
                line,
                column: self.before(start) - self.before(begin) + 1,
                width: characters(here.as_bytes()).max(1),
                text: if self.quotes {
                    self.line(begin)
                } else {
                    Arc::default()
                },
            }),
        }
    }

    /// Returns the number of characters before a byte.
    fn before(&self, at: usize) -> usize {
        let step = at / STEP;
        self.counted[step] + characters(&self.text.as_bytes()[step * STEP..at])
    }

    fn line(&self, begin: usize) -> Arc<str> {
        let mut quoted = self.quoted.borrow_mut();
        let line = quoted
            .entry(begin)
            .or_insert_with(|| first_line(&self.text[begin..]).into());
        Arc::clone(line)
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Counts the characters that begin in these bytes of a text.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

/// Returns the nearest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_line_column_and_width_in_characters() {
        let long = "é".repeat(3_000);
        let text = format!("a = 1\r\nb = \"äö\"\n{long}x\n");
        let places = TextPlaces::new("f", &text);
        let at = |start: &str, bytes| {
            let start = text.find(start).unwrap();
            let spot = places.at(start..start + bytes).spot.unwrap();
            (
                spot.line,
                spot.column,
                spot.width,
                spot.text.chars().count(),
            )
        };
        assert_eq!(at("a", 1), (1, 1, 1, 5));
        assert_eq!(at("\"ä", 6), (2, 5, 4, 8));
        assert_eq!(at("x", 100), (3, 3_001, 1, 3_001));
        // In the middle of a character, behind the end.
        assert_eq!(at("ä", 1), (2, 6, 1, 8));
        let end = places.at(text.len() + 9..text.len() + 20).spot.unwrap();
        assert_eq!((end.line, end.column, end.width), (4, 1, 1));
    }

    #[test]
    fn places_of_one_line_share_its_text_and_hold_none_where_it_must_not_be_shown() {
        let text = "a b\nc";
        let places = TextPlaces::new("f", text);
        let lines = [0..1, 2..3, 4..5].map(|range| places.at(range).spot.unwrap().text);
        assert!(Arc::ptr_eq(&lines[0], &lines[1]) && *lines[2] == *"c");
        let places = TextPlaces::new("f", text).without_quotes();
        assert_eq!(*places.at(0..1).spot.unwrap().text, *"");
    }
}
