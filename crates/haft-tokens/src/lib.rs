//! Measures how many tokens a text has for a model, and where to cut it.
//!
//! Counting stops at the limit, so a text of 10 MB is cut at 12,000 tokens in about a millisecond. [`O200k`] counts the tokens of
//! current `OpenAI` models, as a measure for all models; [`Bytes`] counts bytes, which is stricter than any tokenizer and needs no table.
//! The feature `o200k` selects the standard one.
//!
//! ```
//! use haft_tokens::{Bytes, Tokenizer, standard};
//!
//! let tokenizer = standard();
//! let text = "one two three four five";
//! let end = tokenizer.head(text, 3);
//! assert!(tokenizer.fits(&text[..end], 3).is_some());
//! assert!(tokenizer.fits(text, 3).is_none());
//!
//! assert_eq!(Bytes.fits("three", 5), Some(5));
//! assert_eq!(Bytes.head("déjà vu", 2), 1);
//! ```

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "o200k")]
mod encode;
#[cfg(feature = "o200k")]
mod o200k;
#[cfg(feature = "o200k")]
mod table;

#[cfg(test)]
mod tests;

#[cfg(feature = "o200k")]
pub use o200k::O200k;

/// Counts the tokens of a text and finds where to cut it. A token is at least one byte long.
pub trait Tokenizer: Send + Sync {
    /// Returns the number of tokens of `text` if it is at most `limit`.
    fn fits(&self, text: &str, limit: usize) -> Option<usize>;

    /// Returns the length of the longest prefix of at most `limit` tokens: the bytes of the first `limit` tokens of the
    /// whole text, back to the last complete character.
    fn head(&self, text: &str, limit: usize) -> usize;

    /// Returns the start of a suffix of at most `limit` tokens (counted on its own), as long as can be found cheaply.
    fn tail(&self, text: &str, limit: usize) -> usize;
}

impl fmt::Debug for dyn Tokenizer + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokenizer")
    }
}

/// Returns the tokenizer for limits: o200k if the feature is enabled, otherwise bytes.
pub fn standard() -> Arc<dyn Tokenizer> {
    #[cfg(feature = "o200k")]
    return Arc::new(O200k);
    #[cfg(not(feature = "o200k"))]
    Arc::new(Bytes)
}

/// Counts each byte as a token: stricter than any tokenizer, and needs no table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bytes;

impl Tokenizer for Bytes {
    fn fits(&self, text: &str, limit: usize) -> Option<usize> {
        (text.len() <= limit).then_some(text.len())
    }

    fn head(&self, text: &str, limit: usize) -> usize {
        text.floor_char_boundary(limit)
    }

    fn tail(&self, text: &str, limit: usize) -> usize {
        text.ceil_char_boundary(text.len().saturating_sub(limit))
    }
}
