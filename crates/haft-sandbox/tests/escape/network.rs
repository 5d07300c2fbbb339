//! Rows 17 to 25: any network but the jail's own empty one.
#![expect(unsafe_code, reason = "attempts are raw system calls")]

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram, UnixListener, UnixStream};
use std::time::Duration;

use crate::runner::Test;
use crate::{Attempt, Stage, fails_with, refused, stopped};

pub(crate) const TESTS: &[Test] = &[
    (
        "net_17_the_hosts_loopback_is_not_reached",
        the_hosts_loopback,
    ),
    ("net_18_nothing_goes_out", || stopped("out", &[])),
    ("net_19_no_name_is_resolved", || stopped("names", &[])),
    (
        "net_20_no_abstract_socket_of_the_host_is_reached",
        abstract_sockets,
    ),
    ("net_21_no_socket_file_of_the_host_is_reached", || {
        socket_files(&["s", "deep/s"]);
    }),
    (
        "net_aj9_nor_one_in_a_folder_that_is_only_guarded_against_changes",
        || {
            let objects = [
                ".git/objects/s",
                ".git/modules/a/objects/info/s",
                ".claude/objects/ab/s",
            ];
            socket_files(&[&[".git/s", ".git/deep/s", "deep/.git/s"][..], &objects].concat());
        },
    ),
    ("net_22_no_other_kind_of_socket_is_made", || {
        stopped("families", &[]);
    }),
    ("net_aj4_no_other_protocol_is_spoken", || {
        stopped("protocols", &[]);
    }),
    ("net_aj10_no_protocol_is_put_on_a_socket", || {
        stopped("upper_protocols", &[]);
    }),
    ("net_23_no_ring_is_made", || stopped("rings", &[])),
    ("net_24_no_namespace_is_joined", || stopped("setns", &[])),
    ("net_25_no_metadata_address_answers", || {
        stopped("metadata", &[]);
    }),
    ("net_own_loopback_works", own_loopback),
];

const TCP_ULP: i32 = 31;
const UDP_ENCAP: i32 = 100;
const SHORT: Duration = Duration::from_millis(500);

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("loopback", |words| {
        let port: u16 = words[0].parse().unwrap();
        for address in [
            SocketAddr::from(([127, 0, 0, 1], port)),
            ([0, 0, 0, 0], port).into(),
        ] {
            refused("connected", TcpStream::connect_timeout(&address, SHORT))?;
        }
        Ok(())
    }),
    ("out", |_| {
        for address in [
            "8.8.8.8:53",
            "1.1.1.1:443",
            "10.0.0.1:80",
            "[2001:4860:4860::8888]:53",
        ] {
            let address: SocketAddr = address.parse().unwrap();
            refused("connected", TcpStream::connect_timeout(&address, SHORT))?;
            let own = if address.is_ipv4() {
                "0.0.0.0:0"
            } else {
                "[::]:0"
            };
            let sent = UdpSocket::bind(own).and_then(|socket| socket.send_to(b"x", address));
            refused("sent", sent)?;
        }
        for (family, protocol) in [
            (libc::AF_INET, 1),
            (libc::AF_INET, 255),
            (libc::AF_INET6, 58),
        ] {
            // SAFETY: takes numbers only.
            let raw = unsafe { libc::socket(family, libc::SOCK_RAW, protocol) };
            fails_with("raw", libc::EPERM, raw.into())?;
        }
        Ok(())
    }),
    ("names", |_| {
        refused("resolved", ("example.com", 443).to_socket_addrs())
    }),
    ("abstract", |words| {
        let address = UnixAddr::from_abstract_name(&words[0]).unwrap();
        refused("connected", UnixStream::connect_addr(&address))?;
        let socket = UnixDatagram::unbound().unwrap();
        refused("sent", socket.send_to_addr(b"x", &address))
    }),
    ("socket_files", |words| {
        let known = [
            "/var/run/docker.sock",
            "/run/docker.sock",
            "/run/dbus/system_bus_socket",
        ];
        let mut all = words.iter().map(String::as_str).chain(known);
        all.try_for_each(|path| refused(path, UnixStream::connect(path)))
    }),
    ("families", |_| {
        for (name, family, kind) in [
            ("packet", libc::AF_PACKET, libc::SOCK_RAW),
            ("vsock", libc::AF_VSOCK, libc::SOCK_STREAM),
            ("alg", libc::AF_ALG, libc::SOCK_SEQPACKET),
            ("bluetooth", libc::AF_BLUETOOTH, libc::SOCK_RAW),
            ("can", libc::AF_CAN, libc::SOCK_RAW),
            ("tipc", libc::AF_TIPC, libc::SOCK_STREAM),
            ("xdp", libc::AF_XDP, libc::SOCK_RAW),
            ("key", libc::AF_KEY, libc::SOCK_RAW),
        ] {
            // SAFETY: takes numbers only.
            let made = unsafe { libc::socket(family, kind, 0) };
            fails_with(name, libc::EPERM, made.into())?;
        }
        Ok(())
    }),
    ("protocols", |_| {
        for family in [libc::AF_INET, libc::AF_INET6] {
            for (name, kind, protocol) in [
                ("mptcp", libc::SOCK_STREAM, libc::IPPROTO_MPTCP),
                ("sctp", libc::SOCK_STREAM, libc::IPPROTO_SCTP),
                ("sctp packets", libc::SOCK_SEQPACKET, libc::IPPROTO_SCTP),
                ("dccp", libc::SOCK_DCCP, libc::IPPROTO_DCCP),
                ("udplite", libc::SOCK_DGRAM, libc::IPPROTO_UDPLITE),
                ("l2tp", libc::SOCK_DGRAM, 115),
                ("smc", libc::SOCK_STREAM, 256),
            ] {
                // SAFETY: takes numbers only.
                let made = unsafe { libc::socket(family, kind, protocol) };
                fails_with(name, libc::EPERM, made.into())?;
            }
        }
        Ok(())
    }),
    ("upper_protocols", |_| {
        // SAFETY: takes numbers only.
        let stream = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
        // SAFETY: as above.
        let datagrams = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0) };
        let l2tp = 3_i32.to_ne_bytes();
        for (name, socket, level, option, value) in [
            ("tls", stream, libc::SOL_TCP, TCP_ULP, &b"tls\0"[..]),
            ("smc", stream, libc::SOL_TCP, TCP_ULP, b"smc\0"),
            ("l2tp", datagrams, libc::SOL_UDP, UDP_ENCAP, &l2tp),
        ] {
            let length = libc::socklen_t::try_from(value.len()).unwrap();
            // SAFETY: the value is as long as stated and outlives the call.
            let set =
                unsafe { libc::setsockopt(socket, level, option, value.as_ptr().cast(), length) };
            fails_with(name, libc::EPERM, set.into())?;
        }
        Ok(())
    }),
    ("rings", |_| {
        let mut parameters = [0_u8; 256];
        // SAFETY: the parameters are larger than the kernel's structure.
        let made = unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) };
        fails_with("io_uring", libc::EPERM, made)
    }),
    ("setns", |_| {
        for kind in ["net", "mnt", "user", "pid"] {
            let Ok(own) = std::fs::File::open(format!("/proc/self/ns/{kind}")) else {
                continue;
            };
            let fd = std::os::fd::AsRawFd::as_raw_fd(&own);
            // SAFETY: takes an open descriptor and a number.
            fails_with(kind, libc::EPERM, unsafe { libc::setns(fd, 0) }.into())?;
        }
        Ok(())
    }),
    ("metadata", |_| {
        let address: SocketAddr = "169.254.169.254:80".parse().unwrap();
        refused("connected", TcpStream::connect_timeout(&address, SHORT))
    }),
    ("own", |_| {
        let say = |error: std::io::Error| error.to_string();
        let listener = TcpListener::bind("127.0.0.1:0").map_err(say)?;
        TcpStream::connect(listener.local_addr().map_err(say)?).map_err(say)?;
        listener.accept().map_err(say)?;
        Ok(())
    }),
];

fn the_hosts_loopback() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    stopped("loopback", &[&port.to_string()]);
    nobody_came(
        &listener
            .set_nonblocking(true)
            .and_then(|()| listener.accept()),
    );
}

fn abstract_sockets() {
    let name = format!("haft-escape-{}", std::process::id());
    let address = UnixAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    stopped("abstract", &[&name]);
    nobody_came(
        &listener
            .set_nonblocking(true)
            .and_then(|()| listener.accept()),
    );
}

/// One in the host's temporary folder, one in the workspace itself.
fn socket_files(names: &[&str]) {
    let outside = tempfile::tempdir().unwrap();
    let stage = Stage::new();
    let inside = names.iter().map(|name| stage.path().join(name));
    let paths: Vec<_> = inside.chain([outside.path().join("s")]).collect();
    let bind = |path: &std::path::PathBuf| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        UnixListener::bind(path).unwrap()
    };
    let listeners: Vec<_> = paths.iter().map(bind).collect();
    let words: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let seen = stage.attempt("socket_files", &words);
    assert!(seen.exit.success(), "{}", seen.err);
    for listener in listeners {
        nobody_came(
            &listener
                .set_nonblocking(true)
                .and_then(|()| listener.accept()),
        );
    }
}

/// What a build's own tests need, and no other process shares.
fn own_loopback() {
    stopped("own", &[]);
}

fn nobody_came<T>(accepted: &std::io::Result<T>) {
    let kind = accepted.as_ref().err().map(std::io::Error::kind);
    assert_eq!(kind, Some(ErrorKind::WouldBlock));
}
