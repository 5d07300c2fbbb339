//! Pictures that strangers made: decoded and made smaller within limits, here or in a confined process.

#[cfg(feature = "images")]
pub(crate) mod fit;
#[cfg(feature = "images")]
mod format;

#[cfg(feature = "commands")]
use std::fmt;

#[cfg(feature = "commands")]
use bytes::Bytes;
#[cfg(feature = "commands")]
use haft::future::BoxFuture;

/// Makes smaller copies of pictures, confined: their authors are strangers.
#[cfg(feature = "commands")]
pub trait PictureReader: Send + Sync + fmt::Debug {
    /// Returns a small copy as PNG, in base64; `None` if it cannot be made.
    fn thumbnail(&self, file: Bytes) -> BoxFuture<'_, Option<String>>;
}
