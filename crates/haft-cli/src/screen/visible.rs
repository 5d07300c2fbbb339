//! Makes untrusted text safe to show: control, direction and invisible characters become visible marks.

use unicode_width::UnicodeWidthStr;

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
pub(crate) fn line(text: &str) -> String {
    marked(text, |_| false)
}

/// Returns the path of a file in one line: in quotes, as a shell takes it, if it could be read as anything but a path.
pub(crate) fn path(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+@=~%#$&^[]{}*:".contains(c);
    let shown = line(text);
    if !text.is_empty() && text.chars().all(plain) {
        return shown;
    }
    format!("'{}'", shown.replace('\'', "'\\''"))
}

/// Keeps newlines and tabs; every other control character becomes a mark.
pub(crate) fn block(text: &str) -> String {
    marked(text, |c| matches!(c, '\n' | '\t'))
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
    let _ = std::fmt::Write::write_fmt(out, mark);
}

/// Returns the width of a text in columns.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Clips a text in its middle to this many columns: the ends of paths matter most.
pub(crate) fn middle(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    let tail_room = room / 2;
    let head = fitting(text.chars(), room - tail_room);
    let tail = fitting(text.chars().rev(), tail_room);
    let tail: String = tail.chars().rev().collect();
    format!("{head}…{tail}")
}

/// Clips a text at its end to this many columns.
pub(crate) fn clipped(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    format!("{}…", fitting(text.chars(), columns.saturating_sub(1)))
}

fn fitting(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for c in chars {
        let wide = unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
        if used + wide > columns {
            break;
        }
        used += wide;
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{block, line, middle, path};

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
            ("  ! nothing is lost", "'  ! nothing is lost'"),
            ("a.txt (deleted)", "'a.txt (deleted)'"),
            ("it's", "'it'\\''s'"),
            ("a\nb", "'a\\nb'"),
        ];
        for (text, shown) in rows {
            assert_eq!(path(text), shown);
        }
    }

    #[test]
    fn a_long_path_loses_its_middle() {
        assert_eq!(middle("/a/b", 10), "/a/b");
        assert_eq!(middle("/home/me/projects/haft", 11), "/home…/haft");
        assert_eq!(middle("字字字字字", 5), "字…字");
    }
}
