//! Coercion: lossless replacement of obviously mistyped scalars in the text.

use serde_json::Value;

use super::compile::{definition, types};
use super::node::{ANY, ARRAY, BOOLEAN, INTEGER, NULL, NUMBER, OBJECT, STRING, Types};
use crate::lexer::{Lexer, MAX_DEPTH, Number, Span};
use crate::scan;

/// A replacement of a piece of text.
#[derive(Debug)]
pub(super) struct Edit {
    start: usize,
    end: usize,
    with: String,
    path: String,
}

/// Maximum number of values coerced in one text.
const MAX_EDITS: usize = 1_000;
/// Maximum number of references followed at one place of a schema.
const MAX_REFS: usize = 8;

/// Returns the replacements for a text that has passed the strict scan.
pub(super) fn edits(schema: &Value, text: &str) -> Vec<Edit> {
    let mut walk = Walk {
        root: schema,
        lexer: Lexer::new(text),
        path: String::new(),
        edits: Vec::new(),
    };
    walk.value(Some(schema), 0);
    walk.edits
}

/// Applies edits to a text; returns the new text and the paths that changed.
pub(super) fn apply(text: &str, edits: Vec<Edit>) -> (String, Vec<String>) {
    let mut new = String::with_capacity(text.len() + 16);
    let mut paths = Vec::with_capacity(edits.len());
    let mut from = 0;
    for edit in edits {
        new.push_str(text.get(from..edit.start).unwrap_or_default());
        new.push_str(&edit.with);
        from = edit.end;
        paths.push(edit.path);
    }
    new.push_str(text.get(from..).unwrap_or_default());
    (new, paths)
}

struct Walk<'s, 't> {
    root: &'s Value,
    lexer: Lexer<'t>,
    path: String,
    edits: Vec<Edit>,
}

impl<'s> Walk<'s, '_> {
    /// Walks one value; `None` if the text did not pass the scan, which cannot happen.
    fn value(&mut self, schema: Option<&'s Value>, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let wanted = schema.map_or(ANY, |schema| self.wanted(schema, 0));
        match self.lexer.peek() {
            b'"' => {
                let span = self.lexer.string().ok()?;
                if wanted & STRING == 0 {
                    self.string_to(span, wanted);
                }
            }
            b'{' => self.object(schema, depth)?,
            b'[' => self.array(schema, depth)?,
            b't' => self.boolean("true", wanted)?,
            b'f' => self.boolean("false", wanted)?,
            b'n' => self.lexer.literal("null").ok()?,
            _ => {
                let number = self.lexer.number().ok()?;
                if wanted & (NUMBER | INTEGER) == 0 && wanted & STRING != 0 {
                    self.number_to_string(number);
                }
            }
        }
        Some(())
    }

    fn object(&mut self, schema: Option<&'s Value>, depth: usize) -> Option<()> {
        self.lexer.at += 1;
        let length = self.path.len();
        while self.lexer.peek() != b'}' {
            let key = self.lexer.key().ok()?;
            let name = self.lexer.unescape(key);
            self.path.push('/');
            self.path
                .push_str(&name.replace('~', "~0").replace('/', "~1"));
            let inner = schema.and_then(|schema| self.property(schema, &name, 0));
            self.value(inner, depth + 1)?;
            self.path.truncate(length);
            if self.lexer.peek() == b',' {
                self.lexer.at += 1;
            }
        }
        self.lexer.at += 1;
        Some(())
    }

    fn array(&mut self, schema: Option<&'s Value>, depth: usize) -> Option<()> {
        self.lexer.at += 1;
        let length = self.path.len();
        let mut count = 0;
        while self.lexer.peek() != b']' {
            self.path.push('/');
            self.path.push_str(&count.to_string());
            let inner = schema.and_then(|schema| self.item(schema, count, 0));
            self.value(inner, depth + 1)?;
            self.path.truncate(length);
            count += 1;
            if self.lexer.peek() == b',' {
                self.lexer.at += 1;
            }
        }
        self.lexer.at += 1;
        Some(())
    }

    fn boolean(&mut self, word: &'static str, wanted: Types) -> Option<()> {
        let start = self.lexer.at;
        self.lexer.literal(word).ok()?;
        if wanted & BOOLEAN == 0 && wanted & STRING != 0 {
            self.edit(start, self.lexer.at, format!("\"{word}\""));
        }
        Some(())
    }

    /// Coerces a string where no string is allowed.
    fn string_to(&mut self, span: Span, wanted: Types) {
        let text = self.lexer.unescape(span);
        let fits = match text.as_bytes().first() {
            Some(b'-' | b'0'..=b'9') => {
                (wanted & INTEGER != 0 && exact_integer(&text))
                    || (wanted & NUMBER != 0 && exact_number(&text))
            }
            Some(b't' | b'f') => wanted & BOOLEAN != 0 && matches!(&*text, "true" | "false"),
            Some(b'{') => wanted == OBJECT && scan::scan(&text).is_ok(),
            Some(b'[') => wanted == ARRAY && scan::scan(&text).is_ok(),
            _ => false,
        };
        if fits {
            self.edit(span.start - 1, span.end + 1, text);
        }
    }

    /// Coerces a number where only a string is allowed.
    fn number_to_string(&mut self, number: Number) {
        let text = self
            .lexer
            .text()
            .get(number.start..number.end)
            .unwrap_or_default();
        if !text.contains(['e', 'E']) {
            self.edit(number.start, number.end, format!("\"{text}\""));
        }
    }

    fn edit(&mut self, start: usize, end: usize, with: String) {
        if self.edits.len() < MAX_EDITS {
            self.edits.push(Edit {
                start,
                end,
                with,
                path: self.path.clone(),
            });
        }
    }

    /// Returns the subschemas to consider for a schema: its reference's target and its alternatives.
    fn branches(&self, schema: &'s Value) -> Vec<&'s Value> {
        let mut all = Vec::new();
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|target| {
                if target == "#" {
                    return Some(self.root);
                }
                let (home, name) = definition(target)?;
                self.root.get(home)?.get(name)
            });
        all.extend(target);
        for key in ["anyOf", "oneOf", "allOf"] {
            all.extend(
                schema
                    .get(key)
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten(),
            );
        }
        all
    }

    /// Returns the types allowed here; a schema without types allows any.
    fn wanted(&self, schema: &'s Value, refs: usize) -> Types {
        if refs > MAX_REFS {
            return ANY;
        }
        let mut set = ANY;
        if let Some(own) = schema.get("type").and_then(types) {
            set &= own;
        }
        let values = schema
            .get("enum")
            .and_then(Value::as_array)
            .map(Vec::as_slice);
        let values = values.or_else(|| schema.get("const").map(std::slice::from_ref));
        if let Some(values) = values {
            set &= values.iter().fold(0, |set, value| set | type_of(value));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = schema.get(key) {
                set &= branches
                    .iter()
                    .fold(0, |set, b| set | self.wanted(b, refs + 1));
            }
        }
        if let Some(Value::Array(branches)) = schema.get("allOf") {
            set &= branches
                .iter()
                .fold(ANY, |set, b| set & self.wanted(b, refs + 1));
        }
        if schema.get("$ref").is_some()
            && let Some(target) = self.branches(schema).first()
        {
            set &= self.wanted(target, refs + 1);
        }
        set
    }

    fn property(&self, schema: &'s Value, name: &str, refs: usize) -> Option<&'s Value> {
        if refs > MAX_REFS {
            return None;
        }
        let own = schema
            .get("properties")
            .and_then(|properties| properties.get(name));
        own.or_else(|| schema.get("additionalProperties").filter(|s| s.is_object()))
            .or_else(|| {
                let mut found = self.branches(schema).into_iter();
                found.find_map(|branch| self.property(branch, name, refs + 1))
            })
    }

    fn item(&self, schema: &'s Value, index: usize, refs: usize) -> Option<&'s Value> {
        if refs > MAX_REFS {
            return None;
        }
        let first = schema.get("prefixItems").and_then(|items| items.get(index));
        first
            .or_else(|| schema.get("items").filter(|s| s.is_object()))
            .or_else(|| {
                let mut found = self.branches(schema).into_iter();
                found.find_map(|branch| self.item(branch, index, refs + 1))
            })
    }
}

fn type_of(value: &Value) -> Types {
    match value {
        Value::Null => NULL,
        Value::Bool(_) => BOOLEAN,
        Value::Number(_) => NUMBER | INTEGER,
        Value::String(_) => STRING,
        Value::Array(_) => ARRAY,
        Value::Object(_) => OBJECT,
    }
}

/// Whether the text is a JSON integer of at most 64 bits.
fn exact_integer(text: &str) -> bool {
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let fits = text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
    plain(text) && fits && scan::scan(text).is_ok() && text != "-0"
}

/// Whether the text is a JSON number with few enough digits for a double to keep them all.
fn exact_number(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let plain = !text.contains(['e', 'E']);
    exact_integer(text) || (plain && digits <= 15 && scan::scan(text).is_ok())
}
