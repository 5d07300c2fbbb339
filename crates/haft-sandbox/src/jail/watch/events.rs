//! Events in folders of the workspace, as the kernel reports them.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// Maximum number of folders watched: the kernel needs about 1 KiB for each, and limits their number per user.
const MOST_WATCHED: usize = 2_048;
/// Maximum number of bytes of events read before the supervisor attends to other work.
const AT_ONCE: usize = 64 << 10;

/// Watches folders of one workspace.
#[derive(Debug)]
pub(super) struct FileEvents {
    file: OwnedFd,
    root: PathBuf,
    folders: HashMap<i32, PathBuf>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileEvent {
    /// A file or folder now has this path; whether it is a folder.
    Appeared(PathBuf, bool),
    /// Nothing has this path any more.
    Went(PathBuf),
    /// There were more events than the kernel queues.
    Lost,
}

impl FileEvents {
    /// Returns `None` if the user has no watch left.
    pub(super) fn new(root: &Path) -> Option<Self> {
        let file = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self {
            file,
            root: root.to_owned(),
            folders: HashMap::new(),
        })
    }

    pub(super) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Watches a folder, even one already watched by an earlier path; returns whether that worked.
    pub(super) fn watch(&mut self, folder: &Path) -> bool {
        if self.folders.len() >= MOST_WATCHED {
            return false;
        }
        let flags = WatchFlags::CREATE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW
            | WatchFlags::EXCL_UNLINK;
        match inotify::add_watch(&self.file, self.root.join(folder), flags) {
            Ok(number) => {
                self.folders.insert(number, folder.to_owned());
                true
            }
            // The folder no longer exists: nothing is missed.
            Err(Errno::NOENT | Errno::NOTDIR) => true,
            Err(_) => false,
        }
    }

    /// Returns the events of one read.
    pub(super) fn read(&mut self) -> Vec<FileEvent> {
        let mut buffer = vec![MaybeUninit::uninit(); AT_ONCE];
        let mut events = Vec::new();
        let mut reader = Reader::new(&self.file, &mut buffer);
        // The first event comes from the kernel, the others from the buffer.
        while events.is_empty() || !reader.is_buffer_empty() {
            let Ok(event) = reader.next() else { break };
            let kind = event.events();
            if kind.contains(ReadFlags::QUEUE_OVERFLOW) {
                events.push(FileEvent::Lost);
            }
            if kind.contains(ReadFlags::IGNORED) {
                self.folders.remove(&event.wd());
                continue;
            }
            let (Some(folder), Some(name)) = (self.folders.get(&event.wd()), event.file_name())
            else {
                continue;
            };
            let path = folder.join(OsStr::from_bytes(name.to_bytes()));
            events.push(
                if kind.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                    FileEvent::Appeared(path, kind.contains(ReadFlags::ISDIR))
                } else {
                    FileEvent::Went(path)
                },
            );
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{FileEvent, FileEvents};

    #[test]
    fn events_have_paths_below_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let mut events = FileEvents::new(folder.path()).unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        assert!(events.watch("".as_ref()) && events.watch("a".as_ref()));
        assert!(events.watch("absent".as_ref()));
        fs::write(folder.path().join("a/f"), "").unwrap();
        fs::create_dir(folder.path().join("d")).unwrap();
        fs::rename(folder.path().join("a/f"), folder.path().join("g")).unwrap();
        let expect = [
            FileEvent::Appeared("a/f".into(), false),
            FileEvent::Appeared("d".into(), true),
            FileEvent::Went("a/f".into()),
            FileEvent::Appeared("g".into(), false),
        ];
        assert_eq!(events.read(), expect);
        assert_eq!(events.read(), []);
    }
}
