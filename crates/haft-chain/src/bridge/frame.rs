//! The codec: kind, flags (bit 0: more follows), id (32 bits, little endian), body; one frame per datagram, or length-prefixed.

use crate::bridge::{BODY, BridgeError, FRAME};

/// The length of the header before the body.
pub const HEAD: usize = 6;
const MORE: u8 = 1;

/// The kind of a frame; a script sends the first seven, the host the last three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A call: name, noise and arguments, each on its own line.
    Call,
    /// Text for standard output.
    Out,
    /// Text for standard error.
    Err,
    /// An artifact: a line with its media type, then its bytes.
    Put,
    /// A range of an artifact: ref, offset and length.
    Read,
    /// A query about an artifact: ref.
    Info,
    /// The script has ended: its value or its error, JSON.
    Done,
    /// The script and its input, JSON.
    Start,
    /// The answer to a request, JSON.
    Answer,
    /// The answer to a `read`: raw bytes.
    Bytes,
}

impl FrameKind {
    const ALL: [(u8, Self); 10] = [
        (b'c', Self::Call),
        (b'o', Self::Out),
        (b'e', Self::Err),
        (b'p', Self::Put),
        (b'r', Self::Read),
        (b'i', Self::Info),
        (b'd', Self::Done),
        (b'S', Self::Start),
        (b'A', Self::Answer),
        (b'B', Self::Bytes),
    ];

    /// Returns the kind that a byte encodes.
    pub fn of(byte: u8) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == byte);
        found.map(|(_, kind)| *kind)
    }

    /// Returns the byte of this kind.
    pub fn byte(self) -> u8 {
        let found = Self::ALL.iter().find(|(_, kind)| *kind == self);
        found.map_or(0, |(byte, _)| *byte)
    }

    /// Returns whether scripts send this kind.
    pub fn from_script(self) -> bool {
        !matches!(self, Self::Start | Self::Answer | Self::Bytes)
    }
}

/// One frame, borrowed from the buffer that it was received in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its kind.
    pub kind: FrameKind,
    /// Whether more frames of the message follow.
    pub more: bool,
    /// The request to which it belongs.
    pub id: u32,
    /// Its part of the message.
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Decodes a datagram.
    ///
    /// # Errors
    /// [`BridgeError`] for a datagram of the wrong size, kind or flags.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, BridgeError> {
        let size = BridgeError::Size(bytes.len());
        if bytes.len() > FRAME {
            return Err(size);
        }
        let [kind, flags, a, b, c, d, body @ ..] = bytes else {
            return Err(size);
        };
        if *flags & !MORE != 0 {
            return Err(BridgeError::Flags(*flags));
        }
        Ok(Self {
            kind: FrameKind::of(*kind).ok_or(BridgeError::Kind(char::from(*kind)))?,
            more: *flags & MORE != 0,
            id: u32::from_le_bytes([*a, *b, *c, *d]),
            body,
        })
    }

    /// Encodes the frame as a datagram.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.body.len());
        bytes.extend([self.kind.byte(), u8::from(self.more)]);
        bytes.extend(self.id.to_le_bytes());
        bytes.extend(self.body);
        bytes
    }
}

/// Splits a message into datagrams, in order.
pub fn split(kind: FrameKind, id: u32, message: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let count = message.len().div_ceil(BODY).max(1);
    (0..count).map(move |at| {
        let end = message.len().min((at + 1) * BODY);
        let frame = Frame {
            kind,
            more: at + 1 < count,
            id,
            body: message.get(at * BODY..end).unwrap_or_default(),
        };
        frame.encode()
    })
}

/// Encodes a frame for a transport without datagrams, prefixed with its length (32 bits, little endian).
pub fn prefixed(datagram: &[u8]) -> Vec<u8> {
    let length = u32::try_from(datagram.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes(), datagram].concat()
}

/// Takes the first complete frame off a stream: the datagram and the number of bytes it took; `None` if more bytes are needed.
///
/// # Errors
/// [`BridgeError::Size`] for a frame that exceeds the maximum length.
pub fn unprefixed(stream: &[u8]) -> Result<Option<(&[u8], usize)>, BridgeError> {
    let Some((length, rest)) = stream.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    if !(HEAD..=FRAME).contains(&length) {
        return Err(BridgeError::Size(length));
    }
    Ok(rest.get(..length).map(|frame| (frame, 4 + length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_split_and_streams_taken_apart_without_loss() {
        for size in [0, 1, BODY - 1, BODY, BODY + 1, 3 * BODY, 3 * BODY + 7] {
            let message: Vec<u8> = (0..size).map(|n| n.to_le_bytes()[0]).collect();
            let frames: Vec<_> = split(FrameKind::Answer, 7, &message).collect();
            let stream: Vec<u8> = frames.iter().flat_map(|frame| prefixed(frame)).collect();
            let (mut rest, mut joined) = (stream.as_slice(), Vec::<u8>::new());
            while let Some((datagram, taken)) = unprefixed(rest).unwrap() {
                let frame = Frame::decode(datagram).unwrap();
                assert_eq!((frame.kind, frame.id), (FrameKind::Answer, 7));
                joined.extend(frame.body);
                rest = &rest[taken..];
                assert_eq!(frame.more, !rest.is_empty(), "of {size}");
            }
            assert_eq!(joined, message, "of {size}");
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let long = vec![b'c'; FRAME + 1];
        for (bytes, expect) in [
            (&b""[..], BridgeError::Size(0)),
            (b"c\0\0\0\0", BridgeError::Size(5)),
            (&long, BridgeError::Size(FRAME + 1)),
            (b"x\0\0\0\0\0", BridgeError::Kind('x')),
            (b"c\x02\0\0\0\0", BridgeError::Flags(2)),
        ] {
            assert_eq!(Frame::decode(bytes).unwrap_err(), expect);
        }
        assert_eq!(unprefixed(&[1, 0, 0]).unwrap(), None);
        assert!(unprefixed(&[5, 0, 0, 0]).is_err());
        assert!(unprefixed(&[255, 255, 255, 255]).is_err());
    }
}
