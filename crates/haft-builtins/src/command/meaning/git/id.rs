//! `ObjectId`: the name of a git object, a SHA-1.

use std::fmt;

use haft::git_index::ObjectHash;

/// The hash that names objects.
pub(super) const ID_HASH: ObjectHash = ObjectHash::Sha1;
/// Length of an object's name, in bytes.
pub(super) const ID_BYTES: usize = ID_HASH.bytes();
/// Length of an object's name in hex.
pub(super) const HEX: usize = ID_BYTES * 2;

/// The name of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ObjectId(pub(super) [u8; ID_BYTES]);

impl ObjectId {
    /// Reads a name of 20 bytes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Reads a name of 40 hex digits. The name of zeros means "nothing".
    pub(super) fn from_hex(text: &[u8]) -> Option<Self> {
        if text.len() != HEX {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let mut bytes = [0; ID_BYTES];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let value = digit(pair[0])? * 16 + digit(pair[1])?;
            *byte = u8::try_from(value).ok()?;
        }
        (bytes != [0; ID_BYTES]).then_some(Self(bytes))
    }

    /// Returns the name in hex.
    pub(super) fn hex(&self) -> String {
        haft::text::hex(&self.0)
    }

    /// Returns the beginning of the name, as people write it.
    pub(super) fn short(&self) -> String {
        self.hex().chars().take(7).collect()
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}
