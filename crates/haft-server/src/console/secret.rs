//! `SecretDigest`: a secret as stored: hashed, and compared in constant time.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

/// Why a secret could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConsoleError {
    /// The operating system provided no random bytes.
    #[error("make a login code: {0}")]
    Random(String),
}

/// Bytes of a new secret: 256 bits.
const SECRET_BYTES: usize = 32;

/// The SHA-256 hash of a secret.
#[derive(Clone, Copy)]
pub(crate) struct SecretDigest([u8; 32]);

impl SecretDigest {
    /// Returns the digest of a text.
    pub(crate) fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// Returns whether both are digests of the same text.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for SecretDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Returns a new secret: 64 lower-case hexadecimal digits from the operating system's randomness.
pub(crate) fn fresh() -> Result<String, ConsoleError> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|e| ConsoleError::Random(e.to_string()))?;
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    Ok(bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect())
}

#[cfg(test)]
mod tests {
    use super::{SecretDigest, fresh};

    #[test]
    fn secrets_are_long_and_differ() {
        let (one, two) = (fresh().unwrap(), fresh().unwrap());
        assert!(one != two && one.len() == 64 && one.bytes().all(|b| b.is_ascii_hexdigit()));
        assert!(SecretDigest::of(&one).same(&SecretDigest::of(&one)));
        assert!(!SecretDigest::of(&one).same(&SecretDigest::of(&two)));
        assert_eq!(format!("{:?}", SecretDigest::of(&one)), "…");
    }
}
