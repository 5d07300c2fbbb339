//! Limits the memory of a command's whole process tree: by a control group, else by watching it.

pub(crate) mod cgroup;
pub(crate) mod netlink;
pub(crate) mod sockets;
pub(crate) mod watch;

use std::fmt;
use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, openat};

/// The mechanism that limits the memory of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MemoryBound {
    /// Only a limit for each process.
    #[default]
    Process,
    /// The sandbox repeatedly sums the tree's memory while it runs, and kills a tree that uses too much.
    Watched,
    /// A control group of its own (version 1).
    CgroupV1,
    /// A control group of its own (version 2).
    CgroupV2,
}

impl MemoryBound {
    /// Returns the text used by the doctor command and in results.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Process => "rlimit of each process",
            Self::Watched => "watching the tree",
            Self::CgroupV1 => "cgroup v1",
            Self::CgroupV2 => "cgroup v2",
        }
    }
}

impl fmt::Display for MemoryBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// Opens a file of a `/proc` for reading.
fn proc_file(proc: &OwnedFd, path: &str) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    openat(proc, path, flags, Mode::empty())
        .ok()
        .map(File::from)
}
