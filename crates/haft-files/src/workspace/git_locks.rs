//! `GitLocks`: git's own lock files, held while haft changes a repository, so that no git on the host changes it at the same time.
//!
//! Git locks a file `X` by creating `X.lock`, and replaces `X` by renaming the lock. So does haft for each file of a repository that it
//! replaces, except stored objects, which never change, and for the index and HEAD in any case.
//!
//! A killed haft leaves its locks, as a killed git does. So haft writes into the lock of the index, the first, which others it holds, and
//! keeps a lock of the kernel on it: whoever gets that one knows that no haft holds these locks any more, and removes them.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{GIT, GitFolders, OutsideRepository, Workspace, WorkspaceError, display_path, is_git};

/// How long haft waits for a git that is at work: most hold their locks for some milliseconds.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 100 } else { 10_000 });
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum size of a lock that haft wrote, in bytes: it names the others.
const MAX_LOCK: u64 = 64 << 20;
/// The first line of a lock that haft holds.
const MARK: &str =
    "haft changes this repository, and removes this file when it is done or starts again";
/// Parts of a repository whose files git replaces without a lock of their own.
const UNLOCKED: [&str; 6] = ["objects", "logs", "hooks", "info", "lfs", "rr-cache"];

/// Locks that this process holds. Dropping it removes them.
#[derive(Debug, Default)]
pub(crate) struct GitLocks {
    /// In the order in which they were taken.
    held: Vec<HeldLock>,
    /// The first locks of repositories among them.
    firsts: BTreeSet<PathBuf>,
}

/// A lock file that this process created.
#[derive(Debug)]
struct HeldLock {
    folder: OwnedFd,
    name: OsString,
    /// The file of a repository's first lock, with the kernel's lock on it.
    first: Option<File>,
}

/// The locks of one repository, all relative to the root.
struct RepositoryLocks {
    /// That of the index: it is taken before the others.
    first: PathBuf,
    others: BTreeSet<PathBuf>,
}

impl GitLocks {
    /// Takes the locks of the repositories to which some of these files belong. `goes` says which folders are deleted, and `is_changed`
    /// what changes besides: no lock is made where it would be in the way.
    ///
    /// # Errors
    /// Git holds one of the locks, or they cannot be written.
    pub(crate) fn take(
        workspace: &Workspace,
        files: &[&Path],
        goes: &dyn Fn(&Path) -> bool,
        is_changed: &dyn Fn(&Path) -> bool,
    ) -> Result<Self, WorkspaceError> {
        let (mut locks, start) = (Self::default(), Instant::now());
        for repository in repositories(workspace, files) {
            let is_wanted = |lock: &&PathBuf| !is_changed(lock);
            let first = Some(&repository.first).filter(is_wanted);
            let all = first
                .into_iter()
                .chain(repository.others.iter().filter(is_wanted));
            for lock in all {
                let stays = !lock.ancestors().skip(1).any(goes);
                while !locks.try_take(workspace, &repository, lock, stays)? {
                    if start.elapsed() >= PATIENCE {
                        return Err(WorkspaceError::GitAtWork(display_path(lock)));
                    }
                    std::thread::sleep(PAUSE);
                }
            }
        }
        Ok(locks)
    }

    /// Takes a lock; in a folder that goes, only looks whether anyone else holds it. Returns whether nobody else does.
    fn try_take(
        &mut self,
        workspace: &Workspace,
        of: &RepositoryLocks,
        lock: &Path,
        stays: bool,
    ) -> Result<bool, WorkspaceError> {
        let failed = |e| WorkspaceError::from_errno("write", lock, e);
        let (Some(folder), Some(name)) = (open_parent(workspace, lock), lock.file_name()) else {
            // Where there is no such folder, nobody holds a lock in it.
            return Ok(true);
        };
        if !stays {
            let stat = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW);
            return Ok(stat.is_err_and(|e| e == Errno::NOENT));
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&folder, name, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => File::from(file),
            Err(Errno::EXIST) => {
                let names_ours = || {
                    let lines = marked_lines(workspace, lock);
                    lines.is_some_and(|lines| lines.first() == Some(&of.first))
                };
                // No other haft holds it, because this one has the first.
                if self.firsts.contains(&of.first) && names_ours() {
                    unlink(workspace, lock);
                } else {
                    remove_abandoned(workspace, lock);
                }
                return Ok(false);
            }
            // Nor can git.
            Err(Errno::ACCESS | Errno::ROFS | Errno::PERM) => return Ok(true),
            Err(e) => return Err(failed(e)),
        };
        let is_first = lock == of.first;
        self.held.push(HeldLock {
            folder,
            name: name.to_owned(),
            first: None,
        });
        if is_first {
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(failed)?;
        }
        let written = (&file).write_all(of.text(is_first).as_bytes());
        written.map_err(|e| WorkspaceError::io("write", &display_path(lock), e))?;
        if let Some(held) = self.held.last_mut().filter(|_| is_first) {
            held.first = Some(file);
            self.firsts.insert(lock.to_owned());
        }
        Ok(true)
    }
}

impl Drop for GitLocks {
    fn drop(&mut self) {
        // The first one last: while it is there, the others are not abandoned.
        while let Some(lock) = self.held.pop() {
            let removed = rustix::fs::unlinkat(&lock.folder, &*lock.name, AtFlags::empty());
            if let Err(error) = removed
                && error != Errno::NOENT
            {
                tracing::warn!(%error, lock = ?lock.name, "remove a lock of git");
            }
            drop(lock.first);
        }
    }
}

impl RepositoryLocks {
    /// Returns what a lock says: the first one names the others, and they name the first.
    fn text(&self, is_first: bool) -> String {
        let mut text = format!("{MARK}\n");
        let mut add = |path: &Path| {
            if let Some(path) = path.to_str().filter(|path| !path.contains('\n')) {
                let _ = writeln!(text, "{path}");
            }
        };
        if is_first {
            self.others.iter().for_each(|lock| add(lock));
        } else {
            add(&self.first);
        }
        text
    }
}

impl Workspace {
    /// Removes the locks that a killed haft left in the workspace's repository.
    pub fn remove_abandoned_locks(&self) {
        remove_abandoned(self, &first_lock(self, Path::new(GIT)));
    }
}

/// Returns the locks of the repositories that hold these files.
fn repositories(workspace: &Workspace, files: &[&Path]) -> Vec<RepositoryLocks> {
    let mut folders = GitFolders::by_shape(workspace, files.iter().copied());
    let mut found: Vec<(PathBuf, RepositoryLocks)> = Vec::new();
    for file in files {
        let unit = if is_git(file) {
            let mut above = file.ancestors().collect::<Vec<_>>().into_iter().rev();
            above.find(|path| is_git(path)).map(Path::to_owned)
        } else {
            folders.unit(file)
        };
        let Some(unit) = unit else { continue };
        let Ok(within) = file.strip_prefix(&unit) else {
            continue;
        };
        if !is_locked(within) {
            continue;
        }
        let at = found.iter().position(|(known, _)| *known == unit);
        let at = at.unwrap_or_else(|| {
            let first = first_lock(workspace, &unit);
            let others = BTreeSet::from([first.with_file_name("HEAD.lock")]);
            found.push((unit, RepositoryLocks { first, others }));
            found.len() - 1
        });
        if let Some((_, locks)) = found.get_mut(at) {
            let lock = lock_of(file);
            if lock != locks.first {
                locks.others.insert(lock);
            }
        }
    }
    found.into_iter().map(|(_, locks)| locks).collect()
}

/// Returns the lock of the index that the workspace's work tree has in a repository.
fn first_lock(workspace: &Workspace, repository: &Path) -> PathBuf {
    let own = workspace.repository().map(OutsideRepository::own_part);
    let own = own.filter(|own| own.starts_with(repository));
    own.unwrap_or_else(|| repository.to_owned())
        .join("index.lock")
}

fn lock_of(file: &Path) -> PathBuf {
    let mut lock = file.as_os_str().to_owned();
    lock.push(".lock");
    lock.into()
}

/// Whether git locks a file, by its path in a repository, before it replaces it.
fn is_locked(within: &Path) -> bool {
    if within.extension() == Some(OsStr::new("lock")) {
        return false;
    }
    for part in within {
        if part == "refs" {
            return true;
        }
        if UNLOCKED.iter().any(|name| part == *name) {
            return false;
        }
    }
    within != Path::new("")
}

fn open_parent(workspace: &Workspace, path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    workspace.beneath(path.parent()?, flags).ok()
}

/// Removes a lock that a killed haft left, with all that it held; nothing if a haft holds it, or if it is git's.
fn remove_abandoned(workspace: &Workspace, lock: &Path) {
    let Some(lines) = marked_lines(workspace, lock) else {
        return;
    };
    let is_first = lock.file_name() == Some(OsStr::new("index.lock"));
    let first = if is_first {
        lock.to_owned()
    } else {
        match lines.first() {
            Some(first) => first.clone(),
            None => return,
        }
    };
    let Ok(open) = workspace.open_file(&first) else {
        // It is removed last, so the others are left over.
        return unlink(workspace, lock);
    };
    if rustix::fs::flock(open.file.as_fd(), FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    match marked_lines(workspace, &first) {
        Some(others) => {
            let abandoned = others.iter().chain([&first]);
            abandoned
                .filter(|lock| marked_lines(workspace, lock).is_some())
                .for_each(|lock| unlink(workspace, lock));
        }
        // Git's own, or gone.
        None if !is_first => unlink(workspace, lock),
        None => {}
    }
}

/// Returns the paths that a lock of haft's names; `None` if it is not one.
fn marked_lines(workspace: &Workspace, lock: &Path) -> Option<Vec<PathBuf>> {
    let open = workspace.open_file(lock).ok()?;
    let mut text = String::new();
    open.file.take(MAX_LOCK).read_to_string(&mut text).ok()?;
    let lines = text.strip_prefix(MARK)?.strip_prefix('\n')?.lines();
    // Anyone can write such a file: it names nothing but locks.
    let is_lock = |path: &PathBuf| path.extension() == Some(OsStr::new("lock"));
    Some(lines.map(PathBuf::from).filter(is_lock).collect())
}

fn unlink(workspace: &Workspace, lock: &Path) {
    if let (Some(folder), Some(name)) = (open_parent(workspace, lock), lock.file_name()) {
        let _ = rustix::fs::unlinkat(&folder, name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{GitLocks, MARK, Workspace, is_locked};

    #[test]
    fn what_git_replaces_under_a_lock_is_told_from_what_it_adds() {
        for (path, locks) in [
            ("index", true),
            ("HEAD", true),
            ("config", true),
            ("packed-refs", true),
            ("refs/heads/objects/x", true),
            ("worktrees/w/index", true),
            ("modules/lib/refs/heads/main", true),
            ("objects/ab/c", false),
            ("modules/lib/objects/ab/c", false),
            ("logs/refs/heads/main", false),
            ("hooks/pre-commit", false),
            ("index.lock", false),
            ("", false),
        ] {
            assert_eq!(is_locked(Path::new(path)), locks, "{path}");
        }
    }

    fn scene() -> (tempfile::TempDir, Workspace) {
        let dir = tempfile::tempdir().unwrap();
        for folder in [".git/refs/heads/old", ".git/objects", "sub/.git/refs/heads"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for file in [
            ".git/HEAD",
            ".git/index",
            ".git/refs/heads/old/x",
            "sub/.git/HEAD",
        ] {
            fs::write(dir.path().join(file), "x").unwrap();
        }
        let workspace = Workspace::open(dir.path()).unwrap();
        (dir, workspace)
    }

    fn locks(dir: &Path) -> Vec<PathBuf> {
        let (mut left, mut found) = (vec![dir.to_owned()], Vec::new());
        while let Some(folder) = left.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    left.push(path);
                } else if path.extension().is_some_and(|end| end == "lock") {
                    found.push(path.strip_prefix(dir).unwrap().to_owned());
                }
            }
        }
        found.sort();
        found
    }

    fn take(workspace: &Workspace, files: &[&str]) -> GitLocks {
        let files: Vec<&Path> = files.iter().map(Path::new).collect();
        let goes = |folder: &Path| folder == Path::new(".git/refs/heads/old");
        GitLocks::take(workspace, &files, &goes, &|_| false).unwrap()
    }

    #[test]
    fn locks_when_dropped_are_gone_and_none_is_made_in_a_folder_that_goes() {
        let (dir, workspace) = scene();
        let held = take(
            &workspace,
            &[
                "a",
                ".git/refs/heads/main",
                ".git/refs/heads/old/x",
                ".git/refs/heads/new/y",
                ".git/objects/ab/c",
                "sub/.git/packed-refs",
            ],
        );
        let expect = [
            ".git/HEAD.lock",
            ".git/index.lock",
            ".git/refs/heads/main.lock",
            "sub/.git/HEAD.lock",
            "sub/.git/index.lock",
            "sub/.git/packed-refs.lock",
        ];
        assert!(locks(dir.path()).iter().eq(expect.map(Path::new).iter()));
        drop(held);
        assert!(locks(dir.path()).is_empty());
        assert!(
            take(&workspace, &["a", ".git/objects/ab/c"])
                .held
                .is_empty()
        );
    }

    #[test]
    fn locks_of_a_killed_haft_are_removed_and_others_stay() {
        let (dir, workspace) = scene();
        let at = |name: &str| dir.path().join(name);
        let held = take(&workspace, &[".git/refs/heads/main"]);
        // A living haft holds them.
        workspace.remove_abandoned_locks();
        assert_eq!(locks(dir.path()).len(), 3);
        let texts: Vec<_> = locks(dir.path())
            .into_iter()
            .map(|lock| {
                (
                    at(lock.to_str().unwrap()),
                    fs::read(at(lock.to_str().unwrap())).unwrap(),
                )
            })
            .collect();
        drop(held);
        let leave = || {
            for (path, text) in &texts {
                fs::write(path, text).unwrap();
            }
        };
        leave();
        // A lock of git's that a later text could name stays.
        fs::write(at(".git/packed-refs.lock"), "").unwrap();
        let first = format!(
            "{MARK}\n.git/HEAD.lock\n.git/refs/heads/main.lock\n.git/packed-refs.lock\n.git/HEAD\n"
        );
        fs::write(at(".git/index.lock"), first).unwrap();
        workspace.remove_abandoned_locks();
        assert_eq!(locks(dir.path()), [Path::new(".git/packed-refs.lock")]);
        assert!(at(".git/HEAD").exists());
        // Taking them removes what is abandoned, too, also where the first one is gone.
        leave();
        fs::remove_file(at(".git/index.lock")).unwrap();
        drop(take(&workspace, &[".git/refs/heads/main"]));
        assert_eq!(locks(dir.path()), [Path::new(".git/packed-refs.lock")]);
        fs::write(at(".git/index.lock"), "").unwrap();
        workspace.remove_abandoned_locks();
        let files = [Path::new(".git/refs/heads/main")];
        let refused = GitLocks::take(&workspace, &files, &|_| false, &|_| false);
        let why = refused.unwrap_err().to_string();
        assert!(
            why.contains("git is at work") && why.contains(".git/index.lock"),
            "{why}"
        );
        assert_eq!(locks(dir.path()).len(), 2);
    }
}
