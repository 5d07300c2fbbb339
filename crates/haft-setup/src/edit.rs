//! Edits of settings files in place: something is added or removed, and every other byte stays.
//!
//! The parsers of `jsonc-parser` and `toml_edit` say where everything is; the new text is spliced in at these places. Both crates can
//! also edit and print a document, which does not keep it: comments beside a removed member go, a file on one line is spread over many, CRLF
//! and the byte order mark are lost. After each edit, the text is parsed again and compared with what it must hold; a text that differs is
//! refused and never written.

use std::ops::Range;

pub mod jsonc;
pub mod toml;

/// Why a text cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct EditError {
    /// The reason.
    pub what: String,
    /// The position in the text; empty if the reason has none.
    pub at: Range<usize>,
}

impl EditError {
    /// Returns a reason without a position.
    pub fn new(what: impl Into<String>) -> Self {
        Self::at(what, 0..0)
    }

    /// Returns a reason with its position.
    pub fn at(what: impl Into<String>, at: Range<usize>) -> Self {
        Self {
            what: what.into(),
            at,
        }
    }
}

/// Returns the line break that a text uses.
fn newline_of(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}
