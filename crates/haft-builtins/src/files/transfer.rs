//! `move_file` and `delete_file`: files, links and whole folders.

use std::path::Path;

use haft::error::ToolError;
use haft::permission::{PathClaim, Permission};
use haft::result::ToolResult;
use haft::spec::Risk;
use haft::text::visible;
use haft::workspace::{EntryKind, ResolvedPath, Workspace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::seen::Purpose;
use crate::files::{FileCaller, Files};

/// Maximum number of folder entries listed for the policy; a larger folder is not moved or deleted at once.
const MAX_TREE: usize = 5_000;

/// What `move_file` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveFileInput {
    /// The file, link or folder to move.
    pub from: String,
    /// Its new path; missing folders are created.
    pub to: String,
    /// Replace an existing file; folders are never replaced.
    #[serde(default)]
    pub overwrite: bool,
}

/// What `delete_file` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteFileInput {
    /// The file, link or folder to delete; of a link, the link itself.
    pub path: String,
    /// Delete a folder and everything in it.
    #[serde(default)]
    pub recursive: bool,
}

/// What `move_file` gives.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MoveFileData {
    /// Its new path.
    pub path: String,
    /// Its old path.
    pub from: String,
}

/// What `delete_file` gives.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeleteFileData {
    /// What was deleted.
    pub path: String,
}

/// Returns the permissions of a move: both ends, and for a folder everything in it under both names. The caller can read what
/// was moved under its new name, so moving also counts as reading.
pub(crate) fn move_permissions(
    files: &Files,
    input: &MoveFileInput,
) -> Result<Vec<Permission>, ToolError> {
    let workspace = &files.workspace;
    let (from, to) = (workspace.entry(&input.from)?, workspace.entry(&input.to)?);
    let mut wanted = vec![
        Permission::remove(from.claim()?),
        Permission::write(to.claim()?),
        Permission::read(from.claim()?),
    ];
    for path in tree(workspace, &from)? {
        let rest = Path::new(&path).strip_prefix(from.real());
        let target = to.real().join(rest.unwrap_or(Path::new("")));
        wanted.push(Permission::write(PathClaim::plain(
            target.to_string_lossy(),
        )));
        wanted.push(Permission::read(PathClaim::plain(&path)));
        wanted.push(Permission::remove(PathClaim::plain(path)));
    }
    Ok(wanted)
}

/// Returns the permissions to remove every path of a deletion.
pub(crate) fn delete_permissions(
    files: &Files,
    input: &DeleteFileInput,
) -> Result<Vec<Permission>, ToolError> {
    let place = files.workspace.entry(&input.path)?;
    let critical = |claim| Permission::remove(claim).at(Risk::Critical);
    let mut wanted = vec![critical(place.claim()?)];
    if input.recursive {
        let below = tree(&files.workspace, &place)?;
        wanted.extend(below.into_iter().map(PathClaim::plain).map(critical));
    }
    Ok(wanted)
}

/// Returns all real paths below a folder, or nothing if it is not a folder.
pub(crate) fn tree(workspace: &Workspace, place: &ResolvedPath) -> Result<Vec<String>, ToolError> {
    if place.kind() != Some(EntryKind::Directory) {
        return Ok(Vec::new());
    }
    workspace.tree(place, MAX_TREE)?.ok_or_else(|| {
        let message = format!("{:?} holds more than {MAX_TREE} entries", place.display());
        ToolError::failed(message)
            .with_advice("move or delete its parts one by one, or use a command")
    })
}

/// Moves a file, link or folder.
///
/// # Errors
/// `not_found`, `conflict` if the target exists, `failed` if it cannot be moved.
pub fn move_file(
    files: &Files,
    input: &MoveFileInput,
    caller: &FileCaller,
) -> Result<ToolResult, ToolError> {
    let workspace = &files.workspace;
    let from = caller.changes(
        caller
            .view
            .require_existing(workspace.entry(&input.from)?)?,
    )?;
    let to = caller.changes(workspace.entry(&input.to)?)?;
    if files.requires_reading(caller) {
        // The original path of a moved file is lost; the files of a folder are found again below the new name.
        let replaced = Some((&to, Purpose::Change)).filter(|_| input.overwrite);
        let ends = [Some((&from, Purpose::Move)), replaced];
        for (place, purpose) in ends.into_iter().flatten() {
            if place.kind() == Some(EntryKind::File) {
                let run = &caller.run;
                files.seen.require(run, workspace, place, purpose)?;
            }
        }
    }
    caller
        .changer
        .rename(&from, &to, input.overwrite)
        .map_err(|error| or_advice(error.into(), "overwrite=true replaces a file"))?;
    files.seen.forget(&caller.run, to.real());
    files.seen.moved(&caller.run, from.real(), to.real());
    let data = MoveFileData {
        path: to.display(),
        from: from.display(),
    };
    let text = format!(
        "moved {} to {}",
        visible::path(&data.from),
        visible::path(&data.path)
    );
    ToolResult::text(text.clone())
        .with_summary(text)
        .with_data_for_programs(&data)
}

/// Deletes a file, link or folder.
///
/// # Errors
/// `not_found`, `failed` if it cannot be deleted.
pub fn delete_file(
    files: &Files,
    input: &DeleteFileInput,
    caller: &FileCaller,
) -> Result<ToolResult, ToolError> {
    let place = caller.changes(
        caller
            .view
            .require_existing(files.workspace.entry(&input.path)?)?,
    )?;
    caller.changer.remove(&place, input.recursive)?;
    files.seen.forget(&caller.run, place.real());
    let data = DeleteFileData {
        path: place.display(),
    };
    let text = format!("deleted {}", visible::path(&data.path));
    ToolResult::text(text.clone())
        .with_summary(text)
        .with_data_for_programs(&data)
}

/// Adds advice to a conflict that has none.
fn or_advice(error: ToolError, advice: &str) -> ToolError {
    if error.kind() == haft::error::ErrorKind::Conflict && error.advice().is_none() {
        return error.with_advice(advice);
    }
    error
}
