//! The rest of a changed file that a request does not show whole: read from the command's copy while it exists.

use std::fs::File;
use std::io;
use std::path::Path;

use haft::approval::ApprovalRequest;
use haft::approval::meaning::Meaning;
use haft::approval::preview::{FileChange, SideContent, StoredSides};
use haft::call::RunId;
use haft::change::ChangeLog;
use haft::change::collect::{CollectedChanges, open_sides};
use haft::error::ToolError;
use haft::text::visible;
use haft::workspace::Workspace;

use crate::command::changes::apply::ApplyChangesInput;
use crate::command::changes::folder::UPPER;
use crate::command::changes::opened_side::sides;
use crate::command::changes::pending::view_missing;
use crate::command::changes::{APPLY, note};
use crate::command::meaning::stored;

/// A file before and after the changes; `None` for a side that is no file.
type ContentPair = [Option<SideContent<'static>>; 2];

/// Opens a file that a request for a command's changes is about, in the workspace and as the command left it, or, if it did not change
/// there or is named so ([`FileChange::whole_name`]), a file of one of its commits; `None` if the request is not about a command's changes.
///
/// # Errors
/// The command's copy no longer exists, the request is not about this file, or it cannot be read.
pub fn open_changed(
    log: &ChangeLog,
    workspace: &Workspace,
    request: &ApprovalRequest,
    path: &Path,
) -> Option<Result<[Option<SideContent<'static>>; 2], ToolError>> {
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
) -> Result<ContentPair, ToolError> {
    let missing = |error: io::Error| view_missing(&error);
    let all = log.views_folder(&RunId::new(input.run.clone()));
    let all = all.map_err(|error| missing(io::Error::other(error)))?;
    let plain = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    if input.view.is_empty() || !input.view.bytes().all(plain) {
        return Err(missing(io::ErrorKind::NotFound.into()));
    }
    let folder = all.join(&input.view);
    let note = note::read(&folder).map_err(missing)?;
    let upper = folder.join(UPPER);
    let shown = visible::path(&path.to_string_lossy());
    let failed = |why: String| ToolError::failed(format!("read {shown}: {why}"));
    if note.fates.get(path) == Some(&input.part.fate()) {
        let content = |file: File| {
            let bytes = file.metadata()?.len();
            Ok::<_, io::Error>(SideContent::File(file, bytes))
        };
        let opened = open_sides(workspace, &upper, path).and_then(|[before, after]| {
            let (before, after) = (before.map(content), after.map(content));
            Ok([before.transpose()?, after.transpose()?])
        });
        return opened.map_err(|error| failed(error.to_string()));
    }
    let named = path.to_string_lossy();
    match note.meanings.iter().find_map(|one| of_commit(one, &named)) {
        Some(objects) => read_objects(workspace, &upper, &note, objects).map_err(failed),
        None => Err(ToolError::not_found(format!(
            "{shown} is not one of the files that this request is about"
        ))),
    }
}

/// Returns where git stores a file of a commit, or of one of the commits that it consists of.
fn of_commit<'m>(meaning: &'m Meaning, path: &str) -> Option<&'m StoredSides> {
    let is_it = |file: &&FileChange| {
        file.to.as_ref().unwrap_or(&file.path) == path || file.whole_name() == path
    };
    let mut own = meaning.files.iter().filter(is_it);
    let mut parts = meaning.parts.iter();
    own.find_map(|file| file.stored.as_ref())
        .or_else(|| parts.find_map(|part| of_commit(part, path)))
}

fn read_objects(
    workspace: &Workspace,
    upper: &Path,
    note: &note::StoredNote,
    objects: &StoredSides,
) -> Result<ContentPair, String> {
    let collected = CollectedChanges::collect_again(workspace, upper, note.since, &note.git);
    let collected = collected.map_err(|error| error.to_string())?;
    let read = stored(&sides(workspace, &collected), objects)?;
    Ok(read.map(|side| side.map(SideContent::from)))
}
