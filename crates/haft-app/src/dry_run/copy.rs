//! `FolderCopy`: a bounded copy of a folder, file by file, with modes, times and links; removed when dropped.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, FileTimes, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::plain_file::random_hex;
use crate::problem::Problem;

/// Maximum size of a folder that is copied, in bytes.
const MAX_BYTES: u64 = 4 << 30;
/// Maximum number of files and folders in it.
const MAX_FILES: usize = 500_000;
/// Maximum nesting depth.
const MAX_DEPTH: usize = 200;

/// A copy of a folder.
#[derive(Debug)]
pub(super) struct FolderCopy {
    /// The folder to remove: it contains the copy under the original's name.
    outer: PathBuf,
    root: PathBuf,
    left_out: Vec<String>,
}

impl FolderCopy {
    /// Copies a folder into a new folder in `place`, without the `hidden` paths.
    pub(super) fn make(from: &Path, place: &Path, hidden: &[PathBuf]) -> Result<Self, Problem> {
        let failed = |e: io::Error| {
            Problem::failed(format!(
                "cannot copy {} for the dry run: {e}",
                from.display()
            ))
            .advise("TMPDIR chooses another place for the copy; it is removed when the run ends")
        };
        let name = random_hex(8).map_err(failed)?;
        let outer = place.join(format!("haft-dry-run-{name}"));
        DirBuilder::new()
            .mode(0o700)
            .create(&outer)
            .map_err(failed)?;
        let root = outer.join(from.file_name().unwrap_or(OsStr::new("workspace")));
        let mut copy = Self {
            outer,
            root: root.clone(),
            left_out: Vec::new(),
        };
        let mut work = CopyProgress {
            from,
            hidden,
            device: fs::symlink_metadata(from).map_err(failed)?.dev(),
            bytes: 0,
            files: 0,
            left_out: &mut copy.left_out,
        };
        match work.folder(from, &root, 0) {
            Ok(()) => Ok(copy),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Err(Problem::usage(format!("{}: {error}", from.display()))
                    .advise("a dry run copies the folder: choose a smaller one with --workspace"))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Returns the path of the copy.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns what was left out, as paths relative to the folder.
    pub(super) fn left_out(&self) -> &[String] {
        &self.left_out
    }
}

impl Drop for FolderCopy {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.outer) {
            tracing::warn!(folder = %self.outer.display(), %error, "remove the copy of a dry run");
        }
    }
}

struct CopyProgress<'a> {
    from: &'a Path,
    hidden: &'a [PathBuf],
    /// The file system of the folder.
    device: u64,
    bytes: u64,
    files: usize,
    left_out: &'a mut Vec<String>,
}

impl CopyProgress<'_> {
    fn folder(&mut self, from: &Path, to: &Path, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(too_large(format!(
                "folders are nested over {MAX_DEPTH} deep"
            )));
        }
        DirBuilder::new().mode(0o700).create(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let (path, to) = (entry.path(), to.join(entry.file_name()));
            // A file that has disappeared meanwhile is left out.
            let Ok(data) = fs::symlink_metadata(&path) else {
                continue;
            };
            if self.hidden.contains(&path) {
                continue;
            }
            self.count(&data)?;
            let kind = data.file_type();
            if kind.is_symlink() {
                symlink(fs::read_link(&path)?, &to)?;
            } else if kind.is_dir() && data.dev() == self.device {
                self.folder(&path, &to, depth + 1)?;
            } else if kind.is_file() {
                // Copies contents and mode; as a reflink if the file system supports it.
                fs::copy(&path, &to)?;
                copy_times(&to, &data)?;
            } else {
                let path = path.strip_prefix(self.from).unwrap_or(&path);
                self.left_out.push(path.display().to_string());
            }
        }
        let data = fs::symlink_metadata(from)?;
        copy_times(to, &data)?;
        // The owner must be able to use and remove every folder of the copy.
        let mode = (data.mode() & 0o7777) | 0o700;
        fs::set_permissions(to, fs::Permissions::from_mode(mode))
    }

    fn count(&mut self, data: &Metadata) -> io::Result<()> {
        self.files += 1;
        // Size on disk: a file may have holes.
        self.bytes = self.bytes.saturating_add(data.blocks() * 512);
        if self.files > MAX_FILES {
            return Err(too_large(format!("there are more than {MAX_FILES} files")));
        }
        if self.bytes > MAX_BYTES {
            return Err(too_large(format!(
                "it is larger than {} GiB",
                MAX_BYTES >> 30
            )));
        }
        Ok(())
    }
}

fn too_large(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

/// Sets a file's times to those of another: build tools depend on them.
fn copy_times(to: &Path, data: &Metadata) -> io::Result<()> {
    let (Ok(read), Ok(changed)) = (data.accessed(), data.modified()) else {
        return Ok(());
    };
    let times = FileTimes::new().set_accessed(read).set_modified(changed);
    match File::open(to) {
        Ok(file) => file.set_times(times),
        // A file that its owner may not read keeps the time of the copy.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_copy_has_contents_modes_times_and_links_and_nothing_hidden_and_goes_when_it_is_dropped() {
        let home = tempfile::tempdir().unwrap();
        let from = home.path().join("work");
        fs::create_dir_all(from.join("a/b")).unwrap();
        fs::write(from.join("a/b/file"), "text").unwrap();
        fs::write(from.join("run.sh"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(from.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(from.join("secret"), "hush").unwrap();
        symlink("a/b/file", from.join("link")).unwrap();
        symlink("/nowhere", from.join("dangling")).unwrap();
        let place = home.path().join("tmp");
        fs::create_dir(&place).unwrap();
        let copy = FolderCopy::make(&from, &place, &[from.join("secret")]).unwrap();
        let at = |name: &str| copy.root().join(name);
        assert_eq!(copy.root().file_name(), from.file_name());
        assert_eq!(fs::read_to_string(at("a/b/file")).unwrap(), "text");
        assert_eq!(fs::read_link(at("link")).unwrap(), Path::new("a/b/file"));
        assert_eq!(
            fs::read_link(at("dangling")).unwrap(),
            Path::new("/nowhere")
        );
        assert!(!at("secret").exists());
        let data = |path: &Path| fs::metadata(path).unwrap();
        assert_eq!(
            data(&at("run.sh")).mode(),
            data(&from.join("run.sh")).mode()
        );
        assert_eq!(
            data(&at("run.sh")).mtime(),
            data(&from.join("run.sh")).mtime()
        );
        drop(copy);
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    }
}
