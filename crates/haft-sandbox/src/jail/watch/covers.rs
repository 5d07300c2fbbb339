//! Checks that every cover is where it was mounted, and mounts lost ones again.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, StatxAttributes, StatxFlags, fstat, statx};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsmount, fsopen, move_mount, unmount,
};

use super::super::guarded_names::GuardedNames;
use super::super::plan::{PathCover, SupervisorPlan};
use super::super::root::{INERT, READ_ONLY, below, clone, is_folder, path_fd};
use super::holders;
use crate::guard_event::GuardEvent;
use crate::held_places::placeholder::{Placeholder, Placeholders};

/// How long a removed file may be absent before a placeholder takes its place: many programs rewrite a file by removing it first.
const GRACE: Duration = Duration::from_millis(20);

/// How often to retry a cover while a rename is under way.
const TRIES: u32 = 1_000;

/// All covers of one jail.
#[derive(Debug)]
pub(super) struct PathCovers {
    all: Vec<CoveredPath>,
    /// Every path that has or had a cover.
    known: HashSet<PathBuf>,
    /// The covered paths below which the command can change nothing.
    closed: HashSet<PathBuf>,
    placeholders: Placeholders,
    places: Vec<PathBuf>,
}

#[derive(Debug)]
struct CoveredPath {
    path: PathBuf,
    cover: PathCover,
    /// Since when nothing exists there.
    missing: Option<Instant>,
}

/// What exists at a covered path.
enum CoverState {
    Cover,
    Bare(OwnedFd),
    Nothing,
}

/// The context in which covers are restored.
pub(super) struct CoverContext<'a> {
    pub(super) plan: &'a SupervisorPlan,
    pub(super) names: &'a GuardedNames,
    pub(super) workspace: BorrowedFd<'a>,
    pub(super) proc: &'a OwnedFd,
}

impl PathCovers {
    pub(super) fn new(plan: &SupervisorPlan) -> Self {
        let mut all: Vec<_> = plan
            .covers
            .iter()
            .filter(|(_, cover)| *cover != PathCover::Writable)
            .map(|(path, cover)| CoveredPath {
                path: path.clone(),
                cover: *cover,
                missing: None,
            })
            .collect();
        // Hiding covers come first: the files below them must not be read.
        all.sort_by_key(|covered| covered.cover != PathCover::Empty);
        let paths = |wanted: fn(&CoveredPath) -> bool| {
            let wanted = all.iter().filter(|covered| wanted(covered));
            wanted.map(|covered| covered.path.clone()).collect()
        };
        Self {
            known: paths(|_| true),
            closed: paths(|covered| covered.cover != PathCover::Pin),
            all,
            placeholders: Placeholders::default(),
            places: Vec::new(),
        }
    }

    /// Returns the folders whose entries are covered.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let parents = self.all.iter().filter_map(|covered| covered.path.parent());
        let mut folders: Vec<_> = parents.map(Path::to_path_buf).collect();
        folders.sort();
        folders.dedup();
        folders
    }

    pub(super) fn holds(&self, path: &Path) -> bool {
        self.known.contains(path)
    }

    /// Returns whether the command can change nothing below this path.
    pub(super) fn closes(&self, path: &Path) -> bool {
        self.closed.contains(path)
    }

    /// Returns when the next placeholder is due.
    pub(super) fn due(&self) -> Option<Instant> {
        let missing = self.all.iter().filter_map(|covered| covered.missing);
        missing.min().map(|since| since + GRACE)
    }

    /// Mounts lost covers again; returns what happened.
    pub(super) fn restore(&mut self, around: &CoverContext<'_>) -> Vec<GuardEvent> {
        let mut events = Vec::new();
        let mut gone = Vec::new();
        for (index, covered) in self.all.iter_mut().enumerate() {
            match at(around.workspace, &covered.path) {
                CoverState::Cover => covered.missing = None,
                CoverState::Bare(now) => events.extend(covered.restore(now, around)),
                CoverState::Nothing => {
                    let since = *covered.missing.get_or_insert_with(Instant::now);
                    if since.elapsed() >= GRACE {
                        gone.push(index);
                    }
                }
            }
        }
        for index in gone.into_iter().rev() {
            let mut covered = self.all.remove(index);
            self.closed.remove(&covered.path);
            // Neither a folder above a guarded name nor a socket is a guarded name itself.
            if around.names.holds(&covered.path) {
                let path = covered.path.clone();
                events.push(GuardEvent::Replaced { path });
            }
            if self.hold(&covered.path, around) {
                covered.missing = None;
                if let CoverState::Bare(now) = at(around.workspace, &covered.path) {
                    // The placeholder is empty, so nothing is exposed.
                    let _ = covered.mount(&now);
                }
                self.closed.insert(covered.path.clone());
                self.all.insert(index, covered);
            }
        }
        events
    }

    /// Holds the place of a name that is guarded even while absent; returns whether something exists there now.
    fn hold(&mut self, path: &Path, around: &CoverContext<'_>) -> bool {
        let Some(name) = around.names.at(path) else {
            return false;
        };
        let full = around.plan.workspace.join(path);
        match Placeholder::take(&full, name.folder) {
            Ok(held) => {
                if let Some(held) = held {
                    self.placeholders.push(held);
                    self.places.push(full);
                }
                true
            }
            Err(_) => false,
        }
    }

    /// Removes the placeholders created here.
    pub(super) fn let_go(&mut self) {
        for place in self.places.drain(..) {
            let _ = unmount(place, UnmountFlags::DETACH);
        }
        self.placeholders = Placeholders::default();
    }
}

impl CoveredPath {
    /// Covers what exists there; returns the event to report.
    fn restore(&mut self, mut now: OwnedFd, around: &CoverContext<'_>) -> Option<GuardEvent> {
        self.missing = None;
        for _ in 0..TRIES {
            match self.mount(&now) {
                Ok(()) => return self.restored(&now, around),
                // A rename under way has lifted the cover, but the old file is still there.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => break,
            }
            match at(around.workspace, &self.path) {
                CoverState::Bare(next) => now = next,
                CoverState::Cover => return None,
                CoverState::Nothing => {
                    self.missing = Some(Instant::now());
                    return None;
                }
            }
        }
        let path = self.path.clone();
        Some(GuardEvent::Exposed { path })
    }

    fn mount(&self, now: &OwnedFd) -> io::Result<()> {
        let tree = match self.cover {
            PathCover::Empty => nothing(now),
            // Covering the link itself is not enough: what it leads to now may have no cover.
            _ if kind(now) == Some(FileType::Symlink) => Err(io::ErrorKind::Unsupported.into()),
            PathCover::ReadOnly | PathCover::PinnedLink => clone(now.as_fd(), READ_ONLY | INERT),
            PathCover::Pin | PathCover::Writable => clone(now.as_fd(), INERT),
        };
        put(&tree?, now)
    }

    /// Returns the event, depending on whether the command may have got what was open to it for a moment.
    fn restored(&self, now: &OwnedFd, around: &CoverContext<'_>) -> Option<GuardEvent> {
        let path = self.path.clone();
        let exposed = match self.cover {
            // A socket is no secret.
            PathCover::Empty => kind(now) != Some(FileType::Socket),
            PathCover::ReadOnly | PathCover::PinnedLink => fstat(now).is_ok_and(|stat| {
                kind(now) == Some(FileType::RegularFile) && holders::is_held(around.proc, &stat)
            }),
            // The cover only prevents renaming.
            PathCover::Pin | PathCover::Writable => return None,
        };
        Some(if exposed {
            GuardEvent::Exposed { path }
        } else {
            GuardEvent::Replaced { path }
        })
    }
}

fn kind(of: &OwnedFd) -> Option<FileType> {
    let stat = fstat(of).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// Creates an empty mount to cover a file or folder. The one created at the start cannot be used again: it no longer has a name,
/// and a file without a name cannot be mounted.
fn nothing(on: &OwnedFd) -> io::Result<OwnedFd> {
    if !is_folder(on)? {
        // Mounted without device access, it cannot be opened.
        let null = path_fd(Path::new("/dev/null"))?;
        return clone(null.as_fd(), READ_ONLY | INERT);
    }
    let empty = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(empty.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(
        empty.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        attributes,
    )?)
}

fn put(tree: &OwnedFd, on: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, "", on, "", flags)?)
}

fn at(workspace: BorrowedFd<'_>, path: &Path) -> CoverState {
    match below(workspace, path) {
        Ok(found) if is_cover(&found) => CoverState::Cover,
        Ok(found) => CoverState::Bare(found),
        Err(_) => CoverState::Nothing,
    }
}

/// Returns whether this exact path is a mount point; also true if the kernel does not report it.
pub(super) fn is_cover(path: &OwnedFd) -> bool {
    let stat = statx(path, "", AtFlags::EMPTY_PATH, StatxFlags::empty());
    stat.is_ok_and(|stat| {
        let known = stat
            .stx_attributes_mask
            .contains(StatxAttributes::MOUNT_ROOT);
        !known || stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
    })
}

/// Returns whether something exists there that is not a mount point.
pub(super) fn is_bare(workspace: BorrowedFd<'_>, path: &Path) -> bool {
    matches!(at(workspace, path), CoverState::Bare(_))
}
