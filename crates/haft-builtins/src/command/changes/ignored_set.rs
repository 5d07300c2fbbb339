//! `IgnoredSet`: the changes of a command to what git ignores: which are applied unasked, and what a request says about the others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use haft::approval::meaning::{Meaning, MeaningKind};
use haft::change::EntryState;
use haft::change::collect::{CollectedChanges, ViewChange};
use haft::text::visible::short_path;
use haft::workspace::Workspace;
use serde::{Deserialize, Serialize};

use crate::command::changes::IgnoredChanges;
use crate::command::changes::ignored::{Ignored, ignores_all};
use crate::command::meaning::size;

/// Maximum number of ignored folders and files that a request names; the others are counted.
const MAX_NAMED: usize = 20;
/// Maximum length of a path in a request, in bytes.
const MAX_PATH: usize = 300;
/// Maximum number of paths that screens fold: more than a request lists.
const MAX_FOLDED: usize = 5_000;

/// Maximum size of the `.gitignore` of a folder that ignores itself, in bytes.
const MAX_OWN_PATTERNS: u64 = 4096;
/// The folders that checks make with a `.gitignore` that says `*`. Each is a build output.
const SELF_IGNORING: &[&str] = &[
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    "htmlcov",
];

/// What git ignores of a command's changes, and what settings say about it.
pub(super) struct IgnoredSet<'a> {
    ignored: Ignored,
    settings: &'a IgnoredChanges,
    seen: HashMap<PathBuf, bool>,
    /// New caches of checks that ignore themselves.
    new_caches: BTreeSet<PathBuf>,
}

impl<'a> IgnoredSet<'a> {
    /// Returns `None` if settings or the workspace treat all files alike.
    pub(super) fn of(workspace: &Workspace, settings: &'a IgnoredChanges) -> Option<Self> {
        if matches!(settings, IgnoredChanges::Ask) {
            return None;
        }
        Some(Self {
            ignored: Ignored::of(workspace)?,
            settings,
            seen: HashMap::new(),
            new_caches: BTreeSet::new(),
        })
    }

    /// Takes new caches of checks for ignored: pytest, mypy and the like put a `.gitignore` in theirs, so that projects list none of them. A
    /// folder of another name that ignores itself is asked about, or a command could hide any folder from git.
    pub(super) fn with_new_caches(mut self, collected: &CollectedChanges) -> Self {
        let changes = &collected.changes;
        let is_new = |path: &Path| {
            let change = changes.position(path).and_then(|at| changes.get(at));
            change.is_some_and(|one| one.before.is_none() && one.after.is_some())
        };
        let ignores_itself = |path: &Path| {
            let text = collected.content(path, MAX_OWN_PATTERNS);
            text.is_ok_and(|text| ignores_all(&String::from_utf8_lossy(&text)))
        };
        let files = changes.paths().filter(|path| path.ends_with(".gitignore"));
        let caches = files.filter_map(|file| {
            let folder = file.parent()?;
            let name = folder.file_name()?.to_str()?;
            let known = SELF_IGNORING.contains(&name) && is_new(folder) && is_new(file);
            (known && ignores_itself(file)).then(|| folder.to_owned())
        });
        self.new_caches = caches.collect();
        self
    }

    /// Returns the new cache that holds a path.
    fn new_cache<'c>(&self, path: &'c Path) -> Option<&'c Path> {
        let mut above = path.ancestors();
        let cache = above.find(|folder| self.new_caches.contains(*folder))?;
        self.ignored.may_cover(path).then_some(cache)
    }

    /// Returns the highest path at or above a change that git ignores, both as it was and as it is.
    pub(super) fn top<'c>(&mut self, change: &ViewChange<'c>) -> Option<&'c Path> {
        if let Some(cache) = self.new_cache(change.path) {
            return Some(cache);
        }
        let states = [&change.before, &change.after].into_iter().flatten();
        let mut top = None;
        for state in states {
            let folder = matches!(state, EntryState::Folder { .. });
            top = Some(self.ignored.top(change.path, folder, &mut self.seen)?);
        }
        top
    }

    /// Returns whether a change is to something that git ignores, and is applied unasked unless a rule or guard says otherwise.
    pub(super) fn is_applied_unasked(&mut self, change: &ViewChange<'_>) -> bool {
        let Some(top) = self.top(change) else {
            return false;
        };
        match self.settings {
            IgnoredChanges::Apply => true,
            IgnoredChanges::Outputs(outputs) => {
                outputs.is_output(top, change) && !outputs.is_found(top, change)
            }
            IgnoredChanges::Ask => false,
        }
    }

    /// Returns whether a change, of which the highest ignored path is known, is to a build output by its name.
    fn is_output(&self, top: &Path, change: &ViewChange<'_>) -> bool {
        match self.settings {
            IgnoredChanges::Outputs(outputs) => outputs.is_output(top, change),
            IgnoredChanges::Apply | IgnoredChanges::Ask => false,
        }
    }

    fn is_found(&self, top: &Path, change: &ViewChange<'_>) -> bool {
        match self.settings {
            IgnoredChanges::Outputs(outputs) => outputs.is_found(top, change),
            IgnoredChanges::Apply | IgnoredChanges::Ask => false,
        }
    }

    /// Adds a change to the summary if git ignores it. One that is asked about for more than that is shown as a file: for another reason, or
    /// in a build output and found by its name.
    pub(super) fn count(
        &mut self,
        change: &ViewChange<'_>,
        reason: CountReason,
        summary: &mut IgnoredSummary,
    ) {
        let Some(top) = self.top(change) else {
            return;
        };
        let output = self.is_output(top, change);
        let found = output && self.is_found(top, change);
        let path = || change.path.to_string_lossy().into_owned();
        if reason != CountReason::Ignored || found {
            summary.shown.insert(path());
        }
        if reason == CountReason::Guarded {
            return;
        }
        let top = top.to_string_lossy();
        let Some(counted) = summary.entry(&top) else {
            summary.more += u64::from(!found && reason == CountReason::Ignored);
            return;
        };
        counted.output = output && (counted.output || counted.is_empty());
        if reason == CountReason::Unsaved {
            counted.unsaved += 1;
            return;
        }
        if found {
            counted.found += 1;
            counted.first_found.get_or_insert_with(path);
            return;
        }
        counted.add(change);
        if summary.folded.len() < MAX_FOLDED {
            summary.folded.push(path());
        }
    }
}

/// Why a change to what git ignores is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountReason {
    /// Only because it is ignored.
    Ignored,
    /// It cannot be undone.
    Unsaved,
    /// A rule or guard says so.
    Guarded,
}

/// What a command changed of that which git ignores, by the highest ignored path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IgnoredSummary {
    tops: BTreeMap<String, IgnoredCount>,
    /// Number of changes elsewhere.
    more: u64,
    /// Paths that screens fold.
    folded: Vec<String>,
    /// Paths that are shown as files.
    #[serde(default)]
    shown: BTreeSet<String>,
}

/// How much a change says about what a command did, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Matter {
    /// A file of the project.
    Own,
    /// What git ignores.
    Ignored,
    /// What nobody would be asked about alone, and git's own files.
    Aside,
}

impl Matter {
    pub(super) const ALL: [Self; 3] = [Self::Own, Self::Ignored, Self::Aside];
}

/// The changes at or below one ignored path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct IgnoredCount {
    changed: u64,
    removed: u64,
    executable: u64,
    bytes: u64,
    links: u64,
    /// New and changed folders.
    #[serde(default)]
    folders: u64,
    /// Those that programs find by their names, or follow.
    #[serde(default)]
    found: u64,
    /// Those that cannot be undone.
    #[serde(default)]
    unsaved: u64,
    #[serde(default)]
    first_found: Option<String>,
    /// Whether the path itself is a folder.
    folder: bool,
    /// Whether all of it is a build output.
    output: bool,
}

impl IgnoredCount {
    /// Returns whether it is a build output of which nothing is asked about.
    fn is_aside(&self) -> bool {
        self.output && self.found + self.unsaved == 0
    }

    fn is_empty(&self) -> bool {
        self.changed + self.removed + self.folders + self.found + self.unsaved == 0
    }

    fn add(&mut self, change: &ViewChange<'_>) {
        match &change.after {
            None => self.removed += 1,
            Some(EntryState::File { bytes, mode, .. }) => {
                self.changed += 1;
                self.bytes += bytes;
                self.executable += u64::from(mode.is_some_and(|mode| mode & 0o111 != 0));
            }
            Some(EntryState::Link { .. }) => {
                self.changed += 1;
                self.links += 1;
            }
            Some(EntryState::Folder { .. } | EntryState::Other) => self.folders += 1,
        }
    }

    fn title(&self, top: &str) -> String {
        let slash = if self.folder { "/" } else { "" };
        let what = if self.output {
            "a build output"
        } else {
            "ignored by git"
        };
        let mut facts = Vec::new();
        let mut add = |count: u64, one: &str, more: &str| match count {
            0 => {}
            1 => facts.push(format!("1 {one}")),
            count => facts.push(format!("{count} {more}")),
        };
        add(self.changed, "file", "files");
        add(self.removed, "removed", "removed");
        add(self.executable, "executable", "executable");
        add(self.links, "link", "links");
        if self.bytes > 0 {
            facts.push(size(self.bytes));
        }
        let title = format!("{}{slash}, {what}", short_path(top, MAX_PATH));
        match (facts.is_empty(), self.folders) {
            (false, _) => format!("{title}: {}", facts.join(", ")),
            (true, 0) => title,
            (true, _) => format!("{title}: folders"),
        }
    }

    /// Returns what the files of a build output are that are shown.
    fn warning(&self) -> Option<String> {
        let first = short_path(self.first_found.as_deref()?, MAX_PATH);
        Some(match self.found {
            1 => format!("programs find {first} by its name, or follow it"),
            count => {
                format!(
                    "programs find {count} files of it by their names, or follow them: {first} first"
                )
            }
        })
    }
}

impl IgnoredSummary {
    /// Returns the entry of an ignored path, unless there are too many.
    fn entry(&mut self, top: &str) -> Option<&mut IgnoredCount> {
        if !self.tops.contains_key(top) && self.tops.len() >= MAX_NAMED {
            return None;
        }
        Some(self.tops.entry(top.to_owned()).or_default())
    }

    /// Returns whether nothing that git ignores is asked about.
    pub(super) fn is_empty(&self) -> bool {
        self.tops.is_empty() && self.shown.is_empty()
    }

    /// Notes which of the ignored paths are folders.
    pub(super) fn with_folders(mut self, is_folder: impl Fn(&Path) -> bool) -> Self {
        for (top, count) in &mut self.tops {
            count.folder = is_folder(Path::new(top));
        }
        self
    }

    /// Returns the folders for which a rule can be kept: ignored, and not only build outputs that need none.
    pub(super) fn folders(&self) -> Vec<String> {
        let folders = self
            .tops
            .iter()
            .filter(|(_, count)| count.folder && !count.is_aside());
        folders.map(|(top, _)| top.clone()).collect()
    }

    /// Returns whether a path is at or below an ignored one, and folded.
    pub(super) fn holds(&self, path: &Path) -> bool {
        if path.to_str().is_some_and(|path| self.shown.contains(path)) {
            return false;
        }
        let mut above = path.ancestors().filter_map(Path::to_str);
        above.any(|path| self.tops.contains_key(path))
    }

    /// Returns how much a change says about what a command did.
    pub(super) fn matter(&self, path: &Path) -> Matter {
        if path.components().any(|part| part.as_os_str() == ".git") {
            return Matter::Aside;
        }
        let is_shown = path.to_str().is_some_and(|path| self.shown.contains(path));
        let mut above = path.ancestors().filter_map(Path::to_str);
        match above
            .find_map(|path| self.tops.get(path))
            .filter(|_| !is_shown)
        {
            None => Matter::Own,
            Some(count) if count.is_aside() => Matter::Aside,
            Some(_) => Matter::Ignored,
        }
    }

    /// Returns what a request says about them: build outputs last.
    pub(super) fn meanings(&self) -> Vec<Meaning> {
        let (aside, asked): (Vec<_>, Vec<_>) =
            self.tops.iter().partition(|(_, count)| count.is_aside());
        let mut all: Vec<Meaning> = asked
            .into_iter()
            .chain(aside)
            .map(|(top, count)| {
                let mut meaning = Meaning::new(MeaningKind::Ignored, count.title(top));
                meaning.warnings.extend(count.warning());
                meaning
            })
            .collect();
        if self.more > 0 {
            let title = format!("{} more changes to files that git ignores", self.more);
            all.push(Meaning::new(MeaningKind::Ignored, title));
        }
        if let Some(first) = all.first_mut() {
            first.covers.clone_from(&self.folded);
        }
        all
    }
}
