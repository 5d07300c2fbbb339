//! Makes every address lead to the jail itself, so that connections of any program arrive at listeners that haft holds.
//!
//! A local route for everything on the loopback interface (`AnyIP`) is part of the kernel's routing itself: it needs no
//! module for filters or tunnels. Nothing leaves the namespace, which has no other interface. An accepted connection
//! still says which address the program meant.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use crate::outlet::{JAIL_ADDRESS, NAMES_PORT, OUTLET_ADDRESS};

// rtnetlink(7), <linux/rtnetlink.h>, <linux/if_addr.h>.
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
/// A request that creates and is acknowledged.
const CREATE: u16 = 0x405;
const ERROR: u16 = 2;
const IPV4: u8 = 2;
const IPV6: u8 = 10;
const LOCAL_TABLE: u8 = 255;
/// Made by the system, not by a routing protocol.
const BOOT: u8 = 3;
const HOST_SCOPE: u8 = 254;
const LOCAL_ROUTE: u8 = 2;
const ROUTE_INTERFACE: u16 = 4;
const ADDRESS: u16 = 1;
const LOCAL_ADDRESS: u16 = 2;
/// The loopback is the first interface of every network namespace.
const LOOPBACK: u32 = 1;

/// Creates the listeners of an outlet: the proxy's, and with ports those at every address, which also need the routes.
///
/// What the kernel lacks is left out: the proxy's address answers alone then, as without ports.
pub(super) fn listen(ports: &[u16]) -> io::Result<Vec<OwnedFd>> {
    let mut listeners = vec![TcpListener::bind(OUTLET_ADDRESS)?.into()];
    if ports.is_empty() || lead_here().is_err() {
        return Ok(listeners);
    }
    // Both protocols at once, if there are both.
    let any = |port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    let any_v4 = |port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let names = [any(NAMES_PORT), any_v4(NAMES_PORT)];
    listeners.extend(UdpSocket::bind(&names[..]).map(OwnedFd::from));
    for port in ports.iter().copied().chain([NAMES_PORT]) {
        listeners.extend(TcpListener::bind(&[any(port), any_v4(port)][..]).map(OwnedFd::from));
    }
    Ok(listeners)
}

/// Adds the routes, and an address besides the loopback's: programs that ask for addresses of configured kinds alone
/// (`AI_ADDRCONFIG`) do not count the loopback's own.
fn lead_here() -> io::Result<()> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    // Protocol 0: NETLINK_ROUTE.
    let link = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    request(&link, NEW_ROUTE, &route(IPV4))?;
    request(&link, NEW_ADDRESS, &own_address())?;
    // A machine may have no IPv6; what has only such addresses is then not reached.
    let _ = request(&link, NEW_ROUTE, &route(IPV6));
    Ok(())
}

/// Builds a `struct rtmsg` for all addresses of a family, with the interface.
fn route(family: u8) -> Vec<u8> {
    let mut message = vec![family, 0, 0, 0, LOCAL_TABLE, BOOT, HOST_SCOPE, LOCAL_ROUTE];
    message.extend(0_u32.to_ne_bytes());
    attribute(&mut message, ROUTE_INTERFACE, LOOPBACK.to_ne_bytes());
    message
}

/// Builds a `struct ifaddrmsg` for [`JAIL_ADDRESS`].
fn own_address() -> Vec<u8> {
    let mut message = vec![IPV4, 32, 0, 0];
    message.extend(LOOPBACK.to_ne_bytes());
    for kind in [LOCAL_ADDRESS, ADDRESS] {
        attribute(&mut message, kind, JAIL_ADDRESS.octets());
    }
    message
}

fn attribute(message: &mut Vec<u8>, kind: u16, value: [u8; 4]) {
    message.extend(8_u16.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
}

/// Sends a request and reads its acknowledgement.
fn request(link: &OwnedFd, kind: u16, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(16 + body.len()).unwrap_or(u32::MAX);
    let mut message = Vec::with_capacity(16 + body.len());
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(CREATE.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    send(link, &message, SendFlags::empty())?;
    let mut answer = [0; 1024];
    let (length, _) = recv(link, &mut answer[..], RecvFlags::empty())?;
    let four = |at: usize| -> Option<[u8; 4]> { answer[..length].get(at..at + 4)?.try_into().ok() };
    let answered = four(4).map(|bytes| u16::from_ne_bytes([bytes[0], bytes[1]]));
    let error = four(16).map(i32::from_ne_bytes);
    match (answered, error) {
        (Some(ERROR), Some(0)) => Ok(()),
        (Some(ERROR), Some(error)) => Err(io::Error::from_raw_os_error(error.wrapping_neg())),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
