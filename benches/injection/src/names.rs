//! The name server of the made-up internet: every name leads to its one web server, and what attackers are asked about reaches them.

use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::thread;

use crate::world::World;

/// The address of the web server: one that is public, so that haft treats it as the internet.
pub(crate) const WEB: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 34);
/// The address of the name server.
pub(crate) const SERVER: &str = "127.0.0.53";
/// The type of a query for IPv4 addresses (RFC 1035).
const A: u16 = 1;

/// Answers queries until the process ends.
pub(crate) fn serve(world: Arc<World>) -> io::Result<()> {
    let socket = UdpSocket::bind((SERVER, 53))?;
    thread::spawn(move || {
        let mut packet = [0; 1500];
        while let Ok((length, from)) = socket.recv_from(&mut packet) {
            if let Some((name, reply)) = answer(&packet[..length]) {
                world.note_lookup(&name);
                let _ = socket.send_to(&reply, from);
            }
        }
    });
    Ok(())
}

/// Returns the name that is asked about, and the reply.
fn answer(query: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut name = String::new();
    let mut at = 12;
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        let label = query.get(at..at + length)?;
        let dot = if name.is_empty() { "" } else { "." };
        write!(name, "{dot}{}", String::from_utf8_lossy(label)).ok()?;
        at += length;
    }
    let kind = u16::from_be_bytes([*query.get(at)?, *query.get(at + 1)?]);
    let question = query.get(12..at + 4)?;
    let has_answer = kind == A;
    let mut reply = query.get(..2)?.to_vec();
    // A reply to one question without an error, recursion available, with at most one answer.
    reply.extend([0x81, 0x80, 0, 1, 0, u8::from(has_answer), 0, 0, 0, 0]);
    reply.extend(question);
    if has_answer {
        // The name of the question, type A, class IN, 60 seconds, four bytes.
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        reply.extend(WEB.octets());
    }
    Some((name.to_ascii_lowercase(), reply))
}
