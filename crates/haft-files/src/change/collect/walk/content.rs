//! The content of files: hashed, or compared if too large to hash.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use rustix::fs::SeekFrom;
use sha2::{Digest as _, Sha256};

use crate::change::FileHash;
use crate::change::log::MAX_FILE_BYTES;
use crate::workspace::next_data;

/// Number of bytes read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Size of the holes of a file from which they count, in bytes.
const MIN_HOLES: u64 = 1 << 20;
/// Maximum size of the holes of all files that are hashed, in bytes: reading holes takes time and says nothing.
const MAX_HOLES: u64 = 256 << 20;
/// Maximum number of holes of a file that are looked for.
const MAX_SEEKS: usize = 1_000;

/// Hashes files with a shared buffer.
pub(super) struct Hasher {
    buffer: Vec<u8>,
    /// Bytes of holes so far.
    holes: u64,
}

impl Default for Hasher {
    fn default() -> Self {
        Self {
            buffer: vec![0; CHUNK_BYTES],
            holes: 0,
        }
    }
}

impl Hasher {
    /// Returns the SHA-256 of a file of a known size; `None` if it grew too large, or if it and those before it consist of too
    /// many holes. A concurrent append changes the file's time,
    /// which is compared again before anything is overwritten.
    pub(super) fn hash(&mut self, file: &File, bytes: u64) -> io::Result<Option<FileHash>> {
        self.holes = self.holes.saturating_add(holes(file, bytes)?);
        if self.holes > MAX_HOLES {
            return Ok(None);
        }
        let (mut file, mut hasher, mut all) = (file, Sha256::new(), 0_u64);
        loop {
            if all == bytes {
                return Ok(Some(FileHash::finish(hasher)));
            }
            let count = match file.read(&mut self.buffer) {
                Ok(0) => return Ok(Some(FileHash::finish(hasher))),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            all += count as u64;
            if all > MAX_FILE_BYTES {
                return Ok(None);
            }
            hasher.update(self.buffer.get(..count).unwrap_or_default());
        }
    }
}

/// Returns the size of a file's holes if that is worth counting. A compressed file has fewer blocks than bytes, and no holes.
fn holes(file: &File, bytes: u64) -> io::Result<u64> {
    let stored = file.metadata()?.blocks().saturating_mul(512);
    if bytes.saturating_sub(stored) < MIN_HOLES {
        return Ok(0);
    }
    let (mut holes, mut at) = (0, 0);
    for _ in 0..MAX_SEEKS {
        let Some(data) = next_data(file, at)? else {
            holes += bytes.saturating_sub(at);
            break;
        };
        holes += data.saturating_sub(at);
        at = rustix::fs::seek(file, SeekFrom::Hole(data))?;
    }
    rustix::fs::seek(file, SeekFrom::Start(0))?;
    Ok(holes)
}

/// Whether two files of the same length have the same bytes. Skips holes that both have.
pub(super) fn is_same(a: &File, b: &File) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let mut at = 0;
    loop {
        let next = [next_data(a, at)?, next_data(b, at)?];
        let Some(next) = next.into_iter().flatten().min() else {
            return Ok(true);
        };
        let (one, other) = (read(a, &mut left, next)?, read(b, &mut right, next)?);
        if one != other {
            return Ok(false);
        }
        if one.is_empty() {
            return Ok(true);
        }
        at = next + one.len() as u64;
    }
}

/// Fills a buffer, up to the end of the file.
fn read<'a>(file: &File, buffer: &'a mut [u8], at: u64) -> io::Result<&'a [u8]> {
    let mut count = 0;
    while let Some(room) = buffer.get_mut(count..).filter(|room| !room.is_empty()) {
        match file.read_at(room, at + count as u64) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(buffer.get(..count).unwrap_or_default())
}
