//! Sees that every cover is where it was mounted, and mounts it again.

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

use super::super::placeholder::{Placeholder, Placeholders};
use super::super::plan::{Cover, Plan};
use super::super::root::{INERT, READ_ONLY, below, clone, is_folder, path_fd};
use super::holders;
use super::names::Names;
use crate::guard_event::GuardEvent;

/// How long a removed file may be absent before a placeholder takes its place: many programs write a file anew by removing it first.
const GRACE: Duration = Duration::from_millis(20);

/// How often a cover is tried while a rename is under way.
const TRIES: u32 = 1_000;

/// All covers of one jail.
#[derive(Debug)]
pub(super) struct Covers {
    all: Vec<Covered>,
    /// Every path that has or had a cover.
    known: HashSet<PathBuf>,
    /// Those below which the command can change nothing.
    closed: HashSet<PathBuf>,
    placeholders: Placeholders,
    places: Vec<PathBuf>,
}

#[derive(Debug)]
struct Covered {
    path: PathBuf,
    cover: Cover,
    /// Since when nothing is there.
    missing: Option<Instant>,
}

/// What is at a covered path.
enum At {
    Cover,
    Bare(OwnedFd),
    Nothing,
}

/// What keeps the covers in place.
pub(super) struct Around<'a> {
    pub(super) plan: &'a Plan,
    pub(super) names: &'a Names,
    pub(super) workspace: BorrowedFd<'a>,
    pub(super) proc: &'a OwnedFd,
}

impl Covers {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut all: Vec<_> = plan
            .covers
            .iter()
            .filter(|(_, cover)| *cover != Cover::Writable)
            .map(|(path, cover)| Covered {
                path: path.clone(),
                cover: *cover,
                missing: None,
            })
            .collect();
        // What hides comes first: its file must not be read.
        all.sort_by_key(|covered| covered.cover != Cover::Empty);
        let paths = |wanted: fn(&Covered) -> bool| {
            let wanted = all.iter().filter(|covered| wanted(covered));
            wanted.map(|covered| covered.path.clone()).collect()
        };
        Self {
            known: paths(|_| true),
            closed: paths(|covered| covered.cover != Cover::Pin),
            all,
            placeholders: Placeholders::default(),
            places: Vec::new(),
        }
    }

    /// Folders whose entries are covered.
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

    /// Whether the command can change nothing below this path.
    pub(super) fn closes(&self, path: &Path) -> bool {
        self.closed.contains(path)
    }

    /// When the next placeholder is due.
    pub(super) fn due(&self) -> Option<Instant> {
        let missing = self.all.iter().filter_map(|covered| covered.missing);
        missing.min().map(|since| since + GRACE)
    }

    /// Mounts again what is not where it was; what happened.
    pub(super) fn restore(&mut self, around: &Around<'_>) -> Vec<GuardEvent> {
        let mut events = Vec::new();
        let mut gone = Vec::new();
        for (index, covered) in self.all.iter_mut().enumerate() {
            match at(around.workspace, &covered.path) {
                At::Cover => covered.missing = None,
                At::Bare(now) => events.extend(covered.restore(now, around)),
                At::Nothing => {
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
            // A folder above it is no name of its own, nor is a socket.
            if around.names.holds(&covered.path) {
                let path = covered.path.clone();
                events.push(GuardEvent::Replaced { path });
            }
            if self.hold(&covered.path, around) {
                covered.missing = None;
                if let At::Bare(now) = at(around.workspace, &covered.path) {
                    // It is empty, so nothing is exposed.
                    let _ = covered.mount(&now);
                }
                self.closed.insert(covered.path.clone());
                self.all.insert(index, covered);
            }
        }
        events
    }

    /// Takes the place of a name that is guarded also while it is absent; whether there is something now.
    fn hold(&mut self, path: &Path, around: &Around<'_>) -> bool {
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

    /// Removes the placeholders made here.
    pub(super) fn let_go(&mut self) {
        for place in self.places.drain(..) {
            let _ = unmount(place, UnmountFlags::DETACH);
        }
        self.placeholders = Placeholders::default();
    }
}

impl Covered {
    /// Covers what is there; what there is to tell.
    fn restore(&mut self, mut now: OwnedFd, around: &Around<'_>) -> Option<GuardEvent> {
        self.missing = None;
        for _ in 0..TRIES {
            match self.mount(&now) {
                Ok(()) => return self.restored(&now, around),
                // A rename that is under way has lifted the cover, and what it replaces is still there.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => break,
            }
            match at(around.workspace, &self.path) {
                At::Bare(next) => now = next,
                At::Cover => return None,
                At::Nothing => {
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
            Cover::Empty => nothing(now),
            // Where a link leads may be covered by nothing.
            _ if kind(now) == Some(FileType::Symlink) => Err(io::ErrorKind::Unsupported.into()),
            Cover::ReadOnly => clone(now.as_fd(), READ_ONLY | INERT),
            Cover::Pin | Cover::Writable => clone(now.as_fd(), INERT),
        };
        put(&tree?, now)
    }

    /// Whether the command may have what was open to it for a moment.
    fn restored(&self, now: &OwnedFd, around: &Around<'_>) -> Option<GuardEvent> {
        let path = self.path.clone();
        let exposed = match self.cover {
            // A socket is no secret.
            Cover::Empty => kind(now) != Some(FileType::Socket),
            Cover::ReadOnly => fstat(now).is_ok_and(|stat| {
                kind(now) == Some(FileType::RegularFile) && holders::is_held(around.proc, &stat)
            }),
            // It only stays where it is.
            Cover::Pin | Cover::Writable => return None,
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

/// Shows nothing in the place of a file or a folder. That of the start cannot be had again: it has no name any more,
/// and what has none cannot be mounted.
fn nothing(on: &OwnedFd) -> io::Result<OwnedFd> {
    if !is_folder(on)? {
        // Without devices on its mount it cannot be opened.
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

fn at(workspace: BorrowedFd<'_>, path: &Path) -> At {
    match below(workspace, path) {
        Ok(found) if is_cover(&found) => At::Cover,
        Ok(found) => At::Bare(found),
        Err(_) => At::Nothing,
    }
}

/// Whether something is mounted at exactly this path; true also where the kernel does not say.
pub(super) fn is_cover(path: &OwnedFd) -> bool {
    let stat = statx(path, "", AtFlags::EMPTY_PATH, StatxFlags::empty());
    stat.is_ok_and(|stat| {
        let known = stat
            .stx_attributes_mask
            .contains(StatxAttributes::MOUNT_ROOT);
        !known || stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
    })
}

/// Whether something is there that nothing is mounted on.
pub(super) fn is_bare(workspace: BorrowedFd<'_>, path: &Path) -> bool {
    matches!(at(workspace, path), At::Bare(_))
}
