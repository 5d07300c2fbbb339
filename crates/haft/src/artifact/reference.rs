//! `ArtifactRef`: the name of an artifact, derived from its bytes.

use std::io;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::artifact::source::{ByteSource, each_piece};
use crate::text::hex;

/// The name of an artifact: `sha256-` and 64 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ArtifactRef(Arc<str>);

impl ArtifactRef {
    /// Returns the ref of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(format!("sha256-{}", hex(&Sha256::digest(bytes))).into())
    }

    /// Returns the ref of a source's bytes.
    ///
    /// # Errors
    /// The source cannot be read.
    pub fn of_source(source: &dyn ByteSource) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        each_piece(source, |piece| {
            hasher.update(piece);
            Ok(())
        })?;
        Ok(Self(format!("sha256-{}", hex(&hasher.finalize())).into()))
    }

    /// Parses a ref; `None` if the text is not a valid ref.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("sha256-")?;
        let valid = digits.len() == 64
            && digits
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        valid.then(|| Self(text.into()))
    }

    /// Returns the ref as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
