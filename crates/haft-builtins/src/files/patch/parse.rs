//! Parses a patch in either format, which its first lines determine.

use crate::files::patch::section::{PatchError, PatchReader, Section, SectionAction};
use crate::files::patch::{unified, v4a};

/// Maximum size of a patch, in bytes.
pub(super) const MAX_PATCH: usize = 4 << 20;
/// Maximum number of sections per patch: each holds a folder and a file open while it is applied.
const MAX_SECTIONS: usize = 200;
/// Maximum number of hunks per patch.
const MAX_HUNKS: usize = 10_000;

/// Parses a patch of either format into one section per file.
pub(super) fn parse(patch: &str) -> Result<Vec<Section<'_>>, PatchError> {
    if patch.len() > MAX_PATCH {
        let what = format!("the patch has {} bytes, more than 4 MiB", patch.len());
        return Err(PatchError::new(1, what));
    }
    let lines = lines(patch);
    let lines = unwrap_patch(&lines);
    let mut reader = PatchReader::new(lines);
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
        SectionAction::Add { .. } => 0,
        SectionAction::Update { hunks, .. } | SectionAction::Delete { hunks } => hunks.len(),
    });
    if hunks.sum::<usize>() > MAX_HUNKS {
        return many(format!("it has more than {MAX_HUNKS} hunks"));
    }
    Ok(sections)
}

/// Splits into lines without their endings. If every line ends in CR LF, the CR belongs to the ending.
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

/// Removes what models put around a patch: a code fence, or the command and delimiter of a here-document.
fn unwrap_patch<'l, 'a>(lines: &'l [(usize, &'a str)]) -> &'l [(usize, &'a str)] {
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
        // A blank line at the end may belong to a hunk.
        lines
    }
}
