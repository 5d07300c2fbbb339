//! Unified diffs as written by `diff -u` and git.

use crate::files::patch::names::{self, SectionNames};
use crate::files::patch::section::{
    Hunk, HunkLine, HunkLineKind, PatchError, PatchReader, Section, SectionAction, clipped,
};

const NULL: &str = "/dev/null";

/// One side of a hunk's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HunkRange {
    start: usize,
    count: usize,
}

impl HunkRange {
    /// Returns the number of lines before this side. For an empty side, the header has the number of the line before.
    pub(super) fn before(self) -> usize {
        if self.count == 0 {
            self.start
        } else {
            self.start.saturating_sub(1)
        }
    }
}

/// Parses the numbers in ` -1,2 +3,4 @@ …`, the text after `@@`.
pub(super) fn range(text: &str) -> Option<(HunkRange, HunkRange)> {
    let (old, rest) = text.strip_prefix(" -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let side = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(start) || !digits(count) {
            return None;
        }
        // A number too large for any file is as good as any other past the end of this one.
        let number = |text: &str| text.parse().unwrap_or(usize::MAX);
        Some(HunkRange {
            start: number(start),
            count: number(count),
        })
    };
    Some((side(old)?, side(new)?))
}

/// The lines before a file's hunks.
#[derive(Debug, Default)]
struct SectionHeader {
    line: usize,
    names: SectionNames,
    /// The old and new name of a rename.
    renamed: (Option<String>, Option<String>),
    created: bool,
    deleted: bool,
    notes: Vec<String>,
}

/// Reads all sections and skips other text between them.
pub(super) fn read<'a>(reader: &mut PatchReader<'a, '_>) -> Result<Vec<Section<'a>>, PatchError> {
    let begin = reader.number();
    let mut sections = Vec::new();
    while let Some(line) = reader.peek() {
        let head = if line.starts_with("diff --git ") {
            git_head(reader)?
        } else if begins_file(reader) {
            let mut head = SectionHeader {
                line: reader.number(),
                ..SectionHeader::default()
            };
            both_names(reader, &mut head)?;
            head
        } else if line.starts_with("@@ -") {
            return Err(reader.error("expected `--- ` and `+++ ` with a path before a hunk"));
        } else {
            reader.skip();
            continue;
        };
        sections.push(section(reader, head)?);
    }
    if sections.is_empty() {
        let what = "expected `*** Begin Patch`, `diff --git`, or `--- ` and `+++ ` with a path";
        return Err(PatchError::new(begin, what));
    }
    Ok(sections)
}

fn begins_file(reader: &PatchReader<'_, '_>) -> bool {
    let starts = |line: Option<&str>, word| line.is_some_and(|line| line.starts_with(word));
    starts(reader.peek(), "--- ") && starts(reader.peek_second(), "+++ ")
}

fn both_names(
    reader: &mut PatchReader<'_, '_>,
    head: &mut SectionHeader,
) -> Result<(), PatchError> {
    for word in ["--- ", "+++ "] {
        let number = reader.number();
        let Some(text) = reader.after(word) else {
            return Err(reader.error(format!("expected `{word}` with a path")));
        };
        let name = names::name(text).map_err(|what| PatchError::new(number, what))?;
        let null = name == NULL;
        if word == "--- " {
            head.created |= null;
            head.names.old = (!null).then_some(name);
        } else {
            head.deleted |= null;
            head.names.new = (!null).then_some(name);
        }
    }
    Ok(())
}

/// Reads the lines from `diff --git` to the first hunk.
fn git_head(reader: &mut PatchReader<'_, '_>) -> Result<SectionHeader, PatchError> {
    let mut head = SectionHeader {
        line: reader.number(),
        ..SectionHeader::default()
    };
    if let Some(text) = reader.after("diff --git ") {
        head.names.git = names::pair(text);
    }
    while let Some(line) = reader.peek() {
        if begins_file(reader) {
            both_names(reader, &mut head)?;
            break;
        }
        let (word, rest) = git_keyword(line);
        let name = |text: &str| names::name(text).map_err(|what| reader.error(what));
        match word {
            "rename from " => head.renamed.0 = Some(name(rest)?),
            "rename to " => head.renamed.1 = Some(name(rest)?),
            "new file mode " => head.created = true,
            "deleted file mode " => head.deleted = true,
            "old mode " | "new mode " | "index " | "similarity index " | "dissimilarity index " => {
            }
            "copy from " | "copy to " => {
                return Err(reader.error("copies are not applied: expected an added file"));
            }
            "GIT binary patch" | "Binary files " => {
                return Err(reader.error("binary patches are not applied"));
            }
            _ => break,
        }
        mode(&mut head, word, rest).map_err(|what| reader.error(what))?;
        reader.skip();
    }
    Ok(head)
}

/// Returns the keyword at the start of a git header line and the rest; the keyword is empty for other lines.
fn git_keyword(line: &str) -> (&'static str, &str) {
    const WORDS: [&str; 12] = [
        "rename from ",
        "rename to ",
        "new file mode ",
        "deleted file mode ",
        "old mode ",
        "new mode ",
        "index ",
        "similarity index ",
        "dissimilarity index ",
        "copy from ",
        "copy to ",
        "GIT binary patch",
    ];
    let binary = "Binary files ";
    let mut words = WORDS.into_iter().chain([binary]);
    let found = words.find_map(|word| Some((word, line.strip_prefix(word)?)));
    found.unwrap_or(("", line))
}

/// Refuses everything but regular files, and notes a mode that is not applied.
fn mode(head: &mut SectionHeader, word: &str, rest: &str) -> Result<(), &'static str> {
    if !word.ends_with("mode ") {
        return Ok(());
    }
    match rest.trim() {
        mode if mode.starts_with("120") => Err("links are not patched"),
        mode if mode.starts_with("160") => Err("submodules are not patched"),
        "100644" => Ok(()),
        mode if word == "new file mode " || word == "new mode " => {
            let mode: String = mode.chars().take(12).collect();
            head.notes.push(format!("its mode is not set to {mode}"));
            Ok(())
        }
        _ => Ok(()),
    }
}

fn section<'a>(
    reader: &mut PatchReader<'a, '_>,
    head: SectionHeader,
) -> Result<Section<'a>, PatchError> {
    let mut hunks = Vec::new();
    loop {
        match reader.peek() {
            Some(line) if line.starts_with("@@ -") => hunks.push(hunk(reader)?),
            Some(line) if line.starts_with("Binary files ") || line == "GIT binary patch" => {
                return Err(reader.error("binary patches are not applied"));
            }
            _ => break,
        }
    }
    let line = head.line;
    let fault = |what: String| PatchError::new(line, what);
    let (path, action) = match &head.renamed {
        (Some(from), Some(to)) => {
            let to = Some(to.clone());
            (from.clone(), SectionAction::Update { hunks, to })
        }
        (None, None) => {
            let path = head.names.single_name().map_err(fault)?;
            let action = if head.created && head.deleted {
                return Err(fault("it makes and deletes a file at once".to_owned()));
            } else if head.created {
                added(hunks)?
            } else if head.deleted {
                SectionAction::Delete { hunks }
            } else if hunks.iter().any(Hunk::changes) {
                SectionAction::Update { hunks, to: None }
            } else {
                return Err(fault(
                    "the section changes no lines; modes are not changed".to_owned(),
                ));
            };
            (path, action)
        }
        _ => {
            return Err(fault(
                "expected both `rename from` and `rename to`".to_owned(),
            ));
        }
    };
    Ok(Section {
        line,
        path,
        action,
        notes: head.notes,
    })
}

fn added(hunks: Vec<Hunk<'_>>) -> Result<SectionAction<'_>, PatchError> {
    let mut ends = true;
    let mut lines = Vec::new();
    for hunk in hunks {
        if let Some(op) = hunk.before().next() {
            return Err(PatchError::new(op.line, "a new file has added lines only"));
        }
        ends = !hunk.new_open;
        lines.extend(hunk.after().map(|op| op.text));
    }
    Ok(SectionAction::Add { lines, ends })
}

fn hunk<'a>(reader: &mut PatchReader<'a, '_>) -> Result<Hunk<'a>, PatchError> {
    let line = reader.number();
    let head = reader.after("@@").unwrap_or_default();
    let Some((old, new)) = range(head) else {
        return Err(PatchError::new(
            line,
            "expected a hunk's numbers as in `@@ -1,2 +1,3 @@`",
        ));
    };
    let mut hunk = Hunk {
        line,
        stated: Some(old.before()),
        ..Hunk::default()
    };
    let body = *reader;
    let header = HunkCounts {
        old: old.count,
        new: new.count,
    };
    let (mut old_left, mut new_left) = (old.count, new.count);
    while old_left > 0 || new_left > 0 {
        let kind = match reader.peek().map(|text| text.as_bytes().first()) {
            // A context line that lost its only blank.
            Some(None | Some(b' ')) => HunkLineKind::Keep,
            Some(Some(b'-')) => HunkLineKind::Remove,
            Some(Some(b'+')) => HunkLineKind::Add,
            Some(Some(b'\\')) => {
                mark_no_newline(&mut hunk);
                reader.skip();
                continue;
            }
            _ => return Err(count_mismatch(body, line, &header)),
        };
        let left = match kind {
            HunkLineKind::Keep => (old_left.checked_sub(1), new_left.checked_sub(1)),
            HunkLineKind::Remove => (old_left.checked_sub(1), Some(new_left)),
            HunkLineKind::Add => (Some(old_left), new_left.checked_sub(1)),
        };
        let (Some(o), Some(n)) = left else {
            return Err(count_mismatch(body, line, &header));
        };
        (old_left, new_left) = (o, n);
        hunk.ops.push(HunkLine {
            kind,
            text: reader
                .peek()
                .and_then(|text| text.get(1..))
                .unwrap_or_default(),
            line: reader.number(),
        });
        reader.skip();
    }
    if reader.after("\\").is_some() {
        mark_no_newline(&mut hunk);
    }
    hunk.at_end = hunk.old_open;
    // `-- ` begins an e-mail signature.
    let signature = |text: &str| text.trim_end() == "--";
    let more = |text: &str| text.starts_with([' ', '+', '-', '\\']) && !signature(text);
    if reader.peek().is_some_and(more) && !begins_file(reader) {
        return Err(count_mismatch(body, line, &header));
    }
    Ok(hunk)
}

/// Records that the previous line has no ending, for the side or sides that it belongs to.
fn mark_no_newline(hunk: &mut Hunk<'_>) {
    match hunk.ops.last().map(|op| op.kind) {
        Some(HunkLineKind::Keep) => (hunk.old_open, hunk.new_open) = (true, true),
        Some(HunkLineKind::Remove) => hunk.old_open = true,
        Some(HunkLineKind::Add) => hunk.new_open = true,
        None => {}
    }
}

/// The line counts of a hunk's header.
struct HunkCounts {
    old: usize,
    new: usize,
}

/// Counts the actual lines, to say what the header should be.
fn count_mismatch(mut body: PatchReader<'_, '_>, line: usize, header: &HunkCounts) -> PatchError {
    let (mut old, mut new) = (0_usize, 0_usize);
    while let Some(text) = body.peek() {
        if begins_file(&body) {
            break;
        }
        match text.as_bytes().first() {
            Some(b' ') => (old, new) = (old + 1, new + 1),
            Some(b'-') => old += 1,
            Some(b'+') => new += 1,
            Some(b'\\') => {}
            None if body
                .peek_second()
                .is_some_and(|next| next.starts_with([' ', '+', '-'])) =>
            {
                (old, new) = (old + 1, new + 1);
            }
            _ => break,
        }
        body.skip();
    }
    let next = match body.peek() {
        Some(text) => clipped(text),
        None => "the end".to_owned(),
    };
    let (old_said, new_said) = (header.old, header.new);
    PatchError::new(
        line,
        format!(
            "the hunk's header says {old_said} old and {new_said} new lines, but {old} and {new} follow it before {next}"
        ),
    )
}
