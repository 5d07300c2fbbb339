//! Unix sockets of the host's services: commands reach those of the settings once each was allowed, by haft, and none that has power.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use haft::approval::Decision;
use haft::permission::Effect;
use haft::policy::{Policy, Profile, RuleSet};
use haft::spec::Risk;
use haft_builtins::command::{CommandNetwork, CommandSurroundings};
use haft_builtins::host_sockets::HostSockets;
use haft_builtins::proxy::{AllowList, Proxy};
use haft_sandbox::Sandbox;

use crate::agent::with_people_at;
use crate::ask::{allowing, with_people, yes};
use crate::{Scene, Seen};

pub(crate) async fn all(sandbox: &Sandbox) {
    a_socket_is_asked_about_once_for_a_command(sandbox).await;
    only_a_rule_that_names_a_socket_opens_it(sandbox).await;
    a_socket_carries_bytes_alone(sandbox).await;
    a_socket_of_a_program_with_power_is_refused(sandbox).await;
    redis_is_reached_over_its_socket(sandbox).await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's services are programs of their own"
)]
fn program(name: &str) -> Command {
    Command::new(name)
}

/// A service that answers each line with what it got: the text, and the number of descriptors.
const ECHO: &str = "
import socket, sys, threading
if len(sys.argv) > 2: open('/proc/self/comm', 'w').write(sys.argv[2])
def serve(c):
    while True:
        text, fds, _, _ = socket.recv_fds(c, 100, 4)
        if not text: return c.close()
        c.sendall(b'%s %d\\n' % (text.strip(), len(fds)))
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
";

/// A folder of the host with the sockets of services.
struct Services {
    folder: tempfile::TempDir,
    running: Vec<Child>,
}

impl Services {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            running: Vec::new(),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn rule(&self, name: &str) -> String {
        format!("Network(unix:{})", self.at(name).display())
    }

    /// Starts a service, as a program of this name if there is one.
    fn with_echo(self, name: &str, called: Option<&str>) -> Self {
        let mut run = program("python3");
        run.args(["-c", ECHO]).arg(self.at(name)).args(called);
        self.with(name, run)
    }

    fn with(mut self, name: &str, mut run: Command) -> Self {
        let started = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.running.push(started.unwrap());
        while std::os::unix::net::UnixStream::connect(self.at(name)).is_err() {
            std::thread::yield_now();
        }
        self
    }

    fn scene(&self, sandbox: &Sandbox, rules: RuleSet) -> Scene {
        let policy = Policy::builder(Profile::Trusted).rules(rules);
        let around = CommandSurroundings {
            sockets: HostSockets::new(vec![self.folder.path().to_owned()]),
            ..CommandSurroundings::default()
        };
        let network = CommandNetwork::ask(Proxy::new(AllowList::default()));
        let scene = Scene::surrounded(sandbox, network, policy.build().unwrap(), around);
        let say = format!("AT = '{}/'\n{SAY}", self.at("").display());
        fs::write(scene.root().join("say.py"), say).unwrap();
        scene
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        for one in &mut self.running {
            // It is a child of this test.
            let _ = one.kill();
            let _ = one.wait();
        }
    }
}

/// Says lines to a service, and prints the answers.
const SAY: &str = "
import os, socket
def link(name):
    s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect(AT + name); return s
def say(name, text='hello'):
    try:
        s = link(name); s.sendall(text.encode() + b'\\n')
        return s.recv(100).decode().strip() or 'closed'
    except OSError: return 'closed'
";

fn stdout(seen: &Seen) -> &str {
    seen.data["stdout"].as_str().unwrap_or_default().trim()
}

async fn script(scene: &Scene, script: &str) -> Seen {
    fs::write(
        scene.root().join("run.py"),
        format!("from say import *\n{script}"),
    )
    .unwrap();
    scene.line("python3 -B run.py").await
}

async fn a_socket_is_asked_about_once_for_a_command(sandbox: &Sandbox) {
    let services = Services::new().with_echo("db.sock", None);
    for (decided, expect) in [
        (Decision::deny("ann", "test"), "closed closed closed"),
        (yes(), "hello 0 hello 0 hello 0"),
    ] {
        let (scene, mut requests) = with_people(services.scene(sandbox, RuleSet::default()));
        let people = async {
            let pending = requests.next().await.unwrap();
            let request = pending.request();
            assert_eq!(request.tool.as_str(), "connect");
            let permission = &request.snapshot.permissions[0];
            let Effect::Connect { url, host, .. } = &permission.effect else {
                panic!("{permission:?}");
            };
            let expect = format!("unix:{}", services.at("db.sock").display());
            assert_eq!((&**url, &**host), (&*expect, &*expect));
            assert_eq!(permission.risk, Risk::Critical);
            pending.decide(decided);
        };
        let seen = with_people_at(
            script(&scene, "print(*(say('db.sock') for _ in range(3)))"),
            people,
        )
        .await;
        assert_eq!(stdout(&seen), expect, "{}", seen.shown);
        let noted = if expect.contains('0') {
            seen.data["network_reached"].to_string()
        } else {
            seen.data["network_refused"].to_string()
        };
        assert!(noted.contains("unix:/"), "{}", seen.shown);
    }
}

async fn only_a_rule_that_names_a_socket_opens_it(sandbox: &Sandbox) {
    let services = Services::new()
        .with_echo("a.sock", None)
        .with_echo("b.sock", None);
    let both = "print(say('a.sock'), say('b.sock'), os.stat(AT + 'a.sock').st_ino)";
    let own = fs::metadata(services.at("a.sock")).unwrap();
    let own = std::os::unix::fs::MetadataExt::ino(&own).to_string();
    for (rules, expect) in [
        (vec![services.rule("a.sock")], "hello 0 closed"),
        (
            vec![services.rule("a.sock"), services.rule("b.sock")],
            "hello 0 hello 0",
        ),
        // Nobody can be asked.
        (vec!["Network".to_owned()], "closed closed"),
        (vec!["Network(*)".to_owned()], "closed closed"),
        (vec!["Network(localhost:5432)".to_owned()], "closed closed"),
    ] {
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let scene = services.scene(sandbox, allowing(&rules));
        let seen = script(&scene, both).await;
        let (answers, ino) = stdout(&seen).rsplit_once(' ').unwrap();
        assert_eq!(answers, expect, "{rules:?}: {}", seen.shown);
        // It is not the host's.
        assert_ne!(ino, own);
    }
    let mut denied = allowing(&["Network", &services.rule("a.sock")]);
    denied.deny = vec!["Network(*)".into()];
    let seen = script(&services.scene(sandbox, denied), both).await;
    assert!(stdout(&seen).starts_with("closed closed"), "{}", seen.shown);
}

async fn a_socket_carries_bytes_alone(sandbox: &Sandbox) {
    let services = Services::new().with_echo("a.sock", None);
    let scene = services.scene(sandbox, allowing(&[&services.rule("a.sock")]));
    let send =
        "s = link('a.sock'); socket.send_fds(s, [b'x'], [0, 1]); print(s.recv(100).decode())";
    let seen = script(&scene, send).await;
    assert_eq!(stdout(&seen), "x 0", "{}", seen.shown);
    let many = "all = [link('a.sock') for _ in range(50)]\nfor s in all: s.sendall(b'y')\nprint(sum(s.recv(9) == b'y 0\\n' for s in all))";
    let seen = script(&scene, many).await;
    assert_eq!(stdout(&seen), "50", "{}", seen.shown);
}

async fn a_socket_of_a_program_with_power_is_refused(sandbox: &Sandbox) {
    for (called, expect) in [
        ("dockerd", "another runtime of containers"),
        ("systemd", "one of the system's own services"),
        ("gpg-agent", "one of an agent or a keyring"),
        ("tmux: server", "one of a terminal"),
    ] {
        let services = Services::new().with_echo("x.sock", Some(called));
        let scene = services.scene(sandbox, allowing(&[&services.rule("x.sock")]));
        let seen = script(&scene, "print(say('x.sock'))").await;
        assert_eq!(stdout(&seen), "closed", "{called}: {}", seen.shown);
        let refused = seen.data["network_refused"].to_string();
        assert!(refused.contains(expect), "{called}: {}", seen.shown);
    }
    // A socket that another takes the place of after the command has begun; the question waits meanwhile.
    let services = Services::new()
        .with_echo("x.sock", None)
        .with_echo("y.sock", None);
    let (scene, mut requests) = with_people(services.scene(sandbox, RuleSet::default()));
    let people = async {
        let pending = requests.next().await.unwrap();
        fs::remove_file(services.at("x.sock")).unwrap();
        symlink(services.at("y.sock"), services.at("x.sock")).unwrap();
        pending.decide(yes());
    };
    let seen = with_people_at(script(&scene, "print(say('x.sock'))"), people).await;
    assert_eq!(stdout(&seen), "closed", "{}", seen.shown);
    let refused = seen.data["network_refused"].to_string();
    assert!(refused.contains("is no longer a socket"), "{}", seen.shown);
}

async fn redis_is_reached_over_its_socket(sandbox: &Sandbox) {
    if !PathBuf::from("/usr/bin/redis-server").exists() {
        eprintln!("SKIPPED: no redis-server");
        return;
    }
    let services = Services::new();
    let mut run = program("/usr/bin/redis-server");
    run.args(["--port", "0", "--save", "", "--dir", "/"]);
    run.arg("--unixsocket").arg(services.at("redis.sock"));
    let services = services.with("redis.sock", run);
    let scene = services.scene(sandbox, allowing(&[&services.rule("redis.sock")]));
    let at = services.at("redis.sock");
    let line = format!(
        "redis-cli -s {} SET k v; redis-cli -s {} GET k",
        at.display(),
        at.display()
    );
    let seen = scene.line(&line).await;
    assert_eq!(stdout(&seen), "OK\nv", "{}", seen.shown);
}
