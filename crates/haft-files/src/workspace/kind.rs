//! `EntryKind`: the kind of entry at a path.

use std::fmt;

use rustix::fs::FileType;

/// The kind of entry at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl EntryKind {
    pub(crate) fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Pipe,
            FileType::Socket => Self::Socket,
            _ => Self::Device,
        }
    }

    /// Returns one word, for `data`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Link => "link",
            Self::Pipe => "pipe",
            Self::Socket => "socket",
            Self::Device => "device",
        }
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a regular file",
            Self::Directory => "a folder",
            Self::Link => "a link",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
        })
    }
}
