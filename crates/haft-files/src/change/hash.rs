//! `FileHash`: the SHA-256 of a file's bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use haft_types::text::hex;

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

    pub(super) fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }

    pub(super) const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
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
