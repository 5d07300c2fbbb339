//! The rest of a changed file that a request does not show whole: read from the command's copy while it exists.

use std::fs::File;
use std::io;
use std::path::Path;

use haft::approval::ApprovalRequest;
use haft::call::RunId;
use haft::change::ChangeLog;
use haft::change::collect::open_sides;
use haft::error::ToolError;
use haft::workspace::Workspace;

use crate::command::changes::apply::ApplyChangesInput;
use crate::command::changes::folder::UPPER;
use crate::command::changes::pending::view_missing;
use crate::command::changes::{APPLY, note};

/// Opens a file that a request for a command's changes is about, in the workspace and as the command left it; `None` if the request is
/// not about a command's changes.
///
/// # Errors
/// The command's copy no longer exists, the request is not about this file, or it cannot be read.
pub fn open_changed(
    log: &ChangeLog,
    workspace: &Workspace,
    request: &ApprovalRequest,
    path: &Path,
) -> Option<Result<[Option<File>; 2], ToolError>> {
    if request.tool.as_str() != APPLY {
        return None;
    }
    let input: ApplyChangesInput = serde_json::from_str(&request.arguments).ok()?;
    Some(open(log, workspace, &input, path))
}

fn open(
    log: &ChangeLog,
    workspace: &Workspace,
    input: &ApplyChangesInput,
    path: &Path,
) -> Result<[Option<File>; 2], ToolError> {
    let missing = |error: io::Error| view_missing(&error);
    let all = log.views_folder(&RunId::new(input.run.clone()));
    let all = all.map_err(|error| missing(io::Error::other(error)))?;
    let plain = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    if input.view.is_empty() || !input.view.bytes().all(plain) {
        return Err(missing(io::ErrorKind::NotFound.into()));
    }
    let folder = all.join(&input.view);
    let note = note::read(&folder).map_err(missing)?;
    if note.fates.get(path) != Some(&input.part.fate()) {
        return Err(ToolError::not_found(format!(
            "{} is not one of the files that this request is about",
            path.display()
        )));
    }
    open_sides(workspace, &folder.join(UPPER), path)
        .map_err(|error| ToolError::failed(format!("read {}: {error}", path.display())))
}
