//! `/workspace`: a script's private folder, copied from the run's own folder and back to it; media of calls in it.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use haft::beneath::open_beneath;
use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid, fchown, fstat, mkdirat, open, openat, renameat,
    statat, unlinkat,
};

/// Maximum number of bytes copied in one direction.
const BYTES: u64 = 64 << 20;
/// Maximum number of files and folders.
const FILES: usize = 4096;
/// Maximum folder depth.
const DEPTH: usize = 16;
/// Maximum number of reported reasons for leaving something out.
const REASONS: usize = 8;
/// The name of a file until it is complete.
const UNFINISHED: &CStr = c".haft-unfinished";

/// The content of a folder after it was filled: size and modification time of each file, by path.
pub(crate) type FolderSnapshot = HashMap<Vec<u8>, (u64, i64, u64)>;

/// The result of a copy.
#[derive(Debug, Default)]
pub(crate) struct CopyReport {
    /// The files as they are now in the target folder.
    pub(crate) known: FolderSnapshot,
    /// Distinct reasons why something was left out; the rest are only counted.
    left_out: Vec<String>,
    more: usize,
    count: usize,
    bytes: u64,
}

impl CopyReport {
    fn leave(&mut self, why: impl FnOnce() -> String) {
        let why = why();
        if self.left_out.contains(&why) {
            return;
        }
        if self.left_out.len() < REASONS {
            self.left_out.push(why);
        } else {
            self.more += 1;
        }
    }

    /// Returns in one line why something was left out; `None` if everything was copied.
    pub(crate) fn reasons(&self) -> Option<String> {
        let all = self.left_out.join("; ");
        match (self.left_out.is_empty(), self.more) {
            (true, _) => None,
            (_, 0) => Some(all),
            (_, more) => Some(format!("{all}; and {more} more")),
        }
    }
}

/// Opens a folder of this machine.
pub(crate) fn folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

/// Returns whether a folder is empty.
pub(crate) fn is_empty(folder: BorrowedFd<'_>) -> bool {
    names(folder).is_ok_and(|names| names.is_empty())
}

/// Copies the content of one folder into another: regular files and folders, no symbolic links, within limits. Skips files
/// that are unchanged according to `known`.
pub(crate) fn copy(from: BorrowedFd<'_>, to: BorrowedFd<'_>, known: &FolderSnapshot) -> CopyReport {
    let mut copied = CopyReport::default();
    level(
        &mut copied,
        CopyFolders { from, to },
        known,
        &mut Vec::new(),
    );
    copied
}

fn names(folder: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") && name != UNFINISHED {
            names.push(name.to_owned());
        }
        if names.len() > FILES {
            break;
        }
    }
    names.sort();
    Ok(names)
}

/// A folder and its copy's target.
#[derive(Clone, Copy)]
struct CopyFolders<'a> {
    from: BorrowedFd<'a>,
    to: BorrowedFd<'a>,
}

fn level(
    copied: &mut CopyReport,
    sides: CopyFolders<'_>,
    known: &FolderSnapshot,
    path: &mut Vec<u8>,
) {
    let CopyFolders { from, to } = sides;
    let depth = memchr::memchr_iter(b'/', path).count();
    let Ok(names) = names(from) else {
        return copied.leave(|| "a folder could not be read".into());
    };
    for name in names {
        if copied.count >= FILES {
            return copied.leave(|| format!("there are more than {FILES} files"));
        }
        let Ok(stat) = statat(from, &name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let length = path.len();
        path.extend(name.to_bytes());
        copied.count += 1;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if depth >= DEPTH => {
                copied.leave(|| format!("folders nest deeper than {DEPTH}"));
            }
            FileType::Directory => {
                path.push(b'/');
                match (within(from, &name), made(to, &name)) {
                    (Ok(from), Ok(to)) => {
                        let (from, to) = (from.as_fd(), to.as_fd());
                        level(copied, CopyFolders { from, to }, known, path);
                    }
                    _ => copied.leave(|| describe_path(path, "could not be copied")),
                }
            }
            FileType::RegularFile => file(copied, sides, &name, CopyTarget { known, path }),
            _ => copied.leave(|| describe_path(path, "is not a regular file")),
        }
        path.truncate(length);
    }
}

fn describe_path(path: &[u8], what: &str) -> String {
    let path: String = String::from_utf8_lossy(path).chars().take(128).collect();
    format!("{path:?} {what}")
}

/// Opens a subfolder of a script's folder: whatever the script puts there, no link is followed and nothing outside is reached.
fn within(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    beneath(folder, name, flags)
}

fn beneath(folder: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> io::Result<OwnedFd> {
    let name = Path::new(OsStr::from_bytes(name.to_bytes()));
    Ok(open_beneath(folder, name, flags)?)
}

/// Opens a subfolder, and creates it if there is none.
fn made(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    match mkdirat(folder, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {
            let made = within(folder, name)?;
            give(folder, made.as_fd())?;
            Ok(made)
        }
        Err(error) => Err(error.into()),
    }
}

/// Changes the owner of what root creates in a folder to the folder's owner: as root, haft runs scripts as nobody.
fn give(folder: BorrowedFd<'_>, made: BorrowedFd<'_>) -> io::Result<()> {
    let (folder, own) = (fstat(folder)?, fstat(made)?);
    if folder.st_uid != own.st_uid {
        let (uid, gid) = (Uid::from_raw(folder.st_uid), Gid::from_raw(folder.st_gid));
        fchown(made, Some(uid), Some(gid))?;
    }
    Ok(())
}

/// A file's path below the topmost folder, and the files already there.
struct CopyTarget<'a> {
    known: &'a FolderSnapshot,
    path: &'a [u8],
}

fn file(copied: &mut CopyReport, sides: CopyFolders<'_>, name: &CStr, target: CopyTarget<'_>) {
    let (CopyFolders { from, to }, CopyTarget { known, path }) = (sides, target);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = beneath(from, name, flags).map(File::from);
    let opened = opened.and_then(|file| Ok((stamp(&file)?, file)));
    let Ok(((stamp, mode), file)) = opened else {
        return copied.leave(|| describe_path(path, "could not be read"));
    };
    if known.get(path) == Some(&stamp) {
        return;
    }
    if copied.bytes + stamp.0 > BYTES {
        return copied.leave(|| format!("there are more than {} MiB", BYTES >> 20));
    }
    copied.bytes += stamp.0;
    match written(file, stamp.0, to, name, mode) {
        Ok(stamp) => {
            copied.known.insert(path.to_vec(), stamp);
        }
        Err(_) => copied.leave(|| describe_path(path, "could not be written")),
    }
}

/// Returns size, modification time in seconds and nanoseconds; and the mode bits that are kept.
fn stamp(file: &File) -> io::Result<((u64, i64, u64), Mode)> {
    let stat = rustix::fs::fstat(file)?;
    let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    let mode = Mode::from_raw_mode(0o644 | (stat.st_mode & 0o100));
    Ok(((size, stat.st_mtime, stat.st_mtime_nsec), mode))
}

/// Writes a file under another name and renames it once it is complete.
fn written(
    from: File,
    size: u64,
    to: BorrowedFd<'_>,
    name: &CStr,
    mode: Mode,
) -> io::Result<(u64, i64, u64)> {
    let mut file = created(to, UNFINISHED, mode)?;
    // A file that grows while it is read is copied with its original size.
    io::copy(&mut from.take(size), &mut file)?;
    let (stamp, _) = stamp(&file)?;
    renameat(to, UNFINISHED, to, name)?;
    Ok(stamp)
}

fn created(folder: BorrowedFd<'_>, name: &CStr, mode: Mode) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match openat(folder, name, flags, mode) {
        Err(rustix::io::Errno::EXIST) => {
            unlinkat(folder, name, AtFlags::empty())?;
            openat(folder, name, flags, mode)?
        }
        opened => opened?,
    };
    give(folder, opened.as_fd())?;
    Ok(opened.into())
}

/// Returns the name of a media file: the tool, the call's number, the index.
pub(crate) fn media_name(tool: &str, seq: u64, index: usize, media_type: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    let tool: String = tool.chars().take(64).map(safe).collect();
    format!("{tool}_{seq}_{index}.{}", extension(media_type))
}

fn extension(media_type: &str) -> String {
    let known = match media_type.split(';').next().unwrap_or_default().trim() {
        "image/jpeg" => "jpg",
        "image/svg+xml" => "svg",
        "audio/mpeg" => "mp3",
        "audio/mp4" | "audio/x-m4a" => "m4a",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        other => other.split_once('/').map_or("", |(_, subtype)| subtype),
    };
    let plain = known.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if plain && (1..=8).contains(&known.len()) {
        known.to_ascii_lowercase()
    } else {
        "bin".to_owned()
    }
}

/// Writes media into a script's folder, below `media`.
pub(crate) fn write_media(folder: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> io::Result<()> {
    let name = CString::new(name)?;
    if name.as_bytes().contains(&b'/') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let media = made(folder, c"media")?;
    created(media.as_fd(), &name, Mode::from_raw_mode(0o644))?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn regular_files_and_folders_are_copied_and_nothing_else() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        fs::create_dir(a.path().join("d")).unwrap();
        fs::write(a.path().join("d/x"), "one").unwrap();
        symlink(outside.path().join("secret"), a.path().join("link")).unwrap();
        symlink(outside.path(), a.path().join("folder")).unwrap();
        // A symbolic link in place of a folder to be created is not followed either.
        symlink(outside.path(), b.path().join("d")).unwrap();
        let (from, to) = (folder(a.path()).unwrap(), folder(b.path()).unwrap());
        let copied = copy(from.as_fd(), to.as_fd(), &FolderSnapshot::new());
        assert!(copied.reasons().is_some());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        fs::remove_file(b.path().join("d")).unwrap();
        let copied = copy(from.as_fd(), to.as_fd(), &FolderSnapshot::new());
        assert_eq!(fs::read(b.path().join("d/x")).unwrap(), b"one");
        assert!(!b.path().join("link").exists() && !b.path().join("folder").exists());
        // Copied back: only what changed.
        fs::write(b.path().join("new"), "two").unwrap();
        let back = copy(to.as_fd(), from.as_fd(), &copied.known);
        assert_eq!(back.known.keys().collect::<Vec<_>>(), [b"new"]);
        assert_eq!(fs::read(a.path().join("new")).unwrap(), b"two");
    }

    #[test]
    fn j19_every_reason_is_told_as_far_as_there_is_room() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink("/etc/passwd", a.path().join("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, a.path().join("pipe"), Mode::RUSR).unwrap();
        File::create(a.path().join("large"))
            .unwrap()
            .set_len(BYTES + 1)
            .unwrap();
        fs::write(a.path().join("small"), "x").unwrap();
        let reasons = || {
            let (from, to) = (folder(a.path()).unwrap(), folder(b.path()).unwrap());
            copy(from.as_fd(), to.as_fd(), &FolderSnapshot::new())
                .reasons()
                .unwrap()
        };
        let said = reasons();
        for part in [
            "\"link\" is not a regular",
            "\"pipe\" is not a regular",
            "64 MiB",
        ] {
            assert!(said.contains(part), "{said}");
        }
        assert!(b.path().join("small").exists());
        for n in 0..REASONS + 3 {
            symlink("x", a.path().join(format!("l{n}"))).unwrap();
        }
        let said = reasons();
        assert!(
            said.ends_with("; and 6 more") && said.len() < 1024,
            "{said}"
        );
    }

    #[test]
    fn a_copy_is_bounded() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut deep = a.path().to_owned();
        for _ in 0..DEPTH + 3 {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        let large = File::create(a.path().join("large")).unwrap();
        large.set_len(BYTES + 1).unwrap();
        let (from, to) = (folder(a.path()).unwrap(), folder(b.path()).unwrap());
        let copied = copy(from.as_fd(), to.as_fd(), &FolderSnapshot::new());
        assert!(copied.reasons().is_some() && copied.bytes <= BYTES);
        assert!(!b.path().join("large").exists());
        fs::remove_file(a.path().join("large")).unwrap();
        for n in 0..FILES + 10 {
            fs::write(a.path().join(format!("f{n}")), "").unwrap();
        }
        let copied = copy(from.as_fd(), to.as_fd(), &FolderSnapshot::new());
        assert!(copied.reasons().is_some() && copied.count <= FILES);
    }

    #[test]
    fn media_have_names_that_are_safe_and_types_that_are_known() {
        for (tool, media_type, expect) in [
            ("view_image", "image/png", "view_image_3_0.png"),
            ("a.b/../c", "image/jpeg", "a_b____c_3_0.jpg"),
            ("t", "audio/x-wav", "t_3_0.wav"),
            ("t", "image/svg+xml; charset=x", "t_3_0.svg"),
            ("t", "../../etc", "t_3_0.bin"),
            ("t", "image/../../x", "t_3_0.bin"),
        ] {
            assert_eq!(media_name(tool, 3, 0, media_type), expect);
        }
    }
}
