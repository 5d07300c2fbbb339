//! Texts as the editor is given them: it shows Markdown, so what tools print is fenced, and what stands between words has no marks.

use haft::audit::redact::Redactor;
use haft::text::clip;
use serde_json::{Value, json};

use crate::limits::{RAW, TEXT};

/// A block of text.
pub(crate) fn block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A text as content of a tool call.
pub(crate) fn content(text: &str) -> Value {
    json!({"type": "content", "content": block(text)})
}

/// What a tool gave, as it is: no mark in it means anything.
pub(crate) fn output(text: &str) -> Value {
    content(&fenced(&clip(text, TEXT)))
}

/// A text between fences that do not occur in it.
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

/// A text on one line, without anything that Markdown would read.
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

/// A text on one line, for where no Markdown is read.
pub(crate) fn line(text: &str) -> String {
    let line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    line.collect()
}

/// JSON text as a value without secrets, or its beginning as a text where it is long or no JSON.
pub(crate) fn raw(text: &str, redactor: &Redactor) -> Value {
    let redacted = redactor.redact_within(text, RAW);
    serde_json::from_str(&redacted).unwrap_or_else(|_| redacted.into_owned().into())
}

/// The end of a text, at most so many bytes.
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
