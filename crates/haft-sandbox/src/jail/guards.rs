//! Finding what has to be guarded in a workspace, and holding the place of what is absent.
//!
//! A name that does not exist cannot be mounted over, and whoever may make files in a folder may make
//! that name. So for as long as a command runs an empty placeholder holds it. It is recognised by its
//! date, held with a shared lock by every command that relies on it, and removed by the last of them;
//! one that a killed host left behind is taken over, and removed, by the next command there.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};

use super::bare::Scratch;
use super::plan::Cover;
use crate::command::{Guard, GuardKind, Mounts};

/// How many entries of a workspace are looked at for names guarded at any depth. Beyond that the
/// command is refused: a guard that was not found does not hold.
const MOST_ENTRIES: usize = 2_000_000;
/// How many are looked at without handing the look to a thread for blocking work.
const AT_ONCE: usize = 2_000;
/// How often a placeholder is tried that others make and remove meanwhile, and how long one waits for a removal.
const TRIES: u32 = 1_000;
const PAUSE: Duration = Duration::from_millis(2);
/// When placeholders were last changed; no file is this old by chance.
const MARK: Duration = Duration::from_secs(0x6861_6674 / 100);

/// The covers of one command, and the placeholders that live as long as this.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    pub(crate) covers: Vec<(PathBuf, Cover)>,
    held: Vec<Placeholder>,
    scratch: Option<Scratch>,
    /// Whether absent names are held; needless where nothing can be made at the top anyway.
    holding: bool,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
struct Placeholder {
    path: PathBuf,
    lock: File,
    folder: bool,
}

impl Guards {
    /// A private folder in the place of `/tmp`, for the level that has none of its own.
    pub(crate) fn scratch(&mut self) -> io::Result<PathBuf> {
        let scratch = Scratch::make()?;
        let path = scratch.0.clone();
        self.scratch = Some(scratch);
        Ok(path)
    }

    /// Looks at the workspace and takes the places of what is absent; a large workspace is looked at by
    /// a thread for blocking work.
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

    /// `None` where the workspace has more than `most` entries.
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
            guards.top(workspace, guard, mounts)?;
        }
        if !guards.nested(workspace, mounts, most) {
            return Ok(None);
        }
        guards.approved(workspace, mounts)?;
        // Shallow first, so that what lies deeper ends up on top; approved paths last.
        guards.covers.sort_by_key(|(path, cover)| {
            (
                *cover == Cover::Writable,
                path.components().count(),
                path.clone(),
            )
        });
        let mut covers = std::mem::take(&mut guards.covers);
        covers.dedup_by(|next, kept| {
            let same =
                next.0 == kept.0 && (next.1 == Cover::Writable) == (kept.1 == Cover::Writable);
            if same {
                kept.1 = stronger(kept.1, next.1);
            }
            same
        });
        guards.covers = pruned(covers);
        Ok(Some(guards))
    }

    /// A guard at the place it names.
    fn top(&mut self, workspace: &Path, guard: &Guard, mounts: &Mounts) -> io::Result<()> {
        if lifted(&guard.path, guard.kind, mounts) {
            return Ok(());
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
                    return self.hold(&full, &at, !last || guard.folder, cover);
                }
                Err(error) => return Err(error),
                Ok(meta) if stale(&meta) => {
                    return self.hold(&full, &at, !last || guard.folder, cover);
                }
                Ok(meta) if last || !meta.is_dir() => {
                    if meta.is_symlink() {
                        self.way(workspace, &at, cover);
                    }
                    self.covers.push((at, cover));
                    return Ok(());
                }
                // It must not be renamed away and made anew without what lies in it.
                Ok(_) => self.covers.push((at.clone(), Cover::Pin)),
            }
        }
        Ok(())
    }

    /// Guards the way that a link takes through the workspace: what it ends at like the link itself,
    /// other links on it against being changed, folders against being renamed away.
    fn way(&mut self, workspace: &Path, link: &Path, cover: Cover) {
        let mut todo: Vec<_> = link.iter().rev().map(ToOwned::to_owned).collect();
        let mut at = workspace.to_owned();
        let mut links = 0;
        while let Some(part) = todo.pop() {
            match part.to_str() {
                Some("..") => _ = at.pop(),
                Some(".") => {}
                _ => at.push(&part),
            }
            let Ok(meta) = fs::symlink_metadata(&at) else {
                return;
            };
            let cover = match (meta.is_symlink(), meta.is_dir() && !todo.is_empty()) {
                (true, _) => Cover::ReadOnly,
                (_, true) => Cover::Pin,
                _ => cover,
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
            let Ok(to) = fs::read_link(&at) else { return };
            // As many as the kernel follows.
            if links > 40 {
                return;
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
    }

    /// Makes or takes over a placeholder and covers it.
    fn hold(&mut self, full: &Path, at: &Path, folder: bool, cover: Cover) -> io::Result<()> {
        if !self.holding {
            return Ok(());
        }
        match Placeholder::take(full, folder) {
            Ok(held) => {
                self.held.extend(held);
                self.covers.push((at.to_owned(), cover));
                Ok(())
            }
            // Who may not make it here cannot make it from the jail either.
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

    /// Guards of a single name at any depth, and sockets, which lead to whoever listens outside; false
    /// where there are more than `most` entries.
    fn nested(&mut self, workspace: &Path, mounts: &Mounts, most: usize) -> bool {
        let deep: Vec<_> = mounts
            .guards
            .iter()
            .filter(|guard| guard.any_depth)
            .collect();
        if deep.is_empty() && mounts.view.is_some() {
            // Nothing listens behind a socket of a view.
            return true;
        }
        let mut left = most;
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            // What this user cannot list, the command cannot either.
            let Ok(entries) = fs::read_dir(workspace.join(&folder)) else {
                continue;
            };
            for entry in entries.flatten() {
                let Some(less) = left.checked_sub(1) else {
                    return false;
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
                        self.way(workspace, &at, cover_of(guard.kind));
                    }
                    self.covers.push((at.clone(), cover_of(guard.kind)));
                    if guard.kind == GuardKind::Hidden {
                        continue;
                    }
                }
                if kind.is_dir() && !is_content_of_git(&at) {
                    folders.push(at);
                } else if std::os::unix::fs::FileTypeExt::is_socket(&kind) {
                    // A mount that is only read does not keep anybody from connecting.
                    self.covers.push((at, Cover::Empty));
                }
            }
        }
        true
    }

    /// Approved paths below a guard become changeable again; one that is absent starts as an empty
    /// file, which goes away again if it stays empty.
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
            self.covers.push((path.clone(), Cover::Writable));
        }
        Ok(())
    }
}

/// Without what another cover makes needless: anything below a hidden folder, read-only below
/// read-only.
fn pruned(covers: Vec<(PathBuf, Cover)>) -> Vec<(PathBuf, Cover)> {
    let mut left: Vec<(PathBuf, Cover)> = Vec::with_capacity(covers.len());
    for (path, cover) in covers {
        let needless = left.iter().any(|(above, by)| {
            let below = path != *above && path.starts_with(above);
            let plain = matches!(cover, Cover::ReadOnly | Cover::Pin);
            below && (*by == Cover::Empty || (*by == Cover::ReadOnly && plain))
        });
        if !needless {
            left.push((path, cover));
        }
    }
    left
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

fn cover_of(kind: GuardKind) -> Cover {
    match kind {
        GuardKind::ReadOnly => Cover::ReadOnly,
        GuardKind::Hidden => Cover::Empty,
    }
}

fn stronger(one: Cover, other: Cover) -> Cover {
    let order = [Cover::Writable, Cover::Pin, Cover::ReadOnly, Cover::Empty];
    let rank = |cover| order.iter().position(|known| *known == cover);
    if rank(one) >= rank(other) { one } else { other }
}

/// Whether somebody approved changing this path or one that holds it.
fn lifted(path: &Path, kind: GuardKind, mounts: &Mounts) -> bool {
    kind == GuardKind::ReadOnly && mounts.writable.iter().any(|open| path.starts_with(open))
}

fn mark() -> SystemTime {
    SystemTime::UNIX_EPOCH + MARK
}

/// Whether something is a placeholder, of a command that runs or of one that was killed.
fn stale(meta: &fs::Metadata) -> bool {
    let empty = if meta.is_dir() {
        meta.nlink() <= 2
    } else {
        meta.is_file() && meta.len() == 0
    };
    empty && meta.modified().is_ok_and(|modified| modified == mark())
}

impl Placeholder {
    /// Makes a placeholder, or joins the holders of one; `None` when something real took the place.
    fn take(path: &Path, folder: bool) -> io::Result<Option<Self>> {
        for _ in 0..TRIES {
            match Self::make(path, folder) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            let open = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
                .open(path);
            let lock = match open {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            // The last holder removes it under an exclusive lock, which lasts on a busy machine: then look again.
            if flock(&lock, FlockOperation::NonBlockingLockShared).is_err() {
                std::thread::sleep(PAUSE);
                continue;
            }
            let (mine, now) = (lock.metadata()?, fs::symlink_metadata(path));
            if now.is_ok_and(|now| now.ino() == mine.ino() && now.dev() == mine.dev()) {
                let folder = mine.is_dir();
                let held = Self {
                    path: path.to_owned(),
                    lock,
                    folder,
                };
                return Ok(stale(&mine).then_some(held));
            }
        }
        Err(io::Error::other("a placeholder keeps changing"))
    }

    /// Makes it under another name and moves it into place, so that nobody sees one without its date.
    fn make(path: &Path, folder: bool) -> io::Result<()> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let made = path.with_file_name(format!(".haft-{}-{number}", std::process::id()));
        if folder {
            fs::DirBuilder::new().mode(0o755).create(&made)?;
        } else {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o644)
                .open(&made)?;
        }
        let date = || -> io::Result<()> {
            File::open(&made)?.set_times(FileTimes::new().set_modified(mark()))?;
            Ok(renameat_with(
                CWD,
                &made,
                CWD,
                path,
                RenameFlags::NOREPLACE,
            )?)
        };
        date().inspect_err(|_| {
            let _ = if folder {
                fs::remove_dir(&made)
            } else {
                fs::remove_file(&made)
            };
        })
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        if flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        let same = fs::symlink_metadata(&self.path).is_ok_and(|now| {
            self.lock
                .metadata()
                .is_ok_and(|mine| mine.ino() == now.ino() && mine.dev() == now.dev())
                && stale(&now)
        });
        if same {
            // A folder that is not empty stays: `remove_dir` refuses.
            let _ = if self.folder {
                fs::remove_dir(&self.path)
            } else {
                fs::remove_file(&self.path)
            };
        }
    }
}

/// `.git/…/objects/xx` and `.git/…/objects/pack`: files by the thousand, and git puts nothing else there.
fn is_content_of_git(folder: &Path) -> bool {
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
