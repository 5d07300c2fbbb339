//! `Amended`: an object with some members changed and every other byte preserved.

use std::mem;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::escape;
use crate::members::{Member, members};

/// An object whose members are replaced, removed and added in place: white space, escapes and the order of all others are preserved.
///
/// ```
/// use haft_json::amend::Amended;
///
/// let mut object = Amended::read(r#"{ "a" : 1.0, "b": [ 2 ], "c":3 }"#)?;
/// object.replace(0).extend_from_slice(b"7");
/// object.remove(1);
/// object.add("d").extend_from_slice(b"4");
/// assert_eq!(object.to_text(), r#"{ "a" : 7, "c":3,"d":4 }"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug)]
pub struct Amended<'a> {
    text: &'a str,
    members: Vec<Member<'a>>,
    fates: Vec<MemberChange>,
    /// Members added after the others, separated by commas.
    more: Vec<u8>,
}

#[derive(Debug, Default)]
struct MemberChange {
    is_gone: bool,
    /// Its replacement value.
    value: Option<Vec<u8>>,
}

impl<'a> Amended<'a> {
    /// Reads an object, unchanged so far.
    ///
    /// # Errors
    ///
    /// The text is not a single JSON object.
    pub fn read(object: &'a str) -> Result<Self, serde_json::Error> {
        let members = members(object)?;
        Ok(Self {
            text: object.trim_ascii(),
            fates: members.iter().map(|_| MemberChange::default()).collect(),
            members,
            more: Vec::new(),
        })
    }

    /// Returns its original members in order; a member's index here identifies it.
    pub fn members(&self) -> &[Member<'a>] {
        &self.members
    }

    /// Returns the index of the first member with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|member| member.is(name))
    }

    /// Returns the value of the first member with this name.
    pub fn value(&self, name: &str) -> Option<&'a RawValue> {
        self.position(name).map(|nth| self.members[nth].value())
    }

    /// Replaces the value of a member; the caller writes the new value into the returned buffer.
    ///
    /// # Panics
    ///
    /// If there is no member with this index.
    pub fn replace(&mut self, nth: usize) -> &mut Vec<u8> {
        self.fates[nth].value.insert(Vec::new())
    }

    /// Sets the value of a member to this text; if it already has this text, keeps its spelling.
    ///
    /// # Panics
    ///
    /// If there is no member with this index.
    pub fn say(&mut self, nth: usize, text: &str) {
        let value = self.members[nth].value().get();
        let says = serde_json::from_str::<String>(value);
        if !says.is_ok_and(|says| says == text) {
            escape::string(self.replace(nth), text);
        }
    }

    /// Removes a member, with its comma.
    ///
    /// # Panics
    ///
    /// If there is no member with this index.
    pub fn remove(&mut self, nth: usize) {
        self.fates[nth].is_gone = true;
    }

    /// Removes all members for which `stays` returns false.
    pub fn retain(&mut self, stays: impl Fn(&Member<'a>) -> bool) {
        for (member, fate) in self.members.iter().zip(&mut self.fates) {
            fate.is_gone |= !stays(member);
        }
    }

    /// Adds a member after all others; the caller writes its value into the returned buffer.
    pub fn add(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.more.is_empty() {
            self.more.push(b',');
        }
        escape::string(&mut self.more, name);
        self.more.push(b':');
        &mut self.more
    }

    /// Whether no members remain.
    pub fn is_empty(&self) -> bool {
        self.more.is_empty() && self.fates.iter().all(|fate| fate.is_gone)
    }

    /// Writes the object in its current form.
    pub fn write(&self, out: &mut Vec<u8>) {
        let spans: Vec<_> = self.members.iter().map(|one| self.span(one)).collect();
        let end = self.text.len().saturating_sub(1);
        let begin = spans.first().map_or(end, |first| first.start);
        self.copy(out, 0..begin);
        let mut is_first = true;
        for (nth, fate) in self.fates.iter().enumerate() {
            if fate.is_gone {
                continue;
            }
            if !mem::take(&mut is_first) && nth > 0 {
                self.copy(out, spans[nth - 1].end..spans[nth].start);
            }
            let Some(value) = &fate.value else {
                self.copy(out, spans[nth].clone());
                continue;
            };
            let old = self.members[nth].value().get().len();
            self.copy(out, spans[nth].start..spans[nth].end - old);
            out.extend_from_slice(value);
        }
        if !self.more.is_empty() {
            if !is_first {
                out.push(b',');
            }
            out.extend_from_slice(&self.more);
        }
        let rest = spans.last().map_or(end, |last| last.end);
        self.copy(out, rest..self.text.len());
    }

    /// Returns the object in its current form.
    pub fn to_text(&self) -> String {
        let mut out = Vec::with_capacity(self.text.len() + self.more.len() + 16);
        self.write(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    /// Returns the same as raw JSON; `None` if a written value is not valid JSON.
    pub fn to_raw(&self) -> Option<Box<RawValue>> {
        RawValue::from_string(self.to_text()).ok()
    }

    fn copy(&self, out: &mut Vec<u8>, span: Range<usize>) {
        out.extend_from_slice(self.text.as_bytes().get(span).unwrap_or_default());
    }

    /// Returns the position of a member, from its name to the end of its value: both are slices of the text.
    fn span(&self, member: &Member<'_>) -> Range<usize> {
        let at = |piece: &str| piece.as_ptr().addr() - self.text.as_ptr().addr();
        let value = member.value().get();
        at(member.key())..at(value) + value.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Amended;

    /// White space of every kind, everywhere it is allowed.
    const ODD: &str =
        " \n{ \t\"z\" :\r1.0e+02 ,\n\"a\\u0020\": { \"b\" : [ 1 ] }  , \"s\":\"\\u00e4\\/\" }\n";

    #[test]
    fn what_is_not_amended_stays_byte_for_byte() {
        for odd in [ODD, "{}", "{ \t}", r#"{"":null}"#, r#"{"a":1,"a":2}"#] {
            let object = Amended::read(odd).unwrap();
            assert_eq!(object.to_text(), odd.trim_ascii());
        }
        for wrong in ["", "[]", "{", "{}x", "1", r#"{"a":1,}"#] {
            assert!(Amended::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_amendment_changes_its_own_bytes_alone() {
        type Change = fn(&mut Amended<'_>);
        let rows: [(Change, &str); 8] = [
            (
                |o| o.replace(0).extend_from_slice(b"7"),
                "{ \t\"z\" :\r7 ,\n\"a\\u0020\": { \"b\" : [ 1 ] }  , \"s\":\"\\u00e4\\/\" }",
            ),
            (
                |o| o.remove(0),
                "{ \t\"a\\u0020\": { \"b\" : [ 1 ] }  , \"s\":\"\\u00e4\\/\" }",
            ),
            (
                |o| o.remove(1),
                "{ \t\"z\" :\r1.0e+02  , \"s\":\"\\u00e4\\/\" }",
            ),
            (
                |o| o.remove(2),
                "{ \t\"z\" :\r1.0e+02 ,\n\"a\\u0020\": { \"b\" : [ 1 ] } }",
            ),
            (|o| o.retain(|_| false), "{ \t }"),
            (
                |o| {
                    o.retain(|member| member.is("a "));
                    o.add("x\"").extend_from_slice(b"1");
                    o.add("y").extend_from_slice(b"2");
                },
                "{ \t\"a\\u0020\": { \"b\" : [ 1 ] },\"x\\\"\":1,\"y\":2 }",
            ),
            // It already has this text.
            (|o| o.say(2, "ä/"), ODD.trim_ascii()),
            (
                |o| o.say(2, "a\"b"),
                "{ \t\"z\" :\r1.0e+02 ,\n\"a\\u0020\": { \"b\" : [ 1 ] }  , \"s\":\"a\\\"b\" }",
            ),
        ];
        for (change, expect) in rows {
            let mut object = Amended::read(ODD).unwrap();
            change(&mut object);
            assert_eq!(object.to_text(), expect);
            assert!(object.to_raw().is_some());
        }
    }

    #[test]
    fn an_object_without_members_gets_some() {
        for (odd, expect) in [("{}", r#"{"a":1}"#), ("{ }", r#"{ "a":1}"#)] {
            let mut object = Amended::read(odd).unwrap();
            assert!(object.is_empty());
            object.add("a").push(b'1');
            assert!(!object.is_empty());
            assert_eq!(object.to_text(), expect);
        }
    }
}
