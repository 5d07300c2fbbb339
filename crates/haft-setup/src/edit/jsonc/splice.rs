//! Splices members and items into a JSON text in the way that the file is written, and cuts them out.

use serde_json::Value;

use super::reader::{BLANKS, JsoncMember, JsoncObject};
use crate::edit::newline_of;

/// Appends the object to a text that only has blanks and comments.
pub(super) fn fresh(text: &str, document: &Value) -> String {
    let body = format!("{document:#}\n");
    let head = text.trim_end_matches(BLANKS);
    if head.trim_start_matches('\u{feff}').is_empty() {
        return format!("{head}{body}");
    }
    let newline = newline_of(text);
    format!("{head}{newline}{}", body.replace('\n', newline))
}

/// The formatting of the file.
pub(super) struct JsoncStyle {
    unit: String,
    newline: &'static str,
    /// Whether everything is on one line.
    compact: bool,
}

impl JsoncStyle {
    pub(super) fn of(text: &str, root: &JsoncObject) -> Self {
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
pub(super) fn insert_member(
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

/// Returns the text with another value of a member.
pub(super) fn replace_value(
    text: &str,
    member: &JsoncMember,
    value: &Value,
    style: &JsoncStyle,
) -> String {
    let base = line_indent(text, member.start);
    let new = style.render(value, &base, is_first_on_line(text, member.start));
    let (head, tail) = (&text[..member.value.start], &text[member.value.end..]);
    format!("{head}{new}{tail}")
}

/// Returns the text with one more item at the end of the array.
pub(super) fn insert_item(
    text: &str,
    array: &JsoncObject,
    item: &Value,
    style: &JsoncStyle,
) -> String {
    insert_last_member(text, array, style, &|base, lines| {
        style.render(item, base, lines)
    })
}

/// Returns the text without a member of the object. Comments stay, and so does the line break before the member: it may end a comment.
pub(super) fn without(text: &str, object: &JsoncObject, nth: usize) -> String {
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

pub(super) fn is_blank(text: &str) -> bool {
    text.trim_matches(BLANKS).is_empty()
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
