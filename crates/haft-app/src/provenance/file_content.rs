//! `FileContent`: what identifies the content of a file that a run has written.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use haft::text::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Maximum size of a file whose content is compared; of a larger one, only the size.
const MAX_HASHED: u64 = 16 << 20;

/// What identifies the content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileContent {
    pub(super) size: u64,
    /// The beginning of its SHA-256, in hex; empty for a file that is too large.
    sha256: String,
}

impl FileContent {
    /// Returns what a file holds; `None` if there is no such file.
    pub(super) fn of(place: &Path) -> io::Result<Option<Self>> {
        let meta = match place.metadata() {
            Ok(meta) if meta.is_file() => meta,
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let size = meta.len();
        if size > MAX_HASHED {
            let sha256 = String::new();
            return Ok(Some(Self { size, sha256 }));
        }
        let (size, sha256) = digest(place, MAX_HASHED + 1)?;
        Ok(Some(Self { size, sha256 }))
    }

    /// Whether a file is longer than this content, and begins with it. A file of which that cannot be told does.
    pub(super) fn begins(&self, place: &Path) -> bool {
        let Ok(meta) = place.metadata() else {
            return false;
        };
        if self.size == 0 || meta.len() <= self.size {
            return false;
        }
        self.sha256.is_empty()
            || digest(place, self.size).map_or(true, |(_, now)| now == self.sha256)
    }
}

/// Returns the size of the first bytes of a file, as many as there are, and the beginning of their SHA-256.
fn digest(place: &Path, most: u64) -> io::Result<(u64, String)> {
    let mut bytes = Vec::new();
    File::open(place)?.take(most).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64, hex(&Sha256::digest(&bytes)[..16])))
}
