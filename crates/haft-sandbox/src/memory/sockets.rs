//! Measures the memory of a network namespace's sockets, which is not resident in any process.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
    socketpair, sockopt,
};

/// Maximum number of bytes of one answer of the kernel.
const PART: usize = 32 << 10;
/// The memory of an empty socket.
const SOCKET: u64 = 2 << 10;
/// The least memory of a message in a queue, whatever its content.
const LEAST_MESSAGE: u64 = 768;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// Length of a netlink message's own header.
pub(crate) const HEADER: usize = 16;
/// The requested attributes of local sockets: their memory, queues, peers and names.
const LOCAL_SHOWS: u32 = 0x20 | 0x10 | 0x04 | 0x01;
/// The requested attributes of internet sockets: bit n - 1 is attribute n.
const INTERNET_SHOWS: u8 = 1 << (INTERNET.memory - 1);

// One-byte values of the kernel's messages.
const LOCAL_FAMILY: u8 = 1;
const INTERNET_FAMILIES: [u8; 2] = [2, 10];
const TCP: u8 = 6;
const UDP: u8 = 17;

const STREAM: u8 = 1;
const DATAGRAMS: u8 = 2;
const LISTENS: u8 = 10;
/// Maximum number of messages in the queue of a datagram socket (`net.unix.max_dgram_qlen` plus one).
const MOST_DATAGRAMS: u64 = 11;

/// How the kernel describes a kind of sockets.
struct SocketFormat {
    /// The length of the data before the attributes.
    head: usize,
    /// The number of the memory attribute.
    memory: u16,
}

const LOCAL: SocketFormat = SocketFormat {
    head: 16,
    memory: 5,
};
const INTERNET: SocketFormat = SocketFormat {
    head: 72,
    memory: 7,
};
const LOCAL_NAME: u16 = 0;
const LOCAL_PEER: u16 = 2;
const LOCAL_QUEUE: u16 = 4;

/// Asks the kernel about all sockets of this process's network namespace.
#[derive(Debug)]
pub(crate) struct SocketMemory {
    link: OwnedFd,
    /// The maximum number of bytes that one socket may have sent but not delivered.
    most_sent: u64,
}

impl SocketMemory {
    /// Opens the link to the kernel; nothing is queried yet.
    pub(crate) fn open() -> io::Result<Self> {
        let family = AddressFamily::NETLINK;
        let diag = Some(netlink::SOCK_DIAG);
        let link = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, diag)?;
        let stream = SocketType::STREAM;
        let (one, _) = socketpair(AddressFamily::UNIX, stream, SocketFlags::CLOEXEC, None)?;
        // The kernel lowers it to the maximum that any process may have.
        sockopt::set_socket_send_buffer_size(&one, 1 << 30)?;
        let most_sent = sockopt::socket_send_buffer_size(&one)? as u64;
        Ok(Self { link, most_sent })
    }

    /// Returns the bytes that all sockets hold together.
    pub(crate) fn held(&self) -> u64 {
        let of_local = |message: &[u8]| local(message, self.most_sent);
        // The kernel may not have, or not report, a kind of sockets.
        let mut sum = self.ask(&local_request(), of_local).unwrap_or(0);
        for family in INTERNET_FAMILIES {
            for protocol in [TCP, UDP] {
                let request = internet_request(family, protocol);
                let of_internet = |message: &[u8]| memory(message, &INTERNET);
                sum += self.ask(&request, of_internet).unwrap_or(0);
            }
        }
        sum
    }

    fn ask(&self, request: &[u8], of: impl Fn(&[u8]) -> u64) -> io::Result<u64> {
        let mut message = Vec::with_capacity(HEADER + request.len());
        let length = u32::try_from(HEADER + request.len()).unwrap_or(u32::MAX);
        message.extend(length.to_ne_bytes());
        message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        message.extend(REQUEST_DUMP.to_ne_bytes());
        message.extend([0; 8]);
        message.extend(request);
        send(&self.link, &message, SendFlags::empty())?;
        let (mut part, mut sum) = (vec![0; PART], 0);
        loop {
            let (length, _) = recv(&self.link, &mut part[..], RecvFlags::empty())?;
            let mut rest = &part[..length];
            while let Some((length, kind)) = header(rest) {
                match kind {
                    DONE => return Ok(sum),
                    ERROR => return Err(io::ErrorKind::Unsupported.into()),
                    _ => sum += of(&rest[HEADER..length]).saturating_add(SOCKET),
                }
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

/// Builds a `struct unix_diag_req`.
fn local_request() -> Vec<u8> {
    let mut request = vec![LOCAL_FAMILY, 0, 0, 0];
    for word in [u32::MAX, 0, LOCAL_SHOWS, u32::MAX, u32::MAX] {
        request.extend(word.to_ne_bytes());
    }
    request
}

/// Builds a `struct inet_diag_req_v2`: every state, no address.
fn internet_request(family: u8, protocol: u8) -> Vec<u8> {
    let mut request = vec![family, protocol, INTERNET_SHOWS, 0];
    request.extend(u32::MAX.to_ne_bytes());
    request.extend([0; 48]);
    request
}

/// Returns the length and the kind of the message at the start.
pub(crate) fn header(bytes: &[u8]) -> Option<(usize, u16)> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    (HEADER..=bytes.len())
        .contains(&length)
        .then_some((length, kind))
}

/// Returns an attribute of a socket, as numbers.
fn attribute(message: &[u8], kind: &SocketFormat, wanted: u16) -> Option<Vec<u64>> {
    let mut rest = message.get(kind.head..)?;
    loop {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        let number = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        let value = rest.get(4..length)?;
        if number == wanted {
            let words = value.chunks_exact(4);
            let words = words.filter_map(|word| Some(u32::from_ne_bytes(word.try_into().ok()?)));
            return Some(words.map(u64::from).collect());
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

/// Returns the memory that the kernel accounts to a socket: received, to be sent, and other.
fn memory(message: &[u8], kind: &SocketFormat) -> u64 {
    let numbers = attribute(message, kind, kind.memory).unwrap_or_default();
    let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
    let (received, sent, ahead, queued, options, backlog) =
        (at(0), at(2), at(4), at(5), at(6), at(7));
    received + sent.max(queued) + ahead + options + backlog
}

/// Returns the memory of a local socket. A message is accounted to the socket that sent it; if that one is closed,
/// the receiver's queue tells how much there is, as far as it is reported.
fn local(message: &[u8], most_sent: u64) -> u64 {
    let own = memory(message, &LOCAL);
    let numbers = |wanted| attribute(message, &LOCAL, wanted).unwrap_or_default();
    // Bytes, or connections that were not accepted yet.
    let waiting = numbers(LOCAL_QUEUE).first().copied().unwrap_or(0);
    // A closed socket that is kept only for what it sent has no number.
    let connected = numbers(LOCAL_PEER).iter().any(|number| *number != 0);
    // A socket without a name and without a peer receives nothing.
    let reached = [LOCAL_NAME, LOCAL_PEER]
        .iter()
        .any(|wanted| attribute(message, &LOCAL, *wanted).is_some());
    let others = match (message.get(1), message.get(2)) {
        (_, Some(&LISTENS)) => waiting.saturating_mul(most_sent),
        // Each may be from a different sender, and the queue reports only the first.
        (Some(&DATAGRAMS), _) if reached => MOST_DATAGRAMS * most_sent,
        (Some(&DATAGRAMS), _) => waiting,
        _ if connected => 0,
        (Some(&STREAM), _) => waiting.saturating_mul(LEAST_MESSAGE).min(most_sent),
        // Empty messages take memory, too.
        _ => most_sent,
    };
    own.saturating_add(others)
}
