//! `CallPiece`: a piece of a call as a server sends it, and why a piece is refused.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::error::{WireError, quote};
use crate::loose::{LooseText, Members};

/// The reason why a piece is refused.
#[derive(Debug)]
pub(crate) enum PieceError {
    /// It is not what a provider of Chat sends.
    Json(serde_json::Error),
    /// There are more calls than allowed.
    Calls(usize),
    /// It is of a call, and no rule says which.
    Unassigned {
        /// The id, name or index of the call.
        call: String,
        /// What the stream has for it.
        what: &'static str,
    },
}

impl From<serde_json::Error> for PieceError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

impl PieceError {
    pub(crate) fn unassigned(call: &str, what: &'static str) -> Self {
        let call = if call.is_empty() {
            "without id or name"
        } else {
            call
        };
        Self::Unassigned {
            call: quote(call),
            what,
        }
    }

    /// Returns the error of the reply; `malformed` makes one of JSON that is not the dialect's.
    pub(crate) fn wire(self, malformed: impl FnOnce(serde_json::Error) -> WireError) -> WireError {
        match self {
            Self::Json(error) => malformed(error),
            Self::Calls(most) => WireError::TooManyCalls(most),
            Self::Unassigned { call, what } => WireError::UnassignedCall { call, what },
        }
    }
}

/// A piece of a call.
#[derive(Debug)]
pub(crate) struct CallPiece<'a> {
    pub(crate) index: Option<u64>,
    /// Empty if there is none: a blank id is none.
    pub(crate) id: Cow<'a, str>,
    /// Empty if there is none.
    pub(crate) name: Cow<'a, str>,
    /// The piece of the arguments: text, or the JSON of a server that sends an object.
    pub(crate) arguments: Cow<'a, str>,
    /// Whether it is of a freeform call.
    pub(crate) is_freeform: bool,
}

impl<'a> CallPiece<'a> {
    pub(crate) fn read(members: &Members<'a>) -> Result<Self, serde_json::Error> {
        let part = |name: &str| match members.get(name) {
            Some(raw) => Members::of(raw).map(|inner| (!inner.0.is_empty()).then_some(inner)),
            None => Ok(None),
        };
        let (custom, function) = (part("custom")?, part("function")?);
        let is_freeform =
            members.loose("type")?.text() == "custom" || (function.is_none() && custom.is_some());
        // Some servers put name and arguments beside the id, without a function around them.
        let inner = if is_freeform { custom } else { function };
        let inner = inner.unwrap_or_else(|| members.clone());
        let text = if is_freeform { "input" } else { "arguments" };
        Ok(Self {
            index: members.get("index").and_then(number),
            id: identity(members.loose("id")?),
            name: word(inner.loose("name")?),
            arguments: words(inner.loose(text)?),
            is_freeform,
        })
    }

    /// Returns what an error calls it.
    pub(crate) fn label(&self) -> String {
        match self.index {
            _ if !self.id.is_empty() => self.id.to_string(),
            _ if !self.name.is_empty() => self.name.to_string(),
            Some(index) => format!("of index {index}"),
            None => String::new(),
        }
    }
}

/// Returns an index; some servers write it as a text.
fn number(raw: &RawValue) -> Option<u64> {
    raw.get().trim_matches('"').parse().ok()
}

/// Returns a text, or the digits of an id that is a number; nothing for a blank one.
fn word(loose: LooseText<'_>) -> Cow<'_, str> {
    let word = match loose {
        LooseText::Other(raw) if raw.get().starts_with(|first: char| first.is_ascii_digit()) => {
            Cow::Borrowed(raw.get())
        }
        LooseText::Text(text) => text,
        LooseText::None | LooseText::Other(_) => Cow::Borrowed(""),
    };
    if word.trim().is_empty() {
        return Cow::Borrowed("");
    }
    word
}

/// Returns an id. Mistral's servers gave the text `null` to every call.
fn identity(loose: LooseText<'_>) -> Cow<'_, str> {
    match word(loose) {
        word if matches!(word.as_ref(), "null" | "None") => Cow::Borrowed(""),
        word => word,
    }
}

fn words(loose: LooseText<'_>) -> Cow<'_, str> {
    match loose {
        LooseText::Text(text) => text,
        LooseText::Other(raw) => Cow::Borrowed(raw.get()),
        LooseText::None => Cow::Borrowed(""),
    }
}
