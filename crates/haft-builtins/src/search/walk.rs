//! A walk below a folder of the workspace, by descriptors: each folder is opened beneath the root once, and its entries are read
//! and opened through it. If a folder is replaced by a link during the walk, nothing outside becomes visible.

use std::ffi::OsStr;
use std::ops::{ControlFlow, Range};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::workspace::{EntryKind, Folder, ResolvedPath, WorkspaceView};
use ignore::Match;
use ignore::overrides::Override;
use ignore::types::Types;

use crate::search::THREADS;
use crate::search::walk::queue::{BusyGuard, WalkQueue};
use crate::search::walk::rules::{IgnoreRules, Markers};

mod queue;
mod rules;
#[cfg(test)]
mod tests;

/// A walk below a place. It respects `.gitignore` and similar files as ripgrep does, does not follow links, shows hidden files
/// only on request, and never shows haft's own or filtered files.
#[derive(Debug)]
pub(crate) struct FileWalk<'a> {
    view: &'a WorkspaceView,
    place: &'a ResolvedPath,
    hidden: bool,
    depth: usize,
    share: usize,
    globs: Override,
    types: Types,
}

/// An entry found by a walk.
#[derive(Debug)]
pub(crate) struct WalkEntry<'a> {
    /// The folder that contains the entry.
    pub(crate) folder: &'a Folder,
    /// The path below the workspace root.
    pub(crate) path: &'a Path,
    pub(crate) name: &'a OsStr,
    pub(crate) kind: EntryKind,
}

/// A unit of remaining work.
enum WalkTask {
    /// A folder to read, with its path below the root.
    Folder {
        path: PathBuf,
        depth: usize,
        rules: Arc<IgnoreRules>,
    },
    /// Some of the entries of a folder.
    Part {
        folder: Arc<Folder>,
        names: EntryNames,
    },
}

/// The names in a folder, stored in one buffer: there are many, and they live as long as their folder is read.
#[derive(Default)]
struct EntryNames {
    text: Vec<u8>,
    each: Vec<(Range<usize>, EntryKind)>,
}

impl EntryNames {
    fn push(&mut self, name: &[u8], kind: EntryKind) {
        let start = self.text.len();
        self.text.extend_from_slice(name);
        self.each.push((start..self.text.len(), kind));
    }

    fn iter(&self) -> impl Iterator<Item = (&OsStr, EntryKind)> {
        let name = |range: &Range<usize>| OsStr::from_bytes(&self.text[range.clone()]);
        self.each
            .iter()
            .map(move |(range, kind)| (name(range), *kind))
    }
}

impl<'a> FileWalk<'a> {
    /// Creates a walk below a place.
    pub(crate) fn below(view: &'a WorkspaceView, place: &'a ResolvedPath) -> Self {
        Self {
            view,
            place,
            hidden: false,
            depth: usize::MAX,
            share: usize::MAX,
            globs: Override::empty(),
            types: Types::empty(),
        }
    }

    /// Includes hidden files; of a repository's own folder, only the folder itself.
    pub(crate) fn with_hidden(self, hidden: bool) -> Self {
        Self { hidden, ..self }
    }

    /// Limits the depth to this many levels.
    pub(crate) fn with_depth(self, depth: usize) -> Self {
        Self { depth, ..self }
    }

    /// Limits how many files of one folder a thread visits in a row.
    pub(crate) fn with_share(self, share: usize) -> Self {
        Self { share, ..self }
    }

    /// Includes only what these globs match.
    pub(crate) fn with_globs(self, globs: Override) -> Self {
        Self { globs, ..self }
    }

    /// Includes only files of these types.
    pub(crate) fn with_types(self, types: Types) -> Self {
        Self { types, ..self }
    }

    /// Walks until everything was visited or a visitor stops it. Each thread has its own visitor. Like ripgrep, skips folders that
    /// cannot be read.
    pub(crate) fn run<V>(&self, visitor: impl Fn() -> V + Sync)
    where
        V: FnMut(&WalkEntry<'_>) -> ControlFlow<()>,
    {
        let start = self.place.real();
        if self.place.kind() != Some(EntryKind::Directory) {
            self.visit_alone(start, &mut visitor());
            return;
        }
        let queue = WalkQueue::new(WalkTask::Folder {
            path: start.to_path_buf(),
            depth: 0,
            rules: IgnoreRules::above(self.view, &self.view.root().join(start)),
        });
        let work = || {
            let mut visit = visitor();
            while let Some((task, turn)) = queue.take() {
                if self.run_task(task, &turn, &mut visit).is_break() {
                    queue.stop();
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..THREADS {
                scope.spawn(work);
            }
            work();
        });
    }

    /// Visits a place that is not a folder. An explicitly named file is searched whatever ignore files say.
    fn visit_alone(&self, path: &Path, visit: &mut impl FnMut(&WalkEntry<'_>) -> ControlFlow<()>) {
        let (Some(above), Some(name), Some(kind)) =
            (path.parent(), path.file_name(), self.place.kind())
        else {
            return;
        };
        if let Ok(folder) = self.view.folder(above) {
            let _ = visit(&WalkEntry {
                folder: &folder,
                path,
                name,
                kind,
            });
        }
    }

    fn run_task(
        &self,
        task: WalkTask,
        turn: &BusyGuard<'_, WalkTask>,
        visit: &mut impl FnMut(&WalkEntry<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (folder, names) = match task {
            WalkTask::Part { folder, names } => (folder, names),
            WalkTask::Folder { path, depth, rules } => {
                let Ok(folder) = self.view.folder(&path) else {
                    return ControlFlow::Continue(());
                };
                let Some(mut read) = self.read(&folder, &rules, depth) else {
                    return ControlFlow::Continue(());
                };
                let folder = Arc::new(folder);
                if read.names.each.len() > self.share {
                    read.share_entries(&folder, self.share);
                }
                turn.add(&mut read.tasks);
                (folder, read.names)
            }
        };
        let mut path = below(folder.path());
        let start = path.len();
        for (name, kind) in names.iter() {
            path.truncate(start);
            path.extend_from_slice(name.as_bytes());
            visit(&WalkEntry {
                folder: &folder,
                path: Path::new(OsStr::from_bytes(&path)),
                name,
                kind,
            })?;
        }
        ControlFlow::Continue(())
    }

    /// Returns the entries of a folder that are not excluded.
    fn read(
        &self,
        folder: &Folder,
        rules: &Arc<IgnoreRules>,
        depth: usize,
    ) -> Option<FolderContents> {
        if self.hidden && folder.path().file_name() == Some(OsStr::new(".git")) {
            return None;
        }
        let (mut all, mut markers) = (EntryNames::default(), Markers::default());
        // Like ripgrep, show the entries that could be read.
        let _ = folder.entries(|name, kind| {
            markers.note(name.as_bytes(), kind);
            all.push(name.as_bytes(), kind);
        });
        let rules = rules.below(self.view, &self.view.root().join(folder.path()), markers);
        let mut path = below(self.view.root());
        let root = path.len();
        path.extend_from_slice(&below(folder.path()));
        let start = path.len();
        let mut read = FolderContents::default();
        for (name, kind) in all.iter() {
            path.truncate(start);
            path.extend_from_slice(name.as_bytes());
            let absolute = Path::new(OsStr::from_bytes(&path));
            let relative = Path::new(OsStr::from_bytes(&path[root..]));
            if self.is_ignored(&rules, absolute, kind) || self.hides(relative) {
                continue;
            }
            read.names.push(name.as_bytes(), kind);
            if kind == EntryKind::Directory && depth + 1 < self.depth {
                read.tasks.push(WalkTask::Folder {
                    path: relative.to_path_buf(),
                    depth: depth + 1,
                    rules: Arc::clone(&rules),
                });
            }
        }
        Some(read)
    }

    fn hides(&self, relative: &Path) -> bool {
        (self.hidden || self.view.hides_anything()) && !self.view.shows(relative)
    }

    /// Globs take precedence over ignore files, those over types, and all of them over the leading dot of a name.
    fn is_ignored(&self, rules: &IgnoreRules, path: &Path, kind: EntryKind) -> bool {
        let is_folder = kind == EntryKind::Directory;
        match self.globs.matched(path, is_folder) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => {}
        }
        let ruled = rules.judge(path, is_folder);
        if ruled.is_ignore() {
            return true;
        }
        let typed = self.types.matched(path, is_folder);
        if typed.is_ignore() {
            return true;
        }
        let is_hidden = || {
            path.file_name()
                .is_some_and(|name| name.as_bytes()[0] == b'.')
        };
        ruled.is_none() && typed.is_none() && !self.hidden && is_hidden()
    }
}

/// Returns the common prefix of all paths in a folder.
fn below(folder: &Path) -> Vec<u8> {
    let mut path = folder.as_os_str().as_bytes().to_vec();
    if !path.is_empty() && !path.ends_with(b"/") {
        path.push(b'/');
    }
    path
}

/// The contents of a folder.
#[derive(Default)]
struct FolderContents {
    names: EntryNames,
    /// Subfolders, and parts of the folder for any thread.
    tasks: Vec<WalkTask>,
}

impl FolderContents {
    /// Leaves one part of the entries to this thread and the others to any thread.
    fn share_entries(&mut self, folder: &Arc<Folder>, most: usize) {
        let all = std::mem::take(&mut self.names);
        let mut parts = all.each.chunks(most).map(|part| {
            let mut names = EntryNames::default();
            for (range, kind) in part {
                names.push(&all.text[range.clone()], *kind);
            }
            names
        });
        self.names = parts.next().unwrap_or_default();
        self.tasks.extend(parts.map(|names| WalkTask::Part {
            folder: Arc::clone(folder),
            names,
        }));
    }
}
