//! JSON with comments and trailing commas, edited in place: a member put in or taken out, every other byte left as it is.

use std::ops::Range;

use serde_json::Value;

/// How deep a settings file may nest.
const MAX_DEPTH: usize = 128;

/// Why a text cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// What is wrong.
    pub(super) what: String,
    /// Where.
    pub(super) at: Range<usize>,
}

fn wrong<T>(what: impl Into<String>, at: Range<usize>) -> Result<T, Wrong> {
    Err(Wrong {
        what: what.into(),
        at,
    })
}

/// A member of an object.
#[derive(Debug)]
struct Member {
    key: String,
    /// Where its key begins.
    start: usize,
    value: Range<usize>,
    /// The comma after it.
    comma: Option<usize>,
}

/// An object: the positions of its braces, and its members.
#[derive(Debug)]
struct Object {
    open: usize,
    close: usize,
    members: Vec<Member>,
}

impl Object {
    fn find(&self, key: &str) -> Result<Option<(usize, &Member)>, Wrong> {
        let mut all = self
            .members
            .iter()
            .enumerate()
            .filter(|(_, m)| m.key == key);
        let first = all.next();
        match all.next() {
            Some((_, twice)) => wrong(
                format!("the key `{key}` is there twice"),
                twice.start..twice.value.start,
            ),
            None => Ok(first),
        }
    }
}

/// Puts `value` at `name` in the object `servers` of the root, making that object where it is missing.
pub(super) fn put(text: &str, servers: &str, name: &str, value: &Value) -> Result<String, Wrong> {
    let Some(root) = root(text)? else {
        return Ok(fresh(text, servers, name, value));
    };
    let style = Style::of(text, &root);
    let Some((_, member)) = root.find(servers)? else {
        let inner = serde_json::json!({ name: value });
        return Ok(inserted(text, &root, servers, &inner, &style));
    };
    let object = object_at(text, servers, &member.value)?;
    match object.find(name)? {
        Some((_, old)) => {
            let base = line_indent(text, old.start);
            let new = style.render(value, &base, is_first_on_line(text, old.start));
            Ok(replaced(text, old.value.clone(), &new))
        }
        None => Ok(inserted(text, &object, name, value, &style)),
    }
}

/// Takes `name` out of the object `servers` of the root; `None` where it is not there.
pub(super) fn remove(text: &str, servers: &str, name: &str) -> Result<Option<String>, Wrong> {
    let Some(root) = root(text)? else {
        return Ok(None);
    };
    let Some((_, member)) = root.find(servers)? else {
        return Ok(None);
    };
    let object = object_at(text, servers, &member.value)?;
    let Some((nth, _)) = object.find(name)? else {
        return Ok(None);
    };
    Ok(Some(without(text, &object, nth)))
}

/// Takes the member `name` out of the root where it is an object without members.
pub(super) fn remove_empty(text: &str, name: &str) -> Result<String, Wrong> {
    let Some(root) = root(text)? else {
        return Ok(text.to_owned());
    };
    let Some((nth, member)) = root.find(name)? else {
        return Ok(text.to_owned());
    };
    let empty = text[member.value.clone()]
        .trim_start_matches('{')
        .trim_end_matches('}')
        .trim()
        .is_empty();
    Ok(if empty {
        without(text, &root, nth)
    } else {
        text.to_owned()
    })
}

/// Whether the root has this member.
pub(super) fn has(text: &str, name: &str) -> bool {
    root(text).is_ok_and(|root| root.is_some_and(|root| matches!(root.find(name), Ok(Some(_)))))
}

fn root(text: &str) -> Result<Option<Object>, Wrong> {
    let mut reader = Reader::new(text);
    reader.trivia()?;
    if reader.peek().is_none() {
        return Ok(None);
    }
    if reader.peek() != Some(b'{') {
        return wrong("the file does not hold a JSON object", reader.here());
    }
    let object = reader.object(0)?;
    reader.trivia()?;
    match reader.peek() {
        None => Ok(Some(object)),
        Some(_) => wrong("there is something after the JSON object", reader.here()),
    }
}

fn object_at(text: &str, name: &str, value: &Range<usize>) -> Result<Object, Wrong> {
    if text.as_bytes().get(value.start) != Some(&b'{') {
        return wrong(format!("`{name}` is not an object"), value.clone());
    }
    let mut reader = Reader::new(text);
    reader.at = value.start;
    reader.object(0)
}

/// A text with nothing in it but blanks and comments gets its object at the end.
fn fresh(text: &str, servers: &str, name: &str, value: &Value) -> String {
    let body = format!("{:#}\n", serde_json::json!({ servers: { name: value } }));
    let head = text.trim_end();
    if head.trim_start_matches('\u{feff}').is_empty() {
        format!("{head}{body}")
    } else {
        format!("{head}\n{body}")
    }
}

/// How the file is written.
struct Style {
    unit: String,
    newline: &'static str,
    /// Everything stands on one line.
    compact: bool,
}

impl Style {
    fn of(text: &str, root: &Object) -> Self {
        let first = root.members.first();
        let unit = first
            .filter(|member| is_first_on_line(text, member.start))
            .map(|member| line_indent(text, member.start))
            .filter(|unit| !unit.is_empty())
            .unwrap_or_else(|| "  ".to_owned());
        Self {
            unit,
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
            compact: !text.trim_end().contains('\n') && !root.members.is_empty(),
        }
    }

    /// The value as text; its later lines begin with `base`.
    fn render(&self, value: &Value, base: &str, lines: bool) -> String {
        if !lines {
            return value.to_string();
        }
        let mut out = Vec::new();
        let format = serde_json::ser::PrettyFormatter::with_indent(self.unit.as_bytes());
        let mut writer = serde_json::Serializer::with_formatter(&mut out, format);
        if serde::Serialize::serialize(value, &mut writer).is_err() {
            return value.to_string();
        }
        let text = String::from_utf8(out).unwrap_or_else(|_| value.to_string());
        text.replace('\n', &format!("{}{base}", self.newline))
    }
}

/// The text with one more member at the end of the object.
fn inserted(text: &str, object: &Object, key: &str, value: &Value, style: &Style) -> String {
    let first = object.members.first();
    let lines = match first {
        Some(first) => is_first_on_line(text, first.start),
        None => !style.compact,
    };
    let outer = line_indent(text, object.open);
    let base = match first {
        Some(first) if lines => line_indent(text, first.start),
        _ => format!("{outer}{}", style.unit),
    };
    let member = format!(
        "{}: {}",
        Value::String(key.to_owned()),
        style.render(value, &base, lines)
    );
    // After the last thing in it, comments included.
    let end = object.open + 1 + text[object.open + 1..object.close].trim_end().len();
    let (head, tail) = (&text[..end], &text[end..]);
    let last = object.members.last();
    let mut out = String::with_capacity(text.len() + member.len() + 16);
    match last {
        Some(last) if last.comma.is_none() => {
            out.push_str(&text[..last.value.end]);
            out.push(',');
            out.push_str(&text[last.value.end..end]);
        }
        _ => out.push_str(head),
    }
    if lines {
        out.push_str(style.newline);
        out.push_str(&base);
    } else if last.is_some() {
        out.push(' ');
    }
    out.push_str(&member);
    if last.is_some_and(|last| last.comma.is_some()) {
        out.push(',');
    }
    // The closing brace stands on a line of its own.
    if lines && !text[end..object.close].contains('\n') {
        out.push_str(style.newline);
        out.push_str(&outer);
        out.push_str(&text[object.close..]);
    } else {
        out.push_str(tail);
    }
    out
}

/// The text without one member of the object.
fn without(text: &str, object: &Object, nth: usize) -> String {
    let member = &object.members[nth];
    let before = &text[..member.start];
    let blank = before.len() - before.trim_end_matches([' ', '\t']).len();
    let mut start = member.start - blank;
    if is_first_on_line(text, member.start) {
        start = text[..start].strip_suffix('\n').map_or(start, str::len);
        start = text[..start].strip_suffix('\r').map_or(start, str::len);
    }
    let mut end = member.comma.map_or(member.value.end, |comma| comma + 1);
    if !is_first_on_line(text, member.start) && before.ends_with('{') {
        end += text[end..].len() - text[end..].trim_start_matches(' ').len();
    }
    let mut out = text[..start].to_owned();
    // The comma of the member before goes with the last one.
    if let (None, Some(previous)) = (member.comma, nth.checked_sub(1))
        && let Some(comma) = object.members[previous].comma
    {
        out.remove(comma);
    }
    let tail = &text[end..];
    if object.members.len() == 1 && out.ends_with('{') {
        out.push_str(&text[object.close.min(end + tail.len() - tail.trim_start().len())..]);
    } else {
        out.push_str(tail);
    }
    out
}

fn replaced(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

/// The blanks at the beginning of the line of `at`.
fn line_indent(text: &str, at: usize) -> String {
    let begin = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[begin..];
    line.chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .collect()
}

/// Whether only blanks stand before `at` on its line, and the line is not the first.
fn is_first_on_line(text: &str, at: usize) -> bool {
    text[..at]
        .rfind('\n')
        .is_some_and(|newline| text[newline + 1..at].chars().all(|c| c == ' ' || c == '\t'))
}

/// A text being read.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self { text, at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn here(&self) -> Range<usize> {
        self.at..(self.at + 1).min(self.text.len())
    }

    /// Skips blanks and comments.
    fn trivia(&mut self) -> Result<(), Wrong> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            self.at += blank;
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let Some(end) = rest.find("*/") else {
                    return wrong("a comment does not end", self.at..self.at + 2);
                };
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Object, Wrong> {
        if depth > MAX_DEPTH {
            return wrong("the JSON nests too deep", self.here());
        }
        let open = self.at;
        self.at += 1;
        let mut members: Vec<Member> = Vec::new();
        loop {
            self.trivia()?;
            match self.peek() {
                Some(b'}') => {
                    let close = self.at;
                    self.at += 1;
                    return Ok(Object {
                        open,
                        close,
                        members,
                    });
                }
                Some(b'"') if members.last().is_none_or(|last| last.comma.is_some()) => {
                    members.push(self.member(depth)?);
                }
                Some(b',') if members.last().is_some_and(|last| last.comma.is_none()) => {
                    if let Some(last) = members.last_mut() {
                        last.comma = Some(self.at);
                    }
                    self.at += 1;
                }
                Some(_) => return wrong("expected a key, a comma or `}`", self.here()),
                None => return wrong("an object does not end", open..open + 1),
            }
        }
    }

    fn member(&mut self, depth: usize) -> Result<Member, Wrong> {
        let start = self.at;
        self.string()?;
        let Ok(key) = serde_json::from_str(&self.text[start..self.at]) else {
            return wrong("a key is not a JSON string", start..self.at);
        };
        self.trivia()?;
        if self.peek() != Some(b':') {
            return wrong("expected `:` after the key", self.here());
        }
        self.at += 1;
        self.trivia()?;
        let from = self.at;
        self.value(depth)?;
        Ok(Member {
            key,
            start,
            value: from..self.at,
            comma: None,
        })
    }

    fn value(&mut self, depth: usize) -> Result<(), Wrong> {
        match self.peek() {
            Some(b'{') => self.object(depth + 1).map(|_| ()),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => self.string(),
            _ => {
                let from = self.at;
                let rest = &self.text[from..];
                let word = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
                self.at += word.unwrap_or(rest.len());
                let word = &self.text[from..self.at];
                match serde_json::from_str::<Value>(word) {
                    Ok(_) => Ok(()),
                    Err(_) => wrong("expected a JSON value", from..self.at.max(from + 1)),
                }
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), Wrong> {
        if depth > MAX_DEPTH {
            return wrong("the JSON nests too deep", self.here());
        }
        let open = self.at;
        self.at += 1;
        let mut wants_comma = false;
        loop {
            self.trivia()?;
            match self.peek() {
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b',') if wants_comma => {
                    self.at += 1;
                    wants_comma = false;
                }
                None => return wrong("an array does not end", open..open + 1),
                Some(_) if wants_comma => return wrong("expected a comma or `]`", self.here()),
                Some(_) => {
                    self.value(depth)?;
                    wants_comma = true;
                }
            }
        }
    }

    fn string(&mut self) -> Result<(), Wrong> {
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

#[cfg(test)]
mod tests;
