//! `glob_files`: finds files whose path matches a pattern.

use std::path::Path;

use globset::GlobBuilder;
use haft::error::ToolError;
use haft::plural::counted;
use haft::result::ToolResult;
use haft::workspace::EntryKind;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::files::FileCaller;
use crate::search::list::{limit, root};
use crate::search::walk::{FileWalk, WalkEntry};
use crate::search::{EntriesData, complete, gather, sort};

/// What `glob_files` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobFilesInput {
    /// The pattern: `*` and `?` within a name, `**` across folders, `[ab]`, `{rs,toml}`. Without a `/` it matches names at any depth.
    #[schemars(length(min = 1, max = 4096))]
    pub pattern: String,
    /// The folder to search.
    #[serde(default = "root")]
    pub path: String,
    /// The most entries to return.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 50_000))]
    pub limit: usize,
}

/// Finds files by name.
///
/// # Errors
/// `invalid_arguments` if the pattern is invalid, `not_found` if the folder does not exist, `cancelled` if `stop` says so.
pub fn glob_files(
    input: &GlobFilesInput,
    caller: &FileCaller,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<ToolResult, ToolError> {
    let workspace = &caller.view;
    let pattern = input.pattern.trim_start_matches("./");
    let whole = match (pattern.strip_prefix('/'), pattern.contains('/')) {
        (Some(anchored), _) => anchored.to_owned(),
        (None, true) => pattern.to_owned(),
        (None, false) => format!("**/{pattern}"),
    };
    let glob = GlobBuilder::new(&whole)
        .literal_separator(true)
        .build()
        .map_err(|e| ToolError::invalid_arguments(format!("pattern: {e}")))?
        .compile_matcher();
    let place = caller.reads(workspace.existing(&input.path)?)?;
    let base = place.real();
    let hidden = pattern.starts_with('.') || pattern.contains("/.");
    let matches = |found: &WalkEntry<'_>| {
        let is_file = found.kind != EntryKind::Directory;
        is_file
            && found.path.strip_prefix(base).is_ok_and(|below| {
                let is_base = below.as_os_str().is_empty();
                glob.is_match(if is_base {
                    Path::new(found.name)
                } else {
                    below
                })
            })
    };
    let walk = FileWalk::below(workspace, &place).with_hidden(hidden);
    let (mut entries, mut truncated) = gather(&walk, input.limit, stop, &matches);
    sort(&mut entries);
    if entries.len() > input.limit {
        truncated = true;
        entries.truncate(input.limit);
    }
    complete(workspace, &mut entries);
    let more = if truncated { ", and more" } else { "" };
    let does = if entries.len() == 1 {
        "matches"
    } else {
        "match"
    };
    let files = counted(entries.len(), "file");
    let summary = format!("{files} {does} {}{more}", input.pattern);
    let data = EntriesData { entries, truncated };
    ToolResult::data(&data).map(|result| result.with_summary(summary))
}
