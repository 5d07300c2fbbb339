//! `write_file`: writes a file completely or not at all.

use haft::error::ToolError;
use haft::result::ToolResult;
use haft::text::visible;
use haft::workspace::{ResolvedPath, WriteMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::check::{FileCheck, syntax};
use crate::files::read::whole;
use crate::files::seen::Purpose;
use crate::files::text::with_separators;
use crate::files::{FileCaller, Files, sha256};

/// Maximum size of a file to append to, in bytes: the result is hashed and checked as a whole.
const MAX_APPENDED: u64 = 256 << 20;

/// What `write_file` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFileInput {
    /// The file, relative to the workspace root or absolute below it; missing folders are created.
    pub path: String,
    /// The text to write.
    pub content: String,
    /// What to do with a file that exists: replace its text, add to it, or fail.
    #[serde(default)]
    pub mode: OnExisting,
}

/// What to do with a file that exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnExisting {
    /// Replace its text.
    #[default]
    Overwrite,
    /// Add to it.
    Append,
    /// Fail.
    Create,
}

/// What `write_file` gives.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WriteFileData {
    /// The file.
    pub path: String,
    /// Its new size.
    pub bytes: u64,
    /// Its new SHA-256, hex.
    pub sha256: String,
    /// Whether the file is new.
    pub created: bool,
    /// Whether it is well-formed, for kinds of file that are checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<FileCheck>,
}

/// Writes a file. Also returns its place, for checkers.
///
/// # Errors
/// `conflict` if the file exists or changed since it was read, `failed` if it cannot be written.
pub fn write_file(
    files: &Files,
    input: &WriteFileInput,
    caller: &FileCaller,
) -> Result<(WriteFileData, ResolvedPath), ToolError> {
    let workspace = &files.workspace;
    let place = caller.changes(workspace.place(&input.path)?)?;
    let there = place.kind().is_some();
    // Appending to a file overwrites nothing unseen.
    if there && input.mode == OnExisting::Overwrite && files.requires_reading(caller) {
        files
            .seen
            .require(&caller.run, workspace, &place, Purpose::Change)?;
    }
    let expected = match (there, input.mode) {
        (true, OnExisting::Overwrite) => workspace.stamp(&place)?,
        _ => None,
    };
    let known = !(there && input.mode == OnExisting::Append)
        || files
            .seen
            .require(&caller.run, workspace, &place, Purpose::Change)
            .is_ok();
    let mut whole_text = None;
    let (content, mode, expected) = match input.mode {
        OnExisting::Append if there => {
            let (mut text, stamp) = whole(files, &place, MAX_APPENDED)?;
            text.extend_from_slice(input.content.as_bytes());
            let text: &[u8] = whole_text.insert(text);
            (text, WriteMode::Overwrite, Some(stamp))
        }
        OnExisting::Create => (input.content.as_bytes(), WriteMode::Create, None),
        _ => (input.content.as_bytes(), WriteMode::Overwrite, expected),
    };
    let written = caller
        .changer
        .write(&place, content, mode, expected.as_ref())?;
    let sha256 = sha256(content);
    if known {
        files
            .seen
            .note(&caller.run, place.real(), written.stamp, &sha256);
    }
    let data = WriteFileData {
        path: place.display(),
        bytes: written.stamp.bytes(),
        sha256,
        created: written.created,
        check: syntax(&place.display(), content).map(|(_, check)| check),
    };
    Ok((data, place))
}

/// Builds the result for the caller.
pub(crate) fn result(data: &WriteFileData) -> Result<ToolResult, ToolError> {
    let verb = if data.created { "created" } else { "wrote" };
    let mut text = format!(
        "{verb} {} ({} bytes)",
        visible::path(&data.path),
        with_separators(data.bytes)
    );
    let summary = text.clone();
    if let Some(check) = &data.check {
        text.push('\n');
        text.push_str(&check.sentence("the file's syntax"));
    }
    ToolResult::text(text)
        .with_summary(summary)
        .with_data_for_programs(data)
}
