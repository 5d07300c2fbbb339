//! Borrowed JSON of a provider: objects as lists of members, and members that are a string at one provider and a list at another.

use std::borrow::Cow;

use memchr::memchr;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::dialect::Dialect;
use crate::error::{WireError, quote};

/// A member that is usually a string.
#[derive(Debug, Clone, Default)]
pub(crate) enum LooseText<'a> {
    /// It is `null` or absent.
    #[default]
    None,
    /// A string.
    Text(Cow<'a, str>),
    /// Something else.
    Other(&'a RawValue),
}

impl<'a> LooseText<'a> {
    /// Classifies a value.
    pub(crate) fn of(raw: &'a RawValue) -> Result<Self, serde_json::Error> {
        let text = raw.get();
        if text == "null" {
            return Ok(Self::None);
        }
        let inner = text
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        let Some(inner) = inner else {
            return Ok(Self::Other(raw));
        };
        if memchr(b'\\', inner.as_bytes()).is_none() {
            return Ok(Self::Text(Cow::Borrowed(inner)));
        }
        serde_json::from_str(text).map(|text: String| Self::Text(Cow::Owned(text)))
    }

    /// Returns the string; empty if it is not one.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::None | Self::Other(_) => "",
        }
    }

    /// Returns the string, or the JSON of another value; empty if there is neither.
    pub(crate) fn words(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Other(raw) => raw.get(),
            Self::None => "",
        }
    }

    /// Returns the string, unless it is empty.
    pub(crate) fn some(&self) -> Option<String> {
        Some(self.text())
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LooseText<'a> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(json)?;
        Self::of(raw).map_err(D::Error::custom)
    }
}

/// The members of an object in order; none for `null`. Any other value is an error.
#[derive(Debug, Clone, Default)]
pub(crate) struct Members<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Returns the members of a value.
    pub(crate) fn of(raw: &'a RawValue) -> Result<Self, serde_json::Error> {
        serde_json::from_str(raw.get())
    }

    /// Returns a member by its name; the last of duplicates, like `serde_json` and most parsers.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let mut all = self.0.iter().rev();
        all.find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// Returns a member as a string.
    pub(crate) fn loose(&self, name: &str) -> Result<LooseText<'a>, serde_json::Error> {
        self.get(name).map_or(Ok(LooseText::None), LooseText::of)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Members::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(map.size_hint().unwrap_or(4));
        while let Some((MemberName(key), value)) =
            map.next_entry::<MemberName<'de>, &'de RawValue>()?
        {
            members.push((key, value));
        }
        Ok(Members(members))
    }
}

/// A member's name.
struct MemberName<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for MemberName<'de> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct MemberNameVisitor;
        impl<'de> Visitor<'de> for MemberNameVisitor {
            type Value = MemberName<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a member's name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(MemberName(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(MemberName(Cow::Owned(name.to_owned())))
            }
        }
        json.deserialize_str(MemberNameVisitor)
    }
}

/// Returns the elements of a list, still unparsed; empty for any other value.
pub(crate) fn list(raw: &RawValue) -> Result<Vec<&RawValue>, serde_json::Error> {
    if raw.get().starts_with('[') {
        return serde_json::from_str(raw.get());
    }
    Ok(Vec::new())
}

/// Returns the bytes as text, because JSON is UTF-8.
pub(crate) fn utf8<'b>(
    dialect: Dialect,
    what: &'static str,
    bytes: &'b [u8],
) -> Result<&'b str, WireError> {
    std::str::from_utf8(bytes).map_err(|error| WireError::Malformed {
        dialect: dialect.as_str(),
        what,
        reason: format!("it is not UTF-8: {error}"),
    })
}

/// Returns the error for input that is not JSON of a dialect.
pub(crate) fn malformed<'e>(
    dialect: Dialect,
    what: &'static str,
    text: &'e str,
) -> impl Fn(serde_json::Error) -> WireError + use<'e> {
    move |error| WireError::Malformed {
        dialect: dialect.as_str(),
        what,
        reason: format!("{error}; it begins with {:?}", quote(text)),
    }
}

/// Returns the error that a provider reports: an object with a message, or a string.
pub(crate) fn reported(raw: &RawValue) -> WireError {
    let members = Members::of(raw).unwrap_or_default();
    let loose = |name| members.loose(name).unwrap_or_default();
    let word = |name| Some(loose(name).words().to_owned()).filter(|word| !word.is_empty());
    // For an event of type `error`, the code says what it is.
    let kind = word("type")
        .filter(|kind| kind != "error")
        .or_else(|| word("code"));
    let message = match LooseText::of(raw) {
        Ok(LooseText::Text(text)) => text.into_owned(),
        _ => word("message").unwrap_or_else(|| raw.get().to_owned()),
    };
    WireError::Provider {
        kind: quote(&kind.unwrap_or_else(|| "an error".to_owned())),
        message: quote(&message),
    }
}

/// Returns JSON without whitespace between its tokens.
pub(crate) fn compact(json: &str) -> Cow<'_, str> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    let bytes = json.as_bytes();
    let mut out: Vec<u8> = Vec::new();
    let (mut from, mut at, mut is_changed) = (0, 0, false);
    while at < bytes.len() {
        if bytes[at] == b'"' {
            at = string_end(bytes, at);
        } else if blank(&bytes[at]) {
            is_changed = true;
            out.extend_from_slice(&bytes[from..at]);
            let run = bytes[at..].iter().take_while(|byte| blank(byte)).count();
            at += run;
            from = at;
        } else {
            at += 1;
        }
    }
    if !is_changed {
        return Cow::Borrowed(json);
    }
    out.extend_from_slice(&bytes[from..]);
    String::from_utf8(out).map_or(Cow::Borrowed(json), Cow::Owned)
}

/// Returns the position after the string that starts here.
fn string_end(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        if bytes[at + found] == b'"' {
            return at + found + 1;
        }
        at += found + 2;
    }
    bytes.len()
}

/// Returns an owned value, without whitespace between its tokens.
pub(crate) fn owned(raw: &RawValue) -> Box<RawValue> {
    match compact(raw.get()) {
        Cow::Borrowed(_) => raw.to_owned(),
        Cow::Owned(text) => RawValue::from_string(text).unwrap_or_else(|_| raw.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_go_from_between_words_and_stay_within_texts() {
        let rows = [
            ("{ \"a b\" : [ 1 ,\n\t2 ] }", "{\"a b\":[1,2]}"),
            ("{\"a\\\" \\\\\" : \" x \"}", "{\"a\\\" \\\\\":\" x \"}"),
            ("[1,2]", "[1,2]"),
            ("\"un closed", "\"un closed"),
            ("", ""),
        ];
        for (json, expect) in rows {
            assert_eq!(compact(json), expect);
        }
    }

    #[test]
    fn an_error_of_a_provider_is_read_in_each_of_its_shapes() {
        let rows = [
            (r#"{"message":"m","type":"t","code":"c"}"#, "t", "m"),
            (r#"{"message":"m","code":429}"#, "429", "m"),
            (r#"{"code":null,"message":"m"}"#, "an error", "m"),
            (r#""gone""#, "an error", "gone"),
            (r#"{"why":1}"#, "an error", r#"{"why":1}"#),
        ];
        for (json, kind, message) in rows {
            let raw = RawValue::from_string(json.to_owned()).unwrap();
            let expect = format!("the provider reports {kind}: {message}");
            assert_eq!(reported(&raw).to_string(), expect);
        }
    }
}
