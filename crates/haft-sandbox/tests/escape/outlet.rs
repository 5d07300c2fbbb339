//! Row 26 as far as the jail is concerned: with an outlet one address answers, and no other.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_sandbox::{
    Backend, CommandSpec, Config, Network, OUTLET_ADDRESS, Outlet, Sandbox, ServeFuture,
    StartError, Strength,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, send, sendmsg, socket_with,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::runner::Test;
use crate::{Attempt, INSIDE, Outcome, Seen, Stage, binary, refused, runtime};

pub(crate) const TESTS: &[Test] = &[
    (
        "net_26_the_outlet_answers_and_nothing_else",
        only_the_outlet,
    ),
    ("net_26_a_command_never_holds_the_listener", no_listener),
    ("net_26_a_dead_outlet_is_no_network", dead),
    ("net_26_connections_are_bounded", bounded),
    (
        "net_26_an_outlet_needs_a_network_of_its_own",
        needs_namespaces,
    ),
    ("the_hosts_network_is_reached_only_by_name", host),
    (
        "net_26_every_address_leads_to_the_outlet_at_its_ports_alone",
        every_address,
    ),
    ("net_26_no_command_takes_an_outlets_port", || {
        holds(Network::Outlet(Naming::new()), "outlet_ports", &[]);
    }),
    ("net_26_names_are_answered_by_the_outlet_alone", || {
        holds(Network::Outlet(Naming::new()), "outlet_names", &[]);
    }),
    ("net_26_no_command_changes_the_routes", || {
        holds(Network::Outlet(Naming::new()), "outlet_routes", &[]);
    }),
    ("net_26_a_flood_of_questions_and_connections_ends", || {
        holds(Network::Outlet(Naming::new()), "outlet_flood", &["5000"]);
    }),
    (
        "use_a_jail_starts_while_another_has_descriptors_on_their_way",
        starts_beside_descriptors_on_their_way,
    ),
    ("net_26_without_ports_no_address_leads_anywhere", || {
        holds(Network::Outlet(Answering::new(true)), "no_address", &[]);
        holds(Network::None, "no_address", &[]);
    }),
];

/// The kernel counts descriptors on their way for all processes of a user together, and a jail's listeners take this way.
fn starts_beside_descriptors_on_their_way() {
    let stage = Stage::new();
    std::thread::scope(|scope| {
        let filled = scope.spawn(|| stage.attempt("on_their_way", &[]));
        while !stage.path().join("filled").exists() && !filled.is_finished() {
            std::thread::yield_now();
        }
        holds(Network::Outlet(Naming::new()), "outlet_routes", &[]);
        std::fs::write(stage.path().join("done"), "").unwrap();
        let seen = filled.join().unwrap();
        assert!(seen.exit.success(), "{}{}", seen.out, seen.err);
    });
}

/// Sends descriptors, as many as the kernel allows, and leaves them on their way until it is told to end.
fn on_their_way() -> Outcome {
    let (one, _other) = UnixStream::pair().unwrap();
    let files = [one.as_fd(); 200];
    let mut sent = 0;
    let refused = loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(200))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&files));
        match sendmsg(
            &one,
            &[IoSlice::new(b"x")],
            &mut control,
            SendFlags::NOSIGNAL,
        ) {
            Ok(_) => sent += files.len(),
            Err(error) => break error,
        }
    };
    std::fs::write("filled", "").unwrap();
    while !std::path::Path::new("done").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    if refused == rustix::io::Errno::TOOMANYREFS {
        Ok(())
    } else {
        Err(format!("{refused} after {sent}"))
    }
}

const SHORT: Duration = Duration::from_millis(500);
/// How long to wait for an answer on a busy machine.
const WAIT: Duration = Duration::from_secs(20);

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("on_their_way", |_| on_their_way()),
    ("outlet", |words| {
        let say = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(OUTLET_ADDRESS).map_err(say)?;
        stream.write_all(b"ping").map_err(say)?;
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).map_err(say)?;
        if &answer != b"pong" {
            return Err(format!("the outlet said {answer:?}"));
        }
        let port: u16 = words[0].parse().unwrap();
        for address in [
            SocketAddr::from(([127, 0, 0, 1], port)),
            ([0, 0, 0, 0, 0, 0, 0, 1], port).into(),
            ([127, 0, 0, 1], OUTLET_ADDRESS.port() + 1).into(),
            ([169, 254, 169, 254], 80).into(),
            ([93, 184, 216, 34], 443).into(),
            ([0x2606, 0x4700, 0, 0, 0, 0, 0, 0x1111], 443).into(),
        ] {
            refused(
                &address.to_string(),
                TcpStream::connect_timeout(&address, SHORT),
            )?;
        }
        for name in [
            "8.8.8.8:53",
            "169.254.169.254:53",
            "[2001:4860:4860::8888]:53",
        ] {
            let address: SocketAddr = name.parse().unwrap();
            let own = if address.is_ipv4() {
                "0.0.0.0:0"
            } else {
                "[::]:0"
            };
            let sent = UdpSocket::bind(own).and_then(|socket| socket.send_to(b"x", address));
            refused(name, sent)?;
        }
        Ok(())
    }),
    ("outlet_dead", |_| {
        let mut stream = TcpStream::connect(OUTLET_ADDRESS).map_err(|e| e.to_string())?;
        // Whether it sees a reset or the end of the stream, it reads nothing.
        match stream.read(&mut [0; 1]) {
            Ok(0) | Err(_) => Ok(()),
            Ok(_) => Err("somebody answered".into()),
        }
    }),
    ("outlet_many", |words| {
        let count: usize = words[0].parse().unwrap();
        let streams: Vec<_> = (0..count)
            .filter_map(|_| TcpStream::connect_timeout(&OUTLET_ADDRESS, SHORT).ok())
            .collect();
        println!("{}", streams.len());
        for mut stream in streams.iter().take(64) {
            stream
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            let read = stream.read_exact(&mut [0; 1]);
            read.map_err(|error| error.to_string())?;
        }
        Ok(())
    }),
    ("every_address", |words| {
        for port in [443, OUTLET_PORT] {
            for address in addresses() {
                let address = SocketAddr::new(address, port);
                let seen = text_of(address)?;
                if seen != address.to_string() {
                    return Err(format!("{address} arrived as {seen}"));
                }
            }
        }
        let port: u16 = words[0].parse().unwrap();
        for port in [port, 444, OUTLET_PORT + 1] {
            for address in addresses().chain([Ipv4Addr::LOCALHOST.into()]) {
                let address = SocketAddr::new(address, port);
                let connected = TcpStream::connect_timeout(&address, SHORT);
                refused(&address.to_string(), connected)?;
            }
        }
        // Nothing is there for QUIC, which is said at once.
        for address in addresses() {
            let own = if address.is_ipv4() {
                "0.0.0.0:0"
            } else {
                "[::]:0"
            };
            let socket = UdpSocket::bind(own).map_err(|error| error.to_string())?;
            let connected = socket.connect((address, 443));
            connected.map_err(|error| error.to_string())?;
            let sent = socket.send(b"x").and_then(|_| socket.recv(&mut [0; 9]));
            let kind = sent.map_err(|error| error.kind());
            if kind != Err(std::io::ErrorKind::ConnectionRefused) {
                return Err(format!("{address}: {kind:?}"));
            }
        }
        Ok(())
    }),
    ("outlet_ports", |_| {
        for place in ["0.0.0.0:443", "127.0.0.1:443", "127.0.0.1:53"] {
            refused(place, TcpListener::bind(place))?;
        }
        refused("udp", UdpSocket::bind("127.0.0.1:53"))?;
        for address in ["0.0.0.0", "127.0.0.1", "198.18.7.7", "93.184.216.34"] {
            let place = SocketAddr::new(address.parse().unwrap(), OUTLET_PORT);
            refused(address, TcpListener::bind(place))?;
        }
        // Its own servers at other ports are reached, and by its loopback's own addresses.
        for place in ["127.0.0.1:8080", "0.0.0.0:3000"] {
            let own = TcpListener::bind(place).map_err(|error| error.to_string())?;
            let address = own.local_addr().unwrap();
            TcpStream::connect(address).map_err(|error| error.to_string())?;
            own.accept().map_err(|error| error.to_string())?;
        }
        Ok(())
    }),
    ("outlet_names", |_| {
        let say = |error: std::io::Error| error.to_string();
        for address in ["127.0.0.1:53", "8.8.8.8:53", "169.254.169.254:53"] {
            let socket = UdpSocket::bind("0.0.0.0:0").map_err(say)?;
            socket.set_read_timeout(Some(WAIT)).unwrap();
            socket.connect(address).map_err(say)?;
            socket.send(b"abc").map_err(say)?;
            let mut answer = [0; 9];
            let length = socket.recv(&mut answer).map_err(say)?;
            if &answer[..length] != b"cba" {
                return Err(format!("{address} said {answer:?}"));
            }
            let seen = text_of(address.parse().unwrap())?;
            if seen != address {
                return Err(format!("{address} arrived as {seen}"));
            }
        }
        let settings = std::fs::read_to_string("/etc/resolv.conf").map_err(say)?;
        (settings == "nameserver 127.0.0.1\n")
            .then_some(())
            .ok_or(settings)
    }),
    ("outlet_routes", |_| {
        refused(
            "routes",
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1"),
        )?;
        let least = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
        refused("ports", std::fs::write(least, "0"))?;
        // Whatever such a socket may read, it adds no route and takes no address away.
        let made = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None,
        );
        let Ok(link) = made else { return Ok(()) };
        let body = [2, 0, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0, 8, 0, 4, 0, 1, 0, 0, 0];
        for kind in [24_u8, 25, 20, 21, 16, 17] {
            let head = [36, 0, 0, 0, kind, 0, 5, 4, 1, 0, 0, 0, 0, 0, 0, 0];
            let message = [&head[..], &body[..]].concat();
            send(&link, &message, SendFlags::empty()).map_err(|error| error.to_string())?;
            let mut answer = [0; 256];
            let received = recv(&link, &mut answer[..], RecvFlags::empty());
            received.map_err(|error| error.to_string())?;
            let error = i32::from_ne_bytes(answer[16..20].try_into().unwrap());
            if error != -libc::EPERM {
                return Err(format!("request {kind}: {error}"));
            }
        }
        Ok(())
    }),
    ("outlet_flood", |words| {
        let say = |error: std::io::Error| error.to_string();
        let count: usize = words[0].parse().unwrap();
        let socket = UdpSocket::bind("0.0.0.0:0").map_err(say)?;
        for _ in 0..count {
            // Answers that nobody reads fill this socket, and questions the other.
            let _ = socket.send_to(b"abc", "127.0.0.1:53");
            TcpStream::connect("93.184.216.34:443").map_err(say)?;
        }
        text_of("93.184.216.34:443".parse().unwrap()).map(|_| ())
    }),
    ("no_address", |_| {
        for address in addresses() {
            for port in [53, 80, 443] {
                let address = SocketAddr::new(address, port);
                let connected = TcpStream::connect_timeout(&address, SHORT);
                refused(&address.to_string(), connected)?;
            }
        }
        match std::fs::read_to_string("/etc/resolv.conf") {
            Ok(text) if text.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }),
    ("host_sockets", |words| {
        let port: u16 = words[0].parse().unwrap();
        TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        refused("a local socket was made", UnixStream::connect(&words[1]))
    }),
];

/// A port of the outlet where a command could listen.
const OUTLET_PORT: u16 = 8443;
/// Addresses of everywhere.
const ADDRESSES: [&str; 7] = [
    "93.184.216.34",
    "10.0.0.1",
    "169.254.169.254",
    "192.168.1.1",
    "198.18.7.7",
    "2606:4700::1111",
    "fd00:ec2::254",
];

/// Returns these addresses, of the protocols that the kernel has.
fn addresses() -> impl Iterator<Item = IpAddr> {
    let ipv6 = TcpListener::bind("[::1]:0").is_ok();
    let parsed = ADDRESSES.iter().map(|text| text.parse().unwrap());
    parsed.filter(move |address: &IpAddr| address.is_ipv4() || ipv6)
}

/// Returns what the server at this address sends.
fn text_of(address: SocketAddr) -> Result<String, String> {
    let say = |error: std::io::Error| format!("{address}: {error}");
    let mut stream = TcpStream::connect_timeout(&address, WAIT).map_err(say)?;
    stream.set_read_timeout(Some(WAIT)).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(say)?;
    Ok(text)
}

/// Takes connections to every address, and says which one; answers questions with their bytes in reverse.
#[derive(Debug)]
struct Naming;

impl Naming {
    fn new() -> Arc<Self> {
        Arc::new(Self)
    }
}

impl Outlet for Naming {
    fn serve(&self, mut connection: tokio::net::TcpStream) -> ServeFuture {
        Box::pin(async move {
            let at = connection.local_addr().unwrap();
            let at = SocketAddr::new(at.ip().to_canonical(), at.port());
            let _ = connection.write_all(at.to_string().as_bytes()).await;
        })
    }

    fn ports(&self) -> Vec<u16> {
        vec![80, 443, OUTLET_PORT]
    }

    fn answer_name(&self, question: &[u8]) -> Option<Vec<u8>> {
        Some(question.iter().rev().copied().collect())
    }
}

/// Answers `pong`, or nothing.
#[derive(Debug)]
struct Answering {
    answers: bool,
    now: Arc<AtomicUsize>,
    most: AtomicUsize,
}

impl Answering {
    fn new(answers: bool) -> Arc<Self> {
        let (now, most) = (Arc::default(), AtomicUsize::new(0));
        Arc::new(Self { answers, now, most })
    }
}

/// Counts down when its connection ends, however that happens.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Outlet for Answering {
    fn serve(&self, mut connection: tokio::net::TcpStream) -> ServeFuture {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let (answers, open) = (self.answers, Open(Arc::clone(&self.now)));
        Box::pin(async move {
            let _open = open;
            if answers {
                let _ = connection.write_all(b"pong").await;
                let _ = connection.read_to_end(&mut Vec::new()).await;
            }
        })
    }
}

fn attempt(network: Network, name: &str, words: &[&str]) -> Seen {
    let stage = Stage::new();
    let mut argv = vec![binary().display().to_string(), INSIDE.into(), name.into()];
    argv.extend(words.iter().map(ToString::to_string));
    let mut spec = CommandSpec::argv(argv, stage.path());
    spec.network = network;
    stage.run(spec)
}

fn holds(network: Network, name: &str, words: &[&str]) {
    let seen = attempt(network, name, words);
    assert!(seen.exit.success(), "{name}: {:?} {}", seen.exit, seen.err);
}

fn only_the_outlet() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    holds(Network::Outlet(Answering::new(true)), "outlet", &[&port]);
    listener.set_nonblocking(true).unwrap();
    assert!(
        listener.accept().is_err(),
        "the host's loopback was reached"
    );
}

fn no_listener() {
    holds(Network::Outlet(Answering::new(true)), "descriptors", &[]);
    holds(Network::Outlet(Naming::new()), "descriptors", &[]);
}

/// Also the host's own network stays as it is: no route of a jail is one of the host.
fn every_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let routes = || {
        let tables = [
            "/proc/net/route",
            "/proc/net/fib_trie",
            "/proc/net/ipv6_route",
        ];
        tables.map(|table| std::fs::read_to_string(table).unwrap_or_default())
    };
    let before = routes();
    holds(Network::Outlet(Naming::new()), "every_address", &[&port]);
    let [route, trie, _] = routes();
    assert_eq!([&route, &trie], [&before[0], &before[1]]);
    assert!(!trie.contains("198.18.0.1"), "{trie}");
    listener.set_nonblocking(true).unwrap();
    assert!(
        listener.accept().is_err(),
        "the host's loopback was reached"
    );
}

fn dead() {
    holds(Network::Outlet(Answering::new(false)), "outlet_dead", &[]);
    // Without an outlet nothing listens there.
    let seen = attempt(Network::None, "outlet_dead", &[]);
    assert!(seen.err.contains("refused"), "{}", seen.err);
}

fn bounded() {
    let outlet = Answering::new(true);
    let seen = attempt(Network::Outlet(outlet.clone()), "outlet_many", &["100"]);
    assert!(seen.exit.success(), "{:?} {}", seen.exit, seen.err);
    assert_eq!(seen.out.trim(), "100");
    assert_eq!(outlet.most.load(Ordering::SeqCst), 64);
    // They have ended with the command, or end with this runtime, which is dropped.
    assert_eq!(outlet.now.load(Ordering::SeqCst), 0);
}

fn needs_namespaces() {
    let folder = tempfile::tempdir().unwrap();
    for config in [
        Config {
            at_most: Some(Strength::LandlockSeccomp),
            require: Strength::LandlockSeccomp,
            ..Config::default()
        },
        Config {
            backend: Backend::Passthrough,
            require: haft_sandbox::Strength::None,
            ..Config::default()
        },
    ] {
        let mut spec = CommandSpec::line("touch ran", folder.path());
        spec.network = Network::Outlet(Answering::new(true));
        let started = runtime().block_on(Sandbox::new(config).start(spec));
        assert!(
            matches!(started, Err(StartError::NoOutlet(_))),
            "{started:?}"
        );
    }
    assert!(!folder.path().join("ran").exists());
}

/// With and without its own root: without it, the host's socket files are in reach, so no local socket can be created.
fn host() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let outside = tempfile::tempdir().unwrap();
    let socket = outside.path().join("s");
    let _local = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let words = [port.as_str(), socket.to_str().unwrap()];
    holds(Network::Host, "host_sockets", &words);
    let bare = Sandbox::new(Config {
        at_most: Some(Strength::LandlockSeccomp),
        require: Strength::LandlockSeccomp,
        ..Config::default()
    });
    let stage = Stage::new();
    for (network, reached) in [(Network::Host, true), (Network::None, false)] {
        let mut argv = vec![binary().display().to_string(), INSIDE.into()];
        argv.push("host_sockets".into());
        argv.extend(words.iter().map(ToString::to_string));
        let mut spec = CommandSpec::argv(argv, stage.path()).with_mounts(stage.mounts.clone());
        spec.network = network;
        let exit = runtime().block_on(async { bare.start(spec).await.unwrap().wait().await });
        assert_eq!(exit.success(), reached, "{exit:?}");
    }
}
