//! Row 26 as far as the jail is concerned: with an outlet one address answers, and no other.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_sandbox::{
    Backend, CommandSpec, Config, Network, OUTLET_ADDRESS, Outlet, Sandbox, ServeFuture,
    StartError, Strength,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::runner::Test;
use crate::{Attempt, INSIDE, Seen, Stage, binary, refused, runtime};

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
];

const SHORT: Duration = Duration::from_millis(500);

pub(crate) const ATTEMPTS: &[Attempt] = &[
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
    ("host_sockets", |words| {
        let port: u16 = words[0].parse().unwrap();
        TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        refused("a local socket was made", UnixStream::connect(&words[1]))
    }),
];

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
