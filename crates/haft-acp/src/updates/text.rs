//! Texts for the editor, which shows Markdown: tool output is fenced, and text inside sentences is escaped.

use haft::audit::redact::Redactor;
use haft::text::clip;
use serde_json::{Value, json};

use crate::limits::{RAW, TEXT};

/// Returns a block of text.
pub(crate) fn block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Returns a text as content of a tool call.
pub(crate) fn content(text: &str) -> Value {
    json!({"type": "content", "content": block(text)})
}

/// Returns a tool's output literally: no character in it is markup.
pub(crate) fn output(text: &str) -> Value {
    content(&fenced(&clip(text, TEXT)))
}

/// Returns a text between fences that do not occur in it.
fn fenced(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}")
}

/// Returns a text on one line, with all Markdown escaped.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            c if c.is_control() => out.push(' '),
            c if r"\`*_[]<>#|~!$".contains(c) => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Returns a text on one line, for where Markdown is not interpreted.
pub(crate) fn line(text: &str) -> String {
    let line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    line.collect()
}

/// Returns JSON text as a value without secrets, or its beginning as text if it is long or not JSON.
pub(crate) fn raw(text: &str, redactor: &Redactor) -> Value {
    let redacted = redactor.redact_within(text, RAW);
    serde_json::from_str(&redacted).unwrap_or_else(|_| redacted.into_owned().into())
}

/// Returns the end of a text, at most `most` bytes.
pub(crate) fn tail(text: &str, most: usize) -> &str {
    let mut from = text.len().saturating_sub(most);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_gave_cannot_end_its_fence_and_names_hold_no_marks() {
        for (text, expect) in [
            ("a", "```\na\n```"),
            ("a\n", "```\na\n```"),
            ("```\nx", "````\n```\nx\n````"),
            ("````", "`````\n````\n`````"),
        ] {
            assert_eq!(fenced(text), expect, "{text:?}");
        }
        for (text, expect) in [
            ("run_command src/a.rs", r"run\_command src/a.rs"),
            ("[x](http://a)", r"\[x\](http://a)"),
            ("a\nb`c`", r"a b\`c\`"),
        ] {
            assert_eq!(plain(text), expect, "{text:?}");
        }
        for (text, most, expect) in [("abc", 2, "bc"), ("aé", 1, ""), ("abc", 9, "abc")] {
            assert_eq!(tail(text, most), expect, "{text:?}");
        }
    }
}
