//! The user's ssh-agent: it lists its keys, signs once the user agreed for the server that the session is with, and does nothing else.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use haft::approval::Decision;
use haft::permission::Effect;
use haft::policy::{Policy, Profile, RuleSet};
use haft::spec::Risk;
use haft_builtins::command::{CommandNetwork, CommandSurroundings};
use haft_builtins::proxy::{AllowList, Proxy};
use haft_builtins::ssh_agent::SshAgent;
use haft_builtins::web::network::{BoxFuture, Network};
use haft_sandbox::Sandbox;
use tokio::net::TcpStream;

use crate::ask::{allowing, next, with_people, yes};
use crate::town::PUBLIC;
use crate::{Scene, Seen};

const HOST: &str = "git.example.com";

pub(crate) async fn all(sandbox: &Sandbox) {
    let Some(user) = User::new() else {
        eprintln!("SKIPPED: no ssh-agent, ssh-add or ssh-keygen");
        return;
    };
    what_is_no_list_and_no_signature_fails(sandbox, &user).await;
    a_commit_is_signed_once_the_user_agreed(sandbox, &user).await;
    let Some(server) = Server::new(&user) else {
        eprintln!("SKIPPED: no sshd");
        return;
    };
    git_pushes_over_ssh_once_the_user_agreed(sandbox, &user, &server).await;
    a_server_that_known_hosts_has_not_is_not_known(sandbox, &user, &server).await;
    a_forwarded_agent_signs_nothing(sandbox, &user, &server).await;
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's agent and server are programs of their own"
)]
fn program(name: &str) -> Command {
    Command::new(name)
}

/// A user with an agent that holds one key.
struct User {
    folder: tempfile::TempDir,
    agent: Child,
    public: String,
}

impl User {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        make_key(&at("id"), "ann-key")?;
        let socket = at("agent");
        let agent = program("ssh-agent")
            .arg("-D")
            .arg("-a")
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()
            .ok()?;
        while !socket.exists() {
            std::thread::yield_now();
        }
        let mut add = program("ssh-add");
        add.arg(at("id"))
            .env("SSH_AUTH_SOCK", &socket)
            .stderr(Stdio::null());
        let added = add.status().ok()?;
        assert!(added.success());
        let public = fs::read_to_string(at("id.pub")).unwrap();
        // The agent alone has the key.
        fs::remove_file(at("id")).unwrap();
        Some(Self {
            folder,
            agent,
            public: public.trim().to_owned(),
        })
    }

    fn known_hosts(&self) -> PathBuf {
        self.folder.path().join("known_hosts")
    }

    fn agent(&self) -> SshAgent {
        SshAgent {
            socket: self.folder.path().join("agent"),
            known_hosts: vec![self.known_hosts()],
        }
    }

    /// Returns a scene whose commands reach the agent, and every name at this server.
    fn scene(&self, sandbox: &Sandbox, server: Option<&Server>, rules: RuleSet) -> Scene {
        let street = Arc::new(Street(server.map(|server| server.at)));
        let proxy = Proxy::new(AllowList::default()).with_network(street as _);
        let policy = Policy::builder(Profile::Trusted)
            .rules(rules)
            .build()
            .unwrap();
        let around = CommandSurroundings {
            agent: Some(self.agent()),
            ..CommandSurroundings::default()
        };
        Scene::surrounded(sandbox, CommandNetwork::ask(proxy), policy, around)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // It is a child of this test.
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

fn make_key(path: &Path, comment: &str) -> Option<()> {
    let mut made = program("ssh-keygen");
    made.args(["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f"])
        .arg(path);
    made.status().ok()?.success().then_some(())
}

/// A server with git and a shell, in this user's name.
struct Server {
    folder: tempfile::TempDir,
    sshd: Child,
    at: SocketAddr,
    key: String,
}

impl Server {
    fn new(user: &User) -> Option<Self> {
        let sshd = ["/usr/sbin/sshd", "/usr/bin/sshd"]
            .iter()
            .find(|path| Path::new(path).exists())?;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        make_key(&at("host"), "server")?;
        fs::write(at("authorized"), &user.public).unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let config = format!(
            "ListenAddress {address}\nHostKey {host}\nAuthorizedKeysFile {authorized}\nStrictModes no\nPidFile none\nUsePAM no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nAllowAgentForwarding yes\n",
            host = at("host").display(),
            authorized = at("authorized").display(),
        );
        fs::write(at("config"), config).unwrap();
        // It wants a folder of the system's, also where it does not separate privileges.
        let _ = fs::create_dir_all("/run/sshd");
        let mut started = program(sshd);
        started
            .arg("-D")
            .arg("-e")
            .arg("-f")
            .arg(at("config"))
            .stderr(Stdio::null());
        let mut sshd = started.spawn().ok()?;
        while std::net::TcpStream::connect(address).is_err() {
            if sshd.try_wait().unwrap().is_some() {
                return None;
            }
            std::thread::yield_now();
        }
        let made = program("git")
            .args(["init", "-q", "--bare", "-b", "main"])
            .arg(at("repository"))
            .status();
        assert!(made.unwrap().success());
        let key = fs::read_to_string(at("host.pub")).unwrap();
        let words: Vec<&str> = key.split(' ').take(2).collect();
        Some(Self {
            key: words.join(" "),
            folder,
            sshd,
            at: address,
        })
    }

    fn repository(&self) -> String {
        let name = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        format!(
            "{name}@{HOST}:{}",
            self.folder.path().join("repository").display()
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is a child of this test.
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

/// A network in which every name leads to one server.
#[derive(Debug)]
struct Street(Option<SocketAddr>);

impl Network for Street {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::ready(Ok(vec![PUBLIC.parse().unwrap()])))
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        match self.0 {
            Some(at) => Box::pin(TcpStream::connect(at)),
            None => Box::pin(std::future::ready(Err(
                io::ErrorKind::ConnectionRefused.into()
            ))),
        }
    }
}

fn stdout(seen: &Seen) -> &str {
    seen.data["stdout"].as_str().unwrap_or_default()
}

/// Returns what a command did while people decided; a command that ends before they were asked has failed.
pub(crate) async fn with_people_at(
    line: impl Future<Output = Seen>,
    people: impl Future<Output = ()>,
) -> Seen {
    let mut line = std::pin::pin!(line);
    tokio::select! {
        seen = &mut line => panic!("it ended before everything was decided: {}", seen.shown),
        () = people => line.await,
    }
}

/// Says messages to the agent, and prints the kind of each answer.
const SAY: &str = "
import os, socket, struct
def string(b): return struct.pack('>I', len(b)) + b
def link():
    s = socket.socket(socket.AF_UNIX); s.settimeout(30); s.connect(os.environ['SSH_AUTH_SOCK']); return s
def say(message, s=None):
    s = s or link()
    try:
        s.sendall(string(message))
        n = struct.unpack('>I', s.recv(4))[0]
        out = b''
        while len(out) < n: out += s.recv(n - len(out))
        return out
    except (OSError, struct.error) as error: return b'closed'
def key():
    keys = say(b'\\x0b')
    n = struct.unpack('>I', keys[5:9])[0]
    return keys[9:9 + n]
def login(session=b'session'):
    return string(session) + b'\\x32' + string(b'git') + string(b'ssh-connection') + string(b'publickey') + b'\\x01' + string(b'ssh-ed25519') + string(key())
def sign(data, s=None): return say(b'\\x0d' + string(key()) + string(data) + struct.pack('>I', 0), s)
";

async fn what_is_no_list_and_no_signature_fails(sandbox: &Sandbox, user: &User) {
    let scene = user.scene(sandbox, None, allowing(&["Sign(ssh:*)", "Sign(git)"]));
    let say = |script: &str| {
        fs::write(scene.root().join("say.py"), format!("{SAY}{script}")).unwrap();
        scene.line("python3 say.py")
    };
    for (script, says) in [
        // Add a key, remove all, lock, an old list, an unknown extension.
        (
            "for kind in (17, 19, 22, 1, 18, 25, 0, 255): print(say(bytes([kind]) + string(b'x')))",
            "b'\\x05'\n".repeat(8),
        ),
        (
            "print(say(b'\\x1b' + string(b'query')))",
            "b'\\x05'\n".to_owned(),
        ),
        (
            "print(say(b''), say(b'\\x0b' * 300000), say(b'\\x0d'))",
            "b'closed' b'closed' b'\\x05'\n".to_owned(),
        ),
        (
            "print(sign(b'anything'), sign(b'SSHSIG' + string(b'file')))",
            "b'\\x05' b'\\x05'\n".to_owned(),
        ),
        // A rule for every host is none for a server that is not known, and nobody can be asked.
        ("print(sign(login()))", "b'\\x05'\n".to_owned()),
        // What a command says about a server counts for nothing.
        (
            "s = link(); print(say(b'\\x1b' + string(b'session-bind@openssh.com') + string(key()) + string(b'session') + string(string(b'ssh-ed25519') + string(b'x' * 64)) + b'\\0', s), sign(login(), s))",
            "b'\\x05' b'\\x05'\n".to_owned(),
        ),
        (
            "many = [link() for _ in range(100)]; print(len(many))\nfor s in many: s.close()\nprint(len(key()) > 0)",
            "100\nTrue\n".to_owned(),
        ),
    ] {
        let seen = say(script).await;
        assert_eq!(stdout(&seen), says, "{script}: {}", seen.shown);
    }
    let seen = say(
        "print(sum(sign(b'SSHSIG' + string(b'git') + b'x')[:1] == b'\\x0e' for _ in range(130)))",
    )
    .await;
    assert_eq!(stdout(&seen), "100\n", "{}", seen.shown);
    let refused = seen.data["network_refused"].to_string();
    assert!(
        refused.contains("signature for git refused: the command has had 100 signatures"),
        "{refused}"
    );
}

async fn a_commit_is_signed_once_the_user_agreed(sandbox: &Sandbox, user: &User) {
    let (scene, mut requests) = with_people(user.scene(sandbox, None, RuleSet::default()));
    let script = format!(
        "ssh-add -l; cd $(mktemp -d) && git init -q c && cd c && git config user.name a && git config user.email a@b && echo x > f && git add f && \
         git -c gpg.format=ssh -c 'user.signingkey=key::{}' commit -q -S -m one && git cat-file commit HEAD",
        user.public
    );
    fs::write(scene.root().join("work.sh"), &script).unwrap();
    for (decided, works) in [(Decision::deny("ann", "test"), false), (yes(), true)] {
        let people = async {
            let pending = requests.next().await.unwrap();
            let request = pending.request();
            assert_eq!(request.tool.as_str(), "sign");
            let effect = &request.snapshot.permissions[0].effect;
            let Effect::Sign { purpose, by } = effect else {
                panic!("{effect:?}");
            };
            assert_eq!(purpose, "git");
            assert!(
                by.starts_with("the key SHA256:") && by.contains("(ann-key)"),
                "{by}"
            );
            pending.decide(decided);
        };
        let seen = with_people_at(scene.line("sh work.sh"), people).await;
        assert!(
            stdout(&seen).contains("ann-key (ED25519)"),
            "{}",
            seen.shown
        );
        assert_eq!(
            stdout(&seen).contains("BEGIN SSH SIGNATURE"),
            works,
            "{}",
            seen.shown
        );
    }
}

async fn git_pushes_over_ssh_once_the_user_agreed(sandbox: &Sandbox, user: &User, server: &Server) {
    fs::write(user.known_hosts(), format!("{HOST} {}\n", server.key)).unwrap();
    let (scene, mut requests) = with_people(user.scene(sandbox, Some(server), RuleSet::default()));
    let script = format!(
        "cd $(mktemp -d) && git init -q mine && cd mine && git config user.name a && git config user.email a@b && echo x > f && git add f && git commit -qm one && \
         git push -q {repository} HEAD:refs/heads/main && git ls-remote {repository} && echo PUSHED; cat /etc/ssh/ssh_known_hosts; ls /run/haft",
        repository = server.repository()
    );
    fs::write(scene.root().join("work.sh"), &script).unwrap();
    let people = async {
        next(&mut requests, "git.example.com:22")
            .await
            .decide(yes());
        let pending = requests.next().await.unwrap();
        let permission = &pending.request().snapshot.permissions[0];
        let Effect::Sign { purpose, by } = &permission.effect else {
            panic!("{permission:?}");
        };
        assert_eq!(purpose, "ssh:git.example.com");
        assert!(by.contains("of ssh-agent, as "), "{by}");
        assert_eq!(permission.risk, Risk::High);
        pending.decide(yes());
    };
    let seen = with_people_at(scene.line("sh work.sh"), people).await;
    let out = stdout(&seen);
    assert!(
        out.contains("refs/heads/main") && out.contains("PUSHED"),
        "{}",
        seen.shown
    );
    // The jail does not learn which servers the user knows.
    assert!(out.contains("|1|") && out.ends_with("ssh-agent\n"), "{out}");
    // A rule decides without asking.
    let rules = allowing(&["Network(git.example.com:22)", "Sign(ssh:git.example.com)"]);
    let ruled = user.scene(sandbox, Some(server), rules);
    let seen = ruled
        .line(&format!("git ls-remote {}", server.repository()))
        .await;
    assert!(stdout(&seen).contains("refs/heads/main"), "{}", seen.shown);
    let rules = allowing(&["Network(git.example.com:22)", "Sign(ssh:other.example.com)"]);
    let ruled = user.scene(sandbox, Some(server), rules);
    let seen = ruled
        .line(&format!("git ls-remote {}", server.repository()))
        .await;
    assert!(!seen.ok, "{}", seen.shown);
    assert!(
        seen.data["network_refused"]
            .to_string()
            .contains("signature for ssh:git.example.com refused"),
        "{}",
        seen.shown
    );
}

/// A server under a name that `known_hosts` gives another key: the program may accept it, but no rule for its name counts.
async fn a_server_that_known_hosts_has_not_is_not_known(
    sandbox: &Sandbox,
    user: &User,
    server: &Server,
) {
    for known in ["", "other.example.com", "*"] {
        let line = if known.is_empty() {
            String::new()
        } else {
            format!("{known} {}\n", server.key)
        };
        fs::write(user.known_hosts(), line).unwrap();
        let rules = allowing(&[
            "Network(git.example.com:22)",
            "Sign(ssh:git.example.com)",
            "Sign(ssh:*)",
        ]);
        let (scene, mut requests) = with_people(user.scene(sandbox, Some(server), rules));
        let line = format!(
            "GIT_SSH_COMMAND='ssh -o StrictHostKeyChecking=no' git ls-remote {}",
            server.repository()
        );
        fs::write(scene.root().join("work.sh"), &line).unwrap();
        let people = async {
            let pending = requests.next().await.unwrap();
            let permission = &pending.request().snapshot.permissions[0];
            let Effect::Sign { purpose, by } = &permission.effect else {
                panic!("{permission:?}");
            };
            assert_eq!(purpose, "ssh:?", "{known}");
            assert!(by.contains("at a server with the key SHA256:"), "{by}");
            assert_eq!(permission.risk, Risk::Critical);
            pending.decide(Decision::deny("ann", "test"));
        };
        let seen = with_people_at(scene.line("sh work.sh"), people).await;
        assert!(!seen.ok, "{known}: {}", seen.shown);
    }
}

async fn a_forwarded_agent_signs_nothing(sandbox: &Sandbox, user: &User, server: &Server) {
    fs::write(user.known_hosts(), format!("{HOST} {}\n", server.key)).unwrap();
    let rules = allowing(&[
        "Network(git.example.com:22)",
        "Sign(ssh:git.example.com)",
        "Sign(git)",
    ]);
    let scene = user.scene(sandbox, Some(server), rules);
    let host = server.repository();
    let host = host.split(':').next().unwrap();
    let inner = "ssh-add -l; echo x > $TMPDIR/x || cd /tmp; ssh-keygen -Y sign -n git -U -f k.pub x; rm -f x k.pub x.sig";
    let line = format!(
        "ssh -A {host} 'cd $(mktemp -d) && echo x > x && echo \"{}\" > k.pub && {inner}'",
        user.public
    );
    fs::write(scene.root().join("work.sh"), &line).unwrap();
    let seen = scene.line("sh work.sh").await;
    let refused = seen.data["network_refused"].to_string();
    assert!(refused.contains("the agent is forwarded"), "{}", seen.shown);
}
