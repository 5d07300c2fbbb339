//! Messages of a script: assembled from frames, bounded, and parsed.

use std::collections::HashSet;

use bytes::Bytes;
use haft::json::depth::exceeds;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::bridge::frame::{Frame, FrameKind};
use crate::bridge::{BridgeError, DEPTH, MESSAGE, PUT, TOTAL};

/// A message from a script.
#[derive(Debug)]
pub enum ScriptMessage {
    /// The script calls a tool.
    Call {
        /// The id of the request, which its answer repeats.
        id: u32,
        /// The tool's name, as written.
        name: String,
        /// What the script read from clocks and random sources since the previous call: JSON, or empty.
        noise: String,
        /// The arguments, as received.
        arguments: String,
    },
    /// The script prints.
    Out {
        /// Whether it prints to standard error.
        err: bool,
        /// The text, which may end inside a character that the next message completes.
        text: Bytes,
    },
    /// The script stores bytes as an artifact.
    Put {
        /// The id of the request, which its answer repeats.
        id: u32,
        /// Their media type.
        media_type: String,
        /// The bytes.
        bytes: Bytes,
    },
    /// The script reads a range of an artifact.
    Read {
        /// The id of the request, which its answer repeats.
        id: u32,
        /// The artifact's ref, as written.
        reference: String,
        /// The offset of the first byte.
        offset: u64,
        /// The maximum number of bytes.
        length: u64,
    },
    /// The script queries an artifact.
    Info {
        /// The id of the request, which its answer repeats.
        id: u32,
        /// The artifact's ref, as written.
        reference: String,
    },
    /// The script has ended.
    Done(ScriptReport),
}

/// The end of a script, as the script itself reports it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptReport {
    /// The script's value.
    #[serde(default)]
    pub value: Option<Box<RawValue>>,
    /// The error that ended it.
    #[serde(default)]
    pub error: Option<ScriptError>,
}

/// The error that ended a script.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptError {
    /// The exception's class; `Refused` if the script did not start.
    #[serde(rename = "type")]
    pub class: String,
    /// The exception's message.
    pub message: String,
    /// The frames of the script itself.
    #[serde(default)]
    pub traceback: String,
    /// The line number in the script.
    #[serde(default)]
    pub line: Option<u64>,
}

/// Assembles messages from datagrams.
#[derive(Debug, Default)]
pub struct Assembler {
    part: Option<(FrameKind, u32, Vec<u8>)>,
    total: u64,
    open: HashSet<u32>,
}

impl Assembler {
    /// Takes a datagram; returns the message that it completes, if any.
    ///
    /// # Errors
    /// [`BridgeError`] describes how the datagram violates the protocol: close the bridge then.
    pub fn take(&mut self, datagram: &[u8]) -> Result<Option<ScriptMessage>, BridgeError> {
        let frame = Frame::decode(datagram)?;
        if !frame.kind.from_script() {
            return Err(BridgeError::Kind(char::from(frame.kind.byte())));
        }
        // Printed output is bounded where it is stored.
        if !matches!(frame.kind, FrameKind::Out | FrameKind::Err) {
            self.total += datagram.len() as u64;
        }
        if self.total > TOTAL {
            return Err(BridgeError::TooLong {
                what: "messages",
                limit: TOTAL,
            });
        }
        if self.part.is_none() && !frame.more {
            return self.message(frame.kind, frame.id, frame.body).map(Some);
        }
        let (kind, id, mut body) = self
            .part
            .take()
            .unwrap_or((frame.kind, frame.id, Vec::new()));
        if (kind, id) != (frame.kind, frame.id) {
            return Err(BridgeError::Mixed);
        }
        let limit = if kind == FrameKind::Put {
            PUT + 256
        } else {
            MESSAGE
        };
        if body.len() + frame.body.len() > limit {
            return Err(BridgeError::TooLong {
                what: "a message",
                limit: limit as u64,
            });
        }
        body.extend(frame.body);
        if frame.more {
            self.part = Some((kind, id, body));
            return Ok(None);
        }
        self.message(kind, id, &body).map(Some)
    }

    /// Frees the id of a request that has been answered.
    pub fn answered(&mut self, id: u32) {
        self.open.remove(&id);
    }

    fn message(
        &mut self,
        kind: FrameKind,
        id: u32,
        body: &[u8],
    ) -> Result<ScriptMessage, BridgeError> {
        let request = matches!(
            kind,
            FrameKind::Call | FrameKind::Put | FrameKind::Read | FrameKind::Info
        );
        // The id pairs a request with its answer: 0 or an id in use cannot do that.
        if request && (id == 0 || !self.open.insert(id)) {
            return Err(BridgeError::Id(id));
        }
        match kind {
            FrameKind::Call => call(id, body),
            FrameKind::Put => put(id, body),
            FrameKind::Read => read(id, body),
            FrameKind::Info => Ok(ScriptMessage::Info {
                id,
                reference: text(body, "info")?,
            }),
            FrameKind::Done => done(body).map(ScriptMessage::Done),
            FrameKind::Out | FrameKind::Err => Ok(ScriptMessage::Out {
                err: kind == FrameKind::Err,
                text: Bytes::copy_from_slice(body),
            }),
            FrameKind::Start | FrameKind::Answer | FrameKind::Bytes => {
                Err(BridgeError::Kind(char::from(kind.byte())))
            }
        }
    }
}

fn text(bytes: &[u8], what: &'static str) -> Result<String, BridgeError> {
    let text = std::str::from_utf8(bytes).map_err(|_| BridgeError::Malformed(what))?;
    Ok(text.to_owned())
}

/// Splits at the first newline: the bytes before it, and those after it.
fn line<'a>(bytes: &'a [u8], what: &'static str) -> Result<(&'a [u8], &'a [u8]), BridgeError> {
    let end = memchr::memchr(b'\n', bytes).ok_or(BridgeError::Malformed(what))?;
    let rest = bytes.get(end + 1..).unwrap_or_default();
    Ok((bytes.get(..end).unwrap_or_default(), rest))
}

fn call(id: u32, body: &[u8]) -> Result<ScriptMessage, BridgeError> {
    const WHAT: &str = "call";
    let (name, rest) = line(body, WHAT)?;
    let (noise, arguments) = line(rest, WHAT)?;
    let noise = text(noise, WHAT)?;
    if !noise.is_empty() && serde_json::from_str::<&RawValue>(&noise).is_err() {
        return Err(BridgeError::Malformed(WHAT));
    }
    Ok(ScriptMessage::Call {
        id,
        name: text(name, WHAT)?,
        noise,
        // The executor refuses invalid JSON, as it does for any client.
        arguments: text(arguments, WHAT)?,
    })
}

fn put(id: u32, body: &[u8]) -> Result<ScriptMessage, BridgeError> {
    const WHAT: &str = "put";
    let (media_type, bytes) = line(body, WHAT)?;
    let media_type = text(media_type, WHAT)?;
    if media_type.len() > 128 || media_type.chars().any(char::is_control) {
        return Err(BridgeError::Malformed(WHAT));
    }
    Ok(ScriptMessage::Put {
        id,
        media_type,
        bytes: Bytes::copy_from_slice(bytes),
    })
}

fn read(id: u32, body: &[u8]) -> Result<ScriptMessage, BridgeError> {
    const WHAT: &str = "read";
    let body = text(body, WHAT)?;
    let mut words = body.split(' ');
    let reference = words.next().unwrap_or_default().to_owned();
    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
    let (Some(offset), Some(length)) = (number(), number()) else {
        return Err(BridgeError::Malformed(WHAT));
    };
    Ok(ScriptMessage::Read {
        id,
        reference,
        offset,
        length,
    })
}

fn done(body: &[u8]) -> Result<ScriptReport, BridgeError> {
    let malformed = BridgeError::Malformed("end");
    if exceeds(body, DEPTH) {
        return Err(BridgeError::Malformed("end: its value nests too deep"));
    }
    serde_json::from_slice(body).map_err(|_| malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::frame::split;

    fn check(frames: &[&[u8]]) -> Result<Vec<String>, BridgeError> {
        let mut assembler = Assembler::default();
        let mut said = Vec::new();
        for frame in frames {
            said.extend(assembler.take(frame)?.map(|message| format!("{message:?}")));
        }
        Ok(said)
    }

    #[test]
    fn frames_become_messages() {
        let said = check(&[
            b"c\0\x01\0\0\0echo\n[0]\n{\"a\":1}",
            b"o\0\0\0\0\0hi\xff",
            b"p\x01\x02\0\0\0text/plain\nab",
            b"p\0\x02\0\0\0c",
            b"r\0\x03\0\0\0sha256-0 5 18446744073709551615",
            b"d\0\0\0\0\0{\"value\":[1]}",
        ])
        .unwrap();
        assert_eq!(
            said,
            [
                r#"Call { id: 1, name: "echo", noise: "[0]", arguments: "{\"a\":1}" }"#,
                r#"Out { err: false, text: b"hi\xff" }"#,
                r#"Put { id: 2, media_type: "text/plain", bytes: b"abc" }"#,
                r#"Read { id: 3, reference: "sha256-0", offset: 5, length: 18446744073709551615 }"#,
                "Done(ScriptReport { value: Some(RawValue([1])), error: None })",
            ]
        );
    }

    #[test]
    fn what_no_runtime_sends_ends_the_chain() {
        let deep = [b"d\0\0\0\0\0{\"value\":", "[".repeat(10_000).as_bytes()].concat();
        let rows: &[(&[&[u8]], &str)] = &[
            (&[b"A\0\x01\0\0\0{}"], "a frame of kind 'A'"),
            (&[b"c\0\0\0\0\0a\n\n{}"], "the id 0 again"),
            (
                &[b"c\0\x01\0\0\0a\n\n{}", b"c\0\x01\0\0\0a\n\n{}"],
                "the id 1 again",
            ),
            (
                &[b"c\x01\x01\0\0\0a\n", b"o\0\0\0\0\0x"],
                "a frame within another message",
            ),
            (&[b"c\0\x01\0\0\0a"], "a malformed call"),
            (&[b"c\0\x01\0\0\0a\nnoise\n{}"], "a malformed call"),
            (&[b"c\0\x01\0\0\0\xff\n\n{}"], "a malformed call"),
            (&[b"c\0\x01\0\0\0a\n\n\xff"], "a malformed call"),
            (&[b"r\0\x01\0\0\0ref -1 5"], "a malformed read"),
            (&[b"r\0\x01\0\0\0ref 1"], "a malformed read"),
            (
                &[b"r\0\x01\0\0\0ref 1 99999999999999999999"],
                "a malformed read",
            ),
            (&[b"p\0\x01\0\0\0no line"], "a malformed put"),
            (&[b"d\0\0\0\0\0{\"value\":NaN}"], "a malformed end"),
            (&[b"d\0\0\0\0\0{\"status\":\"ok\"}"], "a malformed end"),
            (&[&deep], "a malformed end: its value nests too deep"),
        ];
        for (frames, expect) in rows {
            assert_eq!(check(frames).unwrap_err().to_string(), *expect);
        }
    }

    #[test]
    fn no_message_and_no_script_sends_without_end() {
        let mut assembler = Assembler::default();
        let long = vec![b'x'; MESSAGE + 1];
        let refused = split(FrameKind::Call, 1, &long).find_map(|f| assembler.take(&f).err());
        assert_eq!(
            refused.unwrap().to_string(),
            "a message over 16777216 bytes"
        );
        let mut assembler = Assembler::default();
        // Printed output may be endless: it is cut where it is stored.
        let frame = split(FrameKind::Out, 0, &vec![b'x'; 60_000])
            .next()
            .unwrap();
        assert!((0..10_000).all(|_| assembler.take(&frame).is_ok()));
        let frame = split(FrameKind::Put, 1, b"text/plain\n").next().unwrap();
        let frame = [&frame[..], &vec![b'x'; 60_000]].concat();
        let refused = (0..10_000).find_map(|_| {
            assembler.answered(1);
            assembler.take(&frame).err()
        });
        assert!(matches!(refused, Some(BridgeError::TooLong { .. })));
    }
}
