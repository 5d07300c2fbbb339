//! Previews what the file tools would change, for the user who decides. Does the same work as the tools, except for the
//! writing.

use haft::approval::preview::{ChangeSide, FileChange, Preview};
use haft::error::ToolError;
use haft::workspace::{EntryKind, ResolvedPath};

use crate::files::edit::{EditFileInput, MAX_EDITED, edited};
use crate::files::format::StoredText;
use crate::files::patch::{self, ApplyPatchInput};
use crate::files::read::whole;
use crate::files::transfer::{DeleteFileInput, MoveFileInput};
use crate::files::write::{OnExisting, WriteFileInput, overwritten};
use crate::files::{FileCaller, Files};

type FilePreview = Result<Vec<FileChange>, ToolError>;

/// Ignores errors, because the call fails with them too and reports them.
pub(crate) fn changes_or_none(changes: FilePreview) -> Vec<FileChange> {
    changes.unwrap_or_default()
}

/// Returns the contents of an existing file.
fn now(files: &Files, place: &ResolvedPath) -> Result<Option<Vec<u8>>, ToolError> {
    if place.kind() != Some(EntryKind::File) {
        return Ok(None);
    }
    Ok(Some(whole(files, place, MAX_EDITED)?.0))
}

pub(crate) fn write(files: &Files, input: &WriteFileInput) -> FilePreview {
    let place = files.workspace.place(&input.path)?;
    let path = place.display();
    let before = now(files, &place)?.map(StoredText::read_to_replace);
    let after = match (&before, input.mode) {
        (Some(before), OnExisting::Append) => before.extended(&path, &input.content)?,
        (Some(before), _) => overwritten(&path, before.bytes.clone(), &input.content)?,
        (None, _) => StoredText::new(input.content.as_bytes().to_vec()),
    };
    let change = FileChange::hashed(
        path,
        before.as_ref().map(|text| &text.bytes[..]),
        Some(&after.bytes),
    );
    let change = change.leading_to(place.claim()?.target);
    let before = before.as_ref().map(StoredText::text);
    Ok(preview_of(change, before, after.text()))
}

/// Returns the preview of one change, with the texts of both sides in UTF-8.
fn preview_of(change: FileChange, before: Option<&[u8]>, after: &[u8]) -> Vec<FileChange> {
    let mut preview = Preview::default();
    preview.add(change, before.into(), Some(after).into());
    preview.into_changes()
}

pub(crate) fn edit(files: &Files, input: &EditFileInput) -> FilePreview {
    let place = files.workspace.existing(&input.path)?;
    let path = place.display();
    let before = StoredText::read(&path, whole(files, &place, MAX_EDITED)?.0)?;
    let (after, _) = edited(&path, &before, &input.edits)?;
    let change = FileChange::hashed(path, Some(&before.bytes), Some(&after.bytes));
    let change = change.leading_to(place.claim()?.target);
    Ok(preview_of(change, Some(before.text()), after.text()))
}

pub(crate) fn patch(files: &Files, input: &ApplyPatchInput) -> FilePreview {
    patch::preview(files, input, &FileCaller::preview(files))
}

pub(crate) fn transfer(files: &Files, input: &MoveFileInput) -> FilePreview {
    let workspace = &files.workspace;
    let (from, to) = (workspace.entry(&input.from)?, workspace.entry(&input.to)?);
    let (moves, replaced) = (now(files, &from)?, now(files, &to)?);
    let mut preview = Preview::default();
    if let Some(bytes) = &moves {
        let moved = FileChange::hashed(from.display(), Some(bytes), Some(bytes));
        let moved = moved.leading_to(from.claim()?.target).moved(to.display());
        preview.add(moved, Some(&bytes[..]).into(), Some(&bytes[..]).into());
    }
    if let Some(bytes) = &replaced {
        let change = FileChange::hashed(to.display(), Some(bytes), None);
        let change = change.leading_to(to.claim()?.target);
        preview.add(change, Some(&bytes[..]).into(), ChangeSide::None);
    }
    Ok(preview.into_changes())
}

pub(crate) fn delete(files: &Files, input: &DeleteFileInput) -> FilePreview {
    let place = files.workspace.entry(&input.path)?;
    let source = now(files, &place)?;
    let target = place.claim()?.target;
    let change =
        |bytes: Vec<u8>| FileChange::new(place.display(), Some(&bytes), None).leading_to(target);
    Ok(source.map(change).into_iter().collect())
}
