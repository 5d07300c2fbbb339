//! Edits JSON with comments and trailing commas in place: adds or removes a member and leaves every other byte as it is.

use std::ops::Range;

use serde_json::{Value, json};

use crate::edit::{EditError, newline_of};
use reader::{BLANKS, JsoncObject, object_at, root, tree};
use tree::JsoncTree;

pub use lists::{append, put_first, take};

mod lists;
mod reader;
mod tree;

/// A step on the path from the root to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonPathSegment<'a> {
    /// The member of this name.
    Key(&'a str),
    /// The item at this position.
    Item(usize),
}

/// Sets `name` to `value` in the object `servers` of the root, creating that object if it is missing.
///
/// # Errors
/// The text is not such JSON, or is written in a way that cannot be edited.
pub fn put(text: &str, servers: &str, name: &str, value: &Value) -> Result<String, EditError> {
    let after = put_preserving_text(text, servers, name, value)?;
    let mut expected = tree(text)?;
    // Only an object is a document by itself.
    let mut own = tree(&json!({ name: value }).to_string())?;
    let own = own.entry(name).clone();
    expected.entry(servers).put(name, own);
    check(after, &expected, servers)
}

fn put_preserving_text(
    text: &str,
    servers: &str,
    name: &str,
    value: &Value,
) -> Result<String, EditError> {
    let Some(root) = root(text)? else {
        return Ok(fresh(text, &json!({ servers: { name: value } })));
    };
    let style = JsoncStyle::of(text, &root);
    let Some((_, member)) = root.find(servers)? else {
        let inner = json!({ name: value });
        return Ok(insert_member(text, &root, servers, &inner, &style));
    };
    let object = object_at(text, servers, &member.value)?;
    match object.find(name)? {
        Some((_, old)) => {
            let base = line_indent(text, old.start);
            let new = style.render(value, &base, is_first_on_line(text, old.start));
            Ok(replace_member(text, old.value.clone(), &new))
        }
        None => Ok(insert_member(text, &object, name, value, &style)),
    }
}

/// Removes `name` from the object `servers` of the root; returns `None` if it is not there.
///
/// # Errors
/// The text is not such JSON, or is written in a way that cannot be edited.
pub fn remove(text: &str, servers: &str, name: &str) -> Result<Option<String>, EditError> {
    let Some(object) = servers_of(text, servers)? else {
        return Ok(None);
    };
    let Some((nth, _)) = object.find(name)? else {
        return Ok(None);
    };
    let mut expected = tree(text)?;
    expected.entry(servers).take(name);
    check(without(text, &object, nth), &expected, servers).map(Some)
}

/// Removes the member `name` from the root if it is an object without members.
///
/// # Errors
/// The text is not such JSON, or is written in a way that cannot be edited.
pub fn remove_empty(text: &str, name: &str) -> Result<String, EditError> {
    let Some(root) = root(text)? else {
        return Ok(text.to_owned());
    };
    let Some((nth, member)) = root.find(name)? else {
        return Ok(text.to_owned());
    };
    let inside = text[member.value.clone()]
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    if !inside.is_some_and(is_blank) {
        return Ok(text.to_owned());
    }
    let mut expected = tree(text)?;
    expected.take(name);
    check(without(text, &root, nth), &expected, name)
}

/// Returns whether the root has this member.
pub fn has(text: &str, name: &str) -> bool {
    root(text).is_ok_and(|root| root.is_some_and(|root| matches!(root.find(name), Ok(Some(_)))))
}

/// Parses the whole text; a blank one is an object without members.
///
/// # Errors
/// The text is not such JSON.
pub fn read(text: &str) -> Result<Value, EditError> {
    Ok(tree(text)?.value())
}

/// Returns the value of `name` in the object `servers` of the root.
///
/// # Errors
/// The text is not such JSON.
pub fn entry(text: &str, servers: &str, name: &str) -> Result<Option<Value>, EditError> {
    let Some(object) = servers_of(text, servers)? else {
        return Ok(None);
    };
    Ok(object.find(name)?.map(|(_, member)| member.tree.value()))
}

fn servers_of(text: &str, servers: &str) -> Result<Option<JsoncObject>, EditError> {
    let Some(root) = root(text)? else {
        return Ok(None);
    };
    let member = root.find(servers)?.map(|(_, member)| member);
    member
        .map(|member| object_at(text, servers, &member.value))
        .transpose()
}

/// Parses the result of an edit and fails unless it is exactly what it should be: a file that a client cannot read, or with another
/// meaning, is never written.
fn check(after: String, expected: &JsoncTree, servers: &str) -> Result<String, EditError> {
    if tree(&after).as_ref() == Ok(expected) {
        return Ok(after);
    }
    Err(EditError::new(format!(
        "`{servers}` is written in a way that cannot be edited without changing something else"
    )))
}

/// Appends the object to a text that only has blanks and comments.
fn fresh(text: &str, document: &Value) -> String {
    let body = format!("{document:#}\n");
    let head = text.trim_end_matches(BLANKS);
    if head.trim_start_matches('\u{feff}').is_empty() {
        return format!("{head}{body}");
    }
    let newline = newline_of(text);
    format!("{head}{newline}{}", body.replace('\n', newline))
}

/// The formatting of the file.
struct JsoncStyle {
    unit: String,
    newline: &'static str,
    /// Whether everything is on one line.
    compact: bool,
}

impl JsoncStyle {
    fn of(text: &str, root: &JsoncObject) -> Self {
        let first = root.members.first();
        let unit = first
            .filter(|member| is_first_on_line(text, member.start))
            .map(|member| line_indent(text, member.start))
            .filter(|unit| !unit.is_empty())
            .unwrap_or_else(|| "  ".to_owned());
        Self {
            unit,
            newline: newline_of(text),
            compact: !text.trim_end().contains('\n') && !root.members.is_empty(),
        }
    }

    /// Renders the value; lines after the first start with `base`.
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

/// Returns the text with one more member at the end of the object.
fn insert_member(
    text: &str,
    object: &JsoncObject,
    key: &str,
    value: &Value,
    style: &JsoncStyle,
) -> String {
    insert_last_member(text, object, style, &|base, lines| {
        let key = Value::String(key.to_owned());
        format!("{key}: {}", style.render(value, base, lines))
    })
}

/// Returns the text with one more member or item at the end of the object or array. `member` renders it, given the indentation of its
/// further lines, and whether it may have any.
fn insert_last_member(
    text: &str,
    object: &JsoncObject,
    style: &JsoncStyle,
    member: &dyn Fn(&str, bool) -> String,
) -> String {
    let first = object.members.first();
    let stands_alone = match first {
        Some(first) => is_first_on_line(text, first.start),
        None => !style.compact,
    };
    // After a line comment, the member must start on a new line.
    let lines = stands_alone || object.ends_in_line_comment;
    let outer = line_indent(text, object.open);
    let base = match first {
        Some(first) if stands_alone => line_indent(text, first.start),
        _ => format!("{outer}{}", style.unit),
    };
    let member = member(&base, lines);
    let last = object.members.last();
    let mut out = String::with_capacity(text.len() + member.len() + 16);
    match last {
        Some(last) if last.comma.is_none() => {
            out.push_str(&text[..last.value.end]);
            out.push(',');
            out.push_str(&text[last.value.end..object.end]);
        }
        _ => out.push_str(&text[..object.end]),
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
    // The closing brace goes on a line of its own.
    if lines && !text[object.end..object.close].contains('\n') {
        out.push_str(style.newline);
        out.push_str(&outer);
        out.push_str(&text[object.close..]);
    } else {
        out.push_str(&text[object.end..]);
    }
    out
}

/// Returns the text without a member of the object. Comments stay, and so does the line break before the member: it may end a comment.
fn without(text: &str, object: &JsoncObject, nth: usize) -> String {
    let member = &object.members[nth];
    let mut head = text[..member.start].to_owned();
    // If the last member is removed, the comma of the one before it goes, too.
    if let (None, Some(previous)) = (member.comma, nth.checked_sub(1))
        && let Some(comma) = object.members[previous].comma
    {
        head.remove(comma);
    }
    let tail = match member.comma {
        // There may be a comment between a value and its comma.
        Some(comma) if is_blank(&text[member.value.end..comma]) => text[comma + 1..].to_owned(),
        Some(comma) => format!("{}{}", &text[member.value.end..comma], &text[comma + 1..]),
        None => text[member.value.end..].to_owned(),
    };
    if object.members.len() == 1 {
        let before = &text[object.open + 1..member.start];
        let after = &tail[..tail.len() - (text.len() - object.close)];
        if is_blank(before) && is_blank(after) {
            return format!("{}{}", &text[..=object.open], &text[object.close..]);
        }
    }
    let line = tail.split_inclusive('\n').next().unwrap_or_default();
    let has_own_line = is_first_on_line(text, member.start);
    if has_own_line && line.ends_with('\n') && is_blank(line) {
        head.truncate(head.trim_end_matches([' ', '\t']).len());
        return head + &tail[line.len()..];
    }
    if has_own_line || head.ends_with(['{', '[']) {
        return head + tail.trim_start_matches([' ', '\t']);
    }
    head.truncate(head.trim_end_matches([' ', '\t']).len());
    head + &tail
}

fn is_blank(text: &str) -> bool {
    text.trim_matches(BLANKS).is_empty()
}

fn replace_member(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

/// Returns the indentation of the line that contains `at`.
fn line_indent(text: &str, at: usize) -> String {
    let begin = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[begin..];
    line.chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .collect()
}

/// Returns whether only blanks precede `at` on its line, and the line is not the first.
fn is_first_on_line(text: &str, at: usize) -> bool {
    text[..at]
        .rfind('\n')
        .is_some_and(|newline| text[newline + 1..at].chars().all(|c| c == ' ' || c == '\t'))
}

#[cfg(test)]
mod tests;
