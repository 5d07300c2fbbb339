//! Finds out whether a process of the jail has a file open for writing.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, Stat, openat, statat};

/// Maximum number of bytes read of a list of mappings.
const MAPPINGS: u64 = 16 << 20;

/// Checks every process that this one may inspect, that is, those of its jail; in `proc` this process sees its own IDs.
pub(super) fn is_held(proc: &OwnedFd, file: &Stat) -> bool {
    let own = std::process::id().to_string();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = openat(proc, ".", flags, Mode::empty());
    let Ok(processes) = listed.and_then(Dir::new) else {
        return true;
    };
    let names = processes.flatten().filter_map(|entry| {
        let name = entry.file_name().to_str().ok()?.to_owned();
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && name != own).then_some(name)
    });
    names
        .into_iter()
        .any(|process| has_open(proc, &process, file) || has_mapped(proc, &process, file))
}

fn has_open(proc: &OwnedFd, process: &str, file: &Stat) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = openat(proc, format!("{process}/fd"), flags, Mode::empty()) else {
        return false;
    };
    let Ok(mut descriptors) = Dir::read_from(&folder) else {
        return false;
    };
    descriptors.any(|entry| {
        let same = |entry: &rustix::fs::DirEntry| {
            let look = |flags| statat(folder.as_fd(), entry.file_name(), flags);
            // The mode of the link itself shows what the descriptor is open for.
            let writes = look(AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|link| Mode::from_raw_mode(link.st_mode).contains(Mode::WUSR));
            let is_file = |at: Stat| at.st_ino == file.st_ino && at.st_dev == file.st_dev;
            writes && look(AtFlags::empty()).is_ok_and(is_file)
        };
        entry.is_ok_and(|entry| same(&entry))
    })
}

/// A shared mapping can write without a descriptor. Its device is not compared: some file systems report another number there.
fn has_mapped(proc: &OwnedFd, process: &str, file: &Stat) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(maps) = openat(proc, format!("{process}/maps"), flags, Mode::empty()) else {
        return false;
    };
    let inode = file.st_ino.to_string();
    let lines = BufReader::new(File::from(maps).take(MAPPINGS)).lines();
    lines.map_while(Result::ok).any(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let shared = words.next().is_some_and(|access| access.ends_with('s'));
        shared && words.nth(2) == Some(inode.as_str())
    })
}
