//! `ShortText`: an id that is copied often and nearly always short enough to need no allocation.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// Maximum size, in bytes, of texts that are stored inline.
const MAX_INLINE: usize = 22;

/// A text that is cheap to copy.
#[derive(Clone)]
pub(super) struct ShortText(TextRepr);

#[derive(Clone)]
enum TextRepr {
    Inline { length: u8, bytes: [u8; MAX_INLINE] },
    Shared(Arc<str>),
}

impl ShortText {
    /// Copies a text.
    pub(super) fn of(text: &str) -> Self {
        Self::inline(text).unwrap_or_else(|| Self(TextRepr::Shared(text.into())))
    }

    fn inline(text: &str) -> Option<Self> {
        let mut bytes = [0; MAX_INLINE];
        bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        let length = u8::try_from(text.len()).ok()?;
        Some(Self(TextRepr::Inline { length, bytes }))
    }

    pub(super) fn as_str(&self) -> &str {
        match &self.0 {
            TextRepr::Inline { length, bytes } => {
                let bytes = bytes.get(..usize::from(*length)).unwrap_or_default();
                std::str::from_utf8(bytes).unwrap_or_default()
            }
            TextRepr::Shared(text) => text,
        }
    }
}

impl AsRef<str> for ShortText {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl From<Arc<str>> for ShortText {
    fn from(text: Arc<str>) -> Self {
        Self::inline(&text).unwrap_or(Self(TextRepr::Shared(text)))
    }
}

impl fmt::Debug for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for ShortText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for ShortText {}

impl PartialOrd for ShortText {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ShortText {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for ShortText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Serialize for ShortText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use super::{MAX_INLINE, ShortText};

    #[test]
    fn a_text_is_the_same_in_either_form() {
        let texts = ["", "call-1", "é", "x"].map(str::to_owned);
        let long =
            (MAX_INLINE - 1..MAX_INLINE + 2).flat_map(|n| ["y".repeat(n), "é".repeat(n / 2)]);
        let texts: Vec<String> = texts.into_iter().chain(long).collect();
        for text in &texts {
            let (copy, shared) = (
                ShortText::of(text),
                ShortText::from(Arc::from(text.as_str())),
            );
            assert_eq!(
                (copy.as_str(), shared.as_str()),
                (text.as_str(), text.as_str())
            );
            assert_eq!((&copy, format!("{copy:?}")), (&shared, format!("{text:?}")));
        }
        let mut sorted = texts.clone();
        sorted.sort();
        let mut ids: Vec<ShortText> = texts.iter().map(|text| ShortText::of(text)).collect();
        ids.sort();
        assert_eq!(
            ids.iter().map(ShortText::as_str).collect::<Vec<_>>(),
            sorted
        );
        let different: HashSet<ShortText> = ids.into_iter().collect();
        let expect: HashSet<&String> = texts.iter().collect();
        assert_eq!(different.len(), expect.len());
    }
}
