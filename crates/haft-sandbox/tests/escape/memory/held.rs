//! Memory that the kernel holds for a process and that is not in the process itself.

use std::fs::File;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};

use super::{MIB, WANTED, child, map, refused};
use crate::routes;

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Fewer bytes than a connection takes if there is memory.
const LEAST_FILLED: usize = 64 << 10;

/// Holds the wanted amount in this way; returns whether the way exists.
pub(super) fn hold(kind: &str) -> bool {
    match kind {
        "AJ2 local sockets" => local_sockets(false),
        "AJ2 local sockets whose senders are closed" => local_sockets(true),
        "AJ2 internet sockets" => internet_sockets(),
        "AJ2 message queues" => message_queues(),
        "AJ2 semaphores" => semaphores(),
        "AJ2 page tables" => page_tables(),
        "AJ2 names in tmp" => names(),
        "AJ3 orphans" => orphans(),
        "AJ3 heirs" => heirs(),
        "AJ7 connections that nobody accepts" => unaccepted(),
        "AJ7 datagrams behind an empty one" => datagrams(),
        "AJ7 empty messages whose senders are closed" => empty_messages(),
        "AJ11 empty sockets" => empty_sockets(),
        "AJ7 undoing of semaphores" => undoing(),
        "T4 netlink sockets" => netlink_sockets(),
        _ => return false,
    }
    true
}

/// Fills the send buffer until no more is accepted.
fn fill(mut to: impl Write, part: &[u8]) -> usize {
    let mut sum = 0;
    while let Ok(sent @ 1..) = to.write(part) {
        sum += sent;
    }
    sum
}

fn local_sockets(closed: bool) {
    // The shorter the messages, the smaller their part of the memory that they take.
    let part = vec![1; if closed { 1 } else { MIB }];
    let mut sum = 0;
    while sum < WANTED * MIB {
        let Ok((one, other)) = UnixStream::pair() else {
            refused();
        };
        let _ = set_socket_send_buffer_size(one.as_fd(), 1 << 30);
        one.set_nonblocking(true).unwrap_or_else(|_| refused());
        sum += fill(&one, &part) * if closed { 768 } else { 1 };
        if !closed {
            std::mem::forget(one);
        }
        std::mem::forget(other);
    }
}

fn internet_sockets() {
    let part = vec![1; MIB];
    let Ok(listener) = TcpListener::bind("127.0.0.1:0") else {
        refused();
    };
    let Ok(address) = listener.local_addr() else {
        refused();
    };
    let mut sum = 0;
    while sum < WANTED * MIB {
        let Ok(one) = TcpStream::connect_timeout(&address, PATIENCE) else {
            refused();
        };
        let before = sum;
        for end in [one, accepted(&listener)] {
            end.set_nonblocking(true).unwrap_or_else(|_| refused());
            sum += fill(&end, &part);
            std::mem::forget(end);
        }
        if sum - before < LEAST_FILLED {
            // If no memory is left, the kernel accepts next to nothing.
            refused();
        }
    }
}

fn accepted(listener: &TcpListener) -> TcpStream {
    let mut wait = [PollFd::new(listener, PollFlags::IN)];
    let most = Timespec::try_from(PATIENCE).unwrap_or_else(|_| refused());
    let ready = poll(&mut wait, Some(&most));
    match (ready, listener.set_nonblocking(true), listener.accept()) {
        (Ok(1..), Ok(()), Ok((end, _))) => end,
        _ => refused(),
    }
}

/// Each message takes far more than its one byte.
fn message_queues() {
    let message = [1_i64, 0];
    for _ in 0..WANTED {
        // SAFETY: takes numbers.
        let queue = unsafe { libc::msgget(libc::IPC_PRIVATE, 0o600) };
        if queue < 0 {
            refused();
        }
        // SAFETY: the message is longer than the part that is read: its kind and one byte.
        while unsafe { libc::msgsnd(queue, message.as_ptr().cast(), 1, libc::IPC_NOWAIT) } == 0 {}
    }
}

fn semaphores() {
    const SET: i32 = 32_000;
    for _ in 0..WANTED * MIB / (SET as usize * 64) {
        // SAFETY: takes numbers.
        if unsafe { libc::semget(libc::IPC_PRIVATE, SET, 0o600) } < 0 {
            refused();
        }
    }
}

/// A page that was only read takes no memory of its own, but one page table page per 2 MiB.
fn page_tables() {
    const SPAN: usize = 8 << 30;
    for _ in 0..WANTED * MIB / (SPAN / 512) {
        child(|| {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: a new mapping that nothing else uses.
            let at =
                unsafe { libc::mmap(std::ptr::null_mut(), SPAN, libc::PROT_READ, flags, -1, 0) };
            if at == libc::MAP_FAILED {
                refused();
            }
            // SAFETY: created above, with this length.
            unsafe { libc::madvise(at, SPAN, libc::MADV_NOHUGEPAGE) };
            for offset in (0..SPAN).step_by(2 * MIB) {
                // SAFETY: lies in the mapping.
                unsafe { std::ptr::read_volatile(at.cast::<u8>().add(offset)) };
            }
            std::thread::sleep(Duration::from_secs(120));
        });
    }
}

/// Processes whose parents have exited.
fn orphans() {
    for _ in 0..WANTED / 64 {
        child(|| {
            child(|| {
                map(libc::MAP_PRIVATE, 64 * MIB);
                std::thread::sleep(Duration::from_secs(120));
            });
        });
    }
}

fn names() {
    for number in 0.. {
        if File::create(format!("/tmp/{number}")).is_err() {
            return;
        }
    }
}

/// The sockets' creators have exited, and no process has accepted them yet.
fn unaccepted() {
    let part = vec![1; MIB];
    let mut sum = 0;
    for number in 0.. {
        let name = format!("/tmp/{number}");
        let Ok(listener) = UnixListener::bind(&name) else {
            refused();
        };
        for _ in 0..100 {
            let Ok(one) = UnixStream::connect(&name) else {
                refused();
            };
            one.set_nonblocking(true).unwrap_or_else(|_| refused());
            sum += fill(&one, &part);
        }
        std::mem::forget(listener);
        if sum > WANTED * MIB {
            return;
        }
    }
}

/// The kernel only reports the length of the first.
fn datagrams() {
    let part = vec![1; 128 << 10];
    let mut sum = 0;
    for number in 0.. {
        let name = format!("/tmp/{number}");
        let Ok(to) = UnixDatagram::bind(&name) else {
            refused();
        };
        for length in std::iter::once(0).chain([part.len(); 10]) {
            let Ok(one) = UnixDatagram::unbound() else {
                refused();
            };
            if one.send_to(&part[..length], &name).is_err() {
                refused();
            }
            sum += length;
        }
        std::mem::forget(to);
        if sum > WANTED * MIB {
            return;
        }
    }
}

fn empty_messages() {
    let flags = SocketFlags::NONBLOCK;
    let mut sum = 0;
    while sum < WANTED * MIB {
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let Ok((one, other)) = pair else {
            refused();
        };
        let _ = set_socket_send_buffer_size(&one, 1 << 30);
        while send(&one, &[], SendFlags::empty()).is_ok() {
            sum += 768;
        }
        std::mem::forget(other);
    }
}

/// The kernel sends each request back with its error, and no socket reads it.
fn netlink_sockets() {
    const RECEIVED: usize = 128 << 10;
    let unknown = routes::request(u16::MAX, 5, 8 << 10);
    for _ in 0..=WANTED * MIB / RECEIVED / 3_000 {
        child(|| {
            for _ in 0..3_000 {
                let Ok(mut socket) = routes::netlink() else {
                    refused();
                };
                for _ in 0..RECEIVED / unknown.len() {
                    let _ = socket.write_all(&unknown);
                }
                std::mem::forget(socket);
            }
            std::thread::sleep(Duration::from_secs(120));
        });
    }
}

/// Each process has its own undo list for a set.
fn undoing() {
    const SET: i32 = 32_000;
    const SETS: usize = 40;
    let sets: Vec<_> = (0..SETS)
        // SAFETY: takes numbers.
        .map(|_| unsafe { libc::semget(libc::IPC_PRIVATE, SET, 0o600) })
        .collect();
    for _ in 0..WANTED * MIB / (SETS * SET as usize * 2) {
        child(|| {
            for set in &sets {
                let mut one = libc::sembuf {
                    sem_num: 0,
                    sem_op: 1,
                    sem_flg: i16::try_from(libc::SEM_UNDO).unwrap_or_else(|_| refused()),
                };
                // SAFETY: one operation, which outlives the call.
                if unsafe { libc::semop(*set, &raw mut one, 1) } < 0 {
                    refused();
                }
            }
            std::thread::sleep(Duration::from_secs(120));
        });
    }
}

/// Chains of processes, each of which passes everything it holds to its child and exits.
fn heirs() {
    for _ in 0..WANTED / 32 {
        child(|| {
            map(libc::MAP_PRIVATE, 32 * MIB);
            loop {
                // SAFETY: one thread.
                match unsafe { libc::fork() } {
                    // If there are too many processes at the moment, it keeps what it has and tries again.
                    0 | -1 => {}
                    // SAFETY: exits.
                    _ => unsafe { libc::_exit(0) },
                }
            }
        });
    }
}

/// Each takes the memory of the kernel's own data about it.
fn empty_sockets() {
    for _ in 0..WANTED * MIB / (2 << 10) / 4_000 {
        child(|| {
            for _ in 0..4_000 {
                // SAFETY: takes numbers.
                if unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) } < 0 {
                    refused();
                }
            }
            std::thread::sleep(Duration::from_secs(120));
        });
    }
}
