//! What a patch says: its sections and hunks, read from either format, which its first lines tell.

use crate::files::patch::{unified, v4a};

/// Largest patch.
pub(super) const MAX_PATCH: usize = 4 << 20;
/// Most sections of one patch: each holds a folder and a file open while it is applied.
const MAX_SECTIONS: usize = 200;
/// Most hunks of one patch.
const MAX_HUNKS: usize = 10_000;

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

/// Reads a patch.
pub(super) fn parse(patch: &str) -> Result<Vec<Section<'_>>, PatchError> {
    if patch.len() > MAX_PATCH {
        let what = format!("the patch has {} bytes, more than 4 MiB", patch.len());
        return Err(PatchError::new(1, what));
    }
    let lines = lines(patch);
    let lines = unwrapped(&lines);
    let mut reader = Reader::new(lines);
    reader.skip_blank();
    let sections = match reader.peek() {
        None => return Err(PatchError::new(1, "the patch is empty")),
        Some(first) if first.trim() == v4a::BEGIN => v4a::read(&mut reader)?,
        Some(first) if first.starts_with("*** ") => {
            let what = format!("expected `{}`, found {first:?}", v4a::BEGIN);
            return Err(reader.error(what));
        }
        Some(_) => unified::read(&mut reader)?,
    };
    let many = |what| Err(PatchError::new(1, what));
    if sections.len() > MAX_SECTIONS {
        return many(format!("it changes more than {MAX_SECTIONS} files"));
    }
    let hunks = sections.iter().map(|section| match &section.action {
        Action::Add { .. } => 0,
        Action::Update { hunks, .. } | Action::Delete { hunks } => hunks.len(),
    });
    if hunks.sum::<usize>() > MAX_HUNKS {
        return many(format!("it has more than {MAX_HUNKS} hunks"));
    }
    Ok(sections)
}

/// The lines without their ends. In a patch whose every line ends in CR LF, the CR belongs to the end.
fn lines(patch: &str) -> Vec<(usize, &str)> {
    let whole = patch.strip_suffix('\n').unwrap_or(patch);
    let ends = whole.split('\n');
    let last = !patch.ends_with('\n');
    let count = ends.clone().count();
    let crlf = ends
        .clone()
        .enumerate()
        .all(|(at, line)| line.ends_with('\r') || (last && at + 1 == count && at > 0));
    let strip = |line: &'_ str| {
        if crlf {
            line.len() - usize::from(line.ends_with('\r'))
        } else {
            line.len()
        }
    };
    ends.enumerate()
        .map(|(at, line)| (at + 1, &line[..strip(line)]))
        .collect()
}

/// Without what models put around a patch: a code fence, or the words of a here-document.
fn unwrapped<'l, 'a>(lines: &'l [(usize, &'a str)]) -> &'l [(usize, &'a str)] {
    let full = |(_, line): &(usize, &str)| !line.trim().is_empty();
    let (Some(first), Some(last)) = (lines.iter().position(full), lines.iter().rposition(full))
    else {
        return &[];
    };
    let inner = &lines[first..=last];
    let (open, close) = (inner[0].1.trim(), inner[inner.len() - 1].1.trim());
    let fence = open.starts_with("```") && close == "```";
    let word = open.rsplit_once("<<").map(|(_, word)| word);
    let word = word.map(|word| word.trim_matches(['\'', '"']));
    let here = word.is_some_and(|word| !word.is_empty() && word == close);
    if inner.len() > 2 && (fence || here) {
        &inner[1..inner.len() - 1]
    } else {
        // A blank line at the end may be a hunk's.
        lines
    }
}
