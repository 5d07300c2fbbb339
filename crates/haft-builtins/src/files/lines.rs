//! Splits a text into lines with their endings, joins lines to a text again, and gives new lines the endings of the old ones.

use std::borrow::Cow;

use memchr::memmem;

/// Maximum number of lines in a file to patch.
pub(crate) const MAX_LINES: usize = 2_000_000;

/// The ending of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEnding {
    Lf,
    CrLf,
    /// No ending, for the last line of a text.
    Open,
}

/// A line without its ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextLine<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) end: LineEnding,
}

/// Splits a text into lines, or returns `None` if there are too many. With `cr_is_text`, a CR before the LF belongs to the line.
pub(crate) fn split(text: &[u8], cr_is_text: bool) -> Option<Vec<TextLine<'_>>> {
    let mut lines = Vec::new();
    let mut from = 0;
    for at in memchr::memchr_iter(b'\n', text) {
        if lines.len() == MAX_LINES {
            return None;
        }
        let line = &text[from..at];
        lines.push(match line.strip_suffix(b"\r") {
            Some(text) if !cr_is_text => TextLine {
                text,
                end: LineEnding::CrLf,
            },
            _ => TextLine {
                text: line,
                end: LineEnding::Lf,
            },
        });
        from = at + 1;
    }
    if from < text.len() {
        lines.push(TextLine {
            text: &text[from..],
            end: LineEnding::Open,
        });
    }
    Some(lines)
}

/// Returns the ending that most lines have.
pub(crate) fn usual(lines: &[TextLine<'_>]) -> LineEnding {
    let count = |end| lines.iter().filter(|line| line.end == end).count();
    if count(LineEnding::CrLf) > count(LineEnding::Lf) {
        LineEnding::CrLf
    } else {
        LineEnding::Lf
    }
}

/// Joins lines to a text. Only the last line may lack an ending, and does if `open`.
pub(crate) fn join(lines: &[TextLine<'_>], usual: LineEnding, open: bool) -> Vec<u8> {
    let mut text = Vec::with_capacity(lines.iter().map(|line| line.text.len() + 2).sum());
    for (at, line) in lines.iter().enumerate() {
        text.extend_from_slice(line.text);
        if open && at + 1 == lines.len() {
            break;
        }
        let end = if line.end == LineEnding::Open {
            usual
        } else {
            line.end
        };
        text.extend_from_slice(if end == LineEnding::CrLf {
            b"\r\n"
        } else {
            b"\n"
        });
    }
    text
}

/// Returns the ending that most lines of a text have; LF if there are as many of each.
pub(crate) fn usual_in(text: &[u8]) -> LineEnding {
    let all = memchr::memchr_iter(b'\n', text).count();
    let crlf = memmem::find_iter(text, b"\r\n").count();
    if crlf > all - crlf {
        LineEnding::CrLf
    } else {
        LineEnding::Lf
    }
}

/// Gives the lines of a text that replaces another the endings that they had: lines that are the same at both ends keep theirs, the
/// others get the file's `usual` one. A text that shows CR LF itself is meant literally.
pub(crate) fn keep_endings<'t>(old: &[u8], new: &'t [u8], usual: LineEnding) -> Cow<'t, [u8]> {
    let same = usual != LineEnding::CrLf && memmem::find(old, b"\r\n").is_none();
    if same || memchr::memchr(b'\n', new).is_none() || memmem::find(new, b"\r\n").is_some() {
        return Cow::Borrowed(new);
    }
    let (old, new): (Vec<_>, Vec<_>) = (parts(old).collect(), parts(new).collect());
    let alike = |(old, new): &(&TextLine<'_>, &TextLine<'_>)| {
        old.text == new.text && (old.end == LineEnding::Open) == (new.end == LineEnding::Open)
    };
    let first = old.iter().zip(&new).take_while(alike).count();
    let last = old[first..]
        .iter()
        .rev()
        .zip(new[first..].iter().rev())
        .take_while(alike)
        .count();
    let middle = first..new.len() - last;
    let kept = |at: usize| {
        let from_end = new.len() - at;
        if at < first {
            old[at].end
        } else {
            old[old.len() - from_end].end
        }
    };
    let mut text = Vec::with_capacity(new.iter().map(|line| line.text.len() + 2).sum());
    for (at, line) in new.iter().enumerate() {
        text.extend_from_slice(line.text);
        let end = match line.end {
            LineEnding::Open => continue,
            _ if middle.contains(&at) => usual,
            _ => kept(at),
        };
        text.extend_from_slice(if end == LineEnding::CrLf {
            b"\r\n"
        } else {
            b"\n"
        });
    }
    Cow::Owned(text)
}

/// Splits a text into lines, however many.
fn parts(text: &[u8]) -> impl Iterator<Item = TextLine<'_>> {
    text.split_inclusive(|byte| *byte == b'\n').map(|line| {
        let (text, end) = match line {
            [text @ .., b'\r', b'\n'] => (text, LineEnding::CrLf),
            [text @ .., b'\n'] => (text, LineEnding::Lf),
            text => (text, LineEnding::Open),
        };
        TextLine { text, end }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_lines_end_as_the_old_ones_did() {
        use LineEnding::{CrLf, Lf};
        for (old, new, usual, expect) in [
            ("a\r\nb\r\n", "a\nx\ny\n", CrLf, "a\r\nx\r\ny\r\n"),
            ("a\r\nb", "a\nx", CrLf, "a\r\nx"),
            ("a\r\nb\nc\r\nd\n", "a\nb\nx\nd\n", Lf, "a\r\nb\nx\nd\n"),
            ("a\nb\r\nc\r\n", "a\nx\nc\n", CrLf, "a\nx\r\nc\r\n"),
            ("a\r\nb\r\n", "a\r\nx\n", CrLf, "a\r\nx\n"),
            ("a\nb\n", "x\r\ny\r\n", Lf, "x\r\ny\r\n"),
            ("", "x\ny", CrLf, "x\r\ny"),
            ("a\r\n", "a\na\n", CrLf, "a\r\na\r\n"),
            ("a\na\r\n", "a\n", Lf, "a\n"),
        ] {
            let got = keep_endings(old.as_bytes(), new.as_bytes(), usual);
            assert_eq!(String::from_utf8_lossy(&got), expect, "{old:?} {new:?}");
        }
    }
}
