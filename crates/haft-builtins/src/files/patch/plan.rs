//! Plans a patch in memory: finds, reads and changes every file there before anything is written.

use std::collections::HashMap;
use std::path::PathBuf;

use haft::error::ToolError;
use haft::workspace::{EntryKind, FileStamp, FileUpdate, ResolvedPath, Workspace, WorkspaceError};

use crate::files::charset::MARK;
use crate::files::edit::MAX_EDITED;
use crate::files::format::StoredText;
use crate::files::patch::fit::{FitError, PatchedText, fit};
use crate::files::patch::section::{Hunk, Section, SectionAction};
use crate::files::read::{cancelled, whole};
use crate::files::seen::Purpose;
use crate::files::text::with_separators;
use crate::files::{FileCaller, Files};

/// Maximum size of all files of a patch together, in bytes.
const MAX_TOTAL: u64 = 64 << 20;

/// The files of a section.
#[derive(Debug)]
pub(super) struct SectionFiles {
    /// The existing file; `None` for a new one.
    pub(super) from: Option<ResolvedPath>,
    /// The new file, or the new place of a moved one.
    pub(super) to: Option<ResolvedPath>,
}

/// What a section does to its file, worked out but not written.
#[derive(Debug)]
pub(super) struct SectionPlan<'p> {
    pub(super) section: &'p Section<'p>,
    pub(super) target: SectionFiles,
    /// The file before.
    pub(super) old: StoredText,
    /// The file after; `None` if it is deleted.
    pub(super) new: Option<StoredText>,
    pub(super) added: usize,
    pub(super) removed: usize,
    pub(super) notes: Vec<String>,
    /// The state of the file when it was read.
    pub(super) stamp: Option<FileStamp>,
}

impl SectionPlan<'_> {
    /// Returns the changes to make, the new file of a move first.
    pub(super) fn changes(&self) -> impl Iterator<Item = FileUpdate<'_>> {
        let (from, to) = (self.target.from.as_ref(), self.target.to.as_ref());
        let made = to.map(|place| FileUpdate {
            place,
            content: self.new.as_ref().map(|new| &*new.bytes),
            expected: None,
            like: from,
            mode: None,
        });
        let changed = from.map(|place| FileUpdate {
            place,
            content: (self.new.as_ref())
                .filter(|_| to.is_none())
                .map(|new| &*new.bytes),
            expected: self.stamp,
            like: None,
            mode: None,
        });
        made.into_iter().chain(changed)
    }
}

/// Finds the files of every section. Each file may be in only one section.
pub(super) fn targets(
    workspace: &Workspace,
    sections: &[Section<'_>],
) -> Result<Vec<SectionFiles>, ToolError> {
    let mut known: HashMap<PathBuf, usize> = HashMap::new();
    let mut found = Vec::with_capacity(sections.len());
    for section in sections {
        let (from, to) = match &section.action {
            // A link counts as an existing file.
            SectionAction::Add { .. } => (None, Some(workspace.entry(&section.path)?)),
            SectionAction::Update { to: None, .. } => (Some(workspace.place(&section.path)?), None),
            SectionAction::Update { to: Some(to), .. } => (
                Some(workspace.entry(&section.path)?),
                Some(workspace.entry(to)?),
            ),
            SectionAction::Delete { .. } => (Some(workspace.entry(&section.path)?), None),
        };
        for place in from.iter().chain(&to) {
            if let Some(first) = known.insert(place.real().to_path_buf(), section.line) {
                return Err(named_twice(section, place, first));
            }
        }
        found.push(SectionFiles { from, to });
    }
    Ok(found)
}

fn named_twice(section: &Section<'_>, place: &ResolvedPath, first: usize) -> ToolError {
    let (line, path) = (section.line, place.display());
    if first == line {
        let message = format!("line {line} of the patch: {path:?} is moved onto itself");
        return ToolError::invalid_arguments(message)
            .with_advice("leave the move out to change the file in place");
    }
    let message =
        format!("line {line} of the patch: {path:?} is in the section at line {first}, too");
    ToolError::invalid_arguments(message)
        .with_advice("name each file once: put all its hunks into one section, and replace a file by updating it")
}

/// Plans every section; calls `stop` regularly.
pub(super) fn plan<'p>(
    files: &Files,
    sections: &'p [Section<'p>],
    caller: &FileCaller,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<SectionPlan<'p>>, ToolError> {
    let mut total = 0;
    let mut planned = Vec::with_capacity(sections.len());
    for (section, mut target) in sections.iter().zip(targets(&files.workspace, sections)?) {
        target.from = target.from.map(|from| caller.changes(from)).transpose()?;
        target.to = target.to.map(|to| caller.changes(to)).transpose()?;
        let one = plan_section(files, section, target, caller, stop)?;
        let size = |text: &StoredText| text.bytes.len() as u64;
        total += size(&one.old) + one.new.as_ref().map_or(0, size);
        if total > MAX_TOTAL {
            let most = with_separators(MAX_TOTAL);
            let message = format!("the patch's files have more than {most} bytes together");
            return Err(ToolError::failed(message).with_advice("apply it in parts"));
        }
        planned.push(one);
    }
    Ok(planned)
}

fn plan_section<'p>(
    files: &Files,
    section: &'p Section<'p>,
    target: SectionFiles,
    caller: &FileCaller,
    stop: &dyn Fn() -> bool,
) -> Result<SectionPlan<'p>, ToolError> {
    if let Some(to) = target.to.as_ref().filter(|to| to.kind().is_some()) {
        let advice =
            "a patch makes new files only: update the one that is there, or choose another name";
        return Err(ToolError::from(WorkspaceError::Exists(to.display())).with_advice(advice));
    }
    let (mut old, mut stamp) = (Vec::new(), None);
    if let Some(from) = &target.from {
        let now;
        (old, now) = before(files, from, caller)?;
        stamp = Some(now);
    }
    let path = section.path.as_str();
    // A file that only moves or goes may hold anything.
    let old = match &section.action {
        SectionAction::Update { hunks, .. } | SectionAction::Delete { hunks }
            if hunks.is_empty() =>
        {
            StoredText::read_to_replace(old)
        }
        _ => StoredText::read(path, old)?,
    };
    let fitted = |hunks: &[Hunk<'_>]| {
        let bare = old.is_marked().then(|| without_mark(hunks));
        let hunks = bare.as_deref().unwrap_or(hunks);
        fit(old.text(), hunks, stop).map_err(|e| fit_failure(path, &e))
    };
    let (after, keeps) = match &section.action {
        SectionAction::Add { lines, ends } => (added(lines, *ends), true),
        SectionAction::Update { hunks, .. } => (fitted(hunks)?, true),
        SectionAction::Delete { hunks } if hunks.is_empty() => (PatchedText::default(), false),
        SectionAction::Delete { hunks } => (fitted(hunks)?, false),
    };
    if !keeps && !after.text.is_empty() {
        let message = format!("{path:?} holds more than the lines that the patch deletes it with");
        return Err(ToolError::failed(message)
            .with_advice("read it again; to keep the rest, update the file"));
    }
    let new = match &section.action {
        _ if !keeps => None,
        SectionAction::Add { .. } => Some(StoredText::new(after.text)),
        SectionAction::Update { hunks, .. } if hunks.is_empty() => Some(old.clone()),
        _ => Some(old.with_text(path, after.text)?),
    };
    Ok(SectionPlan {
        section,
        target,
        old,
        new,
        added: after.added,
        removed: after.removed,
        notes: after.notes,
        stamp,
    })
}

/// Returns hunks without the byte-order mark that some programs show in a file's first line.
fn without_mark<'p>(hunks: &[Hunk<'p>]) -> Vec<Hunk<'p>> {
    let mut hunks = hunks.to_vec();
    for op in hunks.iter_mut().flat_map(|hunk| &mut hunk.ops) {
        op.text = op.text.strip_prefix(MARK).unwrap_or(op.text);
    }
    hunks
}

/// Reads the file as it is, if this caller may change it.
fn before(
    files: &Files,
    place: &ResolvedPath,
    caller: &FileCaller,
) -> Result<(Vec<u8>, FileStamp), ToolError> {
    if place.kind() == Some(EntryKind::Link) {
        let message = format!("{:?} is a link", place.display());
        return Err(ToolError::failed(message)
            .with_advice("a patch moves and deletes regular files; name the file it leads to"));
    }
    if place.kind() == Some(EntryKind::File) && files.requires_reading(caller) {
        files
            .seen
            .require(&caller.run, &files.workspace, place, Purpose::Change)?;
    }
    whole(files, place, MAX_EDITED)
}

pub(super) fn added(lines: &[&str], ends: bool) -> PatchedText {
    let mut text = lines.join("\n");
    if ends && !lines.is_empty() {
        text.push('\n');
    }
    PatchedText {
        text: text.into_bytes(),
        added: lines.len(),
        ..PatchedText::default()
    }
}

fn fit_failure(path: &str, error: &FitError) -> ToolError {
    let tool_error = ToolError::failed(format!("{path:?}: {error}"));
    match error {
        FitError::Absent { .. } => tool_error.with_advice(
            "no file was changed; read the file again and write the hunk's lines as they are there",
        ),
        FitError::Ambiguous { .. } => tool_error.with_advice(
            "no file was changed; add lines around the change, or `@@ LINE` with a line that is above it once",
        ),
        FitError::Overlap { .. } => tool_error.with_advice(
            "no file was changed; join both hunks into one, in which each line of the file is once",
        ),
        FitError::TooLong => tool_error,
        FitError::Stopped => cancelled(),
    }
}
