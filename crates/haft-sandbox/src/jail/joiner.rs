//! The joiner: this program executed again, which joins the network of a running jail and opens sockets there for the host.
//!
//! It enters the user namespace that owns that network, then the network, and drops every capability before it opens a socket. It enters
//! neither the jail's root nor its pid namespace: no process of the jail can see, trace or signal it. It reads only the host's requests.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::fs::{Mode, OFlags, openat};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::shared::open_proc;
use super::spare::Supervisor;
use super::supervisor::take_link;
use super::{SETUP, failed, lock};
use crate::loopback::door::{ANSWER, REQUEST, V4, V6};
use crate::loopback::{JailPlace, LoopbackDoor};
use crate::report::{SetupFailure, send_files, step};
use crate::sys::leave;
use crate::{Config, StartError};

/// Its `argv[0]`, in place of a program name.
pub(super) const MARKER: &str = "haft-jail-joiner";
/// Maximum number of sockets opened at once.
const MOST_SOCKETS: u8 = 32;

/// Starts a joiner and waits until it has joined.
pub(crate) async fn open(config: &Config, at: JailPlace) -> Result<LoopbackDoor, StartError> {
    let argv = [MARKER.into(), at.to_string().into()];
    let Supervisor { child, link } =
        Supervisor::execute(config, &argv, Stdio::null(), Stdio::null())?;
    let door = tokio::time::timeout(SETUP, LoopbackDoor::open(child, link)).await;
    let door = door.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    door.map_err(failed("join the network of a command"))
}

/// Joins and serves; never returns.
pub(super) fn run() -> ! {
    let Ok(link) = take_link() else { leave(125) };
    match join() {
        Ok(()) => say(&link, 0, &[]),
        Err(SetupFailure { errno, .. }) => {
            say(&link, errno, &[]);
            leave(125)
        }
    }
    let mut request = [0; REQUEST];
    while (&link).read_exact(&mut request).is_ok() {
        let [family, count] = request;
        match sockets(family, count.min(MOST_SOCKETS)) {
            Ok(files) => say(&link, 0, &files),
            Err(error) => say(&link, error.raw_os_error().unwrap_or(libc::EINVAL), &[]),
        }
    }
    leave(0)
}

/// Enters the namespaces of the jail that the argument names.
fn join() -> Result<(), SetupFailure> {
    let word = std::env::args().nth(1).unwrap_or_default();
    let gone = || SetupFailure {
        step: "find the jail".into(),
        errno: libc::ESRCH,
    };
    let place: JailPlace = word.parse().map_err(|_| gone())?;
    let proc = open_proc()?;
    let open = |name: &str| -> io::Result<OwnedFd> {
        let path = format!("{}/ns/{name}", place.pid());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(openat(&proc, path, flags, Mode::empty())?)
    };
    let users = open("user").map_err(step("open its user namespace"))?;
    let network = open("net").map_err(step("open its network namespace"))?;
    // Checked after they were opened: a process that has taken the ID since then has another start.
    if !place.is_alive() {
        return Err(gone());
    }
    let enter = |file: &OwnedFd, kind| -> io::Result<()> {
        Ok(move_into_link_name_space(file.as_fd(), Some(kind))?)
    };
    enter(&users, LinkNameSpaceType::User).map_err(step("enter its user namespace"))?;
    enter(&network, LinkNameSpaceType::Network).map_err(step("enter its network namespace"))?;
    lock::capabilities().map_err(step("drop capabilities"))
}

fn sockets(family: u8, count: u8) -> io::Result<Vec<OwnedFd>> {
    let family = match family {
        V4 => AddressFamily::INET,
        V6 => AddressFamily::INET6,
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    };
    let open = |_| {
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        Ok(socket)
    };
    (0..count).map(open).collect()
}

/// Answers the host, with sockets if there are any; a host that is gone needs no answer.
fn say(link: &UnixStream, errno: i32, files: &[OwnedFd]) {
    let mut answer = [0; ANSWER];
    answer[0] = u8::from(errno == 0);
    answer[1..].copy_from_slice(&errno.to_ne_bytes());
    let _ = send_files(link, &answer, files);
}
