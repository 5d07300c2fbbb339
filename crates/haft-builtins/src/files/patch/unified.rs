//! Unified diffs as written by `diff -u` and git.

use crate::files::patch::body::{self, HunkNumbers, HunkRange};
use crate::files::patch::names::{self, SectionNames};
use crate::files::patch::section::{
    Hunk, HunkLength, HunkLine, HunkLineKind, PatchError, PatchReader, Section, SectionAction,
    clipped,
};

const NULL: &str = "/dev/null";
const NO_CHANGE: &str = "the section changes no lines; modes are not changed";

/// The lines before a file's hunks.
#[derive(Debug, Default)]
struct SectionHeader {
    line: usize,
    names: SectionNames,
    /// The old and new name of a rename.
    renamed: (Option<String>, Option<String>),
    created: bool,
    deleted: bool,
    /// Whether it states a new mode.
    mode_only: bool,
    notes: Vec<String>,
}

fn has_names(head: &SectionHeader) -> bool {
    head.names.old.is_some() || head.names.new.is_some()
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
        } else if line.starts_with("@@") {
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
    let changes_nothing = |section: &Section<'_>| match &section.action {
        SectionAction::Update { hunks, to: None } => hunks.is_empty(),
        _ => false,
    };
    // A mode in between is noted; a patch of nothing but modes would do nothing.
    if sections.iter().all(changes_nothing) {
        return Err(PatchError::new(sections[0].line, NO_CHANGE));
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
    head.mode_only |= word == "new mode ";
    match rest.trim() {
        mode if mode.starts_with("120") => Err("links are not patched"),
        mode if mode.starts_with("160") => Err("submodules are not patched"),
        "100644" if word == "new mode " => {
            head.notes.push("its mode is not set to 100644".to_owned());
            Ok(())
        }
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
    // The first hunk may have no header at all.
    let headless = |reader: &PatchReader<'_, '_>, line: &str| {
        line.starts_with([' ', '+', '-']) && has_names(&head) && !begins_file(reader)
    };
    loop {
        match reader.peek() {
            Some(line)
                if line.starts_with("@@") || (hunks.is_empty() && headless(reader, line)) =>
            {
                hunks.push(hunk(reader)?);
            }
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
            } else if hunks.iter().any(Hunk::changes) || (head.mode_only && hunks.is_empty()) {
                SectionAction::Update { hunks, to: None }
            } else {
                return Err(fault(NO_CHANGE.to_owned()));
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
    for mut hunk in hunks {
        // Blank lines before the next header may not belong to the hunk.
        while hunk.length == HunkLength::Unstated
            && let Some(last) = hunk.ops.last()
            && last.kind == HunkLineKind::Keep
            && last.text.is_empty()
        {
            hunk.ops.pop();
        }
        if let Some(op) = hunk.before().next() {
            return Err(PatchError::new(op.line, "a new file has added lines only"));
        }
        ends = !hunk.new_open;
        lines.extend(hunk.after().map(|op| op.text));
    }
    Ok(SectionAction::Add { lines, ends })
}

fn hunk<'a>(reader: &mut PatchReader<'a, '_>) -> Result<Hunk<'a>, PatchError> {
    let start = *reader;
    let head = reader.after("@@").and_then(body::numbers);
    let Some(HunkNumbers {
        old,
        new: Some(new),
    }) = head
    else {
        *reader = start;
        return uncounted(reader);
    };
    let hunk = counted(reader, start.number(), old, new);
    if hunk.is_err() && old.count.is_none() && new.count.is_none() {
        // Without counts, a header states one line on each side, or only where the hunk is.
        *reader = start;
        return uncounted(reader);
    }
    hunk
}

/// Reads a hunk whose header does not say how many lines it has.
fn uncounted<'a>(reader: &mut PatchReader<'a, '_>) -> Result<Hunk<'a>, PatchError> {
    let mut hunk = Hunk {
        line: reader.number(),
        ..Hunk::default()
    };
    body::read_heads(reader, &mut hunk);
    let ends = |reader: &PatchReader<'a, '_>| {
        let line = reader.peek().unwrap_or_default();
        // `-- ` and a version end an e-mail.
        let version = |next: &str| next.starts_with(|c: char| c.is_ascii_digit());
        let signature = line.trim_end() == "--" && reader.peek_second().is_some_and(version);
        line.starts_with("diff --git ") || signature || begins_file(reader)
    };
    body::read_lines(reader, &mut hunk, ends)?;
    hunk.at_end = hunk.old_open;
    Ok(hunk)
}

/// Reads a hunk with as many lines as its header states.
fn counted<'a>(
    reader: &mut PatchReader<'a, '_>,
    line: usize,
    old: HunkRange,
    new: HunkRange,
) -> Result<Hunk<'a>, PatchError> {
    let mut hunk = Hunk {
        line,
        stated: Some(old.before()),
        length: HunkLength::Stated,
        ..Hunk::default()
    };
    let body = *reader;
    let header = HunkCounts {
        old: old.count.unwrap_or(1),
        new: new.count.unwrap_or(1),
    };
    let (mut old_left, mut new_left) = (header.old, header.new);
    while old_left > 0 || new_left > 0 {
        let kind = match reader.peek().map(|text| text.as_bytes().first()) {
            // A context line that lost its only blank.
            Some(None | Some(b' ')) => HunkLineKind::Keep,
            Some(Some(b'-')) => HunkLineKind::Remove,
            Some(Some(b'+')) => HunkLineKind::Add,
            Some(Some(b'\\')) => {
                hunk.mark_no_newline();
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
        hunk.mark_no_newline();
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
