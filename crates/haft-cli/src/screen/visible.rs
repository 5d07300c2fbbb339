//! Untrusted text on a terminal: made safe to read, measured and clipped.

pub(crate) use haft::text::visible::{block, line, path};
use unicode_width::UnicodeWidthStr;

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
    use super::middle;

    #[test]
    fn a_long_path_loses_its_middle() {
        assert_eq!(middle("/a/b", 10), "/a/b");
        assert_eq!(middle("/home/me/projects/haft", 11), "/home…/haft");
        assert_eq!(middle("字字字字字", 5), "字…字");
    }
}
