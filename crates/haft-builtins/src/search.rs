//! What list, glob and grep share: one walk below a folder of the workspace, on ripgrep's own crates.
//!
//! The walk goes by path, as ripgrep's does; what it finds is only shown after it was opened or looked at again
//! beneath the root's descriptor, so a folder swapped for a link during the walk shows nothing of the outside.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use haft::workspace::{Kind, Place, Workspace, WorkspaceView};
use ignore::{DirEntry, WalkBuilder, WalkState};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

pub mod glob;
pub mod grep;
pub mod list;
mod pattern;
mod source;
pub mod tools;

/// Threads of one search: more do not pay on small trees and would starve other calls.
pub(crate) const THREADS: usize = 2;
/// Most paths a listing gathers before it sorts and cuts; a larger tree is cut where the walk then is.
pub(crate) const MAX_GATHERED: usize = 50_000;

/// One thing found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FoundEntry {
    /// Its path below the workspace root.
    pub path: String,
    /// `file`, `directory`, `link`, `pipe`, `socket` or `device`.
    pub kind: &'static str,
    /// The size of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What a listing gives.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EntriesData {
    /// What was found, sorted by path.
    pub entries: Vec<FoundEntry>,
    /// There is more.
    pub truncated: bool,
}

/// Ends a search when it has enough or its call has ended.
#[derive(Debug, Default)]
pub(crate) struct Brake(AtomicBool);

impl Brake {
    pub(crate) fn pull(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_pulled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A walk below a place: `.gitignore` and its kin respected as ripgrep does, links not followed, hidden files only
/// where asked for, haft's own and filtered files never.
pub(crate) fn walker(workspace: &WorkspaceView, place: &Place, hidden: bool) -> WalkBuilder {
    let mut builder = WalkBuilder::new(workspace.root().join(place.real()));
    builder.hidden(!hidden).follow_links(false).threads(THREADS);
    let filter = workspace.clone();
    if filter.hides_anything() || hidden {
        builder.filter_entry(move |entry| {
            let inside_git = hidden && entry.path().parent().is_some_and(|p| p.ends_with(".git"));
            let relative = relative(&filter, entry);
            // The parent of everything found lies below the root: the walk began there.
            let shown = |path: &Path| path.as_os_str().is_empty() || filter.shows(path);
            relative.is_some_and(shown) && !inside_git
        });
    }
    builder
}

/// The path of a walk's entry below the root. By bytes: a walk's paths all begin with the root as it was given to it,
/// and comparing components is slow for long lists.
pub(crate) fn relative<'a>(workspace: &Workspace, entry: &'a DirEntry) -> Option<&'a Path> {
    let path = entry.path().as_os_str().as_bytes();
    let rest = path.strip_prefix(workspace.root().as_os_str().as_bytes())?;
    let rest = rest.strip_prefix(b"/").unwrap_or(rest);
    Some(Path::new(OsStr::from_bytes(rest)))
}

/// Sorts as a list of texts is sorted: byte by byte.
pub(crate) fn sort(paths: &mut [PathBuf]) {
    paths.sort_unstable_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
}

/// Gathers the paths a walk finds that `wanted` says yes to.
pub(crate) fn gather(
    workspace: &Workspace,
    builder: &WalkBuilder,
    stop: &(dyn Fn() -> bool + Sync),
    wanted: &(dyn Fn(&DirEntry, &Path) -> bool + Sync),
) -> (Vec<PathBuf>, bool) {
    let found: Mutex<Vec<PathBuf>> = Mutex::default();
    let more = Brake::default();
    builder.build_parallel().run(|| {
        let mut mine = Batch {
            found: &found,
            paths: Vec::new(),
        };
        let more = &more;
        Box::new(move |entry| {
            // A folder that cannot be read is passed over, as ripgrep does.
            let Ok(entry) = entry else {
                return WalkState::Continue;
            };
            let Some(path) = relative(workspace, &entry) else {
                return WalkState::Continue;
            };
            if wanted(&entry, path) {
                mine.paths.push(path.to_path_buf());
            }
            if mine.paths.len() == 256 && mine.hand_over() >= MAX_GATHERED {
                more.pull();
            }
            if more.is_pulled() || stop() {
                return WalkState::Quit;
            }
            WalkState::Continue
        })
    });
    let found = found.into_inner();
    (found, more.is_pulled())
}

/// One thread's finds; handed over in lumps, so that the threads do not wait for each other.
struct Batch<'a> {
    found: &'a Mutex<Vec<PathBuf>>,
    paths: Vec<PathBuf>,
}

impl Batch<'_> {
    fn hand_over(&mut self) -> usize {
        let mut found = self.found.lock();
        found.append(&mut self.paths);
        found.len()
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.hand_over();
    }
}

/// Looks at what was found beneath the root's descriptor; what is gone or reached through a link is left out.
pub(crate) fn describe(workspace: &Workspace, paths: &[PathBuf]) -> Vec<FoundEntry> {
    let part = |paths: &[PathBuf]| {
        let mut all = Vec::with_capacity(paths.len());
        workspace.look_each(paths, |path, kind, bytes| {
            all.push(FoundEntry {
                path: path.to_string_lossy().into_owned(),
                kind: kind.as_str(),
                bytes: (kind == Kind::File).then_some(bytes),
            });
        });
        all
    };
    if paths.len() < 1_000 {
        return part(paths);
    }
    let (left, right) = paths.split_at(paths.len() / 2);
    std::thread::scope(|scope| {
        let right = scope.spawn(|| part(right));
        let mut all = part(left);
        all.extend(right.join().unwrap_or_default());
        all
    })
}
