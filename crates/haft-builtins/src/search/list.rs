//! `list_files`: lists a folder, some levels deep.

use haft::error::ToolError;
use haft::plural::counted;
use haft::result::ToolResult;
use haft::text::visible;
use haft::workspace::{EntryKind, WorkspaceError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::files::FileCaller;
use crate::search::walk::FileWalk;
use crate::search::{EntriesData, complete, gather, sort};

/// What `list_files` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFilesInput {
    /// The folder, relative to the workspace root or absolute below it.
    #[serde(default = "root")]
    pub path: String,
    /// How many levels to descend.
    #[serde(default = "two")]
    #[schemars(range(min = 1, max = 64))]
    pub depth: usize,
    /// Include hidden files.
    #[serde(default)]
    pub hidden: bool,
    /// The most entries to return, nearest first.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 50_000))]
    pub limit: usize,
}

pub(crate) fn root() -> String {
    ".".to_owned()
}

fn two() -> usize {
    2
}

pub(crate) fn limit() -> usize {
    200
}

/// Lists a folder.
///
/// # Errors
/// `not_found` if the folder does not exist, `failed` if it is not a folder, `cancelled` if `stop` says so.
pub fn list_files(
    input: &ListFilesInput,
    caller: &FileCaller,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<ToolResult, ToolError> {
    let workspace = &caller.view;
    let place = caller.reads(workspace.existing(&input.path)?)?;
    if place.kind() != Some(EntryKind::Directory) {
        return Err(
            ToolError::from(WorkspaceError::NotADirectory(place.display()))
                .with_advice("read_file reads a file"),
        );
    }
    let walk = FileWalk::below(workspace, &place)
        .with_hidden(input.hidden)
        .with_depth(input.depth);
    let (mut entries, mut truncated) = gather(&walk, input.limit, stop, &|_| true);
    sort(&mut entries);
    if entries.len() > input.limit {
        truncated = true;
        // Shallow entries first, and by path within the same depth.
        entries.sort_by_key(|entry| entry.path.matches('/').count());
        entries.truncate(input.limit);
        sort(&mut entries);
    }
    complete(workspace, &mut entries);
    let more = if truncated { ", and more" } else { "" };
    let count = counted(entries.len(), "entry");
    let summary = format!("{count} in {}{more}", visible::path(&place.display()));
    let data = EntriesData { entries, truncated };
    ToolResult::data(&data).map(|result| result.with_summary(summary))
}
