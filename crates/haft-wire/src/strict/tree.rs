//! `SchemaTree`: JSON that preserves the order of members and the digits of numbers.

use std::collections::HashSet;

use haft_json::escape::string;
use serde_json::value::RawValue;

use crate::loose::{LooseText, Members, compact, list};

/// Maximum nesting depth of a schema; anything deeper is not read.
const DEEPEST: usize = 64;

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SchemaTree {
    /// An object, with its members in order.
    Object(Vec<(String, SchemaTree)>),
    List(Vec<SchemaTree>),
    Text(String),
    /// A number, a boolean or `null`, as written.
    Word(String),
}

impl SchemaTree {
    /// Reads JSON; `None` if it is invalid, has a duplicate name in an object, or is nested too deeply.
    pub(crate) fn read(raw: &RawValue) -> Option<Self> {
        Self::read_at(raw, 0)
    }

    fn read_at(raw: &RawValue, depth: usize) -> Option<Self> {
        if depth > DEEPEST {
            return None;
        }
        let first = raw.get().as_bytes().first()?;
        Some(match first {
            b'{' => {
                let mut members: Vec<(String, Self)> = Vec::new();
                let mut names = HashSet::new();
                for (name, value) in Members::of(raw).ok()?.0 {
                    if !names.insert(name.clone()) {
                        return None;
                    }
                    let value = Self::read_at(value, depth + 1)?;
                    members.push((name.into_owned(), value));
                }
                Self::Object(members)
            }
            b'[' => {
                let all = list(raw).ok()?;
                let read = all.into_iter().map(|one| Self::read_at(one, depth + 1));
                Self::List(read.collect::<Option<_>>()?)
            }
            b'"' => Self::Text(LooseText::of(raw).ok()?.text().to_owned()),
            _ => Self::Word(compact(raw.get()).into_owned()),
        })
    }

    /// Writes it as compact JSON.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Object(members) => {
                out.push(b'{');
                for (at, (name, value)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    string(out, name);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
            Self::List(all) => {
                out.push(b'[');
                for (at, one) in all.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    one.write(out);
                }
                out.push(b']');
            }
            Self::Text(text) => string(out, text),
            Self::Word(word) => out.extend_from_slice(word.as_bytes()),
        }
    }

    /// Returns it as compact JSON.
    pub(crate) fn json(&self) -> String {
        let mut out = Vec::new();
        self.write(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    /// Returns a member of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let mut all = self.members().iter();
        all.find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns the members of an object; empty for any other value.
    pub(crate) fn members(&self) -> &[(String, Self)] {
        match self {
            Self::Object(members) => members,
            _ => &[],
        }
    }

    /// Returns the elements of a list; empty for any other value.
    pub(crate) fn items(&self) -> &[Self] {
        match self {
            Self::List(all) => all,
            _ => &[],
        }
    }

    /// Returns the text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns whether it is this word.
    pub(crate) fn is(&self, word: &str) -> bool {
        matches!(self, Self::Word(own) if own == word)
    }

    /// Returns the type of the value, as JSON Schema names it.
    pub(crate) fn sort(&self) -> &'static str {
        match self {
            Self::Object(_) => "object",
            Self::List(_) => "array",
            Self::Text(_) => "string",
            Self::Word(word) => match word.as_str() {
                "null" => "null",
                "true" | "false" => "boolean",
                word if word
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'-') =>
                {
                    "integer"
                }
                _ => "number",
            },
        }
    }

    /// Returns the types that a schema names, one or a list of them.
    pub(crate) fn types(&self) -> Vec<&str> {
        match self.get("type") {
            Some(Self::Text(one)) => vec![one.as_str()],
            Some(Self::List(all)) => all.iter().filter_map(Self::text).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the target of a reference in this schema: supports `#`, `#/$defs/NAME` and `#/definitions/NAME`.
    pub(crate) fn target(&self, reference: &str) -> Option<&Self> {
        if reference == "#" {
            return Some(self);
        }
        let (place, name) = reference.strip_prefix("#/")?.split_once('/')?;
        if !matches!(place, "$defs" | "definitions") {
            return None;
        }
        self.get(place)?
            .get(&name.replace("~1", "/").replace("~0", "~"))
    }
}
