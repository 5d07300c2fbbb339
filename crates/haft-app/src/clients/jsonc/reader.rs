//! Reads JSON with comments and trailing commas: the position of everything, and its value.

use std::ops::Range;

use serde_json::Value;

/// Maximum nesting depth of a settings file.
const MAX_DEPTH: usize = 128;

/// The whitespace of JSON.
pub(super) const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// Why a text cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditError {
    /// The reason.
    pub(crate) what: String,
    /// The position.
    pub(crate) at: Range<usize>,
}

fn wrong<T>(what: impl Into<String>, at: Range<usize>) -> Result<T, EditError> {
    Err(EditError {
        what: what.into(),
        at,
    })
}

/// A member of an object.
#[derive(Debug)]
pub(super) struct JsoncMember {
    pub(super) key: String,
    /// The position of its key.
    pub(super) start: usize,
    pub(super) value: Range<usize>,
    /// Its value, parsed.
    pub(super) tree: JsoncTree,
    /// The position of the comma after it.
    pub(super) comma: Option<usize>,
}

/// An object: the positions of its braces, and its members. An array is read as one, too: its items are members without a key.
#[derive(Debug)]
pub(super) struct JsoncObject {
    pub(super) open: usize,
    /// The end of the last token in it, comments included.
    pub(super) end: usize,
    /// Whether that is a line comment.
    pub(super) ends_in_line_comment: bool,
    pub(super) close: usize,
    pub(super) members: Vec<JsoncMember>,
}

impl JsoncObject {
    pub(super) fn find(&self, key: &str) -> Result<Option<(usize, &JsoncMember)>, EditError> {
        let mut all = self
            .members
            .iter()
            .enumerate()
            .filter(|(_, m)| m.key == key);
        let first = all.next();
        match all.next() {
            Some((_, twice)) => wrong(
                format!("the key `{key}` appears twice"),
                twice.start..twice.value.start,
            ),
            None => Ok(first),
        }
    }
}

/// A step on the path from the root to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonPathSegment<'a> {
    /// The member of this name.
    Key(&'a str),
    /// The item at this position.
    Item(usize),
}

/// The content of a JSON text. Numbers and strings are kept as written, so that nothing is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JsoncTree {
    /// Members, in order.
    Object(Vec<(String, JsoncTree)>),
    Array(Vec<JsoncTree>),
    Scalar(String),
}

impl JsoncTree {
    /// Returns the members of an object.
    fn members(&mut self) -> Option<&mut Vec<(String, Self)>> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Returns a member of an object, creating it as an empty object if it is missing.
    pub(super) fn entry(&mut self, name: &str) -> &mut Self {
        let Self::Object(members) = self else {
            return self;
        };
        let at = members.iter().position(|(key, _)| key == name);
        let at = at.unwrap_or_else(|| {
            members.push((name.to_owned(), Self::Object(Vec::new())));
            members.len() - 1
        });
        &mut members[at].1
    }

    /// Replaces the member of this name, or adds it at the end.
    pub(super) fn put(&mut self, name: &str, value: Self) {
        let Some(members) = self.members() else {
            return;
        };
        match members.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = value,
            None => members.push((name.to_owned(), value)),
        }
    }

    /// Returns the value at the end of a path.
    pub(super) fn at(&mut self, path: &[JsonPathSegment<'_>]) -> Option<&mut Self> {
        path.iter().try_fold(self, |tree, step| match (tree, step) {
            (Self::Object(members), JsonPathSegment::Key(name)) => {
                let mut members = members.iter_mut();
                Some(&mut members.find(|(key, _)| key == name)?.1)
            }
            (Self::Array(items), JsonPathSegment::Item(nth)) => items.get_mut(*nth),
            _ => None,
        })
    }

    /// Appends an item to an array; an object without members, as created by `entry`, becomes an array.
    pub(super) fn push(&mut self, item: Self) {
        match self {
            Self::Array(items) => items.push(item),
            Self::Object(members) if members.is_empty() => *self = Self::Array(vec![item]),
            _ => {}
        }
    }

    /// Removes what a step leads to.
    pub(super) fn take_at(&mut self, step: &JsonPathSegment<'_>) {
        match (self, step) {
            (Self::Array(items), JsonPathSegment::Item(nth)) if *nth < items.len() => {
                items.remove(*nth);
            }
            (tree, JsonPathSegment::Key(name)) => tree.take(name),
            _ => {}
        }
    }

    /// Removes a member.
    pub(super) fn take(&mut self, name: &str) {
        if let Some(members) = self.members() {
            members.retain(|(key, _)| key != name);
        }
    }

    /// Converts it to plain JSON.
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Object(members) => {
                let members = members.iter();
                Value::Object(
                    members
                        .map(|(key, tree)| (key.clone(), tree.value()))
                        .collect(),
                )
            }
            Self::Array(items) => Value::Array(items.iter().map(Self::value).collect()),
            // A string that is valid JSON but not valid UTF-8 (half a character) stays as written.
            Self::Scalar(text) => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
            }
        }
    }
}

/// Parses a text; a blank one is an object without members.
pub(super) fn tree(text: &str) -> Result<JsoncTree, EditError> {
    let object = root(text)?;
    let members = object.map(|object| object.members).unwrap_or_default();
    Ok(tree_of(members))
}

fn tree_of(members: Vec<JsoncMember>) -> JsoncTree {
    let members = members.into_iter();
    JsoncTree::Object(members.map(|member| (member.key, member.tree)).collect())
}

pub(super) fn root(text: &str) -> Result<Option<JsoncObject>, EditError> {
    let mut reader = JsoncReader::new(text);
    reader.trivia()?;
    if reader.peek().is_none() {
        return Ok(None);
    }
    if reader.peek() != Some(b'{') {
        return wrong(
            "the file does not hold a JSON object",
            reader.current_range(),
        );
    }
    let object = reader.object(0)?;
    reader.trivia()?;
    match reader.peek() {
        None => Ok(Some(object)),
        Some(_) => wrong(
            "there is something after the JSON object",
            reader.current_range(),
        ),
    }
}

pub(super) fn object_at(
    text: &str,
    name: &str,
    value: &Range<usize>,
) -> Result<JsoncObject, EditError> {
    if text.as_bytes().get(value.start) != Some(&b'{') {
        return wrong(format!("`{name}` is not an object"), value.clone());
    }
    let mut reader = JsoncReader::new(text);
    reader.at = value.start;
    reader.object(0)
}

/// Reads the array at this position, with its items as members without a key.
pub(super) fn array_at(
    text: &str,
    name: &str,
    value: &Range<usize>,
) -> Result<JsoncObject, EditError> {
    if text.as_bytes().get(value.start) != Some(&b'[') {
        return wrong(format!("`{name}` is not a list"), value.clone());
    }
    let mut reader = JsoncReader::new(text);
    reader.at = value.start;
    reader.items(0)
}

/// A text and a position in it.
struct JsoncReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsoncReader<'a> {
    fn new(text: &'a str) -> Self {
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self { text, at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn current_range(&self) -> Range<usize> {
        self.at..(self.at + 1).min(self.text.len())
    }

    /// Skips blanks and comments. Returns the end of the last comment, and whether it is a line comment.
    fn trivia(&mut self) -> Result<Option<(usize, bool)>, EditError> {
        let mut last = None;
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.len() - rest.trim_start_matches(BLANKS).len();
            let rest = &self.text[self.at..];
            if let Some(inside) = rest.strip_prefix("//") {
                let line = inside.split('\n').next().unwrap_or_default();
                let comment = line.strip_suffix('\r').unwrap_or(line);
                let end = self.at + 2 + comment.len();
                // Some clients treat these as the end of the comment, others do not.
                if comment.contains(['\r', '\u{2028}', '\u{2029}']) {
                    return wrong("a comment holds half a line break", self.at..end);
                }
                self.at = end;
                last = Some((end, true));
            } else if let Some(inside) = rest.strip_prefix("/*") {
                let Some(end) = inside.find("*/") else {
                    return wrong("a comment does not end", self.at..self.at + 2);
                };
                self.at += end + 4;
                last = Some((self.at, false));
            } else {
                return Ok(last);
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<JsoncObject, EditError> {
        if depth > MAX_DEPTH {
            return wrong("the JSON is nested too deeply", self.current_range());
        }
        let open = self.at;
        self.at += 1;
        let mut members: Vec<JsoncMember> = Vec::new();
        loop {
            let token = self.at;
            let comment = self.trivia()?;
            let last = members.last_mut();
            let wants_comma = last.as_ref().is_some_and(|last| last.comma.is_none());
            match self.peek() {
                Some(b'}') => {
                    let close = self.at;
                    self.at += 1;
                    let (end, ends_in_line_comment) = comment.unwrap_or((token, false));
                    return Ok(JsoncObject {
                        open,
                        end,
                        ends_in_line_comment,
                        close,
                        members,
                    });
                }
                Some(b'"') if !wants_comma => members.push(self.member(depth)?),
                Some(b',') if wants_comma => {
                    if let Some(last) = last {
                        last.comma = Some(self.at);
                    }
                    self.at += 1;
                }
                Some(_) => return wrong("expected a key, a comma or `}`", self.current_range()),
                None => return wrong("an object does not end", open..open + 1),
            }
        }
    }

    fn member(&mut self, depth: usize) -> Result<JsoncMember, EditError> {
        let start = self.at;
        self.string()?;
        let Ok(key) = serde_json::from_str(&self.text[start..self.at]) else {
            return wrong("a key is not a JSON string", start..self.at);
        };
        self.trivia()?;
        if self.peek() != Some(b':') {
            return wrong("expected `:` after the key", self.current_range());
        }
        self.at += 1;
        self.trivia()?;
        let from = self.at;
        let tree = self.value(depth)?;
        Ok(JsoncMember {
            key,
            start,
            value: from..self.at,
            tree,
            comma: None,
        })
    }

    fn value(&mut self, depth: usize) -> Result<JsoncTree, EditError> {
        let from = self.at;
        match self.peek() {
            Some(b'{') => return Ok(tree_of(self.object(depth + 1)?.members)),
            Some(b'[') => return self.array(depth + 1),
            Some(b'"') => self.string()?,
            _ => {
                let rest = &self.text[from..];
                let word = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
                self.at += word.unwrap_or(rest.len());
                let word = &self.text[from..self.at];
                if serde_json::from_str::<Value>(word).is_err() {
                    return wrong("expected a JSON value", from..self.at.max(from + 1));
                }
            }
        }
        Ok(JsoncTree::Scalar(self.text[from..self.at].to_owned()))
    }

    fn array(&mut self, depth: usize) -> Result<JsoncTree, EditError> {
        let items = self.items(depth)?.members.into_iter();
        Ok(JsoncTree::Array(items.map(|item| item.tree).collect()))
    }

    fn items(&mut self, depth: usize) -> Result<JsoncObject, EditError> {
        if depth > MAX_DEPTH {
            return wrong("the JSON is nested too deeply", self.current_range());
        }
        let open = self.at;
        self.at += 1;
        let mut members: Vec<JsoncMember> = Vec::new();
        loop {
            let token = self.at;
            let comment = self.trivia()?;
            let last = members.last_mut();
            let wants_comma = last.as_ref().is_some_and(|last| last.comma.is_none());
            match self.peek() {
                Some(b']') => {
                    let close = self.at;
                    self.at += 1;
                    let (end, ends_in_line_comment) = comment.unwrap_or((token, false));
                    return Ok(JsoncObject {
                        open,
                        end,
                        ends_in_line_comment,
                        close,
                        members,
                    });
                }
                Some(b',') if wants_comma => {
                    if let Some(last) = last {
                        last.comma = Some(self.at);
                    }
                    self.at += 1;
                }
                None => return wrong("an array does not end", open..open + 1),
                Some(_) if wants_comma => {
                    return wrong("expected a comma or `]`", self.current_range());
                }
                Some(_) => {
                    let start = self.at;
                    let tree = self.value(depth)?;
                    members.push(JsoncMember {
                        key: String::new(),
                        start,
                        value: start..self.at,
                        tree,
                        comma: None,
                    });
                }
            }
        }
    }

    fn string(&mut self) -> Result<(), EditError> {
        let open = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.at += 2,
                Some(b'\n') | None => return wrong("a string does not end", open..open + 1),
                Some(_) => self.at += 1,
            }
            if self.at > self.text.len() {
                return wrong("a string does not end", open..open + 1);
            }
        }
    }
}
