//! `edit_file`: several edits of one file, applied together or not at all, with a unified diff of the result.

use std::time::Duration;

use haft::error::ToolError;
use haft::result::ToolResult;
use haft::text::visible;
use haft::workspace::{ResolvedPath, WriteMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use crate::files::charset::MARK;
use crate::files::check::{FileCheck, syntax};
use crate::files::format::StoredText;
use crate::files::read::whole;
use crate::files::seen::Purpose;
use crate::files::splice::{SpliceError, TextEdit, splice};
use crate::files::{FileCaller, Files, sha256};

/// Maximum size of a file to edit, in bytes.
pub(crate) const MAX_EDITED: u64 = 32 << 20;
/// Maximum time to search for the smallest diff before accepting a larger one.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

/// What `edit_file` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditFileInput {
    /// The file, relative to the workspace root or absolute below it.
    pub path: String,
    /// The edits. All refer to the file as it is before the call, may not overlap, and are applied together or not at all.
    #[schemars(length(min = 1, max = 1000))]
    pub edits: Vec<TextEdit>,
}

/// What `edit_file` gives.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EditFileData {
    /// The file.
    pub path: String,
    /// How many places were replaced.
    pub applied: usize,
    /// Its new SHA-256, hex.
    pub sha256: String,
    /// What changed, as a unified diff.
    pub diff: String,
    /// Whether it is well-formed, for kinds of file that are checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<FileCheck>,
}

/// Edits a file. Also returns its place, for checkers.
///
/// # Errors
/// `not_found`, `conflict` if the file changed since it was read, `failed` if an edit does not apply; nothing is written then.
pub fn edit_file(
    files: &Files,
    input: &EditFileInput,
    caller: &FileCaller,
) -> Result<(EditFileData, ResolvedPath), ToolError> {
    let place = caller.changes(caller.view.existing(&input.path)?)?;
    if files.requires_reading(caller) {
        files
            .seen
            .require(&caller.run, &files.workspace, &place, Purpose::Change)?;
    }
    let (old, stamp) = whole(files, &place, MAX_EDITED)?;
    let path = place.display();
    let old = StoredText::read(&path, old)?;
    let (new, applied) = edited(&path, &old, &input.edits)?;
    let written = caller
        .changer
        .write(&place, &new.bytes, WriteMode::Overwrite, Some(&stamp))?;
    let sha256 = sha256(&new.bytes);
    files
        .seen
        .note(&caller.run, place.real(), written.stamp, &sha256);
    let data = EditFileData {
        applied,
        sha256,
        diff: diff(&path, old.text(), new.text()),
        check: syntax(&path, new.parsed()).map(|(_, check)| check),
        path,
    };
    Ok((data, place))
}

/// Returns a file with edits applied, and how many places were replaced.
pub(crate) fn edited(
    path: &str,
    old: &StoredText,
    edits: &[TextEdit],
) -> Result<(StoredText, usize), ToolError> {
    let bare = old.is_marked().then(|| without_mark(edits));
    let edits = bare.as_deref().unwrap_or(edits);
    let (text, applied) = splice(old.text(), edits).map_err(|e| splice_failure(path, &e))?;
    Ok((old.with_text(path, text)?, applied))
}

/// Returns edits without the byte-order mark that some programs show in a file's first line.
fn without_mark(edits: &[TextEdit]) -> Vec<TextEdit> {
    let bare = |text: &str| text.strip_prefix(MARK).unwrap_or(text).to_owned();
    let edits = edits.iter().map(|edit| TextEdit {
        find: edit.find.as_deref().map(bare),
        replace: bare(&edit.replace),
        ..edit.clone()
    });
    edits.collect()
}

/// Returns the unified diff of two texts, with three lines of context.
pub fn diff(path: &str, old: &[u8], new: &[u8]) -> String {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let diff = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_lines(&*old, &*new);
    diff.unified_diff()
        .context_radius(3)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string()
}

fn splice_failure(path: &str, error: &SpliceError) -> ToolError {
    let message = format!("{path:?}: {error}");
    match error {
        SpliceError::Malformed { .. } | SpliceError::Overlap { .. } => {
            ToolError::invalid_arguments(message)
        }
        SpliceError::Absent {
            near: Some(line), ..
        } => ToolError::failed(message).with_advice(format!(
            "line {line} differs only in blanks: copy the text exactly as read_file shows it"
        )),
        SpliceError::Absent { near: None, .. } => ToolError::failed(message)
            .with_advice("read the file again: find must be its exact text, blanks included"),
        SpliceError::Ambiguous { .. } => ToolError::failed(message)
            .with_advice("add lines around it until it occurs once, or set all=true"),
        SpliceError::NoSuchLines { .. } => ToolError::invalid_arguments(message)
            .with_advice("lines count from 1; start_line one past the last line appends"),
    }
}

/// Builds the result for the caller.
pub(crate) fn result(data: &EditFileData) -> Result<ToolResult, ToolError> {
    let summary = match data.applied {
        1 => format!("edited {} in 1 place", visible::path(&data.path)),
        n => format!("edited {} in {n} places", visible::path(&data.path)),
    };
    let mut text = summary.clone();
    if let Some(check) = &data.check {
        text.push('\n');
        text.push_str(&check.sentence("the file's syntax"));
    }
    ToolResult::text(text)
        .with_summary(summary)
        .with_data_for_programs(data)
}
