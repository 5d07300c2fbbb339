//! A string from JSON that borrows from its input if it contains no escapes.

use std::borrow::Cow;

use serde::Deserialize;

/// A string. `Option<Cow<str>>` would copy; an option of this type borrows.
#[derive(Debug, Deserialize)]
pub(crate) struct BorrowedText<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

impl BorrowedText<'_> {
    /// Returns an owned string, if there is one.
    pub(crate) fn owned(this: Option<Self>) -> Option<String> {
        this.map(|text| text.0.into_owned())
    }
}
