//! A loopback that is shared: the host reaches in by sockets of its own, and the command gains nothing by that.
#![expect(unsafe_code, reason = "attempts are raw system calls")]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use haft_sandbox::{CommandSpec, JailPlace, Mounts, RunningCommand, SharedLoopback};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::runner::Test;
use crate::{Attempt, INSIDE, binary, fails_with, jail, runtime};

pub(crate) const TESTS: &[Test] = &[
    (
        "sv_4_a_command_gains_nothing_by_a_shared_loopback",
        nothing_gained,
    ),
    ("sv_4_a_way_in_leads_into_one_jail_while_it_runs", one_jail),
    (
        "a_loopback_that_is_not_shared_has_no_door",
        only_where_shared,
    ),
];

/// Where the host listens from the start, and later.
const FIRST: u16 = 8765;
const LATER: u16 = 8766;
/// How long to wait on a busy machine.
const WAIT: Duration = Duration::from_secs(30);

fn at(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("loopback_attack", |_| {
        let say = |error: std::io::Error| error.to_string();
        for port in [FIRST, LATER] {
            let end = Instant::now() + WAIT;
            let mut stream = loop {
                match TcpStream::connect(at(port)) {
                    Ok(stream) => break stream,
                    Err(error) if Instant::now() > end => return Err(format!("{port}: {error}")),
                    Err(_) => std::thread::sleep(Duration::from_millis(5)),
                }
            };
            let mut said = [0; 2];
            stream.read_exact(&mut said).map_err(say)?;
            match TcpListener::bind(at(port)) {
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                other => return Err(format!("the host's port was taken: {other:?}")),
            }
        }
        // The process that opens sockets for the host is none of the jail's.
        let names = std::fs::read_dir("/proc").map_err(say)?;
        let names = names.flatten().map(|entry| entry.file_name());
        let numbers: Vec<i32> = names
            .filter_map(|name| name.to_str()?.parse().ok())
            .collect();
        let own = std::process::id().cast_signed();
        if numbers.iter().any(|number| ![1, own].contains(number)) {
            return Err(format!("other processes: {numbers:?}"));
        }
        for kind in ["net", "user"] {
            let file = std::fs::File::open(format!("/proc/1/ns/{kind}"));
            let Ok(file) = file else { continue };
            // SAFETY: takes numbers only.
            let done = unsafe { libc::setns(file.as_raw_fd(), 0) };
            fails_with(kind, libc::EPERM, done.into())?;
        }
        let socket = TcpListener::bind(at(0)).map_err(say)?;
        let mark: libc::c_int = 1;
        let length = libc::socklen_t::try_from(size_of_val(&mark)).unwrap();
        // SAFETY: the pointer leads to a number that outlives the call, and its length is passed with it.
        let done = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MARK,
                (&raw const mark).cast(),
                length,
            )
        };
        fails_with("mark", libc::EPERM, done.into())
    }),
    ("loopback_serve", |words| {
        let say = |error: std::io::Error| error.to_string();
        let listener = TcpListener::bind(at(FIRST)).map_err(say)?;
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().map_err(say)?;
            stream.write_all(words[0].as_bytes()).map_err(say)?;
        }
        Ok(())
    }),
];

async fn start(name: &str, words: &[&str], shared: Option<SharedLoopback>) -> RunningCommand {
    let mut argv = vec![binary().display().to_string(), INSIDE.into(), name.into()];
    argv.extend(words.iter().map(ToString::to_string));
    let mut spec = CommandSpec::argv(argv, "/tmp").with_timeout(Duration::from_secs(60));
    spec.mounts = Mounts::default();
    spec.mounts.read_only.push(binary().to_owned());
    spec.loopback = shared;
    jail().start(spec).await.unwrap()
}

fn nothing_gained() {
    runtime().block_on(async {
        let shared = SharedLoopback { ports: vec![FIRST] };
        let running = start("loopback_attack", &[], Some(shared)).await;
        let loopback = running.loopback().unwrap();
        let first = loopback.take_listeners();
        assert!(!first.is_empty() && loopback.take_listeners().is_empty());
        let first: Vec<_> = first
            .into_iter()
            .map(|listener| {
                listener.set_nonblocking(true).unwrap();
                tokio::net::TcpListener::from_std(listener).unwrap()
            })
            .collect();
        let by_v4 = first
            .iter()
            .find(|one| one.local_addr().unwrap() == at(FIRST));
        let (mut stream, _) = by_v4.unwrap().accept().await.unwrap();
        stream.write_all(b"hi").await.unwrap();
        let door = jail().enter_loopback(loopback.place()).await.unwrap();
        let later = door.listen(at(LATER)).await.unwrap();
        let (mut stream, _) = later.accept().await.unwrap();
        stream.write_all(b"hi").await.unwrap();
        let ports = loopback.listening().unwrap();
        let ports: Vec<u16> = ports.iter().map(|port| port.port).collect();
        assert_eq!(ports, [FIRST, LATER]);
        let exit = running.wait().await;
        let err = running.stderr().text(0, 4096).text;
        assert!(exit.success(), "{exit:?} {err}");
    });
}

fn one_jail() {
    runtime().block_on(async {
        let shared = || Some(SharedLoopback::default());
        let one = start("loopback_serve", &["one"], shared()).await;
        let two = start("loopback_serve", &["two"], shared()).await;
        let doors = [&one, &two].map(|running| running.loopback().unwrap().place());
        for (jailed, place, says) in [(&one, doors[0], "one"), (&two, doors[1], "two")] {
            let end = Instant::now() + WAIT;
            while jailed.loopback().unwrap().listening().unwrap().is_empty() {
                assert!(Instant::now() < end);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let door = jail().enter_loopback(place).await.unwrap();
            for _ in 0..2 {
                let mut said = String::new();
                let mut stream = door.connect(at(FIRST)).await.unwrap();
                stream.read_to_string(&mut said).await.unwrap();
                assert_eq!(said, says);
            }
            assert!(jailed.wait().await.success());
            // The network lives as long as the door; nothing listens in it.
            assert!(door.connect(at(FIRST)).await.is_err());
            assert!(!place.is_alive());
            assert!(jail().enter_loopback(place).await.is_err());
        }
        // No other process is taken for a jail: not this one, nor one that has the number of an ended one.
        let own = JailPlace::of_this_process().unwrap();
        assert!(jail().enter_loopback(own).await.is_err());
        let text = own.to_string();
        let (pid, rest) = text.split_once('-').unwrap();
        let (start, namespace) = rest.split_once('-').unwrap();
        let other = start.parse::<u64>().unwrap() + 1;
        let other: JailPlace = format!("{pid}-{other}-{namespace}").parse().unwrap();
        assert!(jail().enter_loopback(other).await.is_err());
    });
}

fn only_where_shared() {
    runtime().block_on(async {
        let running = start("descriptors", &[], None).await;
        assert!(running.loopback().is_none());
        assert!(running.wait().await.success());
        // The command has nothing of what the jail handed over.
        let shared = SharedLoopback { ports: vec![FIRST] };
        let running = start("descriptors", &[], Some(shared)).await;
        let exit = running.wait().await;
        let err = running.stderr().text(0, 4096).text;
        assert!(exit.success(), "{err}");
    });
}
