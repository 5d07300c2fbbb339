//! `Beginning`: what a connection at a port of any protocol carries, by its first bytes: TLS, HTTP, or what is only bytes here.
//!
//! HTTP is known by the form of its first line, whatever the method: every line that a lenient server may take for a request must be
//! read as one here, or it would name another host unseen. A line of another protocol that is taken for HTTP only fails.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use crate::proxy::MAX_HEAD;

/// How long to wait for more of what may become HTTP or TLS before it is sent on as it is: the host may have to answer first.
const PAUSE: Duration = Duration::from_secs(1);
/// The beginning of HTTP/2 (RFC 9113 §3.4), which is only bytes here.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Tls,
    Http,
    Other,
}

/// What passed on a connection until its protocol was known.
#[derive(Debug)]
pub(super) struct Beginning {
    pub(super) protocol: Protocol,
    /// What the host must still get.
    pub(super) sent: Vec<u8>,
    /// What the program must still get.
    pub(super) received: Vec<u8>,
}

impl Beginning {
    /// Reads until the protocol is known. If the host speaks first, it is neither TLS nor HTTP. What comes no further for a moment is
    /// sent on; if it becomes TLS or HTTP afterwards, it can no longer be judged.
    ///
    /// # Errors
    /// Why the connection must be closed.
    pub(super) async fn read(
        client: &mut (impl AsyncRead + Unpin),
        upstream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    ) -> Result<Self, &'static str> {
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        let mut passed = 0;
        let protocol = loop {
            let (mut ended, mut answered) = (false, false);
            tokio::select! {
                read = client.read_buf(&mut sent) => ended = matches!(read, Ok(0) | Err(_)),
                _ = upstream.read_buf(&mut received) => answered = true,
                () = sleep(PAUSE), if passed < sent.len() => {
                    answered = upstream.write_all(&sent[passed..]).await.is_err();
                    passed = sent.len();
                }
            }
            if answered {
                break Protocol::Other;
            }
            if let Some(protocol) = protocol_of(&sent, ended) {
                break protocol;
            }
            if sent.len() >= MAX_HEAD {
                return Err("its first line is too long to tell whether it is HTTP");
            }
        };
        if passed > 0 && protocol != Protocol::Other {
            return Err(
                "it began so slowly that haft sent on the first bytes, and became TLS or HTTP",
            );
        }
        sent.drain(..passed);
        Ok(Self {
            protocol,
            sent,
            received,
        })
    }
}

impl Beginning {
    /// Reads from the client alone until the protocol is known, and returns what was read. A client that says no more for a moment waits
    /// for the host: it speaks another protocol.
    pub(super) async fn read_client(client: &mut (impl AsyncRead + Unpin)) -> (Protocol, Vec<u8>) {
        let mut sent = Vec::new();
        while sent.len() < MAX_HEAD {
            let ended = match timeout(PAUSE, client.read_buf(&mut sent)).await {
                Err(_) => break,
                Ok(read) => matches!(read, Ok(0) | Err(_)),
            };
            if let Some(protocol) = protocol_of(&sent, ended) {
                return (protocol, sent);
            }
        }
        (Protocol::Other, sent)
    }
}

/// Returns the protocol that begins with these bytes, or `None` if it takes more of them. If they have `ended`, there are no more.
fn protocol_of(sent: &[u8], ended: bool) -> Option<Protocol> {
    match sent {
        [] | [22] if !ended => return None,
        [22, 3, ..] => return Some(Protocol::Tls),
        _ => {}
    }
    if sent.starts_with(HTTP2) {
        return Some(Protocol::Other);
    }
    if HTTP2.starts_with(sent) && !ended {
        return None;
    }
    // Empty lines before a request are skipped (RFC 9112 §2.2), by some servers spaces, too.
    let start = sent.iter().position(|byte| !is_blank(*byte));
    let Some(start) = start else {
        return ended.then_some(Protocol::Other);
    };
    let rest = &sent[start..];
    let end = rest.iter().position(|byte| *byte == b'\n');
    protocol_of_line(&rest[..end.unwrap_or(rest.len())], ended || end.is_some())
}

/// Returns the protocol whose first line is this, or begins with this if it is not `whole`.
fn protocol_of_line(line: &[u8], whole: bool) -> Option<Protocol> {
    let method = line.iter().take_while(|byte| is_token(**byte)).count();
    let (method, rest) = line.split_at(method);
    match rest.first() {
        None if !whole => return None,
        Some(byte) if is_blank(*byte) && !method.is_empty() => {}
        _ => return Some(Protocol::Other),
    }
    if rest.windows(6).any(is_version) {
        return Some(Protocol::Http);
    }
    // A request without a version (HTTP/0.9) is a GET.
    let target = rest.trim_ascii();
    let names_page = target.starts_with(b"/") || target.windows(3).any(|part| part == b"://");
    match method == b"GET" && names_page {
        _ if !whole => None,
        true => Some(Protocol::Http),
        false => Some(Protocol::Other),
    }
}

/// Whether these bytes begin the version of a request (RFC 9112 §2.3), however it is written.
fn is_version(bytes: &[u8]) -> bool {
    is_blank(bytes[0]) && bytes[1..].eq_ignore_ascii_case(b"HTTP/")
}

/// Whether a lenient server skips it before a request, or takes it for what separates the parts of one (RFC 9112 §3).
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0b' | b'\x0c' | b'\r')
}

/// Whether it can be in the name of a method (RFC 9110 §5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::{Beginning, HTTP2, Protocol, protocol_of};
    use crate::proxy::MAX_HEAD;

    #[test]
    fn a_protocol_is_known_by_its_first_bytes() {
        let long = [b"GET /", &[b'a'; 9_000][..]].concat();
        for (sent, expect) in [
            (&b""[..], None),
            (b"\x16", None),
            (b"\x16\x03", Some(Protocol::Tls)),
            (b"\x16\x02", Some(Protocol::Other)),
            (b"G", None),
            (b"OPTIONS", None),
            (b"GET /", None),
            (&long, None),
            (b"GET /a HTTP/1.1", Some(Protocol::Http)),
            (b"OPTIONS * HTTP/1.1\r\n", Some(Protocol::Http)),
            (b"\r\n\r\n", None),
            (b"\r\nGET / HTTP/1.1\r\n", Some(Protocol::Http)),
            (b"\n \r\n\tGET / HTTP/1.1\r\n", Some(Protocol::Http)),
            (b"PROPFIND / HTTP/1.1\r\n", Some(Protocol::Http)),
            (b"TRACE / HTTP/1.0\r\n", Some(Protocol::Http)),
            (b"CONNECT x:1 HTTP/1.1\r\n", Some(Protocol::Http)),
            (b"get / http/1.1\r\n", Some(Protocol::Http)),
            (b"X-Y!z\t/\x0bHTTP/9.9\n", Some(Protocol::Http)),
            (b"GET / HTTP/1.1\rHost: x\r", Some(Protocol::Http)),
            (b"GET /\r\n", Some(Protocol::Http)),
            (b"GET http://a/\n", Some(Protocol::Http)),
            (&HTTP2[..14], None),
            (HTTP2, Some(Protocol::Other)),
            (b"PRI * HTTP/2.0\r\nHost: x\r\n", Some(Protocol::Http)),
            (b"\r\nPRI * HTTP/2.0\r\n\r\nSM", Some(Protocol::Http)),
            (b"GETS\r\n", Some(Protocol::Other)),
            (b"GET key\r\n", Some(Protocol::Other)),
            (b"get /key\r\n", Some(Protocol::Other)),
            (b"SSH-2.0-x\r\n", Some(Protocol::Other)),
            (b"SSH-2.0-x y\r\n", Some(Protocol::Other)),
            (b"EHLO x\r\n", Some(Protocol::Other)),
            (b"*2\r\n$3\r\nGET\r\n", Some(Protocol::Other)),
            (b"0032git-upload-pack /a\0host=x\0", None),
            (b"GET /\0 HTTP/1.1\r\n", Some(Protocol::Http)),
            (b"OPTIONS rtsp://x RTSP/1.0\r\n", Some(Protocol::Other)),
            (b"AMQP\0\0\x09\x01", Some(Protocol::Other)),
            (b"{\"a\": 1}", Some(Protocol::Other)),
            (b"\0\0\0\x08\x04\xd2\x16/", Some(Protocol::Other)),
        ] {
            assert_eq!(protocol_of(sent, false), expect, "{sent:?}");
        }
        for (sent, expect) in [
            (&b""[..], Protocol::Other),
            (b"\x16", Protocol::Other),
            (b"GET", Protocol::Other),
            (b"GET /", Protocol::Http),
            (b"get http://a/ HTTP/1.1", Protocol::Http),
        ] {
            assert_eq!(protocol_of(sent, true), Some(expect), "{sent:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_for_an_answer_is_sent_on_and_cannot_become_http() {
        for (first, second, expect) in [
            (&b"HELLO"[..], &b" there\n"[..], Ok(Protocol::Other)),
            (b"", b"GET / HTTP/1.1\r\n", Ok(Protocol::Http)),
            (b"GE", b"T / HTTP/1.1\r\n", Err(())),
            (b"\x16", b"\x03\x01", Err(())),
        ] {
            let (mut program, mut client) = duplex(4096);
            let (mut upstream, mut host) = duplex(4096);
            let speaks = async {
                program.write_all(first).await.unwrap();
                let mut got = vec![0; first.len()];
                host.read_exact(&mut got).await.unwrap();
                assert_eq!(got, first);
                program.write_all(second).await.unwrap();
            };
            let (begun, ()) = tokio::join!(Beginning::read(&mut client, &mut upstream), speaks);
            let begun = begun.map(|begun| (begun.protocol, begun.sent));
            let expect = expect.map(|protocol| (protocol, second.to_vec()));
            assert_eq!(begun.map_err(|_| ()), expect, "{first:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_endless_first_line_is_refused() {
        let (mut program, mut client) = duplex(2 * MAX_HEAD);
        let (mut upstream, _host) = duplex(16);
        program.write_all(&[b'a'; MAX_HEAD]).await.unwrap();
        let begun = Beginning::read(&mut client, &mut upstream).await;
        assert!(begun.is_err(), "{begun:?}");
    }

    #[tokio::test]
    async fn a_host_that_speaks_first_speaks_another_protocol() {
        let (_program, mut client) = duplex(16);
        let (mut upstream, mut host) = duplex(16);
        host.write_all(b"220 x\r\n").await.unwrap();
        let begun = Beginning::read(&mut client, &mut upstream).await.unwrap();
        assert_eq!(begun.protocol, Protocol::Other);
        assert_eq!(begun.received, b"220 x\r\n");
    }
}
