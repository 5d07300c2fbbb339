//! `ReplacedNames`: calls back when a placeholder is replaced or written, so that its name is hidden no longer.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::{Errno, write};

/// Size of the buffer for events, in bytes; those of files have no names.
const BUFFER: usize = 4 << 10;

/// Watches files until it is dropped. Without a watch (the kernel limits them per user), nothing is called.
#[derive(Debug)]
pub(super) struct ReplacedNames {
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl ReplacedNames {
    /// Calls `replaced` from a thread of its own after one of these files was written, renamed or replaced.
    pub(super) fn watch<'p>(
        files: impl Iterator<Item = &'p Path>,
        replaced: impl Fn() + Send + 'static,
    ) -> Result<Self, Errno> {
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        // Its attributes change when its name is gone, though a lock still holds it.
        let flags = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::MOVE_SELF
            | WatchFlags::DELETE_SELF
            | WatchFlags::DONT_FOLLOW;
        for file in files {
            // One that is gone already has been replaced before the caller looked at it.
            let _ = inotify::add_watch(&events, file, flags);
        }
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let stopped = stop.try_clone().map_err(|_| Errno::MFILE)?;
        let thread = std::thread::Builder::new()
            .name("haft-replaced".to_owned())
            .spawn(move || {
                while is_replaced(&events, &stopped) {
                    replaced();
                }
            });
        Ok(Self {
            stop,
            thread: Some(thread.map_err(|_| Errno::AGAIN)?),
        })
    }
}

impl Drop for ReplacedNames {
    fn drop(&mut self) {
        let told = write(&self.stop, &1_u64.to_ne_bytes()).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| told) {
            let _panicked = thread.join();
        }
    }
}

/// Waits for events and takes them; returns false once it has been stopped.
fn is_replaced(events: &OwnedFd, stopped: &OwnedFd) -> bool {
    let mut files = [
        PollFd::new(stopped, PollFlags::IN),
        PollFd::new(events, PollFlags::IN),
    ];
    loop {
        match poll(&mut files, None) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    let mut buffer = [MaybeUninit::uninit(); BUFFER];
    let mut reader = Reader::new(events, &mut buffer);
    while reader.next().is_ok() {}
    files[0].revents().is_empty()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc;

    use super::ReplacedNames;

    #[test]
    fn a_file_that_is_written_replaced_or_removed_is_told_and_no_other() {
        type Change = fn(&std::path::Path);
        let rows: [(Change, bool); 5] = [
            (|file| fs::write(file, "x").unwrap(), true),
            (
                |file| fs::rename(file.with_extension("new"), file).unwrap(),
                true,
            ),
            (|file| fs::remove_file(file).unwrap(), true),
            (
                |file| fs::rename(file, file.with_extension("old")).unwrap(),
                true,
            ),
            (
                |file| fs::write(file.with_extension("other"), "x").unwrap(),
                false,
            ),
        ];
        for (nth, (change, is_told)) in rows.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("held");
            fs::write(&file, "").unwrap();
            fs::write(file.with_extension("new"), "new").unwrap();
            let lock = fs::File::open(&file).unwrap();
            let (told, was_told) = mpsc::channel();
            let replaced = move || told.send(()).unwrap();
            let watch = ReplacedNames::watch([file.as_path()].into_iter(), replaced).unwrap();
            change(&file);
            if is_told {
                was_told.recv().unwrap();
            }
            drop((watch, lock));
            // A row may have told twice; one that tells nothing has told nothing at its end.
            assert!(is_told || was_told.recv().is_err(), "row {nth}");
        }
    }
}
