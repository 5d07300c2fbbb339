//! `SocketEnds`: whether the peer of a connection runs as this server's user, according to the kernel's socket tables.
//!
//! A login link that opens a browser is in a program's arguments, which other users of the machine can read.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Both ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SocketEnds {
    /// The peer's address.
    pub(crate) remote: SocketAddr,
    /// This server's address.
    pub(crate) local: SocketAddr,
}

/// The kernel's tables of TCP connections in this network namespace.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// Maximum number of bytes to read of a table: a line has 150.
const MAX_TABLE_BYTES: u64 = 32 << 20;
/// The state of a connection that neither end has closed. After closing, the table names root as its user.
const ESTABLISHED: &str = "01";

impl SocketEnds {
    /// Returns whether the peer runs as this server's user or as root; false if the kernel does not say. Blocks.
    pub(crate) fn are_of_one_user(self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        let user = TABLES.iter().find_map(|table| self.user_in(table));
        user.is_some_and(|user| user == own || user == 0)
    }

    /// Returns the user of the peer's socket, if this table contains it.
    fn user_in(self, table: &str) -> Option<u32> {
        let lines = BufReader::new(File::open(table).ok()?.take(MAX_TABLE_BYTES)).lines();
        lines
            .map_while(Result::ok)
            .find_map(|line| self.user(&line))
    }

    /// Returns the user, if this line of a table describes the peer's socket.
    fn user(self, line: &str) -> Option<u32> {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is = |field: Option<&str>, end: SocketAddr| {
            let found = field.and_then(address);
            found.is_some_and(|found| {
                found.ip() == end.ip().to_canonical() && found.port() == end.port()
            })
        };
        let fits = is(fields.next(), self.remote) && is(fields.next(), self.local);
        if !fits || fields.next() != Some(ESTABLISHED) {
            return None;
        }
        // Skip the queues, the timer and the retransmits.
        fields.nth(3)?.parse().ok()
    }
}

/// Parses an address as in the tables: `0100007F:1CFD`, in 32-bit words of native byte order.
fn address(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for word in words.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let ip = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::SocketEnds;

    fn ends(remote: &str, local: &str) -> SocketEnds {
        SocketEnds {
            remote: remote.parse().unwrap(),
            local: local.parse().unwrap(),
        }
    }

    #[test]
    fn w17_the_user_of_a_socket_is_read_from_its_own_line() {
        let v4 = "   1: 0100007F:CB5E 0100007F:1CFD 01 00000000:00000000 00:00000000 00000000  1000        0 341492 1 0 20 4";
        let v6 = "   1: 0000000000000000FFFF00000100007F:CB5E 0000000000000000FFFF00000100007F:1CFD 01 00000000:00000000 00:00000000 00000000  1001        0 3 1 0 20";
        let (ours, theirs) = ("127.0.0.1:7421", "127.0.0.1:52062");
        let rows = [
            (v4, theirs, ours, Some(1000)),
            (v6, theirs, ours, Some(1001)),
            (v6, "[::ffff:127.0.0.1]:52062", ours, Some(1001)),
            // The server's own end, another port, another address.
            (v4, ours, theirs, None),
            (v4, "127.0.0.1:52063", ours, None),
            (v4, "127.0.0.2:52062", ours, None),
            // Closed by the peer: the table names root as the user of what remains.
            (&v4.replace(" 01 ", " 06 "), theirs, ours, None),
            ("  sl  local_address rem_address   st", theirs, ours, None),
            ("", theirs, ours, None),
        ];
        if cfg!(target_endian = "little") {
            for (line, remote, local, expect) in rows {
                assert_eq!(ends(remote, local).user(line), expect, "{line} {remote}");
            }
        }
    }

    #[test]
    fn w17_a_connection_of_this_process_is_of_one_user_and_an_unknown_one_is_not() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let local = listener.local_addr().unwrap();
            let stream = TcpStream::connect(local).unwrap();
            let remote = stream.local_addr().unwrap();
            assert!(SocketEnds { remote, local }.are_of_one_user());
            let other = ends("127.0.0.1:1", &local.to_string());
            assert!(!other.are_of_one_user());
            drop((listener, stream));
        }
    }
}
