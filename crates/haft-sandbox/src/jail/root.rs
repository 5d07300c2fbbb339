//! The jail's root: a fresh tmpfs filled from the plan's list, and the guards of the workspace in it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use haft_types::beneath::{open_beneath, open_without_links};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount,
    fsopen, mount, mount_change, move_mount, open_tree, unmount,
};
use rustix::process::umask;

use super::own_proc;
use super::plan::{BindMode, PathCover, RootEntry, SupervisorPlan};
use super::proc_covers::{self, MadeUpFiles, PROC};
use super::terminals;
use super::users::UserMapping;
use crate::report::{SetupFailure, step};
use crate::strength::Strength;
use crate::sys::mount_setattr;

pub(super) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub(super) const INERT: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
/// Where the new root is built: a folder that every system has. Its old content is only covered; handles to
/// what is needed of it were opened before.
const BUILT_AT: &str = "/usr";
/// Where a root is prepared: devices are the same for all commands, so none is opened there later.
const PREPARED_AT: &str = "/dev";
const EMPTY_FILE: &str = ".empty-file";
const EMPTY_FOLDER: &str = ".empty-folder";
/// A made file, until it is mounted in place of one of the host.
const MADE_FILE: &str = ".made-file";
/// The step that fails if views are not possible.
pub(crate) const VIEW: &str = "make a view of";
const PRIVATE_FOLDER: u32 = 0o700;
const PRIVATE: MountPropagationFlags =
    MountPropagationFlags::PRIVATE.union(MountPropagationFlags::REC);
/// What is made in a root can be read by all.
pub(super) const ORDINARY_MASK: Mode = Mode::from_raw_mode(0o022);

/// A root that was built in part before there was a command.
#[derive(Debug)]
pub(super) struct PreparedRoot {
    /// The files of its `/proc`, if that is mounted.
    made_up: Option<MadeUpFiles>,
}

impl PreparedRoot {
    /// Builds a root in part, and leaves it mounted where nothing that a command shows comes from. The host's later mounts still reach
    /// what is shown of it. The `/proc` in it is that of this process's namespace.
    pub(super) fn new(part: &SupervisorPlan, users: UserMapping) -> Result<Self, SetupFailure> {
        let downwards = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        mount_change("/", downwards)
            .map_err(io::Error::from)
            .map_err(step("keep mounts from the host"))?;
        let mask = umask(ORDINARY_MASK);
        let trees = trees(part)?;
        new_root(PREPARED_AT)?;
        place_all(part, trees, None)?;
        let made_up = make_empty()
            .and_then(|()| own_proc::mount(part, users, Path::new(EMPTY_FOLDER)))
            .map_err(step("mount /proc"))?;
        umask(mask);
        rustix::process::chdir("/")
            .map_err(io::Error::from)
            .map_err(step("leave the prepared root"))?;
        Ok(Self { made_up })
    }
}

/// Makes the prepared root the current folder.
fn enter_prepared() -> Result<(), SetupFailure> {
    rustix::process::chdir(PREPARED_AT)
        .map_err(io::Error::from)
        .map_err(step("enter the prepared root"))
}

/// Removes a prepared root that is not used.
fn forget_prepared() -> Result<(), SetupFailure> {
    unmount(PREPARED_AT, UnmountFlags::DETACH)
        .map_err(io::Error::from)
        .map_err(step("remove the prepared root"))
}

/// Builds the root, from the prepared one if the plan says so, enters it and leaves the old one for good. Returns whether the namespace's
/// highest process ID limits the number of processes.
pub(super) fn build(
    plan: &SupervisorPlan,
    users: UserMapping,
    prepared: Option<PreparedRoot>,
) -> Result<bool, SetupFailure> {
    mount_change("/", PRIVATE)
        .map_err(io::Error::from)
        .map_err(step("leave the host's mounts"))?;
    let is_unfit = prepared.is_some() && !plan.prepared;
    if is_unfit {
        forget_prepared()?;
    }
    let trees = trees(plan)?;
    if let Some(prepared) = prepared.filter(|_| !is_unfit) {
        enter_prepared()?;
        place_all(plan, trees, prepared.made_up.as_ref())?;
    } else if plan.prepared {
        return Err(step("enter the prepared root")(
            io::ErrorKind::NotFound.into(),
        ));
    } else {
        new_root(BUILT_AT)?;
        place_all(plan, trees, None)?;
        make_empty()
            .and_then(|()| own_proc::mount(plan, users, Path::new(EMPTY_FOLDER)))
            .map_err(step("mount /proc"))?;
    }
    let counted = plan.strength() == Strength::Full
        && own_proc::count(plan.caps.pids).map_err(step("set up /proc"))?;
    rustix::process::pivot_root(".", ".")
        .and_then(|()| unmount(".", UnmountFlags::DETACH))
        .and_then(|()| rustix::process::chdir("/"))
        .map_err(io::Error::from)
        .map_err(step("change the root"))?;
    if !plan.covers.is_empty() {
        guard(plan)?;
    }
    let close = || -> io::Result<()> {
        fs::remove_file(Path::new("/").join(EMPTY_FILE))?;
        fs::remove_dir(Path::new("/").join(EMPTY_FOLDER))?;
        mount_setattr(path_fd(Path::new("/"))?.as_fd(), READ_ONLY, false)
    };
    close().map_err(step("make the root read-only"))?;
    Ok(counted)
}

/// Makes what hides paths, for as long as the root is built.
fn make_empty() -> io::Result<()> {
    fs::write(EMPTY_FILE, "")?;
    fs::create_dir(EMPTY_FOLDER)
}

/// Opens what the entries show, before anything is covered.
fn trees(plan: &SupervisorPlan) -> Result<Vec<Option<OwnedFd>>, SetupFailure> {
    let mut trees = Vec::new();
    for entry in &plan.entries {
        trees.push(match entry {
            RootEntry::Bind { source, kind, .. } => {
                Some(take(source, *kind).map_err(step(format!("bind {}", source.display())))?)
            }
            RootEntry::Overlay {
                lower,
                layer,
                upper,
                ..
            } => {
                let made = overlay(lower, layer.as_deref(), upper.as_ref());
                Some(made.map_err(step(format!("{VIEW} {}", lower.display())))?)
            }
            _ => None,
        });
    }
    Ok(trees)
}

/// Mounts a new root and makes it the current folder.
fn new_root(at: &str) -> Result<(), SetupFailure> {
    let options = c"mode=0755,size=16m,nr_inodes=8k";
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", at, "tmpfs", flags, Some(options))
        .and_then(|()| rustix::process::chdir(at))
        .map_err(io::Error::from)
        .map_err(step("make a root"))
}

/// Places the entries; `made_up` are the files of a `/proc` that is mounted already.
fn place_all(
    plan: &SupervisorPlan,
    trees: Vec<Option<OwnedFd>>,
    made_up: Option<&MadeUpFiles>,
) -> Result<(), SetupFailure> {
    for (entry, tree) in plan.entries.iter().zip(trees) {
        let placed = match (made_up, entry) {
            (Some(made_up), RootEntry::File { target, bytes }) if target.starts_with(PROC) => {
                made_up.rewrite(target, bytes)
            }
            _ => place(entry, tree),
        };
        placed.map_err(|error| step(format!("place {entry:?}"))(error))?;
    }
    Ok(())
}

/// Opens a path as a handle; no symbolic links on the way.
pub(super) fn path_fd(path: &Path) -> io::Result<OwnedFd> {
    Ok(open_without_links(path, OFlags::PATH)?)
}

/// Clones what a handle refers to, with everything mounted below it, as a detached mount.
pub(super) fn clone(of: BorrowedFd<'_>, attributes: u64) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = open_tree(of, "", flags)?;
    mount_setattr(tree.as_fd(), attributes, true)?;
    Ok(tree)
}

fn take(source: &Path, kind: BindMode) -> io::Result<OwnedFd> {
    let attributes = match kind {
        BindMode::ReadOnly => READ_ONLY | INERT,
        BindMode::ReadWrite => INERT,
        BindMode::Data => READ_ONLY | INERT | libc::MOUNT_ATTR_NOEXEC,
        BindMode::Device => READ_ONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC,
    };
    clone(path_fd(source)?.as_fd(), attributes)
}

/// Creates a copy-on-write view that is not mounted yet. All options are explicit: their defaults differ between kernels.
fn overlay(
    lower: &Path,
    layer: Option<&Path>,
    upper: Option<&(PathBuf, PathBuf)>,
) -> io::Result<OwnedFd> {
    let view = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let view = view.as_fd();
    // By descriptor, so that no path is resolved again or has to be escaped.
    let by_descriptor = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let lowers = layer.into_iter().chain([lower]).map(path_fd);
    let lowers: Vec<OwnedFd> = lowers.collect::<io::Result<_>>()?;
    let names: Vec<String> = lowers.iter().map(by_descriptor).collect();
    fsconfig_set_string(view, "lowerdir", names.join(":"))?;
    let mut opened = Vec::new();
    if let Some((upper, work)) = upper {
        for (key, folder) in [("upperdir", upper), ("workdir", work)] {
            let fd = path_fd(folder)?;
            fsconfig_set_string(view, key, by_descriptor(&fd))?;
            opened.push(fd);
        }
    }
    let off = ["index", "xino", "metacopy"];
    off.into_iter()
        .try_for_each(|key| fsconfig_set_string(view, key, "off"))?;
    fsconfig_set_string(view, "redirect_dir", "nofollow")?;
    fsconfig_set_flag(view, "userxattr")?;
    fsconfig_create(view)?;
    let tree = fsmount(view, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let attributes = if upper.is_some() {
        INERT
    } else {
        // Like the workspace of a command that only reads.
        READ_ONLY | INERT | libc::MOUNT_ATTR_NOEXEC
    };
    mount_setattr(tree.as_fd(), attributes, true)?;
    Ok(tree)
}

pub(super) fn is_folder(fd: &OwnedFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(fstat(fd)?.st_mode) == FileType::Directory)
}

/// Places one entry in the root, which is the current folder.
fn place(entry: &RootEntry, tree: Option<OwnedFd>) -> io::Result<()> {
    let inside = |target: &Path| {
        target
            .strip_prefix("/")
            .map_or_else(|_| target.into(), PathBuf::from)
    };
    match entry {
        RootEntry::Dir { target } => fs::create_dir_all(inside(target)),
        RootEntry::PrivateDir { target } => {
            let mut folder = fs::DirBuilder::new();
            folder
                .recursive(true)
                .mode(PRIVATE_FOLDER)
                .create(inside(target))
        }
        RootEntry::Hidden { target } => hide(&inside(target)),
        RootEntry::Terminals { target } => terminals::place(&inside(target)),
        RootEntry::Link { target, to } => symlink(to, inside(target)),
        RootEntry::File { target, bytes } => {
            let target = inside(target);
            match create_file(&target)? {
                Some(mut file) => file.write_all(bytes),
                None if is_of_the_host(&target)? => cover(&target, bytes),
                None => fs::write(target, bytes),
            }
        }
        RootEntry::Tmpfs { target, megabytes } => {
            let target = inside(target);
            fs::create_dir_all(&target)?;
            // As many files as an unpacked source tree has, limited like the bytes.
            let options = format!("mode=1777,size={megabytes}m,nr_inodes=256k");
            let options = std::ffi::CString::new(options)?;
            let flags = MountFlags::NOSUID | MountFlags::NODEV;
            Ok(mount(
                "tmpfs",
                target,
                "tmpfs",
                flags,
                Some(options.as_c_str()),
            )?)
        }
        RootEntry::Bind { target, .. } | RootEntry::Overlay { target, .. } => {
            let (target, Some(tree)) = (inside(target), tree) else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            if is_folder(&tree)? {
                fs::create_dir_all(&target)?;
            } else {
                create_file(&target)?;
            }
            let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
            Ok(move_mount(&tree, "", CWD, target, flags)?)
        }
    }
}

/// Creates an empty file, and the folders above it; `None` if there is one already. There are many, and nearly all of them can be created at
/// the first try.
fn create_file(target: &Path) -> io::Result<Option<File>> {
    let mut folders = target.parent();
    loop {
        let created = File::options().write(true).create_new(true).open(target);
        match (created, folders.take()) {
            (Ok(file), _) => return Ok(Some(file)),
            (Err(error), _) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            (Err(error), Some(folders)) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(folders)?;
            }
            (Err(error), _) => return Err(error),
        }
    }
}

/// Whether a file of the host was placed here earlier: it lies on another file system than the root.
fn is_of_the_host(target: &Path) -> io::Result<bool> {
    let Ok(placed) = fs::symlink_metadata(target) else {
        return Ok(false);
    };
    Ok(placed.is_file() && placed.dev() != fs::metadata(".")?.dev())
}

/// Shows these bytes in place of a file of the host that was placed earlier.
fn cover(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let made = Path::new(MADE_FILE);
    fs::write(made, bytes)?;
    let tree = clone(path_fd(made)?.as_fd(), READ_ONLY | INERT)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(&tree, "", CWD, target, flags)?;
    fs::remove_file(made)
}

/// Covers a path placed earlier. A covered folder can be neither listed nor added to, but entries placed in
/// it can be reached by name.
fn hide(target: &Path) -> io::Result<()> {
    if target.is_dir() {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let options = c"mode=0111,size=64k,nr_inodes=1k";
        return Ok(mount("tmpfs", target, "tmpfs", flags, Some(options))?);
    }
    let closed = proc_covers::closed_file()?;
    let tree = clone(path_fd(closed)?.as_fd(), READ_ONLY | INERT)?;
    move_mount(
        &tree,
        "",
        CWD,
        target,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )?;
    fs::remove_file(closed)
}

/// Puts the covers over paths of the workspace.
///
/// All mounts are cloned first, from the workspace as it is. Every path is resolved below the workspace without
/// following links, so replacing one meanwhile can only make this fail.
fn guard(plan: &SupervisorPlan) -> Result<(), SetupFailure> {
    let workspace = path_fd(&plan.workspace).map_err(step("open the workspace"))?;
    let places: HashSet<&Path> = plan.covers.iter().map(|(path, _)| &**path).collect();
    let mut copies = Vec::new();
    for (path, cover) in &plan.covers {
        copies.push(
            copies_for(plan, workspace.as_fd(), path, *cover, &places)
                .map_err(step(format!("guard {}", path.display())))?,
        );
    }
    for ((path, _), copies) in plan.covers.iter().zip(copies) {
        let put = |(target, tree): (Option<OwnedFd>, OwnedFd)| -> io::Result<()> {
            let target = match target {
                Some(target) => target,
                None => below(workspace.as_fd(), path)?,
            };
            let flags =
                MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
            Ok(move_mount(&tree, "", &target, "", flags)?)
        };
        copies
            .into_iter()
            .try_for_each(put)
            .map_err(step(format!("guard {}", path.display())))?;
    }
    Ok(())
}

/// Opens a handle on a path below the workspace; a symbolic link at its end is not followed.
pub(super) fn below(workspace: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    Ok(open_beneath(
        workspace,
        path,
        OFlags::PATH | OFlags::NOFOLLOW,
    )?)
}

/// Returns the mounts for one cover: on the path itself (no target), and for a symbolic link also on
/// its target, unless only the link is pinned or the target is one of the covered `places` itself: a second mount there
/// would show again what the first one hides, or lie on what is used to hide.
fn copies_for(
    plan: &SupervisorPlan,
    workspace: BorrowedFd<'_>,
    path: &Path,
    cover: PathCover,
    places: &HashSet<&Path>,
) -> io::Result<Vec<(Option<OwnedFd>, OwnedFd)>> {
    let attributes = match cover {
        PathCover::ReadOnly | PathCover::Empty => READ_ONLY | INERT,
        PathCover::Pin | PathCover::PinnedLink | PathCover::Writable => INERT,
    };
    let copy = |of: &OwnedFd| -> io::Result<OwnedFd> {
        if cover == PathCover::Empty {
            let name = if is_folder(of)? {
                EMPTY_FOLDER
            } else {
                EMPTY_FILE
            };
            return clone(path_fd(&Path::new("/").join(name))?.as_fd(), attributes);
        }
        clone(of.as_fd(), attributes)
    };
    let own = below(workspace, path)?;
    let link = FileType::from_raw_mode(fstat(&own)?.st_mode) == FileType::Symlink;
    if !link {
        return Ok(vec![(None, copy(&own)?)]);
    }
    if matches!(cover, PathCover::Pin | PathCover::PinnedLink) {
        return Ok(vec![(None, clone(own.as_fd(), READ_ONLY | INERT)?)]);
    }
    // Followed inside the jail's own root, so it leads to nothing that is not shown anyway. The link is mounted
    // on itself: its target stays the same, and it cannot be removed, renamed or replaced.
    let full = plan.workspace.join(path);
    if let Ok(end) = openat(CWD, &full, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        let real = fs::canonicalize(&full)?;
        let inside = real.strip_prefix(&plan.workspace);
        if inside.is_ok_and(|inside| places.contains(inside)) {
            return Ok(vec![(None, clone(own.as_fd(), READ_ONLY | INERT)?)]);
        }
        let (on_end, on_link) = (copy(&end)?, clone(own.as_fd(), READ_ONLY | INERT)?);
        return Ok(vec![(Some(end), on_end), (None, on_link)]);
    }
    // The command could create the link's target, so the link must not lead there.
    let empty = path_fd(&Path::new("/").join(EMPTY_FILE))?;
    Ok(vec![(None, clone(empty.as_fd(), READ_ONLY | INERT)?)])
}
