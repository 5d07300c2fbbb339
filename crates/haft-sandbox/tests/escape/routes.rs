//! T4: the kernel's list of interfaces, which a command may read in its own network and by which it can change nothing.
#![expect(unsafe_code, reason = "attempts are raw system calls")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};

use haft_sandbox::{CommandSpec, Network};

use crate::runner::Test;
use crate::{Attempt, INSIDE, Outcome, Stage, binary, fails_with, refused, stopped};

pub(crate) const TESTS: &[Test] = &[
    ("net_t4_only_the_jails_interfaces_are_listed", || {
        stopped("interfaces", &[]);
    }),
    ("net_t4_no_other_netlink_is_spoken", || {
        stopped("netlinks", &[]);
    }),
    ("net_t4_nothing_is_changed_through_the_list", || {
        stopped("route_changes", &[]);
    }),
    ("net_t4_the_hosts_interfaces_are_not_listed", hosts),
];

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("interfaces", |_| {
        let links = dump(GET_LINK)?;
        if count(&links, NEW_LINK) != 1 || !holds(&links, b"lo\0") {
            return Err(format!("links: {}", links.escape_ascii()));
        }
        let addresses = dump(GET_ADDRESS)?;
        if holds(&addresses, &[127, 0, 0, 1]) {
            return Ok(());
        }
        Err(format!("no own address: {}", addresses.escape_ascii()))
    }),
    ("no_interfaces", |_| {
        for kind in [libc::SOCK_RAW, libc::SOCK_DGRAM] {
            // SAFETY: takes numbers only.
            let made = unsafe { libc::socket(libc::AF_NETLINK, kind, 0) };
            fails_with("netlink", libc::EPERM, made.into())?;
        }
        Ok(())
    }),
    ("netlinks", |_| {
        for kind in [libc::SOCK_RAW, libc::SOCK_DGRAM] {
            for protocol in 1..64_i64 {
                // The kernel looks at 32 bits of each.
                for high in [0, 1 << 32] {
                    let (family, protocol) = (i64::from(libc::AF_NETLINK) | high, protocol | high);
                    // SAFETY: takes numbers only.
                    let made = unsafe {
                        libc::syscall(libc::SYS_socket, family, i64::from(kind), protocol)
                    };
                    fails_with("netlink", libc::EPERM, made)?;
                }
            }
        }
        // Raw sockets of other families are still refused.
        // SAFETY: takes numbers only.
        let made = unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP) };
        fails_with("raw", libc::EPERM, made.into())
    }),
    ("route_changes", |_| {
        for kind in FIRST_KIND..LAST_KIND {
            if (kind - FIRST_KIND) % 4 != OF_GET {
                changes(kind)?;
            }
        }
        let socket = netlink()?;
        for (name, level, option) in [
            (
                "a larger buffer than allowed",
                libc::SOL_SOCKET,
                libc::SO_RCVBUFFORCE,
            ),
            (
                "other namespaces",
                libc::SOL_NETLINK,
                NETLINK_LISTEN_ALL_NSID,
            ),
        ] {
            let on = 1 << 24;
            // SAFETY: the value outlives the call.
            let set = unsafe {
                let value = (&raw const on).cast();
                libc::setsockopt(socket.as_raw_fd(), level, option, value, 4)
            };
            fails_with(name, libc::EPERM, set.into())?;
        }
        to_another_process(&socket)?;
        dump(GET_LINK).and_then(|links| match count(&links, NEW_LINK) {
            1 => Ok(()),
            count => Err(format!("{count} links")),
        })
    }),
];

/// With the host's network a command gets no list: it would name the host's addresses.
fn hosts() {
    let stage = Stage::new();
    let argv = [
        binary().display().to_string(),
        INSIDE.into(),
        "no_interfaces".into(),
    ];
    let mut spec = CommandSpec::argv(argv, stage.path());
    spec.network = Network::Host;
    let seen = stage.run(spec);
    assert!(seen.exit.success(), "{:?} {}", seen.exit, seen.err);
}

// `RTM_…` of linux/rtnetlink.h: four for each object, of which the third reads.
const FIRST_KIND: u16 = 16;
const LAST_KIND: u16 = 124;
const OF_GET: u16 = 2;
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const GET_ADDRESS: u16 = 22;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const NETLINK_LISTEN_ALL_NSID: i32 = 8;
const HEADER: usize = 16;
/// `NLM_F_REQUEST | NLM_F_ACK`, and `NLM_F_REQUEST | NLM_F_DUMP`.
const CHANGE: u16 = 0x5;
const DUMP: u16 = 0x301;
/// More than the fixed part of every request; what is missing of attributes is none.
const BODY: usize = 64;

/// Opens the only kind that is allowed.
pub(crate) fn netlink() -> Result<File, String> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: takes numbers only.
    let made = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
    if made < 0 {
        return Err(std::io::Error::last_os_error().to_string());
    }
    // SAFETY: made above, and the file's alone.
    Ok(unsafe { File::from_raw_fd(made) })
}

/// Builds a request.
pub(crate) fn request(kind: u16, flags: u16, body: usize) -> Vec<u8> {
    let length = u32::try_from(HEADER + body).unwrap();
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.resize(HEADER + body, 0);
    message
}

fn dump(kind: u16) -> Result<Vec<u8>, String> {
    let mut socket = netlink()?;
    let say = |error: std::io::Error| error.to_string();
    socket.write_all(&request(kind, DUMP, BODY)).map_err(say)?;
    let mut all = Vec::new();
    let mut part = vec![0; 64 << 10];
    loop {
        let length = socket.read(&mut part).map_err(say)?;
        all.extend(&part[..length]);
        let kinds: Vec<_> = messages(&part[..length]).collect();
        if kinds.contains(&ERROR) {
            return Err(format!("{kind}: {}", part[..length].escape_ascii()));
        }
        if kinds.contains(&DONE) {
            return Ok(all);
        }
    }
}

/// Returns the kinds of the messages.
fn messages(bytes: &[u8]) -> impl Iterator<Item = u16> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(rest.get(4..6)?.try_into().ok()?);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(kind)
    })
}

fn count(bytes: &[u8], kind: u16) -> usize {
    messages(bytes).filter(|one| *one == kind).count()
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// A change of each kind is refused before the kernel looks at what it is.
fn changes(kind: u16) -> Outcome {
    let mut socket = netlink()?;
    let say = |error: std::io::Error| error.to_string();
    socket
        .write_all(&request(kind, CHANGE, BODY))
        .map_err(say)?;
    let mut answer = vec![0; 4096];
    let length = socket.read(&mut answer).map_err(say)?;
    let errno = answer
        .get(HEADER..HEADER + 4)
        .map(|word| i32::from_ne_bytes(word.try_into().unwrap()));
    if messages(&answer[..length]).next() == Some(ERROR) && errno == Some(-libc::EPERM) {
        return Ok(());
    }
    Err(format!("kind {kind}: {errno:?}"))
}

/// A message to another socket than the kernel's.
fn to_another_process(socket: &File) -> Outcome {
    let other = netlink()?;
    // SAFETY: all zeros is a valid address.
    let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    address.nl_family = u16::try_from(libc::AF_NETLINK).unwrap();
    address.nl_pid = 4711;
    let size = libc::socklen_t::try_from(size_of_val(&address)).unwrap();
    let at = (&raw const address).cast();
    // SAFETY: the address is as long as stated.
    if unsafe { libc::bind(other.as_raw_fd(), at, size) } != 0 {
        return Err(std::io::Error::last_os_error().to_string());
    }
    let bytes = request(NEW_LINK, CHANGE, BODY);
    // SAFETY: bytes and address outlive the call and are as long as stated.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            0,
            at,
            size,
        )
    };
    refused(
        "sent to another process",
        if sent < 0 { Err(()) } else { Ok(()) },
    )
}
