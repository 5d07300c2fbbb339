//! Edits of settings files in place: something is added or removed, and every other byte stays.
//!
//! The parsers of `jsonc-parser` and `toml_edit` say where everything is; the new text is spliced in at these places. Both crates can
//! also edit and print a document, which does not keep it: comments beside a removed member go, a file on one line is spread over many, CRLF
//! and the byte order mark are lost. After each edit, the text is parsed again and compared with what it must hold; a text that differs is
//! refused and never written.

use std::ops::Range;
use std::path::Path;

use crate::problem::{Problem, SourceLocation};
use crate::text_places::TextPlaces;

pub mod jsonc;
pub mod toml;

/// Why a text cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct EditError {
    /// The reason.
    pub what: String,
    /// The position in the text; `None` if the reason is about the text as a whole. An empty one, at the end of a text, is a position.
    pub at: Option<Range<usize>>,
}

impl EditError {
    /// Returns a reason without a position.
    pub fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            at: None,
        }
    }

    /// Returns a reason with its position.
    pub fn at(what: impl Into<String>, at: Range<usize>) -> Self {
        Self {
            what: what.into(),
            at: Some(at),
        }
    }

    /// Adds a position if the reason has none.
    pub fn or_at(mut self, at: Option<Range<usize>>) -> Self {
        self.at = self.at.or(at);
        self
    }

    /// Returns it as a problem with a file that has this text: `failed` says what could not be done.
    pub fn problem(self, failed: &str, file: &Path, text: &str) -> Problem {
        let place = match self.at {
            Some(at) => TextPlaces::new(&file.display().to_string(), text).at(at),
            None => SourceLocation::file(file),
        };
        Problem::usage(format!("{failed}: {}", self.what)).at(place)
    }
}

/// Returns the line break that a text uses.
fn newline_of(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}
