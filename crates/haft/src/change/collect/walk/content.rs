//! The content of files: hashed, or compared if too large to hash.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;

use sha2::{Digest as _, Sha256};

use crate::change::log::MAX_FILE_BYTES;
use crate::text::hex;
use crate::workspace::next_data;

/// Number of bytes read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Hashes files with a shared buffer.
pub(super) struct Hasher {
    buffer: Vec<u8>,
}

impl Default for Hasher {
    fn default() -> Self {
        Self {
            buffer: vec![0; CHUNK_BYTES],
        }
    }
}

impl Hasher {
    /// Returns the SHA-256 of a file of a known size, in hex; `None` if it grew too large. A concurrent append changes the file's time,
    /// which is compared again before anything is overwritten.
    pub(super) fn hash(&mut self, file: &File, bytes: u64) -> io::Result<Option<String>> {
        let (mut file, mut hasher, mut all) = (file, Sha256::new(), 0_u64);
        loop {
            if all == bytes {
                return Ok(Some(hex(&hasher.finalize())));
            }
            let count = match file.read(&mut self.buffer) {
                Ok(0) => return Ok(Some(hex(&hasher.finalize()))),
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
