//! The members of an object as written in its text, so that one can be replaced and all others stay as they are.

use serde::de::{Deserializer as _, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A member of an object, as written.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    key: &'a RawValue,
    value: &'a RawValue,
}

impl<'a> Member<'a> {
    /// Returns its name as written, with quotes and escapes.
    pub fn key(&self) -> &'a str {
        self.key.get()
    }

    /// Whether this is its name, however it is escaped.
    pub fn is(&self, name: &str) -> bool {
        let key = self.key.get();
        let inner = key.get(1..key.len().saturating_sub(1)).unwrap_or_default();
        if inner.contains('\\') {
            return serde_json::from_str::<String>(key).is_ok_and(|read| read == name);
        }
        inner == name
    }

    /// Returns its value as written.
    pub fn value(&self) -> &'a RawValue {
        self.value
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(map.size_hint().unwrap_or(8));
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            if !key.get().starts_with('"') {
                return Err(A::Error::custom("a member without a name"));
            }
            members.push(Member { key, value });
        }
        Ok(members)
    }
}

/// Returns the members of an object in order, including duplicates.
///
/// ```
/// let members = haft_json::members::members(r#"{ "b": 12345678901234567890123, "\u0061": [ 1 ] }"#)?;
/// assert_eq!(members[0].value().get(), "12345678901234567890123");
/// assert!(members[1].is("a") && members[1].key() == r#""\u0061""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
///
/// The text is not a single JSON object.
pub fn members(object: &str) -> Result<Vec<Member<'_>>, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(object);
    let members = reader.deserialize_map(Members)?;
    reader.end()?;
    Ok(members)
}

/// Writes an object from members.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Writer<'o> {
    /// Starts an object at the end of the buffer.
    pub fn begin(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    /// Copies a member as written elsewhere.
    pub fn copy(&mut self, member: Member<'_>) {
        self.raw_key(member.key())
            .extend_from_slice(member.value().get().as_bytes());
    }

    /// Writes a name that needs no escapes; the caller writes its value into the returned buffer.
    pub fn key(&mut self, name: &str) -> &mut Vec<u8> {
        let key = format!("\"{name}\"");
        self.raw_key(&key)
    }

    fn raw_key(&mut self, key: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        self.out.extend_from_slice(key.as_bytes());
        self.out.push(b':');
        self.out
    }

    /// Ends the object.
    pub fn end(self) {
        self.out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::{Writer, members};

    #[test]
    fn members_stay_as_they_are_written() {
        let odd = r#"{"z":1.0e+02,"a\u0020":{"b":[1,{"c":12345678901234567890123}]},"z":"\u00e4","":null}"#;
        let mut out = Vec::new();
        let mut writer = Writer::begin(&mut out);
        for member in members(odd).unwrap() {
            writer.copy(member);
        }
        writer.end();
        assert_eq!(String::from_utf8(out).unwrap(), odd);
        for wrong in ["", "[]", "{", "{}x", "1", r#"{"a":1,}"#, "{a:1}", "null"] {
            assert!(members(wrong).is_err(), "{wrong}");
        }
        assert!(members(" { } ").unwrap().is_empty());
    }
}
