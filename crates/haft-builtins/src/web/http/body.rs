//! Reads and decompresses a body, and stops at the limit while it arrives, so that a bomb costs no more than a page.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use haft_http::body::{BodyError, next_piece};
use haft_http::waits::Waits;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use tokio::time::Instant;

use crate::web::http::HttpError;

/// The reason why a body is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IncompleteReason {
    /// The body is larger than the limit.
    TooLarge,
    /// The time ran out.
    TooSlow,
    /// The server or the network closed the connection.
    BrokenOff,
}

impl IncompleteReason {
    /// Returns what happened, as the end of a sentence about the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "it is larger than the limit",
            Self::TooSlow => "it did not end in time",
            Self::BrokenOff => "the server closed the connection before the end",
        }
    }
}

/// The limits for reading a body.
pub(super) struct BodyReadLimits<'a> {
    pub(super) host: &'a str,
    pub(super) max_bytes: usize,
    pub(super) deadline: Instant,
}

impl BodyReadLimits<'_> {
    /// Returns the body up to the limits, and why it is incomplete if it is.
    pub(super) async fn all(
        &self,
        headers: &HeaderMap,
        mut incoming: Incoming,
    ) -> Result<(Bytes, Option<IncompleteReason>), HttpError> {
        let mut unpacking =
            BodyDecoder::of(headers, self.max_bytes).map_err(|why| self.encoding_error(why))?;
        let (mut cut, mut any) = (None, false);
        let waits = Waits::until(self.deadline);
        loop {
            let data = match next_piece(&mut incoming, &waits).await {
                Ok(Some(data)) => data,
                Ok(None) => break,
                Err(BodyError::Late(_)) => {
                    cut = Some(IncompleteReason::TooSlow);
                    break;
                }
                Err(_) => {
                    cut = Some(IncompleteReason::BrokenOff);
                    break;
                }
            };
            any |= !data.is_empty();
            if unpacking
                .take(&data)
                .map_err(|e| self.encoding_error(e.to_string()))?
                == BufferRoom::None
            {
                cut = Some(IncompleteReason::TooLarge);
                break;
            }
        }
        // The end of a compressed body is checked only if it arrived; an empty body need not be compressed.
        let body = unpacking.end(cut.is_none() && any);
        Ok((
            body.map_err(|e| self.encoding_error(e.to_string()))?.into(),
            cut,
        ))
    }

    fn encoding_error(&self, why: String) -> HttpError {
        HttpError::Encoding {
            host: self.host.to_owned(),
            why,
        }
    }
}

/// A buffer with a limit.
struct BoundedBuffer {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl Write for BoundedBuffer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let room = self.limit - self.bytes.len();
        if room == 0 && !data.is_empty() {
            self.full = true;
            return Err(io::ErrorKind::WriteZero.into());
        }
        let length = room.min(data.len());
        self.bytes.extend_from_slice(&data[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A decoder over a bounded buffer.
enum BodyDecoder {
    Plain(BoundedBuffer),
    Gzip(MultiGzDecoder<BoundedBuffer>),
    /// `deflate` before its first byte, which tells whether it has a zlib header.
    Unknown(BoundedBuffer),
    Zlib(ZlibDecoder<BoundedBuffer>),
    Raw(DeflateDecoder<BoundedBuffer>),
}

#[derive(PartialEq, Eq)]
enum BufferRoom {
    Some,
    None,
}

impl BodyDecoder {
    fn of(headers: &HeaderMap, limit: usize) -> Result<Self, String> {
        let bounded = BoundedBuffer {
            bytes: Vec::new(),
            limit,
            full: false,
        };
        let mut codings = headers.get_all(CONTENT_ENCODING).iter();
        let (first, more) = (codings.next(), codings.next());
        let coding = first.map(|v| String::from_utf8_lossy(v.as_bytes()));
        let coding = coding.unwrap_or_default().trim().to_ascii_lowercase();
        match coding.as_str() {
            _ if more.is_some() => Err("it is packed more than once".to_owned()),
            "" | "identity" => Ok(Self::Plain(bounded)),
            "gzip" | "x-gzip" => Ok(Self::Gzip(MultiGzDecoder::new(bounded))),
            "deflate" => Ok(Self::Unknown(bounded)),
            other => Err(format!("{other:?} is not what was asked for")),
        }
    }

    fn take(&mut self, data: &[u8]) -> io::Result<BufferRoom> {
        if let (Self::Unknown(bounded), Some(first)) = (&mut *self, data.first()) {
            let empty = BoundedBuffer {
                bytes: Vec::new(),
                limit: bounded.limit,
                full: false,
            };
            // RFC 9110 requires the zlib format; some servers send a raw deflate stream.
            *self = if first & 0x0f == 8 {
                Self::Zlib(ZlibDecoder::new(empty))
            } else {
                Self::Raw(DeflateDecoder::new(empty))
            };
        }
        let written = match self {
            Self::Plain(bounded) | Self::Unknown(bounded) => bounded.write_all(data),
            Self::Gzip(decoder) => decoder.write_all(data),
            Self::Zlib(decoder) => decoder.write_all(data),
            Self::Raw(decoder) => decoder.write_all(data),
        };
        match written {
            Ok(()) => Ok(BufferRoom::Some),
            Err(_) if self.bounded().full => Ok(BufferRoom::None),
            Err(error) => Err(error),
        }
    }

    fn bounded(&self) -> &BoundedBuffer {
        match self {
            Self::Plain(bounded) | Self::Unknown(bounded) => bounded,
            Self::Gzip(decoder) => decoder.get_ref(),
            Self::Zlib(decoder) => decoder.get_ref(),
            Self::Raw(decoder) => decoder.get_ref(),
        }
    }

    fn end(mut self, whole: bool) -> io::Result<Vec<u8>> {
        let ended = match &mut self {
            Self::Plain(_) | Self::Unknown(_) => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Zlib(decoder) => decoder.try_finish(),
            Self::Raw(decoder) => decoder.try_finish(),
        };
        if whole {
            ended?;
        }
        let bounded = match &mut self {
            Self::Plain(bounded) | Self::Unknown(bounded) => bounded,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zlib(decoder) => decoder.get_mut(),
            Self::Raw(decoder) => decoder.get_mut(),
        };
        Ok(std::mem::take(&mut bounded.bytes))
    }
}
