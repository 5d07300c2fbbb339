//! The parts of a hunk that both formats share: what follows `@@`, and lines without a stated count.

use crate::files::patch::section::{
    Hunk, HunkLine, HunkLineKind, PatchError, PatchReader, clipped,
};

/// One side of a hunk's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HunkRange {
    start: usize,
    /// The number of lines; `None` if it is not stated, which means one.
    pub(super) count: Option<usize>,
}

impl HunkRange {
    /// Returns the number of lines before this side. For an empty side, the header has the number of the line before.
    pub(super) fn before(self) -> usize {
        if self.count == Some(0) {
            self.start
        } else {
            self.start.saturating_sub(1)
        }
    }
}

/// The numbers of a hunk's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HunkNumbers {
    pub(super) old: HunkRange,
    pub(super) new: Option<HunkRange>,
}

/// Parses the numbers in ` -1,2 +3,4 @@ …`, the text after `@@`; the second pair may be missing.
pub(super) fn numbers(text: &str) -> Option<HunkNumbers> {
    let (old, rest) = side(text.trim_start().strip_prefix('-')?)?;
    let (new, rest) = match rest.trim_start().strip_prefix('+') {
        Some(text) => {
            let (new, rest) = side(text)?;
            (Some(new), rest)
        }
        None => (None, rest),
    };
    let ends = rest.trim().is_empty() || rest.trim_start().starts_with("@@");
    ends.then_some(HunkNumbers { old, new })
}

/// Parses `1,2` or `1`; returns the rest, too.
fn side(text: &str) -> Option<(HunkRange, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    // A number too large for any file is as good as any other past the end of this one.
    let number = |text: &str| text.parse().unwrap_or(usize::MAX);
    let (start, rest) = text.split_at(digits(text));
    if start.is_empty() {
        return None;
    }
    let (count, rest) = match rest.strip_prefix(',') {
        Some(after) if digits(after) > 0 => {
            let (count, rest) = after.split_at(digits(after));
            (Some(number(count)), rest)
        }
        Some(_) => return None,
        None => (None, rest),
    };
    let start = number(start);
    Some((HunkRange { start, count }, rest))
}

/// Reads the `@@` lines above a hunk's lines: numbers, lines of the file, or nothing.
pub(super) fn read_heads<'a>(reader: &mut PatchReader<'a, '_>, hunk: &mut Hunk<'a>) {
    while let Some(head) = reader.after("@@") {
        let bare = head.trim();
        let bare = bare.strip_suffix("@@").unwrap_or(bare).trim();
        match numbers(head) {
            Some(numbers) => hunk.stated = Some(numbers.old.before()),
            None if matches!(bare, "" | "..." | "…") => {}
            None => hunk.anchors.push(head.strip_prefix(' ').unwrap_or(head)),
        }
    }
}

/// Reads a hunk's lines up to the next `@@` or the end, which `ends` tells.
pub(super) fn read_lines<'a>(
    reader: &mut PatchReader<'a, '_>,
    hunk: &mut Hunk<'a>,
    ends: impl Fn(&PatchReader<'a, '_>) -> bool,
) -> Result<(), PatchError> {
    while let Some(line) = reader.peek() {
        if line.starts_with("@@") || ends(reader) {
            break;
        }
        let kind = match line.as_bytes().first() {
            // A context line that lost its only blank.
            None | Some(b' ') => HunkLineKind::Keep,
            Some(b'-') => HunkLineKind::Remove,
            Some(b'+') => HunkLineKind::Add,
            Some(b'\\') if line.starts_with("\\ ") => {
                hunk.mark_no_newline();
                reader.skip();
                continue;
            }
            Some(_) => {
                let found = clipped(line);
                let what = format!(
                    "expected a line beginning with a blank, + or -, `@@`, or the header of a file, found {found}"
                );
                return Err(reader.error(what));
            }
        };
        hunk.ops.push(HunkLine {
            kind,
            text: line.get(1..).unwrap_or_default(),
            line: reader.number(),
        });
        reader.skip();
    }
    if hunk.ops.is_empty() {
        return Err(reader.error("expected a hunk's lines, beginning with a blank, + or -"));
    }
    Ok(())
}
