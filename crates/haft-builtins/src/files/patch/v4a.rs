//! The format between `*** Begin Patch` and `*** End Patch`, which finds places by context instead of line numbers.

use crate::files::patch::body;
use crate::files::patch::section::{
    Hunk, PatchError, PatchReader, Section, SectionAction, clipped,
};

/// The first line.
pub(super) const BEGIN: &str = "*** Begin Patch";
/// The last line.
pub(super) const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const UPDATE: &str = "*** Update File:";
const DELETE: &str = "*** Delete File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// Reads everything from the first line to the last.
pub(super) fn read<'a>(reader: &mut PatchReader<'a, '_>) -> Result<Vec<Section<'a>>, PatchError> {
    reader.skip();
    let mut sections = Vec::new();
    loop {
        reader.skip_blank();
        let line = reader.number();
        let Some(head) = reader.peek() else {
            return Err(reader.error(format!("expected `{END}`: the patch is cut off")));
        };
        if head.trim() == END {
            reader.skip();
            break;
        }
        let (path, action) = if let Some(path) = reader.after(ADD) {
            (named(path, line)?, add(reader)?)
        } else if let Some(path) = reader.after(UPDATE) {
            (named(path, line)?, update(reader, line)?)
        } else if let Some(path) = reader.after(DELETE) {
            (
                named(path, line)?,
                SectionAction::Delete { hunks: Vec::new() },
            )
        } else {
            let what = format!(
                "expected `{ADD}`, `{UPDATE}`, `{DELETE}` with a path, or `{END}`, found {}",
                clipped(head)
            );
            return Err(reader.error(what));
        };
        sections.push(Section {
            line,
            path,
            action,
            notes: Vec::new(),
        });
    }
    reader.skip_blank();
    if let Some(more) = reader.peek() {
        let what = format!("expected nothing after `{END}`, found {}", clipped(more));
        return Err(reader.error(what));
    }
    if sections.is_empty() {
        return Err(PatchError::new(1, "the patch names no file"));
    }
    Ok(sections)
}

fn named(path: &str, line: usize) -> Result<String, PatchError> {
    let path = path.trim();
    if path.is_empty() {
        return Err(PatchError::new(line, "expected a path"));
    }
    Ok(path.to_owned())
}

fn is_header(line: &str) -> bool {
    let line = line.trim_end();
    line == END
        || [ADD, UPDATE, DELETE, MOVE]
            .iter()
            .any(|word| line.starts_with(word))
}

fn add<'a>(reader: &mut PatchReader<'a, '_>) -> Result<SectionAction<'a>, PatchError> {
    let mut lines = Vec::new();
    loop {
        if let Some(text) = reader.after("+") {
            lines.push(text);
            continue;
        }
        let here = *reader;
        reader.skip_blank();
        match reader.peek() {
            // Blank lines that lost their mark.
            Some(line) if line.starts_with('+') => {
                let blank = reader.number() - here.number();
                lines.extend(std::iter::repeat_n("", blank));
            }
            Some(line) if !is_header(line) => {
                let found = clipped(here.peek().unwrap_or_default());
                let what =
                    format!("expected a line of the new file, beginning with +, found {found}");
                return Err(here.error(what));
            }
            // The caller reports a missing end.
            _ => return Ok(SectionAction::Add { lines, ends: true }),
        }
    }
}

fn update<'a>(
    reader: &mut PatchReader<'a, '_>,
    line: usize,
) -> Result<SectionAction<'a>, PatchError> {
    let number = reader.number();
    let to = reader
        .after(MOVE)
        .map(|path| named(path, number))
        .transpose()?;
    let mut hunks = Vec::new();
    loop {
        reader.skip_blank();
        match reader.peek() {
            None => break,
            Some(next) if is_header(next) => break,
            Some(_) => hunks.push(hunk(reader)?),
        }
    }
    if to.is_none() && !hunks.iter().any(Hunk::changes) {
        let what = "the section changes nothing: expected lines beginning with + or -";
        return Err(PatchError::new(line, what));
    }
    Ok(SectionAction::Update { hunks, to })
}

fn hunk<'a>(reader: &mut PatchReader<'a, '_>) -> Result<Hunk<'a>, PatchError> {
    let mut hunk = Hunk {
        line: reader.number(),
        ..Hunk::default()
    };
    body::read_heads(reader, &mut hunk);
    let ends = |reader: &PatchReader<'a, '_>| {
        let line = reader.peek().unwrap_or_default();
        line.trim_end() == END_OF_FILE || is_header(line)
    };
    body::read_lines(reader, &mut hunk, ends)?;
    let last = |line: &str| line.trim_end() == END_OF_FILE;
    if reader.peek().is_some_and(last) {
        hunk.at_end = true;
        reader.skip();
    }
    Ok(hunk)
}
