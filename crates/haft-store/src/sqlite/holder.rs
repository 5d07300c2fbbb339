//! Which process holds the database's lock, so that a user who waits for it knows what to end.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The kernel's list of locks on files.
const LOCKS: &str = "/proc/locks";

/// Returns the other process that writes to a database, as `process 41 (sqlite3)`; `None` if the system does not say.
pub(crate) fn writer_of(database: &Path) -> Option<String> {
    let locks = fs::read_to_string(LOCKS).ok()?;
    let mut shared = database.as_os_str().to_owned();
    // `SQLite` locks this file while it uses a write-ahead log.
    shared.push("-shm");
    let files = [Path::new(&shared), database];
    let process = files
        .iter()
        .filter_map(|file| fs::metadata(file).ok())
        .find_map(|file| writer_in(&locks, &place(file.dev(), file.ino())))?;
    let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    Some(format!("process {process} ({})", name.trim_end()))
}

/// Returns the other process that has an exclusive lock on a file.
fn writer_in(locks: &str, place: &str) -> Option<u32> {
    let own = std::process::id();
    // `1: POSIX  ADVISORY  WRITE 41 fd:00:1234 120 120`; a process that waits for a lock has `->` before the kind.
    let mut holders = locks.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, _, _, "WRITE", process, file, ..] = *fields else {
            return None;
        };
        (file == place).then(|| process.parse::<u32>().ok())?
    });
    holders.find(|process| *process > 0 && *process != own)
}

/// Returns a file as the list names it: device and inode.
fn place(device: u64, inode: u64) -> String {
    let major = (device >> 8 & 0xfff) | (device >> 32 & 0xffff_f000);
    let minor = (device & 0xff) | (device >> 12 & 0xffff_ff00);
    format!("{major:02x}:{minor:02x}:{inode}")
}

#[cfg(test)]
mod tests {
    use super::{place, writer_in};

    #[test]
    fn the_writer_is_the_other_process_with_an_exclusive_lock_on_the_file() {
        let own = std::process::id();
        let locks = format!(
            "1: POSIX  ADVISORY  READ 7 fd:00:12 123 123\n\
             2: -> POSIX  ADVISORY  WRITE 8 fd:00:12 120 120\n\
             3: POSIX  ADVISORY  WRITE {own} fd:00:12 120 120\n\
             4: POSIX  ADVISORY  WRITE -1 fd:00:12 120 120\n\
             5: POSIX  ADVISORY  WRITE 9 fd:00:13 120 120\n\
             6: POSIX  ADVISORY  WRITE 41 fd:00:12 120 120\n"
        );
        for (file, holder) in [
            ("fd:00:12", Some(41)),
            ("fd:00:13", Some(9)),
            ("fd:01:12", None),
        ] {
            assert_eq!(writer_in(&locks, file), holder, "{file}");
        }
        assert_eq!(place(0xfd00, 12), "fd:00:12");
        assert_eq!(place(0x10302, 12), "103:02:12");
    }
}
