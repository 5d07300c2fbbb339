//! Parses a patch in either format, which its first lines determine.

use crate::files::patch::section::{PatchError, PatchReader, Section, SectionAction, clipped};
use crate::files::patch::{unified, v4a};

/// Maximum size of a patch, in bytes.
pub(super) const MAX_PATCH: usize = 4 << 20;
/// Maximum number of sections per patch: each holds a folder and a file open while it is applied.
const MAX_SECTIONS: usize = 200;
/// Maximum number of wrappings around a patch: a here-document in a fence is two.
const MAX_WRAPS: usize = 4;
/// Maximum number of hunks per patch.
const MAX_HUNKS: usize = 10_000;

/// Parses a patch of either format into one section per file.
pub(super) fn parse(patch: &str) -> Result<Vec<Section<'_>>, PatchError> {
    if patch.len() > MAX_PATCH {
        let what = format!("the patch has {} bytes, more than 4 MiB", patch.len());
        return Err(PatchError::new(1, what));
    }
    let lines = lines(patch);
    let lines = unwrap_patch(&lines)?;
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

/// Removes what models put around a patch: code fences, the command and delimiters of a here-document.
fn unwrap_patch<'l, 'a>(
    lines: &'l [(usize, &'a str)],
) -> Result<&'l [(usize, &'a str)], PatchError> {
    let mut inner = lines;
    for _ in 0..MAX_WRAPS {
        match unwrap_once(inner)? {
            Some(next) => inner = next,
            None => break,
        }
    }
    Ok(inner)
}

/// Removes one wrapping; `None` if there is none. A blank line at the end of an unwrapped patch may belong to a hunk.
fn unwrap_once<'l, 'a>(
    lines: &'l [(usize, &'a str)],
) -> Result<Option<&'l [(usize, &'a str)]>, PatchError> {
    let full = |(_, line): &(usize, &str)| !line.trim().is_empty();
    let (Some(first), Some(last)) = (lines.iter().position(full), lines.iter().rposition(full))
    else {
        return Ok(None);
    };
    let [(number, open), inner @ .., (_, close)] = &lines[first..=last] else {
        return Ok(None);
    };
    let (open, close) = (open.trim(), close.trim());
    let with_close = &lines[first + 1..=last];
    if inner.is_empty() {
        return Ok(None);
    }
    if open.starts_with("```") && close == "```" {
        return Ok(Some(inner));
    }
    if matches!(open, "apply_patch" | "applypatch") {
        return Ok(Some(with_close));
    }
    let Some((command, word)) = here_document(open) else {
        return Ok(None);
    };
    if word != close && close != v4a::END {
        return Ok(None);
    }
    if command
        .split_whitespace()
        .any(|word| matches!(word, "cd" | "pushd"))
    {
        let what = format!(
            "the command around the patch changes the folder, which is not followed: {}; name all paths from the workspace's root, and send the patch alone",
            clipped(open)
        );
        return Err(PatchError::new(*number, what));
    }
    Ok(Some(if word == close { inner } else { with_close }))
}

/// Returns the command and the delimiter of `command << 'WORD'`, however the word is quoted.
fn here_document(line: &str) -> Option<(&str, &str)> {
    let (command, word) = line.rsplit_once("<<")?;
    let word = word.strip_prefix('-').unwrap_or(word).trim_start();
    let word = match word.strip_prefix(['\'', '"']) {
        Some(quoted) => quoted.split(['\'', '"']).next(),
        None => word
            .strip_prefix('\\')
            .unwrap_or(word)
            .split_whitespace()
            .next(),
    };
    Some((command, word.filter(|word| !word.is_empty())?))
}
