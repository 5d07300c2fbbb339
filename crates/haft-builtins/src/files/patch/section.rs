//! The contents of a patch in either format: sections, hunks and lines, and the reader that both formats use.

use haft::text::clip;

/// The part of a patch for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section<'a> {
    /// The line in the patch where the section begins, counted from 1.
    pub(super) line: usize,
    /// The file's path as written.
    pub(super) path: String,
    pub(super) action: SectionAction<'a>,
    /// Notes on parts of the patch that are not applied.
    pub(super) notes: Vec<String>,
}

/// The action on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SectionAction<'a> {
    /// Create the file with these lines.
    Add {
        lines: Vec<&'a str>,
        /// True if the last line has an ending too.
        ends: bool,
    },
    /// Change the file, and move it if `to` is set.
    Update {
        hunks: Vec<Hunk<'a>>,
        to: Option<String>,
    },
    /// Delete the file; with hunks, only if it contains exactly their lines.
    Delete { hunks: Vec<Hunk<'a>> },
}

/// A change at one place in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hunk<'a> {
    /// The line in the patch where the hunk begins, counted from 1.
    pub(super) line: usize,
    /// Lines that come before the hunk in the file, in this order.
    pub(super) anchors: Vec<&'a str>,
    /// The number of file lines before the hunk, if stated.
    pub(super) stated: Option<usize>,
    pub(super) length: HunkLength,
    /// True if the hunk's last line is the file's last.
    pub(super) at_end: bool,
    /// For each side, true if the file's last line has no ending; both false if the patch does not say.
    pub(super) old_open: bool,
    pub(super) new_open: bool,
    pub(super) ops: Vec<HunkLine<'a>>,
}

/// Whether a hunk's header states how many lines it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum HunkLength {
    #[default]
    Unstated,
    Stated,
}

/// One line of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HunkLine<'a> {
    pub(super) kind: HunkLineKind,
    /// The text without its mark and its ending.
    pub(super) text: &'a str,
    /// The line number in the patch, counted from 1.
    pub(super) line: usize,
}

/// The role of a hunk's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HunkLineKind {
    Keep,
    Remove,
    Add,
}

impl<'a> Hunk<'a> {
    /// Returns the lines that the file must contain.
    pub(super) fn before(&self) -> impl Iterator<Item = &HunkLine<'a>> {
        self.ops.iter().filter(|op| op.kind != HunkLineKind::Add)
    }

    /// Returns the lines that the hunk leaves behind.
    pub(super) fn after(&self) -> impl Iterator<Item = &HunkLine<'a>> {
        self.ops.iter().filter(|op| op.kind != HunkLineKind::Remove)
    }

    /// Records that the previous line has no ending, for the side or sides that it belongs to.
    pub(super) fn mark_no_newline(&mut self) {
        match self.ops.last().map(|op| op.kind) {
            Some(HunkLineKind::Keep) => (self.old_open, self.new_open) = (true, true),
            Some(HunkLineKind::Remove) => self.old_open = true,
            Some(HunkLineKind::Add) => self.new_open = true,
            None => {}
        }
    }

    /// Returns true if the hunk changes anything.
    pub(super) fn changes(&self) -> bool {
        self.ops.iter().any(|op| op.kind != HunkLineKind::Keep) || self.old_open != self.new_open
    }
}

/// The reason why a text is not a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {what}")]
pub(super) struct PatchError {
    pub(super) line: usize,
    pub(super) what: String,
}

impl PatchError {
    pub(super) fn new(line: usize, what: impl Into<String>) -> Self {
        Self {
            line,
            what: what.into(),
        }
    }
}

/// The patch's lines, numbered from 1, and the read position.
#[derive(Debug, Clone, Copy)]
pub(super) struct PatchReader<'a, 'l> {
    lines: &'l [(usize, &'a str)],
    at: usize,
}

impl<'a, 'l> PatchReader<'a, 'l> {
    pub(super) fn new(lines: &'l [(usize, &'a str)]) -> Self {
        Self { lines, at: 0 }
    }

    /// Returns the next line without taking it.
    pub(super) fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).map(|(_, text)| *text)
    }

    /// Returns the line after the next, without taking either.
    pub(super) fn peek_second(&self) -> Option<&'a str> {
        self.lines.get(self.at + 1).map(|(_, text)| *text)
    }

    /// Returns the number of the next line, or one past the last at the end.
    pub(super) fn number(&self) -> usize {
        let last = || self.lines.last().map_or(1, |(number, _)| number + 1);
        self.lines.get(self.at).map_or_else(last, |(n, _)| *n)
    }

    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    /// Skips the next line if it begins with `start`, and returns the rest of it.
    pub(super) fn after(&mut self, start: &str) -> Option<&'a str> {
        let rest = self.peek()?.strip_prefix(start)?;
        self.skip();
        Some(rest)
    }

    /// Skips blank lines.
    pub(super) fn skip_blank(&mut self) {
        while self.peek().is_some_and(|line| line.trim().is_empty()) {
            self.skip();
        }
    }

    pub(super) fn error(&self, what: impl Into<String>) -> PatchError {
        PatchError::new(self.number(), what)
    }
}

/// Returns the beginning of a line, quoted, for a message.
pub(super) fn clipped(line: &str) -> String {
    format!("{:?}", clip(line, 60))
}
