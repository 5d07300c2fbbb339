//! The digest by which a record knows a text again.

use haft::text::hex;
use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of a text, as hex.
pub(super) fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}
