//! Makes untrusted text safe to show: control, direction and invisible characters become marks, and a path reads as nothing but a path.
//!
//! Every path that a person reads goes through [`path`]: requests, reasons, notices, lists. The console does the same in
//! `crates/haft-server/ui/src/visible.ts`.

use std::fmt::Write as _;

/// Returns whether a character could make the user see something other than what is there.
fn deceives(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
            | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Returns one line: newlines and tabs become marks, too.
///
/// ```
/// assert_eq!(haft_types::text::visible::line("a\nb\u{202e}"), "a\\nb\\u{202e}");
/// ```
pub fn line(text: &str) -> String {
    marked(text, |_| false)
}

/// Keeps newlines and tabs; every other character that could deceive becomes a mark.
///
/// ```
/// assert_eq!(haft_types::text::visible::block("a\n\tb\x07"), "a\n\tb\\x07");
/// ```
pub fn block(text: &str) -> String {
    marked(text, |c| matches!(c, '\n' | '\t'))
}

/// Returns the path of a file in one line, in quotes if it could be read as anything but a path. No two paths are shown alike: a
/// character that cannot be shown as itself is escaped, and then so is a backslash. A shell takes quoted paths as they are.
///
/// ```
/// use haft_types::text::visible::path;
///
/// assert_eq!(path("src/main.rs"), "src/main.rs");
/// assert_eq!(path("a.txt (deleted)"), "'a.txt (deleted)'");
/// assert_eq!(path("a\nb"), r"$'a\nb'");
/// assert_eq!(path(r"a\nb"), r"$'a\\nb'");
/// ```
pub fn path(text: &str) -> String {
    path_of_bytes(text.as_bytes())
}

/// Does the same with a path that may not be UTF-8, such as one in a git repository.
pub fn path_of_bytes(bytes: &[u8]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@=~%#$&^[]{}*:".contains(c);
    let needs_escape = |c: char| deceives(c) || matches!(c, '\\' | '\'');
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.contains(needs_escape)
    {
        let is_plain = !text.is_empty() && text.chars().all(is_plain);
        return if is_plain {
            text.to_owned()
        } else {
            format!("'{text}'")
        };
    }
    // As `$'…'` of a shell has it.
    let mut out = String::from("$'");
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|c| escape(c, &mut out));
        for byte in chunk.invalid() {
            push(&mut out, format_args!("\\x{byte:02x}"));
        }
    }
    out.push('\'');
    out
}

fn escape(c: char, out: &mut String) {
    let code = u32::from(c);
    match c {
        '\\' | '\'' => out.extend(['\\', c]),
        c if !deceives(c) => out.push(c),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ if code < 0x80 => push(out, format_args!("\\x{code:02x}")),
        _ if code < 0x10000 => push(out, format_args!("\\u{code:04x}")),
        _ => push(out, format_args!("\\U{code:08x}")),
    }
}

/// Does the same as [`path`], with at most `most` characters of it, followed by `…` if it is cut.
pub fn short_path(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => path(text),
        Some((end, _)) => format!("{}…", path(&text[..end])),
    }
}

fn marked(text: &str, keep: fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if keep(c) || !deceives(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x100 => push(&mut out, format_args!("\\x{:02x}", u32::from(c))),
            c => push(&mut out, format_args!("\\u{{{:x}}}", u32::from(c))),
        }
    }
    out
}

fn push(out: &mut String, mark: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(mark);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{block, line, path, path_of_bytes, short_path};

    #[test]
    fn what_could_deceive_is_a_mark() {
        let rows = [
            ("plain ü 字 🙂", "plain ü 字 🙂"),
            ("a\x1b[2Kb", "a\\x1b[2Kb"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("x\u{202e}y\u{200b}z", "x\\u{202e}y\\u{200b}z"),
            ("\u{9b}31m", "\\x9b31m"),
        ];
        for (text, shown) in rows {
            assert_eq!(line(text), shown);
        }
        assert_eq!(block("a\n\tb\x07"), "a\n\tb\\x07");
    }

    #[test]
    fn path_when_it_could_be_read_as_something_else_is_quoted() {
        let rows = [
            ("src/app/[id]/page.tsx", "src/app/[id]/page.tsx"),
            ("über/字.md", "über/字.md"),
            ("", "''"),
            ("a b", "'a b'"),
            ("  ! nothing is lost", "'  ! nothing is lost'"),
            ("a.txt (deleted)", "'a.txt (deleted)'"),
            ("run.sh (mode)", "'run.sh (mode)'"),
            ("a, b", "'a, b'"),
            ("a → b", "'a → b'"),
            ("it's", "$'it\\'s'"),
            ("nl\nx", "$'nl\\nx'"),
            ("nl\\nx", "$'nl\\\\nx'"),
            ("$'nl\\nx'", "$'$\\'nl\\\\nx\\''"),
            ("a\x1b[2J\u{9b}31m", "$'a\\x1b[2J\\u009b31m'"),
            ("\u{202e}x\u{115f}", "$'\\u202ex\\u115f'"),
            ("\u{e0001}1", "$'\\U000e00011'"),
            ("'a'", "$'\\'a\\''"),
        ];
        let mut seen = HashSet::new();
        for (text, shown) in rows {
            assert_eq!(path(text), shown);
            assert_eq!(line(shown), shown, "it stays as it is in a line");
            assert!(seen.insert(shown), "{text:?} looks like another path");
        }
        assert_eq!(path_of_bytes(b"a\xffb"), "$'a\\xffb'");
        assert_eq!(short_path("a b/c", 3), "'a b'…");
        assert_eq!(short_path("a b", 3), "'a b'");
    }
}
