//! `write_file`: writes a file completely or not at all.

use haft::error::ToolError;
use haft::result::ToolResult;
use haft::text::visible;
use haft::workspace::{EntryKind, ResolvedPath, WriteMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::charset::Charset;
use crate::files::check::{FileCheck, syntax};
use crate::files::edit::MAX_EDITED;
use crate::files::format::StoredText;
use crate::files::read::{beginning, whole};
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
    /// What was kept of the old file's encoding, if it is not UTF-8 with LF: `UTF-16LE, byte-order mark, CR LF`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
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
    let path = place.display();
    let (new, mode, expected) = match input.mode {
        OnExisting::Append if there => {
            let (bytes, stamp) = whole(files, &place, MAX_APPENDED)?;
            let new = appended(&path, bytes, &input.content)?;
            (new, WriteMode::Overwrite, Some(stamp))
        }
        OnExisting::Overwrite if place.kind() == Some(EntryKind::File) => {
            let bytes = beginning(files, &place, MAX_EDITED)?;
            let new = overwritten(&path, bytes, &input.content)?;
            (new, WriteMode::Overwrite, expected)
        }
        OnExisting::Create => (plain(&input.content), WriteMode::Create, None),
        _ => (plain(&input.content), WriteMode::Overwrite, expected),
    };
    let written = caller
        .changer
        .write(&place, &new.bytes, mode, expected.as_ref())?;
    let sha256 = sha256(&new.bytes);
    if known {
        files
            .seen
            .note(&caller.run, place.real(), written.stamp, &sha256);
    }
    let data = WriteFileData {
        bytes: written.stamp.bytes(),
        sha256,
        created: written.created,
        kept: new.encoding_note().filter(|_| !written.created),
        check: syntax(&path, new.parsed()).map(|(_, check)| check),
        path,
    };
    Ok((data, place))
}

fn plain(text: &str) -> StoredText {
    StoredText::new(text.as_bytes().to_vec())
}

/// Returns a file with a text added at its end.
pub(crate) fn appended(path: &str, old: Vec<u8>, more: &str) -> Result<StoredText, ToolError> {
    StoredText::read_to_replace(old).extended(path, more)
}

/// Returns what a file becomes if its text is replaced. What was not text becomes a new text file.
pub(crate) fn overwritten(path: &str, old: Vec<u8>, text: &str) -> Result<StoredText, ToolError> {
    if Charset::of(&old).is_none() {
        return Ok(plain(text));
    }
    StoredText::read_to_replace(old).replaced(path, text)
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
    if let Some(kept) = &data.kept {
        text.push_str("\nkept as the file had it: ");
        text.push_str(kept);
    }
    if let Some(check) = &data.check {
        text.push('\n');
        text.push_str(&check.sentence("the file's syntax"));
    }
    ToolResult::text(text)
        .with_summary(summary)
        .with_data_for_programs(data)
}
