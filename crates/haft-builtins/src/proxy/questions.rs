//! Answers a command's questions for names (DNS, RFC 1035), without asking anyone: a name's address is the one that stands for it here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::proxy::STEP_TIMEOUT;
use crate::proxy::names::NameTable;
use crate::web::target::WebUrl;

/// The length of a message's head.
const HEAD: usize = 12;
/// Maximum length of a name on the wire (RFC 1035 §2.3.4).
const MAX_NAME: usize = 255;
const MAX_LABEL: u8 = 63;
/// How long an answer holds, in seconds.
const HOLDS: u32 = 60;
/// Maximum number of questions on one TCP connection.
const MAX_QUESTIONS: usize = 256;

const ADDRESS_V4: u16 = 1;
const ADDRESS_V6: u16 = 28;
const INTERNET: u16 = 1;

const MALFORMED: u8 = 1;
const FAILED: u8 = 2;
const NO_SUCH_NAME: u8 = 3;
const NOT_IMPLEMENTED: u8 = 4;
const REFUSED: u8 = 5;

/// Endings of names that no server of the public network knows: those of other ways to look up names (RFC 6762, RFC 7686), of no name
/// at all (RFC 6761), and of names for addresses.
const NEVER_FOUND: [&str; 5] = ["local", "onion", "invalid", "in-addr.arpa", "ip6.arpa"];

/// Returns the answer to a message, or `None` if it is not a question.
pub(super) fn answer(message: &[u8], names: &NameTable) -> Option<Vec<u8>> {
    let head: [u8; HEAD] = message.get(..HEAD)?.try_into().ok()?;
    if head[2] & 0x80 != 0 {
        // Answers that were answered could go on forever.
        return None;
    }
    let reply =
        |code, question: &[u8], data: Option<IpAddr>| Some(reply(head, code, question, data));
    if head[2] & 0x78 != 0 {
        return reply(NOT_IMPLEMENTED, &[], None);
    }
    let questions = u16::from_be_bytes([head[4], head[5]]);
    let Some(question) = Question::read(&message[HEAD..]).filter(|_| questions == 1) else {
        return reply(MALFORMED, &[], None);
    };
    if question.class != INTERNET {
        return reply(REFUSED, question.bytes, None);
    }
    match question.find(names) {
        Ok(address) => reply(0, question.bytes, address),
        Err(code) => reply(code, question.bytes, None),
    }
}

/// Answers the questions on one connection (RFC 7766), until it ends or nothing is asked.
pub(super) async fn serve(mut client: impl AsyncRead + AsyncWrite + Unpin, names: &NameTable) {
    for _ in 0..MAX_QUESTIONS {
        let read = async {
            let length = client.read_u16().await?;
            let mut message = vec![0; length.into()];
            client.read_exact(&mut message).await?;
            std::io::Result::Ok(message)
        };
        let Ok(Ok(message)) = timeout(STEP_TIMEOUT, read).await else {
            return;
        };
        let Some(answer) = answer(&message, names) else {
            return;
        };
        let length = u16::try_from(answer.len()).unwrap_or(u16::MAX);
        let framed = [&length.to_be_bytes()[..], &answer].concat();
        let sent = timeout(STEP_TIMEOUT, client.write_all(&framed)).await;
        if !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}

/// A question as it is written, and what it asks for.
struct Question<'a> {
    bytes: &'a [u8],
    /// In lowercase, without the last dot; `None` if it is not one of a host.
    name: Option<String>,
    kind: u16,
    class: u16,
}

impl<'a> Question<'a> {
    /// Reads the question at the start of the bytes; what follows does not matter. A name that refers to another is malformed here:
    /// there is none before it.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (mut at, mut labels) = (0, Vec::new());
        loop {
            let length = *bytes.get(at)?;
            at += 1;
            if length == 0 {
                break;
            }
            if length > MAX_LABEL {
                return None;
            }
            let label = bytes.get(at..at + usize::from(length))?;
            labels.push(label);
            at += label.len();
            if at >= MAX_NAME {
                return None;
            }
        }
        let rest: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let name = labels.iter().all(|label| label.iter().all(plain));
        let name = name.then(|| labels.join(&b'.').to_ascii_lowercase());
        Some(Self {
            bytes: &bytes[..at + 4],
            name: name.and_then(|name| String::from_utf8(name).ok()),
            kind: u16::from_be_bytes([rest[0], rest[1]]),
            class: u16::from_be_bytes([rest[2], rest[3]]),
        })
    }

    /// Returns the address that answers it, `None` if the name has nothing of that kind, or the code of an error.
    fn find(&self, names: &NameTable) -> Result<Option<IpAddr>, u8> {
        let name = self.name.as_deref().ok_or(NO_SUCH_NAME)?;
        if is_below(name, "localhost") {
            return Ok(match self.kind {
                ADDRESS_V4 => Some(Ipv4Addr::LOCALHOST.into()),
                ADDRESS_V6 => Some(Ipv6Addr::LOCALHOST.into()),
                _ => None,
            });
        }
        if !is_found(name) {
            return Err(NO_SUCH_NAME);
        }
        if self.kind != ADDRESS_V4 {
            // Also of IPv6: the connection is made from here, by whatever the host has.
            return Ok(None);
        }
        names
            .address(name)
            .map(|found| Some(found.into()))
            .ok_or(FAILED)
    }
}

/// Whether a name can be that of a host elsewhere, read by every parser as the same name.
fn is_found(name: &str) -> bool {
    let never = NEVER_FOUND.iter().any(|end| is_below(name, end));
    let same = WebUrl::of_connection("https", name, 443)
        .is_ok_and(|target| target.address().is_none() && target.host() == name);
    name.contains('.') && !never && same
}

fn is_below(name: &str, end: &str) -> bool {
    name.strip_suffix(end)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Builds an answer with at most one address.
fn reply(head: [u8; HEAD], code: u8, question: &[u8], data: Option<IpAddr>) -> Vec<u8> {
    let [id, other, asked, ..] = head;
    // An answer, to a question that may ask for recursion, which is to be had.
    let mut bytes = vec![id, other, 0x80 | asked & 0x79, 0x80 | code];
    let count = |number: bool| [0, u8::from(number)];
    bytes.extend(count(!question.is_empty()));
    bytes.extend(count(data.is_some()));
    bytes.extend([0; 4]);
    bytes.extend(question);
    let (kind, data) = match data {
        None => return bytes,
        Some(IpAddr::V4(v4)) => (ADDRESS_V4, v4.octets().to_vec()),
        Some(IpAddr::V6(v6)) => (ADDRESS_V6, v6.octets().to_vec()),
    };
    // The name of the question, which begins after the head.
    bytes.extend([0xc0, 12]);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(INTERNET.to_be_bytes());
    bytes.extend(HOLDS.to_be_bytes());
    bytes.extend(u16::try_from(data.len()).unwrap_or_default().to_be_bytes());
    bytes.extend(data);
    bytes
}

#[cfg(test)]
mod tests;
