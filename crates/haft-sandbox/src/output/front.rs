//! `Front`: the beginning of a stream, in memory while it is short, then in a file of the spool.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::output::Spool;

/// The number of bytes kept in memory before a file takes over: most commands never write more.
const IN_MEMORY: usize = 256 << 10;

/// The first bytes of a stream, without a gap.
#[derive(Debug)]
pub(super) struct Front {
    memory: Vec<u8>,
    /// The file with all the bytes, once there is one.
    file: Option<File>,
    spool: Option<Arc<Spool>>,
    /// The space reserved in the spool.
    held: u64,
    length: u64,
    /// The maximum number of bytes it keeps.
    most: u64,
    /// The reason why it kept less than it could have.
    trouble: Option<String>,
}

impl Front {
    /// Creates a front that keeps at most `most` bytes; many bytes go to the spool.
    pub(super) fn new(most: u64, spool: Option<Arc<Spool>>) -> Self {
        Self {
            memory: Vec::new(),
            file: None,
            spool,
            held: 0,
            length: 0,
            most,
            trouble: None,
        }
    }

    /// Returns the number of bytes it holds.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns why it holds less than it could, other than its own limit.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Takes as many of the bytes as it can and returns how many. After it once took fewer than offered, it takes nothing more.
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        let room = usize::try_from(self.most - self.length).unwrap_or(usize::MAX);
        let taken = self.write(&bytes[..room.min(bytes.len())]);
        let taken = taken.unwrap_or_else(|error| {
            self.trouble = Some(error.to_string());
            0
        });
        self.length += taken as u64;
        if taken < bytes.len() {
            self.most = self.length;
        }
        taken
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let short = self.memory.len() + bytes.len() <= IN_MEMORY;
        let Some(spool) = self.spool.clone() else {
            self.memory.extend_from_slice(bytes);
            return Ok(bytes.len());
        };
        if self.file.is_none() && short {
            self.memory.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let moved = self
            .file
            .is_none()
            .then(|| std::mem::take(&mut self.memory));
        let wanted = moved.as_ref().map_or(0, Vec::len) + bytes.len();
        let taken = spool.take(wanted as u64);
        self.held += taken;
        if taken < wanted as u64 {
            self.memory = moved.unwrap_or_default();
            return Err(io::Error::other("the space for long output is used up"));
        }
        if let Some(moved) = moved {
            match spool
                .file()
                .and_then(|file| file.write_all_at(&moved, 0).map(|()| file))
            {
                Ok(file) => self.file = Some(file),
                Err(error) => {
                    self.memory = moved;
                    return Err(error);
                }
            }
        }
        if let Some(file) = &self.file {
            file.write_all_at(bytes, self.length)?;
        }
        Ok(bytes.len())
    }

    /// Returns at most `most` of its bytes from `from` on.
    pub(super) fn read(&self, from: u64, most: usize) -> io::Result<Vec<u8>> {
        let there = usize::try_from(self.length.saturating_sub(from)).unwrap_or(usize::MAX);
        let most = there.min(most);
        let Some(file) = &self.file else {
            let start = usize::try_from(from).unwrap_or(usize::MAX);
            let rest = self.memory.get(start..).unwrap_or_default();
            return Ok(rest[..most].to_vec());
        };
        let mut bytes = vec![0; most];
        file.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        if let Some(spool) = &self.spool {
            spool.give_back(self.held);
        }
    }
}
