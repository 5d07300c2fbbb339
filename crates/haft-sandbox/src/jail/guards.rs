//! Finds what has to be guarded in a workspace, and holds the places of absent names.
//!
//! A cover moves with its folder, and an uncovered folder of the old name could then be created in its place. So every
//! folder above a guarded name is pinned: it cannot be renamed or removed while a command runs.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::plan::PathCover;
use crate::command::{AbsentGuard, GuardKind, Mounts, PathGuard};
use crate::held_places::HeldPlaces;
use crate::held_places::placeholder::{Placeholder, is_placeholder};

/// Maximum number of workspace entries that are searched for names guarded at any depth. Beyond that the
/// command is refused: a guarded name that was not found would not be protected.
pub(super) const MOST_ENTRIES: usize = 2_000_000;
/// The number of entries that are searched without handing the search to a thread for blocking work.
const AT_ONCE: usize = 2_000;

/// Maximum length of a path in an error, in bytes.
const MAX_SHOWN: usize = 120;

/// The covers of one command, and what is held outside its jail for it.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    pub(crate) covers: Vec<(PathBuf, PathCover)>,
    /// Goes to the command's tree, which keeps it until the jail is gone.
    pub(crate) held: HeldPlaces,
    /// Whether absent names are held; not needed if nothing can be created at the top anyway.
    holding: bool,
}

impl Guards {
    /// Searches the workspace and holds the places of absent names; a thread for blocking work searches a
    /// large workspace.
    pub(crate) async fn prepare(
        workspace: PathBuf,
        mounts: Mounts,
        holding: bool,
    ) -> io::Result<Self> {
        if let Some(guards) = Self::look(&workspace, &mounts, holding, AT_ONCE)? {
            return Ok(guards);
        }
        let look = move || Self::look(&workspace, &mounts, holding, MOST_ENTRIES);
        tokio::task::spawn_blocking(look).await??.ok_or_else(|| {
            io::Error::other("too many files to find every guarded name in the workspace")
        })
    }

    /// Returns `None` if the workspace has more than `most` entries.
    fn look(
        workspace: &Path,
        mounts: &Mounts,
        holding: bool,
        most: usize,
    ) -> io::Result<Option<Self>> {
        let mut guards = Self {
            holding,
            ..Self::default()
        };
        for guard in &mounts.guards {
            check(&guard.path)?;
            let done = guards.top(workspace, guard, mounts);
            done.map_err(|error| named(&guard.path, &error))?;
        }
        for path in &mounts.pinned {
            check(path)?;
            let done = guards.pin(workspace, path);
            done.map_err(|error| named(path, &error))?;
        }
        if !guards.nested(workspace, mounts, most)? {
            return Ok(None);
        }
        guards.approved(workspace, mounts)?;
        pin_parents(&mut guards.covers);
        // Shallow first, so that deeper covers end up on top; approved paths last.
        guards.covers.sort_by_key(|(path, cover)| {
            (
                *cover == PathCover::Writable,
                path.components().count(),
                path.clone(),
            )
        });
        let mut covers = std::mem::take(&mut guards.covers);
        covers.dedup_by(|next, kept| {
            let same = next.0 == kept.0
                && (next.1 == PathCover::Writable) == (kept.1 == PathCover::Writable);
            if same {
                kept.1 = stronger(kept.1, next.1);
            }
            same
        });
        guards.covers = pruned(covers);
        guards.held.hide_from_git(workspace);
        Ok(Some(guards))
    }

    /// Adds a guard at the path it names.
    fn top(&mut self, workspace: &Path, guard: &PathGuard, mounts: &Mounts) -> io::Result<()> {
        if lifted(&guard.path, guard.kind, mounts) {
            return Ok(());
        }
        if guard.absent == AbsentGuard::NewEntries {
            return self.pin(workspace, &guard.path);
        }
        let cover = cover_of(guard.kind);
        let mut at = PathBuf::new();
        let count = guard.path.components().count();
        for (index, part) in guard.path.components().enumerate() {
            at.push(part);
            let full = workspace.join(&at);
            let last = index + 1 == count;
            match fs::symlink_metadata(&full) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if guard.absent == AbsentGuard::Renamed {
                        return Ok(());
                    }
                    return self.hold(&full, &at, !last || guard.folder, cover);
                }
                Err(error) => return Err(error),
                Ok(meta) if is_placeholder(&meta) => {
                    return self.hold(&full, &at, !last || guard.folder, cover);
                }
                Ok(meta) if last || !meta.is_dir() => {
                    if meta.is_symlink() {
                        self.way(workspace, &at, guard)?;
                    }
                    self.covers.push((at, cover));
                    return Ok(());
                }
                // Must not be renamed and recreated without its content.
                Ok(_) => self.covers.push((at.clone(), PathCover::Pin)),
            }
        }
        Ok(())
    }

    /// Pins a link or folder, up to where its path ends or a link takes its place.
    fn pin(&mut self, workspace: &Path, path: &Path) -> io::Result<()> {
        let mut at = PathBuf::new();
        for part in path.components() {
            at.push(part);
            match fs::symlink_metadata(workspace.join(&at)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(error),
                Ok(meta) => {
                    let cover = if meta.is_symlink() {
                        PathCover::PinnedLink
                    } else {
                        PathCover::Pin
                    };
                    self.covers.push((at.clone(), cover));
                    if !meta.is_dir() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Guards the path that a symbolic link takes through the workspace: its end like the link itself, other links
    /// on it against changes, folders against renaming. Holds the place of an absent end.
    fn way(&mut self, workspace: &Path, link: &Path, guard: &PathGuard) -> io::Result<()> {
        let mut todo: Vec<_> = link.iter().rev().map(ToOwned::to_owned).collect();
        let mut at = workspace.to_owned();
        let mut links = 0;
        while let Some(part) = todo.pop() {
            match part.to_str() {
                Some("..") => _ = at.pop(),
                Some(".") => {}
                _ => at.push(&part),
            }
            let meta = match fs::symlink_metadata(&at) {
                Ok(meta) if !is_placeholder(&meta) => meta,
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Ok(()),
                _ => return self.end_of_way(workspace, at, todo, guard),
            };
            let cover = match (meta.is_symlink(), meta.is_dir() && !todo.is_empty()) {
                // What lies behind a link on the way is guarded only as far as the way goes: it may lead to the workspace itself.
                (true, _) => PathCover::PinnedLink,
                (_, true) => PathCover::Pin,
                _ => cover_of(guard.kind),
            };
            if let Ok(inside) = at.strip_prefix(workspace)
                && inside != Path::new("")
                && inside != link
            {
                self.covers.push((inside.to_owned(), cover));
            }
            if !meta.is_symlink() {
                continue;
            }
            links += 1;
            let Ok(to) = fs::read_link(&at) else {
                return Ok(());
            };
            // The kernel's own limit.
            if links > 40 {
                return Ok(());
            }
            at.pop();
            if to.is_absolute() {
                at = PathBuf::from("/");
            }
            let parts = to
                .components()
                .filter(|part| !matches!(part, Component::RootDir));
            todo.extend(parts.rev().map(|part| part.as_os_str().to_owned()));
        }
        Ok(())
    }

    /// Holds the place of an absent link target: `at`, then the `rest` of its path. The command may create anything
    /// beside it, in folders that are absent too.
    fn end_of_way(
        &mut self,
        workspace: &Path,
        mut at: PathBuf,
        mut rest: Vec<OsString>,
        guard: &PathGuard,
    ) -> io::Result<()> {
        // `..` cannot be followed in a folder that does not exist.
        if rest.iter().any(|part| part == "..") {
            return Ok(());
        }
        rest.retain(|part| part != ".");
        while let Ok(inside) = at.strip_prefix(workspace).map(Path::to_path_buf) {
            let last = rest.is_empty();
            let cover = if last {
                cover_of(guard.kind)
            } else {
                PathCover::Pin
            };
            self.hold(&at, &inside, !last || guard.folder, cover)?;
            let is_folder = fs::symlink_metadata(&at).is_ok_and(|meta| meta.is_dir());
            match rest.pop() {
                Some(next) if is_folder => at.push(next),
                _ => break,
            }
        }
        Ok(())
    }

    /// Creates or takes over a placeholder and covers it.
    fn hold(&mut self, full: &Path, at: &Path, folder: bool, cover: PathCover) -> io::Result<()> {
        if !self.holding {
            // A placeholder that a killed host left behind is removed, unless another command relies on it.
            if fs::symlink_metadata(full).is_ok_and(|meta| is_placeholder(&meta)) {
                let _ = Placeholder::take(full, folder);
            }
            return Ok(());
        }
        match Placeholder::take(full, folder) {
            Ok(held) => {
                if let Some(held) = held {
                    self.held.push(held);
                }
                self.covers.push((at.to_owned(), cover));
                Ok(())
            }
            // A user who may not create it here cannot create it from the jail either.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Adds guards of a single name at any depth, and covers sockets, which lead to listeners outside; returns false
    /// if there are more than `most` entries.
    fn nested(&mut self, workspace: &Path, mounts: &Mounts, most: usize) -> io::Result<bool> {
        let deep: Vec<_> = mounts
            .guards
            .iter()
            .filter(|guard| guard.any_depth)
            .collect();
        if deep.is_empty() && mounts.view.is_some() {
            // No process listens on a socket of a view.
            return Ok(true);
        }
        let mut left = most;
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(workspace.join(&folder)) {
                Ok(entries) => entries,
                Err(error) => {
                    self.unlisted(folder, &error);
                    continue;
                }
            };
            for entry in entries.flatten() {
                let Some(less) = left.checked_sub(1) else {
                    return Ok(false);
                };
                left = less;
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                let name = entry.file_name();
                let at = folder.join(&name);
                let guard = deep.iter().find(|guard| guard.path.as_os_str() == name);
                let guard = guard.filter(|guard| !lifted(&at, guard.kind, mounts));
                if let Some(guard) = guard {
                    if kind.is_symlink() {
                        self.way(workspace, &at, guard)?;
                    }
                    self.covers.push((at.clone(), cover_of(guard.kind)));
                    if guard.kind == GuardKind::Hidden {
                        continue;
                    }
                }
                if kind.is_dir() && !is_content_of_git(&at) {
                    folders.push(at);
                } else if std::os::unix::fs::FileTypeExt::is_socket(&kind) {
                    // A read-only mount does not prevent connecting.
                    self.covers.push((at, PathCover::Empty));
                }
            }
        }
        Ok(true)
    }

    /// Covers a folder that cannot be listed: it may hold guarded names, and the command may be able to open it up. It
    /// cannot be changed at all.
    fn unlisted(&mut self, mut folder: PathBuf, error: &io::Error) {
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => return,
            // The path is too long to cover; the folder above is not.
            Some(libc::ENAMETOOLONG) => _ = folder.pop(),
            _ => {}
        }
        if folder != Path::new("") {
            self.covers.push((folder, PathCover::ReadOnly));
        }
    }

    /// Makes approved paths below a guard writable again; an absent one starts as an empty file, which is
    /// removed if it stays empty.
    fn approved(&mut self, workspace: &Path, mounts: &Mounts) -> io::Result<()> {
        for path in &mounts.writable {
            check(path)?;
            let under = |kind: GuardKind| {
                mounts.guards.iter().any(|guard| {
                    let above = path.ancestors().skip(1);
                    let mut folders = above.filter(|folder| *folder != Path::new(""));
                    guard.kind == kind
                        && folders.any(|folder| {
                            let named = folder.file_name() == Some(guard.path.as_os_str());
                            folder == guard.path || (guard.any_depth && named)
                        })
                })
            };
            if under(GuardKind::Hidden) || !under(GuardKind::ReadOnly) {
                continue;
            }
            let full = workspace.join(path);
            if fs::symlink_metadata(&full).is_err() {
                let Some(held) = Placeholder::take(&full, false)? else {
                    continue;
                };
                self.held.push(held);
            }
            self.covers.push((path.clone(), PathCover::Writable));
        }
        Ok(())
    }
}

/// Pins the folders above every cover.
fn pin_parents(covers: &mut Vec<(PathBuf, PathCover)>) {
    let mut pinned = HashSet::new();
    for (path, _) in &*covers {
        let folders = path.ancestors().skip(1);
        let folders = folders.filter(|folder| *folder != Path::new(""));
        for folder in folders {
            if !pinned.insert(folder.to_owned()) {
                // Then those above it are pinned too.
                break;
            }
        }
    }
    covers.extend(pinned.into_iter().map(|folder| (folder, PathCover::Pin)));
}

/// Drops covers that another one makes needless: anything below a hidden folder, and read-only and pinned paths below
/// a read-only one.
fn pruned(covers: Vec<(PathBuf, PathCover)>) -> Vec<(PathBuf, PathCover)> {
    let mut closed: HashMap<PathBuf, PathCover> = HashMap::new();
    let mut is_needed = |path: &Path, cover: PathCover| {
        let above = path.ancestors().skip(1);
        let plain = matches!(
            cover,
            PathCover::ReadOnly | PathCover::Pin | PathCover::PinnedLink
        );
        let needless = above
            .filter_map(|folder| closed.get(folder))
            .any(|by| *by == PathCover::Empty || plain);
        if !needless && matches!(cover, PathCover::ReadOnly | PathCover::Empty) {
            closed.insert(path.to_owned(), cover);
        }
        !needless
    };
    let covers = covers.into_iter();
    covers
        .filter(|(path, cover)| is_needed(path, *cover))
        .collect()
}

/// Names the path that could not be guarded; a long one by its beginning.
fn named(path: &Path, error: &io::Error) -> io::Error {
    let text = path.to_string_lossy();
    let end = text.floor_char_boundary(MAX_SHOWN);
    let more = if end < text.len() { "…" } else { "" };
    let advice = match error.kind() {
        io::ErrorKind::InvalidFilename => ": shorten or remove it",
        _ => "",
    };
    let text = format!("`{}{more}`: {error}{advice}", &text[..end]);
    io::Error::new(error.kind(), text)
}

fn check(path: &Path) -> io::Result<()> {
    let plain = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if plain && path.components().next().is_some() {
        return Ok(());
    }
    let text = format!("`{}` is not a path below the workspace", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

fn cover_of(kind: GuardKind) -> PathCover {
    match kind {
        GuardKind::ReadOnly => PathCover::ReadOnly,
        GuardKind::Hidden => PathCover::Empty,
    }
}

fn stronger(one: PathCover, other: PathCover) -> PathCover {
    let order = [
        PathCover::Writable,
        PathCover::Pin,
        PathCover::PinnedLink,
        PathCover::ReadOnly,
        PathCover::Empty,
    ];
    let rank = |cover| order.iter().position(|known| *known == cover);
    if rank(one) >= rank(other) { one } else { other }
}

/// Returns whether an operator approved changing this path or one that contains it.
fn lifted(path: &Path, kind: GuardKind, mounts: &Mounts) -> bool {
    kind == GuardKind::ReadOnly && mounts.writable.iter().any(|open| path.starts_with(open))
}

/// Matches `.git/…/objects/xx` and `.git/…/objects/pack`: they hold thousands of files, and git puts nothing else there.
pub(super) fn is_content_of_git(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default();
    let name = name.as_encoded_bytes();
    let holds_content =
        name == b"pack" || (name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit));
    holds_content
        && folder
            .parent()
            .is_some_and(|parent| parent.ends_with("objects"))
        && folder.iter().any(|part| part == ".git")
}
