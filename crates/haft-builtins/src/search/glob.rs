//! `glob_files`: finds files whose path matches a pattern.

use std::borrow::Cow;
use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use haft::error::ToolError;
use haft::plural::counted;
use haft::result::ToolResult;
use haft::workspace::{EntryKind, composed};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::files::FileCaller;
use crate::search::list::{limit, root};
use crate::search::walk::{FileWalk, WalkEntry};
use crate::search::{EntriesData, FoundEntry, complete, gather, sort};

/// What `glob_files` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobFilesInput {
    /// The pattern: `*` and `?` within a name, `**` across folders, `[ab]`, `{rs,toml}`; `\\[` for a bracket in a name. Without a `/` it matches names at any depth.
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
    let globs = NameGlobs::new(pattern)?;
    let place = caller.reads(workspace.existing(&input.path)?)?;
    let base = place.real();
    let hidden = pattern.starts_with('.') || pattern.contains("/.");
    let matches = |found: &WalkEntry<'_>| {
        let is_file = found.kind != EntryKind::Directory;
        is_file
            && found.path.strip_prefix(base).is_ok_and(|below| {
                let is_base = below.as_os_str().is_empty();
                globs.matches(if is_base {
                    Path::new(found.name)
                } else {
                    below
                })
            })
    };
    let walk = FileWalk::below(workspace, &place).with_hidden(hidden);
    let (mut entries, mut truncated) = gather(&walk, input.limit, stop, &matches);
    let note = globs.keep_meant(&mut entries, base);
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
    let mut result = ToolResult::data(&data)?.with_summary(summary);
    result.notes.extend(note);
    Ok(result)
}

/// A pattern as it is written, and with its brackets as letters: names such as `[id].tsx` have them.
struct NameGlobs {
    /// `None` if it is valid only with its brackets as letters.
    glob: Option<GlobMatcher>,
    /// `None` if it has no brackets.
    literal: Option<GlobMatcher>,
}

impl NameGlobs {
    fn new(pattern: &str) -> Result<Self, ToolError> {
        let pattern = composed(pattern);
        let whole = match (pattern.strip_prefix('/'), pattern.contains('/')) {
            (Some(anchored), _) => anchored.to_owned(),
            (None, true) => pattern.into_owned(),
            (None, false) => format!("**/{pattern}"),
        };
        let compiled = |pattern: &str| {
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            glob.map(|glob| glob.compile_matcher())
        };
        let literal = with_literal_brackets(&whole).and_then(|whole| compiled(&whole).ok());
        match compiled(&whole) {
            Ok(glob) => Ok(Self {
                glob: Some(glob),
                literal,
            }),
            Err(_) if literal.is_some() => Ok(Self {
                glob: None,
                literal,
            }),
            Err(error) => Err(ToolError::invalid_arguments(format!("pattern: {error}"))),
        }
    }

    /// Whether a path matches in one of the two ways.
    fn matches(&self, path: &Path) -> bool {
        is_match(self.glob.as_ref(), path) || is_match(self.literal.as_ref(), path)
    }

    /// Keeps the entries that the pattern as written matches; if there are none, those with the brackets in their names. Returns a note
    /// if both were possible.
    fn keep_meant(&self, entries: &mut Vec<FoundEntry>, base: &Path) -> Option<String> {
        self.literal.as_ref()?;
        let as_written = |entry: &FoundEntry| {
            let path = Path::new(&entry.path);
            let below = path.strip_prefix(base).unwrap_or(path);
            let named = if below.as_os_str().is_empty() {
                path.file_name().map_or(path, Path::new)
            } else {
                below
            };
            is_match(self.glob.as_ref(), named)
        };
        let all = entries.len();
        let meant = entries.iter().filter(|entry| as_written(entry)).count();
        if meant == 0 {
            let taken = "no name matches with [...] as a set of characters, so the brackets were taken as letters; \\[ means that always";
            return (all > 0).then(|| taken.to_owned());
        }
        entries.retain(as_written);
        (meant < all).then(|| {
            let more = counted(all - meant, "file");
            format!("[...] is a set of characters here; {more} with these brackets in the name: write \\[ for [ to find them")
        })
    }
}

/// Matches a path in composed form.
fn is_match(glob: Option<&GlobMatcher>, path: &Path) -> bool {
    let Some(glob) = glob else {
        return false;
    };
    match path.to_str().map(composed) {
        Some(Cow::Owned(text)) => glob.is_match(text),
        Some(Cow::Borrowed(_)) | None => glob.is_match(path),
    }
}

/// Returns a pattern with its brackets escaped; `None` if it has no pair of them.
fn with_literal_brackets(pattern: &str) -> Option<String> {
    let mut literal = String::with_capacity(pattern.len() + 8);
    let mut escaped = false;
    let mut found = false;
    for c in pattern.chars() {
        if !escaped && matches!(c, '[' | ']') {
            literal.push('\\');
            found |= c == ']' && literal.contains('[');
        }
        escaped = c == '\\' && !escaped;
        literal.push(c);
    }
    found.then_some(literal)
}
