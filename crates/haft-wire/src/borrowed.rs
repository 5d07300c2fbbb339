//! A text out of JSON that borrows what it was read from, where that holds no escapes.

use std::borrow::Cow;

use serde::Deserialize;

/// A text. `Option<Cow<str>>` copies; of this one an option borrows.
#[derive(Debug, Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

impl Text<'_> {
    /// An owned text, where there is one.
    pub(crate) fn owned(this: Option<Self>) -> Option<String> {
        this.map(|text| text.0.into_owned())
    }
}
