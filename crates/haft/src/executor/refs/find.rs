//! Artifact refs in arguments: finds each `{"$artifact": ref}` in a text, and what the schema accepts there.

use std::ops::Range;

use memchr::{memchr2, memmem};
use serde_json::Value;

use crate::json::lexer::{LexError, Lexer};
use crate::json::scan;

/// The single member of an object that represents an artifact.
pub(crate) const REF_MEMBER: &str = "$artifact";

/// An object that represents an artifact.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RefObject {
    /// Its position in the text.
    pub(crate) span: Range<usize>,
    /// The names and indices that lead to it.
    pub(crate) path: Vec<String>,
    /// The ref; `None` if the object has other members, or the value is not a string.
    pub(crate) reference: Option<String>,
}

impl RefObject {
    /// Returns the path in the form that violations use.
    pub(crate) fn pointer(&self) -> String {
        let escaped = |step: &String| format!("/{}", step.replace('~', "~0").replace('/', "~1"));
        self.path.iter().map(escaped).collect()
    }
}

/// What an argument accepts in place of a ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefEncoding {
    /// The ref itself: the tool reads ranges of the artifact.
    Ref,
    /// The artifact's text.
    Text,
    /// The artifact's bytes as base64.
    Base64,
    /// The JSON value that the artifact holds.
    Json,
}

/// Finds all refs in the text of an object, in order. Text that is not strict JSON yields none: the schema check refuses it.
pub(crate) fn find(text: &str) -> Vec<RefObject> {
    // An escape could spell the name differently. Most arguments contain neither byte, so this is a cheap filter.
    let bytes = text.as_bytes();
    let named = memchr2(b'$', b'\\', bytes).is_some()
        && (memmem::find(bytes, REF_MEMBER.as_bytes()).is_some()
            || memmem::find(bytes, b"\\u").is_some());
    let mut found = Vec::new();
    if named && scan::scan_object(text).is_ok() {
        let mut walk = RefScanner {
            lexer: Lexer::new(text),
            path: Vec::new(),
            found: &mut found,
        };
        // Cannot fail: the scan has just validated the text.
        let _ = walk.value();
    }
    found
}

struct RefScanner<'t, 'f> {
    lexer: Lexer<'t>,
    path: Vec<String>,
    found: &'f mut Vec<RefObject>,
}

impl RefScanner<'_, '_> {
    fn value(&mut self) -> Result<(), LexError> {
        match self.lexer.peek() {
            b'{' => self.object(),
            b'[' => self.array(),
            _ => self.lexer.skip().map(drop),
        }
    }

    fn object(&mut self) -> Result<(), LexError> {
        let start = self.lexer.at;
        let before = self.found.len();
        let (mut members, mut marked, mut reference) = (0, false, None);
        self.lexer.at += 1;
        while self.lexer.peek() != b'}' {
            members += 1;
            let key = self.lexer.key()?;
            let name = self.lexer.unescape(key);
            if name == REF_MEMBER && !self.path.is_empty() {
                marked = true;
                if self.lexer.peek() == b'"' {
                    let text = self.lexer.string()?;
                    reference = Some(self.lexer.unescape(text));
                } else {
                    self.step(name)?;
                }
            } else {
                self.step(name)?;
            }
            self.comma();
        }
        self.lexer.at += 1;
        if marked {
            self.found.truncate(before);
            self.found.push(RefObject {
                span: start..self.lexer.at,
                path: self.path.clone(),
                reference: reference.filter(|_| members == 1),
            });
        }
        Ok(())
    }

    fn array(&mut self) -> Result<(), LexError> {
        self.lexer.at += 1;
        for index in 0.. {
            if self.lexer.peek() == b']' {
                break;
            }
            self.step(index.to_string())?;
            self.comma();
        }
        self.lexer.at += 1;
        Ok(())
    }

    fn step(&mut self, name: String) -> Result<(), LexError> {
        self.path.push(name);
        self.value()?;
        self.path.pop();
        Ok(())
    }

    fn comma(&mut self) {
        if self.lexer.peek() == b',' {
            self.lexer.at += 1;
        }
    }
}

/// Returns what a schema accepts at a path; text if the schema does not say.
pub(crate) fn accepted_kind(schema: &Value, path: &[String]) -> RefEncoding {
    let mut at = Some(schema);
    for step in path {
        at = at.and_then(|at| member(schema, at, step));
    }
    at.map_or(RefEncoding::Text, |at| wanted(schema, at))
}

/// Returns the schema of a member or an item.
fn member<'s>(root: &'s Value, at: &'s Value, step: &str) -> Option<&'s Value> {
    let at = resolve_ref(root, at);
    let own = at
        .get("properties")
        .and_then(|all| all.get(step))
        .or_else(|| step.parse::<usize>().ok().and(at.get("items")))
        .or_else(|| {
            at.get("additionalProperties")
                .filter(|more| more.is_object())
        });
    own.or_else(|| branches(at).find_map(|branch| member(root, branch, step)))
}

/// Follows a `$ref` within the schema's own document.
fn resolve_ref<'s>(root: &'s Value, at: &'s Value) -> &'s Value {
    let pointer = at.get("$ref").and_then(Value::as_str);
    let target = pointer.and_then(|p| root.pointer(p.strip_prefix('#')?));
    target.unwrap_or(at)
}

fn branches(at: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["anyOf", "oneOf", "allOf"].map(|name| at.get(name).and_then(Value::as_array));
    lists.into_iter().flatten().flatten()
}

fn wanted(root: &Value, at: &Value) -> RefEncoding {
    let at = resolve_ref(root, at);
    let text = |name: &str| at.get(name).and_then(Value::as_str);
    if text("format") == Some("artifact") {
        return RefEncoding::Ref;
    }
    if text("contentEncoding") == Some("base64") {
        return RefEncoding::Base64;
    }
    let kind = |name: &Value| name.as_str() == Some("string");
    match at.get("type") {
        Some(Value::Array(kinds)) if !kinds.iter().any(kind) => RefEncoding::Json,
        Some(one @ Value::String(_)) if !kind(one) => RefEncoding::Json,
        Some(_) => RefEncoding::Text,
        None => branches(at)
            .map(|branch| wanted(root, branch))
            .find(|takes| *takes != RefEncoding::Json)
            .unwrap_or_else(|| {
                if branches(at).next().is_some() {
                    RefEncoding::Json
                } else {
                    RefEncoding::Text
                }
            }),
    }
}
