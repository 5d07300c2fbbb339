//! `grep_files`: finds lines that match a regular expression, with ripgrep's searcher, up to a limit.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch,
};
use haft::error::ToolError;
use haft::result::ToolResult;
use haft::workspace::{EntryKind, ResolvedPath, WorkspaceView};
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::files::FileCaller;
use crate::files::text::clip;
use crate::search::StopFlag;
use crate::search::list::{limit, root};
use crate::search::pattern::SearchPattern;
use crate::search::source::{SearchText, Unsearched};
use crate::search::walk::{FileWalk, WalkEntry};

/// Maximum number of files of a folder that one thread searches while another is idle.
const MAX_SHARE: usize = 32;
/// Maximum bytes shown of one line.
const MAX_LINE: usize = 1_000;
/// Maximum bytes of lines collected per call.
const MAX_TEXT: usize = 1 << 20;
/// Memory of one thread for the lines around a match, in addition to the longest line, in bytes.
const CONTEXT_MEMORY: usize = 16 << 20;

/// What `grep_files` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepFilesInput {
    /// A regular expression in Rust's syntax (no look-around, no back-references).
    #[schemars(length(min = 1, max = 10_000))]
    pub pattern: String,
    /// The file or folder to search.
    #[serde(default = "root")]
    pub path: String,
    /// Only files whose path matches: `*.rs`, `src/**`; with a leading `!`, only those that do not.
    #[serde(default)]
    #[schemars(with = "String")]
    pub glob: Option<String>,
    /// Only files of this type: `rust`, `py`, `js`, `ts`, `go`, `java`, `md`, …
    #[serde(default, rename = "type")]
    #[schemars(with = "String")]
    pub kind: Option<String>,
    /// Matching lines, only the files that have some, or how many lines match in each file.
    #[serde(default)]
    pub output: GrepOutput,
    /// Ignore the case of letters.
    #[serde(default)]
    pub ignore_case: bool,
    /// Let matches span lines.
    #[serde(default)]
    pub multiline: bool,
    /// Lines to show before each match.
    #[serde(default)]
    #[schemars(range(max = 100))]
    pub before: usize,
    /// Lines to show after each match.
    #[serde(default)]
    #[schemars(range(max = 100))]
    pub after: usize,
    /// The most matches (or files) to return; the search ends there.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 50_000))]
    pub limit: usize,
}

/// What to return.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrepOutput {
    /// Matching lines.
    #[default]
    Content,
    /// Files with a match.
    Files,
    /// How many lines match in each file.
    Count,
}

/// One line, or one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GrepMatch {
    /// The file.
    pub path: Arc<str>,
    /// The line's number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The line; cut after 1,000 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether the line is context: it is near a match but does not match.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub context: bool,
    /// How many lines match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// What `grep_files` gives.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GrepFilesData {
    /// The matches, sorted by path and line.
    pub matches: Vec<GrepMatch>,
    /// Whether there are more matches.
    pub truncated: bool,
    /// What was not searched, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One search, shared by its threads.
struct GrepSearch<'a> {
    output: GrepOutput,
    limit: usize,
    stop: &'a (dyn Fn() -> bool + Sync),
    kept: AtomicUsize,
    text: AtomicUsize,
    brake: StopFlag,
    /// The reasons for files that were not searched completely.
    unsearched: Mutex<Vec<Unsearched>>,
    view: &'a WorkspaceView,
    /// Files skipped because their names indicate secrets.
    secrets: Mutex<Vec<String>>,
    /// The matches of each file, in line order.
    found: Mutex<Vec<Vec<GrepMatch>>>,
}

/// Searches files for lines that match a regular expression.
///
/// # Errors
/// `invalid_arguments` if a pattern is invalid, `not_found` if the path does not exist, `cancelled` if `stop` says so.
pub fn grep_files(
    input: &GrepFilesInput,
    caller: &FileCaller,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<ToolResult, ToolError> {
    let workspace = &caller.view;
    let pattern = SearchPattern::new(&input.pattern, input.ignore_case, input.multiline)?;
    let place = caller.reads(workspace.existing(&input.path)?)?;
    let walk = narrowed(workspace, &place, input)?;
    let search = GrepSearch {
        output: input.output,
        limit: input.limit,
        stop,
        kept: AtomicUsize::new(0),
        text: AtomicUsize::new(0),
        brake: StopFlag::default(),
        unsearched: Mutex::default(),
        view: workspace,
        secrets: Mutex::default(),
        found: Mutex::default(),
    };
    search.run(&walk, &pattern, input);
    let unsearched = search.unsearched.into_inner();
    let mut notes = notes(&unsearched, &pattern);
    let truncated = search.brake.is_pulled() || !notes.is_empty();
    notes.extend(left_out(search.secrets.into_inner()));
    let mut found = search.found.into_inner();
    found.sort_unstable_by(|a, b| a.first().map(|m| &m.path).cmp(&b.first().map(|m| &m.path)));
    let matches: Vec<GrepMatch> = found.into_iter().flatten().collect();
    let shown = matches.iter().filter(|m| !m.context).count();
    let what = match input.output {
        GrepOutput::Content => "matches",
        GrepOutput::Files | GrepOutput::Count => "files",
    };
    let more = match (notes.as_slice(), truncated) {
        ([], false) => String::new(),
        ([], true) => ", and more".to_owned(),
        _ => format!(", but {}", notes.join("; ")),
    };
    let data = GrepFilesData {
        matches,
        truncated,
        notes,
    };
    ToolResult::data(&data).map(|result| result.with_summary(format!("{shown} {what}{more}")))
}

/// Returns a note for each reason why files were not searched completely.
fn notes(unsearched: &[Unsearched], pattern: &SearchPattern) -> Vec<String> {
    let why = |cause| match cause {
        Unsearched::TooLong => pattern.bound(),
        Unsearched::Context => {
            "the lines around a match do not fit into memory; ask for fewer before and after it"
                .to_owned()
        }
        Unsearched::Unreadable => "reading ended with an error".to_owned(),
    };
    let note = |cause| {
        let files = match unsearched.iter().filter(|u| **u == cause).count() {
            0 => return None,
            1 => "1 file was".to_owned(),
            many => format!("{many} files were"),
        };
        Some(format!("{files} not searched to the end: {}", why(cause)))
    };
    let causes = [
        Unsearched::TooLong,
        Unsearched::Context,
        Unsearched::Unreadable,
    ];
    causes.into_iter().filter_map(note).collect()
}

/// Returns a note on the files skipped because their names indicate secrets.
fn left_out(mut secrets: Vec<String>) -> Option<String> {
    const MAX_NAMED: usize = 5;
    secrets.sort();
    let more = secrets.len().saturating_sub(MAX_NAMED);
    secrets.truncate(MAX_NAMED);
    let named = match (secrets.join(", "), more) {
        (named, _) if named.is_empty() => return None,
        (named, 0) => named,
        (named, more) => format!("{named} and {more} more"),
    };
    Some(format!(
        "{named} left out because they may hold secrets: pass one as path to ask the user"
    ))
}

/// Returns the walk, narrowed by glob and type.
fn narrowed<'a>(
    workspace: &'a WorkspaceView,
    place: &'a ResolvedPath,
    input: &GrepFilesInput,
) -> Result<FileWalk<'a>, ToolError> {
    let mut walk = FileWalk::below(workspace, place).with_share(MAX_SHARE);
    if let Some(glob) = &input.glob {
        let base = workspace.root().join(match place.kind() {
            Some(EntryKind::Directory) => place.real(),
            _ => place.real().parent().unwrap_or(Path::new("")),
        });
        let bad = |e| ToolError::invalid_arguments(format!("glob: {e}"));
        let mut globs = OverrideBuilder::new(base);
        globs.add(glob).map_err(bad)?;
        walk = walk.with_globs(globs.build().map_err(bad)?);
    }
    if let Some(kind) = &input.kind {
        let mut types = TypesBuilder::new();
        types.add_defaults().select(kind);
        let types = types.build().map_err(|e| {
            ToolError::invalid_arguments(format!("type: {e}"))
                .with_advice("types are named as ripgrep names them: rust, py, js, ts, go, c, cpp, java, md, json, toml, yaml, sh; or use glob")
        })?;
        walk = walk.with_types(types);
    }
    Ok(walk)
}

impl GrepSearch<'_> {
    fn run(&self, walk: &FileWalk<'_>, pattern: &SearchPattern, input: &GrepFilesInput) {
        let mut searcher = SearcherBuilder::new();
        searcher
            .binary_detection(BinaryDetection::quit(0))
            .memory_map(MmapChoice::never())
            .bom_sniffing(false)
            .multi_line(pattern.spans_lines())
            .heap_limit(Some(pattern.longest() + CONTEXT_MEMORY))
            .line_number(self.output == GrepOutput::Content);
        if self.output == GrepOutput::Content {
            searcher
                .before_context(input.before)
                .after_context(input.after);
        }
        walk.run(|| {
            let mut worker = GrepWorker {
                search: self,
                searcher: searcher.build(),
                pattern,
                matcher: pattern.matcher().clone(),
                found: Vec::new(),
            };
            move |found: &WalkEntry<'_>| worker.visit(found)
        });
    }

    fn over(&self) -> bool {
        self.brake.is_pulled() || (self.stop)()
    }

    /// Reserves room for one more match, and stops the search if there is none.
    fn take(&self) -> bool {
        if self.kept.fetch_add(1, Ordering::Relaxed) < self.limit {
            return true;
        }
        self.brake.pull();
        false
    }

    /// Reserves room for this many bytes of text, and stops the search if there is none.
    fn spend(&self, bytes: usize) -> bool {
        if self.text.fetch_add(bytes, Ordering::Relaxed) < MAX_TEXT {
            return true;
        }
        self.brake.pull();
        false
    }
}

/// One thread with its own searcher and buffers.
struct GrepWorker<'a> {
    search: &'a GrepSearch<'a>,
    searcher: Searcher,
    pattern: &'a SearchPattern,
    matcher: RegexMatcher,
    found: Vec<Vec<GrepMatch>>,
}

impl Drop for GrepWorker<'_> {
    fn drop(&mut self) {
        self.search.found.lock().append(&mut self.found);
    }
}

impl GrepWorker<'_> {
    fn visit(&mut self, found: &WalkEntry<'_>) -> ControlFlow<()> {
        let search = self.search;
        if search.over() {
            return ControlFlow::Break(());
        }
        if found.kind != EntryKind::File {
            return ControlFlow::Continue(());
        }
        if !search.view.reads(found.path) {
            let path = found.path.to_string_lossy().into_owned();
            search.secrets.lock().push(path);
            return ControlFlow::Continue(());
        }
        // Skip an entry that is no longer a file.
        let Ok(open) = found.folder.open_file(found.name) else {
            return ControlFlow::Continue(());
        };
        let mut lines = GrepLines {
            search,
            path: found.path,
            shown: None,
            found: Vec::new(),
            count: 0,
        };
        // Like ripgrep, keep the matches of a file that cannot be read to its end.
        let over = || search.over();
        let searched = match SearchText::new(&open.file, self.pattern, &over) {
            Ok(mut text) => self
                .searcher
                .search_reader(&self.matcher, &mut text, &mut lines)
                .map_err(|_| text.why()),
            Err(_) => Err(Unsearched::Unreadable),
        };
        if let Err(why) = searched
            && !search.over()
        {
            search.unsearched.lock().push(why);
        }
        lines.close();
        if !lines.found.is_empty() {
            self.found.push(lines.found);
        }
        if search.over() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// The lines of one file.
struct GrepLines<'a> {
    search: &'a GrepSearch<'a>,
    path: &'a Path,
    /// The path as text, created on the first match.
    shown: Option<Arc<str>>,
    found: Vec<GrepMatch>,
    count: u64,
}

impl GrepLines<'_> {
    fn push(&mut self, line: Option<u64>, text: &[u8], context: bool) -> bool {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let mut shown = String::from_utf8_lossy(clip(text, MAX_LINE)).into_owned();
        if text.len() > MAX_LINE {
            shown.push('…');
        }
        if !self.search.spend(shown.len()) {
            return false;
        }
        let path = self.path();
        self.found.push(GrepMatch {
            path,
            line,
            text: Some(shown),
            context,
            count: None,
        });
        true
    }

    fn path(&mut self) -> Arc<str> {
        let path = self.path;
        let shown = self
            .shown
            .get_or_insert_with(|| path.to_string_lossy().into());
        Arc::clone(shown)
    }

    /// Adds the line for the file itself, in outputs that have one.
    fn close(&mut self) {
        if self.count == 0 || self.search.output == GrepOutput::Content || !self.search.take() {
            return;
        }
        let count = (self.search.output == GrepOutput::Count).then_some(self.count);
        let path = self.path();
        self.found.push(GrepMatch {
            path,
            line: None,
            text: None,
            context: false,
            count,
        });
    }
}

impl Sink for GrepLines<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.count += 1;
        match self.search.output {
            GrepOutput::Files => Ok(false),
            GrepOutput::Count => Ok(!self.search.over()),
            GrepOutput::Content => {
                let more = self.search.take()
                    && self.push(found.line_number(), found.bytes(), false)
                    && !self.search.over();
                Ok(more)
            }
        }
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, Self::Error> {
        let more = self.push(line.line_number(), line.bytes(), true);
        Ok(more && !self.search.over())
    }
}
