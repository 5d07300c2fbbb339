//! A body: read, unpacked and stopped at the limit while it comes, so that a bomb costs no more than a page.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use tokio::time::{Instant, timeout_at};

use crate::web::http::HttpError;

/// Why a body is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cut {
    /// It is larger than the limit.
    TooLarge,
    /// The time was over.
    TooSlow,
    /// The server, or the network, broke off.
    BrokenOff,
}

impl Cut {
    /// What happened, as the end of a sentence about the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "it is larger than the limit",
            Self::TooSlow => "it did not end in time",
            Self::BrokenOff => "the server closed the connection before the end",
        }
    }
}

/// How a body is read.
pub(super) struct Reading<'a> {
    pub(super) host: &'a str,
    pub(super) max_bytes: usize,
    pub(super) deadline: Instant,
}

impl Reading<'_> {
    /// The body as far as it may be read, and why not further.
    pub(super) async fn all(
        &self,
        headers: &HeaderMap,
        mut incoming: Incoming,
    ) -> Result<(Bytes, Option<Cut>), HttpError> {
        let mut unpacking =
            Unpacking::of(headers, self.max_bytes).map_err(|why| self.encoding_error(why))?;
        let (mut cut, mut any) = (None, false);
        loop {
            let frame = match timeout_at(self.deadline, incoming.frame()).await {
                Err(_) => {
                    cut = Some(Cut::TooSlow);
                    break;
                }
                Ok(None) => break,
                Ok(Some(Err(_))) => {
                    cut = Some(Cut::BrokenOff);
                    break;
                }
                Ok(Some(Ok(frame))) => frame,
            };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            any |= !data.is_empty();
            if unpacking
                .take(&data)
                .map_err(|e| self.encoding_error(e.to_string()))?
                == Room::None
            {
                cut = Some(Cut::TooLarge);
                break;
            }
        }
        // The end of a packed body is checked only where it came; an empty one need not be packed.
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

/// Bytes up to a limit.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl Write for Bounded {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let room = self.limit - self.bytes.len();
        if room == 0 && !data.is_empty() {
            self.full = true;
            return Err(io::ErrorKind::WriteZero.into());
        }
        let taken = room.min(data.len());
        self.bytes.extend_from_slice(&data[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A decoder over a bounded buffer.
enum Unpacking {
    Plain(Bounded),
    Gzip(MultiGzDecoder<Bounded>),
    /// `deflate`, before its first byte tells whether it has zlib's frame.
    Unknown(Bounded),
    Zlib(ZlibDecoder<Bounded>),
    Raw(DeflateDecoder<Bounded>),
}

#[derive(PartialEq, Eq)]
enum Room {
    Some,
    None,
}

impl Unpacking {
    fn of(headers: &HeaderMap, limit: usize) -> Result<Self, String> {
        let bounded = Bounded {
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

    fn take(&mut self, data: &[u8]) -> io::Result<Room> {
        if let (Self::Unknown(bounded), Some(first)) = (&mut *self, data.first()) {
            let empty = Bounded {
                bytes: Vec::new(),
                limit: bounded.limit,
                full: false,
            };
            // RFC 9110 means zlib's frame; some servers send the bare stream.
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
            Ok(()) => Ok(Room::Some),
            Err(_) if self.bounded().full => Ok(Room::None),
            Err(error) => Err(error),
        }
    }

    fn bounded(&self) -> &Bounded {
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
