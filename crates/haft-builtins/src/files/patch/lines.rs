//! Splits a text into lines with their endings, and joins lines to a text again.

/// Maximum number of lines in a file to patch.
pub(super) const MAX_LINES: usize = 2_000_000;

/// The ending of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnding {
    Lf,
    CrLf,
    /// No ending, for the last line of a text.
    Open,
}

/// A line without its ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextLine<'a> {
    pub(super) text: &'a [u8],
    pub(super) end: LineEnding,
}

/// Splits a text into lines, or returns `None` if there are too many. With `cr_is_text`, a CR before the LF belongs to the line.
pub(super) fn split(text: &[u8], cr_is_text: bool) -> Option<Vec<TextLine<'_>>> {
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
pub(super) fn usual(lines: &[TextLine<'_>]) -> LineEnding {
    let count = |end| lines.iter().filter(|line| line.end == end).count();
    if count(LineEnding::CrLf) > count(LineEnding::Lf) {
        LineEnding::CrLf
    } else {
        LineEnding::Lf
    }
}

/// Joins lines to a text. Only the last line may lack an ending, and does if `open`.
pub(super) fn join(lines: &[TextLine<'_>], usual: LineEnding, open: bool) -> Vec<u8> {
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
