//! `FileHash`: the SHA-256 of a file's bytes.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use haft_types::text::hex;

/// Maximum size of a file that is saved, or read for a comparison.
pub const MAX_FILE_BYTES: u64 = 64 << 20;
/// Size of the first read from a file, in bytes; if it fills the buffer, the next ones read `MAX_READ` bytes.
const FIRST_READ: usize = 8 << 10;
const MAX_READ: usize = 128 << 10;

/// The SHA-256 of a file's bytes; 64 lower-case hex digits in text and JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileHash([u8; 32]);

/// The text is not 64 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a SHA-256 is 64 hex digits")]
#[non_exhaustive]
pub struct FileHashError;

impl FileHash {
    /// Hashes these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new().chain_update(bytes))
    }

    pub(crate) fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }

    pub(crate) const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Returns the SHA-256 of a file and also writes it to `copy`; `None` if it is too large.
pub(crate) fn hash_file(file: &mut File, mut copy: Option<File>) -> io::Result<Option<FileHash>> {
    let (mut hasher, mut all) = (Sha256::new(), 0_u64);
    // Most files are small: clearing a large buffer would take longer than reading them.
    let mut buffer = vec![0; FIRST_READ];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        all += count as u64;
        if all > MAX_FILE_BYTES {
            return Ok(None);
        }
        let part = buffer.get(..count).unwrap_or_default();
        hasher.update(part);
        if let Some(copy) = &mut copy {
            copy.write_all(part)?;
        }
        if count == buffer.len() {
            buffer.resize(MAX_READ, 0);
        }
    }
    Ok(Some(FileHash::finish(hasher)))
}

impl fmt::Display for FileHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for FileHash {
    type Err = FileHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |byte: u8| (byte as char).to_digit(16).ok_or(FileHashError);
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
            return Err(FileHashError);
        };
        let mut bytes = [0; 32];
        if pairs.len() != bytes.len() {
            return Err(FileHashError);
        }
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = u8::try_from(digit(*high)? << 4 | digit(*low)?).unwrap_or_default();
        }
        Ok(Self(bytes))
    }
}

impl Serialize for FileHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FileHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_when_written_and_read_is_the_same() {
        let hash = FileHash::of(b"abc");
        assert_eq!(
            hash.to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(hash.to_string().parse(), Ok(hash));
        let json = serde_json::to_string(&hash).expect("writes");
        assert_eq!(
            serde_json::from_str::<FileHash>(&json).expect("reads"),
            hash
        );
    }

    #[test]
    fn hash_when_it_is_not_64_hex_digits_is_refused() {
        for text in [
            "",
            "ab",
            &"a".repeat(63),
            &"a".repeat(66),
            &"g".repeat(64),
            &"é".repeat(32),
        ] {
            assert_eq!(text.parse::<FileHash>(), Err(FileHashError), "{text}");
        }
    }
}
