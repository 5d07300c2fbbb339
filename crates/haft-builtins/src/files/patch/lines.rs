//! A text as lines with their ends, and lines as a text again.

/// Most lines of a file that is patched.
pub(super) const MAX_LINES: usize = 2_000_000;

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Lf,
    CrLf,
    /// The text's last line, without an end.
    Open,
}

/// A line without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    pub(super) end: End,
}

/// The lines of a text; `None` when there are too many. With `cr_is_text` a CR before the end belongs to the line.
pub(super) fn split(text: &[u8], cr_is_text: bool) -> Option<Vec<Line<'_>>> {
    let mut lines = Vec::new();
    let mut from = 0;
    for at in memchr::memchr_iter(b'\n', text) {
        if lines.len() == MAX_LINES {
            return None;
        }
        let line = &text[from..at];
        lines.push(match line.strip_suffix(b"\r") {
            Some(text) if !cr_is_text => Line {
                text,
                end: End::CrLf,
            },
            _ => Line {
                text: line,
                end: End::Lf,
            },
        });
        from = at + 1;
    }
    if from < text.len() {
        lines.push(Line {
            text: &text[from..],
            end: End::Open,
        });
    }
    Some(lines)
}

/// How most lines end.
pub(super) fn usual(lines: &[Line<'_>]) -> End {
    let count = |end| lines.iter().filter(|line| line.end == end).count();
    if count(End::CrLf) > count(End::Lf) {
        End::CrLf
    } else {
        End::Lf
    }
}

/// The text of the lines. Only the last may be open, and is if `open`.
pub(super) fn join(lines: &[Line<'_>], usual: End, open: bool) -> Vec<u8> {
    let mut text = Vec::with_capacity(lines.iter().map(|line| line.text.len() + 2).sum());
    for (at, line) in lines.iter().enumerate() {
        text.extend_from_slice(line.text);
        if open && at + 1 == lines.len() {
            break;
        }
        let end = if line.end == End::Open {
            usual
        } else {
            line.end
        };
        text.extend_from_slice(if end == End::CrLf { b"\r\n" } else { b"\n" });
    }
    text
}
