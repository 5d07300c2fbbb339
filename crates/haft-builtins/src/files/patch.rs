//! `apply_patch`: a patch to several files, applied completely or not at all.

use std::fmt::Write;

use haft::approval::preview::{FileChange, Preview};
use haft::error::ToolError;
use haft::permission::{Condition, Permission};
use haft::result::ToolResult;
use haft::workspace::{FileUpdate, ResolvedPath, WorkspaceError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::check::{FileCheck, syntax};
use crate::files::edit::diff;
use crate::files::format::StoredText;
use crate::files::patch::parse::parse;
use crate::files::patch::plan::{SectionFiles, SectionPlan, plan, targets};
use crate::files::patch::section::{PatchError, SectionAction};
use crate::files::{FileCaller, Files, sha256};

mod body;
mod claimed;
mod fit;
mod indent;
mod names;
mod parse;
mod plan;
mod section;
mod seek;
mod unified;
mod v4a;

#[cfg(test)]
mod tests;

/// What `apply_patch` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyPatchInput {
    /// The patch: `*** Begin Patch` … `*** End Patch`, or a unified diff as git writes it. At most 4 MiB.
    pub patch: String,
}

/// What `apply_patch` gives.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApplyPatchData {
    /// The files, in the patch's order.
    pub files: Vec<PatchedFile>,
}

/// What became of one file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PatchedFile {
    /// The file; after a move its new path.
    pub path: String,
    /// What was done.
    pub action: FileAction,
    /// The old path of a moved file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Its new SHA-256, hex; none for a deleted file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
    /// What changed in an existing file, as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Whether it is well-formed, for kinds of file that are checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<FileCheck>,
    /// Hunks that matched only approximately, and what was not done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAction {
    /// Made.
    Added,
    /// Changed.
    Updated,
    /// Moved, perhaps changed.
    Moved,
    /// Deleted.
    Deleted,
}

/// Returns the permissions to write every path of the patch, and to read those whose changes are shown.
pub(crate) fn permissions(
    files: &Files,
    input: &ApplyPatchInput,
) -> Result<Vec<Permission>, ToolError> {
    let sections = parse(&input.patch).map_err(|e| malformed(&e))?;
    let mut wanted = Vec::new();
    for (section, target) in sections.iter().zip(targets(&files.workspace, &sections)?) {
        if let Some(from) = &target.from {
            let stays =
                target.to.is_none() && !matches!(section.action, SectionAction::Delete { .. });
            let change = if stays {
                Permission::write
            } else {
                Permission::remove
            };
            wanted.push(change(from.claim()?));
            wanted.push(Permission::read(from.claim()?));
        }
        if let Some(to) = &target.to {
            wanted.push(Permission::write(to.claim()?));
        }
    }
    Ok(wanted)
}

/// Returns the configured checkers that would run on the files that a patch writes.
pub(crate) fn checks(files: &Files, input: &ApplyPatchInput) -> Vec<Condition> {
    let sections = parse(&input.patch).unwrap_or_default();
    let written = sections.iter().filter_map(|section| match &section.action {
        SectionAction::Update { to: Some(to), .. } => Some(to.as_str()),
        SectionAction::Delete { .. } => None,
        SectionAction::Add { .. } | SectionAction::Update { to: None, .. } => {
            Some(section.path.as_str())
        }
    });
    files.checks(written)
}

/// Returns what a patch would change in each file.
pub(crate) fn preview(
    files: &Files,
    input: &ApplyPatchInput,
    caller: &FileCaller,
) -> Result<Vec<FileChange>, ToolError> {
    let sections = parse(&input.patch).map_err(|e| malformed(&e))?;
    let planned = plan(files, &sections, caller, &|| false)?;
    let mut preview = Preview::default();
    for planned in &planned {
        let SectionFiles { from, to } = &planned.target;
        let place = from.as_ref().or(to.as_ref());
        let before = from.as_ref().map(|_| &planned.old);
        let after = planned.new.as_ref();
        let name = place.map(ResolvedPath::display).unwrap_or_default();
        let target = place.map(ResolvedPath::claim).transpose()?;
        let change = FileChange::hashed(name, before.map(bytes), after.map(bytes))
            .leading_to(target.and_then(|claim| claim.target));
        let change = match to {
            Some(to) if from.is_some() => change.moved(to.display()),
            _ => change,
        };
        let (before, after) = (before.map(StoredText::text), after.map(StoredText::text));
        preview.add(change, before.into(), after.into());
    }
    Ok(preview.into_changes())
}

/// Applies a patch. Also returns the new place of each file, for checkers.
///
/// # Errors
/// `invalid_arguments` if the patch cannot be parsed, `conflict` if a file changed since it was read, `failed` if a hunk does not
/// fit; no file is changed then.
pub fn apply_patch(
    files: &Files,
    input: &ApplyPatchInput,
    caller: &FileCaller,
    stop: &dyn Fn() -> bool,
) -> Result<(ApplyPatchData, Vec<Option<ResolvedPath>>), ToolError> {
    let sections = parse(&input.patch).map_err(|e| malformed(&e))?;
    let planned = plan(files, &sections, caller, stop)?;
    let changes: Vec<FileUpdate<'_>> = planned.iter().flat_map(SectionPlan::changes).collect();
    let stamps = caller.changer.change(&changes).map_err(to_tool_error)?;
    for change in &changes {
        files.seen.forget(&caller.run, change.place.real());
    }
    for (change, stamp) in changes.iter().zip(stamps) {
        if let (Some(content), Some(stamp)) = (change.content, stamp) {
            let (real, sha256) = (change.place.real(), sha256(content));
            files.seen.note(&caller.run, real, stamp, &sha256);
        }
    }
    let done = planned.into_iter().map(done).collect::<Vec<_>>();
    let (files, places) = done.into_iter().unzip();
    Ok((ApplyPatchData { files }, places))
}

fn bytes(text: &StoredText) -> &[u8] {
    &text.bytes
}

fn done(planned: SectionPlan<'_>) -> (PatchedFile, Option<ResolvedPath>) {
    let SectionPlan {
        section,
        target,
        old,
        new,
        added,
        removed,
        mut notes,
        stamp: _,
    } = planned;
    let from = target.from.as_ref().map(ResolvedPath::display);
    let to = target.to.as_ref().map(ResolvedPath::display);
    let (action, from, path) = match (from, to) {
        (Some(from), Some(to)) => (FileAction::Moved, Some(from), to),
        (Some(path), None) if new.is_none() => (FileAction::Deleted, None, path),
        (Some(path), None) => (FileAction::Updated, None, path),
        (None, to) => (FileAction::Added, None, to.unwrap_or_default()),
    };
    notes.extend(section.notes.iter().cloned());
    let shows =
        action == FileAction::Updated || (action == FileAction::Moved && added + removed > 0);
    let file = PatchedFile {
        action,
        from,
        sha256: new.as_ref().map(|new| sha256(&new.bytes)),
        added,
        removed,
        diff: new
            .as_ref()
            .filter(|_| shows)
            .map(|new| diff(&path, old.text(), new.text())),
        check: new
            .as_ref()
            .and_then(|new| Some(syntax(&path, new.parsed())?.1)),
        notes,
        path,
    };
    let place = new.and(target.to.or(target.from));
    (file, place)
}

fn malformed(error: &PatchError) -> ToolError {
    ToolError::invalid_arguments(error.to_string()).with_advice(
        "a patch is `*** Begin Patch`, then `*** Update File: PATH` with hunks of lines that begin with a blank, - or +, \
         `*** Add File: PATH` with + lines, or `*** Delete File: PATH`, then `*** End Patch`; or a unified diff",
    )
}

/// Converts an error; a failed change was rolled back unless the error says otherwise.
fn to_tool_error(error: WorkspaceError) -> ToolError {
    let put_back = !matches!(error, WorkspaceError::NotPutBack { .. });
    let tool_error = ToolError::from(error);
    if put_back && tool_error.advice().is_none() {
        return tool_error.with_advice("no file was changed");
    }
    tool_error
}

/// Builds the result for the caller.
pub(crate) fn result(data: &ApplyPatchData) -> Result<ToolResult, ToolError> {
    let mut text = String::new();
    for file in &data.files {
        let counts = match (file.added, file.removed) {
            (0, 0) => String::new(),
            (added, removed) => format!(" (+{added} -{removed})"),
        };
        // Writing to a `String` cannot fail.
        let _ = match (file.action, &file.from) {
            (FileAction::Added, _) => writeln!(text, "added {}{counts}", file.path),
            (FileAction::Updated, _) => writeln!(text, "updated {}{counts}", file.path),
            (FileAction::Moved, from) => {
                let from = from.as_deref().unwrap_or_default();
                writeln!(text, "moved {from} to {}{counts}", file.path)
            }
            (FileAction::Deleted, _) => writeln!(text, "deleted {}", file.path),
        };
        for note in &file.notes {
            let _ = writeln!(text, "  {note}");
        }
        if let Some(check) = &file.check {
            let _ = writeln!(text, "  {}", check.sentence("the file's syntax"));
        }
    }
    let summary = match &data.files[..] {
        [_] => text.lines().next().unwrap_or_default().to_owned(),
        files => format!("applied a patch to {} files", files.len()),
    };
    ToolResult::text(text.trim_end())
        .with_summary(summary)
        .with_data_for_programs(data)
}
