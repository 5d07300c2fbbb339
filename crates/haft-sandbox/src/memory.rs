//! Memory of a command's whole tree of processes: bounded by a control group, else by looking.

pub(crate) mod cgroup;
pub(crate) mod sockets;
pub(crate) mod watch;

use std::fmt;

/// What bounds the memory of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MemoryBound {
    /// A limit for each process, and no more.
    #[default]
    Process,
    /// The tree's memory is summed again and again while it runs; a tree that has too much is ended.
    Watched,
    /// A control group of its own (version 1).
    CgroupV1,
    /// A control group of its own (version 2).
    CgroupV2,
}

impl MemoryBound {
    /// The words in a doctor's line and in results.
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
