//! What a patch says, whatever its format: sections, hunks and lines, and the reader that both formats use.

use haft::text::clip;

/// One file's part of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section<'a> {
    /// Where it begins in the patch, counted from 1.
    pub(super) line: usize,
    /// The file, as written.
    pub(super) path: String,
    pub(super) action: Action<'a>,
    /// What the patch says besides and is not done.
    pub(super) notes: Vec<String>,
}

/// What becomes of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action<'a> {
    /// Made, with these lines.
    Add {
        lines: Vec<&'a str>,
        /// The last line has an end, too.
        ends: bool,
    },
    /// Changed, and moved if it says where to.
    Update {
        hunks: Vec<Hunk<'a>>,
        to: Option<String>,
    },
    /// Deleted; with hunks, only if it holds just their lines.
    Delete { hunks: Vec<Hunk<'a>> },
}

/// A change of one place in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hunk<'a> {
    /// Where it begins in the patch, counted from 1.
    pub(super) line: usize,
    /// Lines that come before it in the file, one after the other.
    pub(super) anchors: Vec<&'a str>,
    /// How many lines of the file come before it, if it says so.
    pub(super) stated: Option<usize>,
    /// Its last line is the file's last.
    pub(super) at_end: bool,
    /// Says for each side whether the file's last line has an end; both unset where nothing is said.
    pub(super) old_open: bool,
    pub(super) new_open: bool,
    pub(super) ops: Vec<Op<'a>>,
}

/// One line of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Op<'a> {
    pub(super) kind: Kind,
    /// Without its mark and its end.
    pub(super) text: &'a str,
    /// Where it is in the patch, counted from 1.
    pub(super) line: usize,
}

/// What a hunk's line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Keep,
    Remove,
    Add,
}

impl<'a> Hunk<'a> {
    /// The lines that must be in the file.
    pub(super) fn before(&self) -> impl Iterator<Item = &Op<'a>> {
        self.ops.iter().filter(|op| op.kind != Kind::Add)
    }

    /// The lines it leaves behind.
    pub(super) fn after(&self) -> impl Iterator<Item = &Op<'a>> {
        self.ops.iter().filter(|op| op.kind != Kind::Remove)
    }

    /// Whether it adds or removes anything.
    pub(super) fn changes(&self) -> bool {
        self.ops.iter().any(|op| op.kind != Kind::Keep) || self.old_open != self.new_open
    }
}

/// Why a text is no patch.
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

/// The patch's lines, numbered from 1, and how far they are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a, 'l> {
    lines: &'l [(usize, &'a str)],
    at: usize,
}

impl<'a, 'l> Reader<'a, 'l> {
    pub(super) fn new(lines: &'l [(usize, &'a str)]) -> Self {
        Self { lines, at: 0 }
    }

    /// The next line.
    pub(super) fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).map(|(_, text)| *text)
    }

    /// The line after the next.
    pub(super) fn second(&self) -> Option<&'a str> {
        self.lines.get(self.at + 1).map(|(_, text)| *text)
    }

    /// The number of the next line; one past the last at the end.
    pub(super) fn number(&self) -> usize {
        let last = || self.lines.last().map_or(1, |(number, _)| number + 1);
        self.lines.get(self.at).map_or_else(last, |(n, _)| *n)
    }

    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    /// Past the next line, if it begins so: what follows.
    pub(super) fn after(&mut self, start: &str) -> Option<&'a str> {
        let rest = self.peek()?.strip_prefix(start)?;
        self.skip();
        Some(rest)
    }

    /// Past lines without text.
    pub(super) fn skip_blank(&mut self) {
        while self.peek().is_some_and(|line| line.trim().is_empty()) {
            self.skip();
        }
    }

    pub(super) fn error(&self, what: impl Into<String>) -> PatchError {
        PatchError::new(self.number(), what)
    }
}

/// The beginning of a line, quoted, for a message.
pub(super) fn clipped(line: &str) -> String {
    format!("{:?}", clip(line, 60))
}
