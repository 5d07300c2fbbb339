//! Bodies in pieces, each within its time.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use thiserror::Error;

use crate::waits::{Wait, Waits};

/// Why there is no more of a body.
#[derive(Debug, Error)]
pub enum BodyError {
    /// The connection broke, or the server does not follow the protocol.
    #[error(transparent)]
    Broken(hyper::Error),
    /// It took too long.
    #[error("{} did not come in time", .0.as_str())]
    Late(Wait),
    /// It is longer than this limit, in bytes.
    #[error("it is over {0} bytes")]
    TooLong(usize),
}

/// Returns the next piece of a body; `None` at its end.
///
/// # Errors
/// The body breaks off, or the piece takes too long.
pub async fn next_piece(body: &mut Incoming, waits: &Waits) -> Result<Option<Bytes>, BodyError> {
    loop {
        let frame = waits.for_piece(body.frame()).await;
        match frame.map_err(BodyError::Late)? {
            None => return Ok(None),
            Some(Err(error)) => return Err(BodyError::Broken(error)),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
