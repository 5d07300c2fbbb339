//! Lists the ports of a network namespace at which something listens, by the kernel's description of its sockets (`sock_diag(7)`).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use crate::memory::sockets::{HEADER, header};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// Maximum number of sockets that are listed. A jail with more is not asked about again: each list would take long.
const MOST_SOCKETS: usize = 50_000;
/// Maximum number of bytes of one part of the kernel's answer.
const PART: usize = 32 << 10;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const IPV4: u8 = 2;
const IPV6: u8 = 10;
const TCP: u8 = 6;
/// The state `TCP_LISTEN`, as a bit.
const LISTENS: u32 = 1 << 10;
/// The length of a `struct inet_diag_msg`, which attributes follow; and the offsets of a port and an address in it.
const MESSAGE: usize = 72;
const PORT: usize = 4;
const ADDRESS: usize = 8;
/// `INET_DIAG_SKV6ONLY`: whether the socket takes no IPv4.
const ONLY_V6: u16 = 11;

/// A port at which something listens, and by which protocols it is reached at the loopback's own addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListeningPort {
    /// Its number.
    pub port: u16,
    /// At 127.0.0.1.
    pub v4: bool,
    /// At `::1`.
    pub v6: bool,
}

/// The ports at which something listens, in ascending order.
pub type ListeningPorts = Vec<ListeningPort>;

/// Opens the link to the kernel by which the sockets of this process's network namespace are listed.
pub(crate) fn open_link() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let diag = Some(netlink::SOCK_DIAG);
    Ok(socket_with(family, kind, SocketFlags::CLOEXEC, diag)?)
}

/// Lists what listens in one network namespace.
#[derive(Debug)]
pub(super) struct Listening {
    link: OwnedFd,
    gave_up: bool,
}

impl Listening {
    /// Uses a link that was opened in the namespace.
    pub(super) fn new(link: OwnedFd) -> Self {
        Self {
            link,
            gave_up: false,
        }
    }

    pub(super) fn ports(&mut self) -> io::Result<ListeningPorts> {
        if self.gave_up {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut ports = BTreeMap::new();
        let listed = [IPV4, IPV6].map(|family| self.list(family, &mut ports));
        // What is left of an answer would be taken for the next one.
        self.gave_up = listed.iter().any(Result::is_err);
        listed.into_iter().collect::<io::Result<()>>()?;
        Ok(ports.into_values().collect())
    }

    fn list(&self, family: u8, ports: &mut BTreeMap<u16, ListeningPort>) -> io::Result<()> {
        send(&self.link, &request(family), SendFlags::empty())?;
        let (mut part, mut count) = (vec![0; PART], 0);
        loop {
            let (length, _) = recv(&self.link, &mut part[..], RecvFlags::empty())?;
            let mut rest = &part[..length];
            while let Some((length, kind)) = header(rest) {
                match kind {
                    DONE => return Ok(()),
                    // A kernel without IPv6 lists no such sockets.
                    ERROR if family == IPV6 => return Ok(()),
                    ERROR => return Err(io::ErrorKind::Unsupported.into()),
                    _ => note(&rest[HEADER..length], ports),
                }
                count += 1;
                if count > MOST_SOCKETS {
                    return Err(io::ErrorKind::QuotaExceeded.into());
                }
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

/// Builds a request with a `struct inet_diag_req_v2` for the TCP sockets of a family that listen.
fn request(family: u8) -> Vec<u8> {
    const BODY: usize = 56;
    let mut message = Vec::with_capacity(HEADER + BODY);
    message.extend(
        u32::try_from(HEADER + BODY)
            .unwrap_or(u32::MAX)
            .to_ne_bytes(),
    );
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST_DUMP.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([family, TCP, 0, 0]);
    message.extend(LISTENS.to_ne_bytes());
    message.extend([0; 48]);
    message
}

/// Notes the port of a socket, if it is reached at the loopback's own addresses.
fn note(message: &[u8], ports: &mut BTreeMap<u16, ListeningPort>) {
    let Some((port, v4, v6)) = reached(message) else {
        return;
    };
    if v4 || v6 {
        let known = ports.entry(port).or_insert(ListeningPort {
            port,
            v4: false,
            v6: false,
        });
        known.v4 |= v4;
        known.v6 |= v6;
    }
}

/// Returns the port of a socket, and whether it is reached at 127.0.0.1 and `::1`.
fn reached(message: &[u8]) -> Option<(u16, bool, bool)> {
    let port = u16::from_be_bytes(message.get(PORT..PORT + 2)?.try_into().ok()?);
    let address: [u8; 16] = message.get(ADDRESS..ADDRESS + 16)?.try_into().ok()?;
    let first = [address[0], address[1], address[2], address[3]];
    if message.first() == Some(&IPV4) {
        return Some((port, first == [0; 4] || first == [127, 0, 0, 1], false));
    }
    let address = std::net::Ipv6Addr::from(address);
    let any = address.is_unspecified();
    let mapped = address.to_ipv4_mapped();
    let v4 = mapped.is_some_and(|address| address.is_unspecified() || address.is_loopback());
    Some((
        port,
        v4 || any && !is_only_v6(message),
        any || address.is_loopback(),
    ))
}

fn is_only_v6(message: &[u8]) -> bool {
    let mut rest = message.get(MESSAGE..).unwrap_or_default();
    while let Some([low, high, kind_low, kind_high, value @ ..]) = rest.get(..rest.len()) {
        let length = usize::from(u16::from_ne_bytes([*low, *high]));
        if u16::from_ne_bytes([*kind_low, *kind_high]) == ONLY_V6 {
            return value.first() == Some(&1);
        }
        if length < 4 {
            break;
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::{Listening, ListeningPort, open_link};

    /// How many ports are tried.
    const TRIES: usize = 5;

    #[test]
    fn ports_are_listed_with_the_protocols_that_reach_them() {
        let mut listening = Listening::new(open_link().unwrap());
        for (address, v4, v6) in [
            ("127.0.0.1:0", true, false),
            ("0.0.0.0:0", true, false),
            ("[::1]:0", false, true),
            ("[::]:0", true, true),
            ("127.0.0.2:0", false, false),
            ("[::ffff:127.0.0.1]:0", true, false),
        ] {
            // Another program may listen on the same port by the other protocol: then try the next port.
            let tries = (0..TRIES).map(|_| {
                let listener = TcpListener::bind(address).ok()?;
                let port = listener.local_addr().unwrap().port();
                // A connection is no listener.
                let _connected = TcpStream::connect(listener.local_addr().unwrap());
                let listed = listening.ports().unwrap();
                let expect = (v4 || v6).then_some(ListeningPort { port, v4, v6 });
                let found = listed.into_iter().find(|listed| listed.port == port);
                Some((found, expect))
            });
            let mut tries = tries.skip_while(|tried| tried.as_ref().is_some_and(|(a, b)| a != b));
            match tries.next() {
                Some(None) => eprintln!("skipped: {address} cannot be bound here"),
                tried => assert!(tried.is_some(), "{address}: never as expected"),
            }
        }
    }
}
