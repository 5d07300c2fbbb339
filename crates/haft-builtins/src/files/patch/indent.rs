//! Gives added lines the indentation of the file where a hunk fits its lines only without theirs.

use std::borrow::Cow;

use crate::files::lines::TextLine;
use crate::files::patch::section::{HunkLine, HunkLineKind};

/// The indentation of one line, in the patch and in the file.
struct IndentPair<'a> {
    /// The place of the line in the hunk.
    at: usize,
    patch: &'a [u8],
    file: &'a [u8],
}

/// Returns the added lines of a hunk whose other lines are at the beginning of `file`.
pub(super) fn added_lines<'a>(ops: &[HunkLine<'a>], file: &[TextLine<'_>]) -> Vec<Cow<'a, [u8]>> {
    let mut pairs = Vec::new();
    let mut lines = file.iter();
    for (at, op) in ops.iter().enumerate() {
        if op.kind == HunkLineKind::Add {
            continue;
        }
        let (Some(line), false) = (lines.next(), op.text.trim().is_empty()) else {
            continue;
        };
        let (patch, file) = (indent_of(op.text.as_bytes()), indent_of(line.text));
        pairs.push(IndentPair { at, patch, file });
    }
    let same = pairs.iter().all(|pair| pair.patch == pair.file);
    let step = IndentStep::between(&pairs, ops);
    let added = ops
        .iter()
        .enumerate()
        .filter(|(_, op)| op.kind == HunkLineKind::Add);
    let text = |(at, op): (usize, &HunkLine<'a>)| {
        let text = op.text.as_bytes();
        let indent = indent_of(text);
        if same || indent.len() == text.len() {
            return Cow::Borrowed(text);
        }
        let alike = pairs.iter().filter(|pair| pair.patch == indent);
        // The nearest line above it, else the nearest below.
        let near = alike.min_by_key(|pair| (pair.at > at, pair.at.abs_diff(at)));
        let new = near.map_or_else(|| step.scaled(indent, &pairs), |pair| pair.file.to_vec());
        Cow::Owned([&new[..], &text[indent.len()..]].concat())
    };
    added.map(text).collect()
}

fn indent_of(line: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let end = line.iter().position(|byte| !blank(byte));
    &line[..end.unwrap_or(line.len())]
}

/// How the indentation grows: `patch` blanks in the patch are `file` blanks in the file.
struct IndentStep {
    patch: usize,
    file: usize,
    blank: u8,
}

impl IndentStep {
    fn between(pairs: &[IndentPair<'_>], ops: &[HunkLine<'_>]) -> Self {
        let shallow = pairs.iter().min_by_key(|pair| pair.patch.len());
        let deep = pairs.iter().max_by_key(|pair| pair.patch.len());
        let tabbed = |indent: &[u8]| indent.contains(&b'\t');
        let file_tabs = pairs.iter().any(|pair| tabbed(pair.file));
        let patch_tabs = ops.iter().any(|op| tabbed(indent_of(op.text.as_bytes())));
        let blank = if file_tabs { b'\t' } else { b' ' };
        let step = |patch, file| Self { patch, file, blank };
        let (Some(shallow), Some(deep)) = (shallow, deep) else {
            return step(1, 1);
        };
        let wider = deep.patch.len() - shallow.patch.len();
        if wider > 0 && deep.file.len() > shallow.file.len() {
            return step(wider, deep.file.len() - shallow.file.len());
        }
        match (file_tabs, patch_tabs) {
            (false, false) | (true, true) => step(1, 1),
            _ if !deep.patch.is_empty() && !deep.file.is_empty() => {
                step(deep.patch.len(), deep.file.len())
            }
            (true, false) => {
                let widths = ops.iter().map(|op| indent_of(op.text.as_bytes()).len());
                step(widths.filter(|width| *width > 0).min().unwrap_or(4), 1)
            }
            (false, true) => step(1, 4),
        }
    }

    /// Returns the file's indentation for one that no line of the file shows.
    fn scaled(&self, indent: &[u8], pairs: &[IndentPair<'_>]) -> Vec<u8> {
        let shallower = pairs
            .iter()
            .filter(|pair| pair.patch.len() <= indent.len())
            .max_by_key(|pair| pair.patch.len());
        if let Some(base) = shallower {
            let more = indent.len() - base.patch.len();
            let steps = more * self.file / self.patch;
            let mut new = base.file.to_vec();
            new.resize(new.len() + steps, self.blank);
            // What is less than a step aligns the line.
            let rest = more - (steps * self.patch).div_ceil(self.file);
            new.resize(new.len() + rest, b' ');
            return new;
        }
        let Some(base) = pairs.iter().min_by_key(|pair| pair.patch.len()) else {
            return indent.to_vec();
        };
        let less = (base.patch.len() - indent.len()) * self.file / self.patch;
        base.file[..base.file.len().saturating_sub(less)].to_vec()
    }
}
