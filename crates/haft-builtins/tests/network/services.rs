//! Servers that commands of one run start: its other commands reach them at 127.0.0.1, those of another run do not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::Session;
use haft::approval::{Decision, channel};
use haft::call::ToolCall;
use haft::policy::{Policy, Profile, RuleSet};
use haft::testing::ConsentingPerson;
use haft_builtins::command::CommandNetwork;
use haft_builtins::services::{ServiceRecord, Services};
use haft_sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::ask::town;
use crate::{Scene, allow};

pub(crate) async fn all(sandbox: &Sandbox) {
    a_server_is_reached_by_the_commands_of_its_run_alone(sandbox).await;
    a_server_that_begins_later_is_reached_by_a_command_that_waits(sandbox).await;
    a_port_of_the_run_is_taken_for_its_other_commands(sandbox).await;
    a_server_with_five_thousand_ports_shows_the_first(sandbox).await;
    a_flood_of_connections_passes_within_the_limit(sandbox).await;
    a_command_whose_record_is_removed_ends(sandbox).await;
    a_command_never_uses_the_way_out_of_another(sandbox).await;
    a_port_is_exposed_at_an_address_of_its_run_alone(sandbox).await;
    a_request_for_a_port_says_what_serves_there_and_holds_for_nothing_else(sandbox).await;
    an_exposed_port_outlives_a_flood_and_its_server_but_not_its_run(sandbox).await;
    databases_of_the_system_serve_later_commands(sandbox).await;
    a_browser_shows_a_page_of_the_runs_server(sandbox).await;
}

/// Answers every connection with what it was started with; says when it listens.
const SERVER: &str = "
import socket, sys, threading
family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
server = socket.socket(family)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((sys.argv[1], int(sys.argv[2])))
server.listen(512)
print('listens', flush=True)
def answer(stream):
    with stream:
        stream.recv(64)
        stream.sendall(sys.argv[3].encode())
while True:
    stream, _ = server.accept()
    threading.Thread(target=answer, args=(stream,), daemon=True).start()
";

/// Asks a server and says what it answers, or why not.
const CLIENT: &str = "
import socket, sys
try:
    stream = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20)
    stream.sendall(b'?')
    print('got', stream.recv(64).decode())
except OSError as error:
    print('not', type(error).__name__)
";

struct Lab {
    scene: Scene,
    services: Services,
    _home: tempfile::TempDir,
}

impl Lab {
    fn new(sandbox: &Sandbox) -> Self {
        Self::with(sandbox, CommandNetwork::default())
    }

    fn with(sandbox: &Sandbox, network: CommandNetwork) -> Self {
        let home = tempfile::tempdir().unwrap();
        let services = Services::new(home.path());
        let network = network.with_services(services.clone());
        let scene = Scene::new(sandbox, network);
        for (name, text) in [("server.py", SERVER), ("client.py", CLIENT)] {
            std::fs::write(scene.root().join(name), text).unwrap();
        }
        Self {
            scene,
            services,
            _home: home,
        }
    }

    async fn tool(&self, session: &Session, tool: &str, args: Value) -> Value {
        let call = ToolCall::new(tool, args.to_string());
        let outcome = self.scene.executor.execute(session, call).await;
        let data = outcome.data.as_ref();
        let data = data.unwrap_or_else(|| panic!("{tool} {args}: {outcome:?}"));
        serde_json::from_str(data.get()).unwrap()
    }

    /// Starts a command in the background, and returns its task once it has said that it listens.
    async fn begin(&self, argv: Value) -> Value {
        let session = &self.scene.session;
        let args = json!({"argv": argv, "background": true});
        let started = self.tool(session, "run_command", args).await;
        let task = started["task"].clone();
        // It may have said so before the call returned.
        if !started["stdout"].as_str().unwrap().contains("listens") {
            let wait = json!({"task": task, "pattern": "listens", "timeout_s": 60});
            let seen = self.tool(session, "await_command", wait).await;
            assert_eq!(seen["matched_pattern"], true, "{seen}");
        }
        task
    }

    async fn serve(&self, host: &str, port: u16, says: &str) -> Value {
        let port = port.to_string();
        self.begin(json!(["python3", "server.py", host, port, says]))
            .await
    }

    async fn ask_in(&self, session: &Session, host: &str, port: u16) -> String {
        let argv = json!(["python3", "client.py", host, port.to_string()]);
        let args = json!({"argv": argv, "timeout_s": 60});
        let data = self.tool(session, "run_command", args).await;
        data["stdout"].as_str().unwrap().trim().to_owned()
    }

    async fn ask(&self, host: &str, port: u16) -> String {
        self.ask_in(&self.scene.session, host, port).await
    }

    async fn kill(&self, task: &Value) {
        let session = &self.scene.session;
        self.tool(session, "kill_command", json!({"task": task}))
            .await;
    }

    /// Waits until the records satisfy a condition.
    async fn until(&self, holds: impl Fn(&[ServiceRecord]) -> bool) -> Vec<ServiceRecord> {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let records = self.services.all();
            if holds(&records) {
                return records;
            }
            assert!(Instant::now() < end, "{records:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn a_server_is_reached_by_the_commands_of_its_run_alone(sandbox: &Sandbox) {
    let town = town().await;
    for network in [
        CommandNetwork::default(),
        CommandNetwork::ask(allow(&[], &town)),
    ] {
        let lab = Lab::with(sandbox, network);
        for (at, from, reached) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "localhost", true),
            ("0.0.0.0", "127.0.0.1", true),
            ("::", "127.0.0.1", true),
            ("::", "::1", true),
            ("::1", "::1", true),
            ("::1", "localhost", true),
            ("127.0.0.2", "127.0.0.1", false),
        ] {
            let task = lab.serve(at, 8765, "hello").await;
            let answer = lab.ask(from, 8765).await;
            assert_eq!(answer == "got hello", reached, "{at} from {from}: {answer}");
            let other = lab.scene.other_session();
            let answer = lab.ask_in(&other, from, 8765).await;
            assert!(
                answer.starts_with("not "),
                "{at} from another run: {answer}"
            );
            lab.kill(&task).await;
            let answer = lab.ask(from, 8765).await;
            assert!(answer.starts_with("not "), "{at} after its end: {answer}");
        }
        assert!(lab.services.all().is_empty());
    }
}

async fn a_server_that_begins_later_is_reached_by_a_command_that_waits(sandbox: &Sandbox) {
    let lab = Lab::new(sandbox);
    // Calls of one session are made one after the other: the client waits in the background.
    let waits =
        "echo listens; until python3 client.py 127.0.0.1 8765 | grep got; do sleep 0.05; done";
    let client = lab.begin(json!(["bash", "-c", waits])).await;
    let task = lab.serve("127.0.0.1", 8765, "late").await;
    let wait = json!({"task": client, "timeout_s": 60});
    let waited = lab.tool(&lab.scene.session, "await_command", wait).await;
    assert_eq!(waited["stdout"], "got late\n", "{waited}");
    lab.kill(&task).await;
}

async fn a_port_of_the_run_is_taken_for_its_other_commands(sandbox: &Sandbox) {
    let lab = Lab::new(sandbox);
    let task = lab.serve("127.0.0.1", 8765, "first").await;
    let argv = json!(["python3", "server.py", "127.0.0.1", "8765", "second"]);
    let args = json!({"argv": argv, "timeout_s": 60});
    let second = lab.tool(&lab.scene.session, "run_command", args).await;
    let told = second["stderr"].as_str().unwrap();
    assert!(told.contains("Address already in use"), "{second}");
    lab.kill(&task).await;
}

async fn a_server_with_five_thousand_ports_shows_the_first(sandbox: &Sandbox) {
    let lab = Lab::new(sandbox);
    let script = "
import resource, socket, time
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
import os
held = []
def take(ports):
    for port in ports:
        s = socket.socket()
        s.bind(('127.0.0.1', port)); s.listen(1); held.append(s)
if os.fork() == 0:
    take(range(12000, 14500)); time.sleep(600)
take(range(14500, 17000))
import sys
time.sleep(0.5)
print('listens', flush=True)
time.sleep(600)";
    let task = lab.begin(json!(["python3", "-c", script])).await;
    let many = |records: &[ServiceRecord]| {
        records
            .first()
            .is_some_and(|one| one.more_ports == 5_000 - 64)
    };
    let records = lab.until(many).await;
    let ports: Vec<u16> = records[0].ports.iter().map(|port| port.port).collect();
    assert_eq!(ports, (12_000..12_064).collect::<Vec<u16>>());
    // Another command starts as ever; it has the first of them.
    let lists = "
import socket
found = []
for port in range(12000, 17000):
    s = socket.socket()
    if s.connect_ex(('127.0.0.1', port)) == 0: found.append(port)
    s.close()
print(found[:1], len(found))";
    let args = json!({"argv": ["python3", "-c", lists], "timeout_s": 120});
    let seen = lab.tool(&lab.scene.session, "run_command", args).await;
    assert_eq!(seen["stdout"], "[12000] 32\n", "{seen}");
    lab.kill(&task).await;
}

async fn a_flood_of_connections_passes_within_the_limit(sandbox: &Sandbox) {
    let lab = Lab::new(sandbox);
    let task = lab.serve("127.0.0.1", 8765, "still here").await;
    let flood = "
import socket
held = []
for _ in range(2000):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(('127.0.0.1', 8765))
    held.append(s)
print(len(held))
# One beyond the limit is reset, so that whoever waits for it learns that.
late = socket.create_connection(('127.0.0.1', 8765), 60)
try:
    late.sendall(b'?'); print(late.recv(64) or 'reset')
except ConnectionError: print('reset')";
    let args = json!({"argv": ["python3", "-c", flood], "timeout_s": 120});
    let seen = lab.tool(&lab.scene.session, "run_command", args).await;
    assert_eq!(seen["stdout"], "2000\nreset\n", "{seen}");
    assert_eq!(lab.ask("127.0.0.1", 8765).await, "got still here");
    lab.kill(&task).await;
}

async fn a_command_whose_record_is_removed_ends(sandbox: &Sandbox) {
    let lab = Lab::new(sandbox);
    let task = lab.serve("127.0.0.1", 8765, "hello").await;
    let records = lab
        .until(|records| records.len() == 1 && records[0].serves(8765))
        .await;
    assert_eq!(records[0].task.as_deref(), task.as_str());
    assert!(records[0].command.contains("server.py"), "{records:?}");
    // The lists of its run name it.
    assert_eq!(lab.services.of_run(&records[0].run), records);
    assert!(lab.services.of_run("another").is_empty());
    assert!(lab.services.stop(&records[0]).unwrap());
    let wait = json!({"task": task, "timeout_s": 60});
    let ended = lab.tool(&lab.scene.session, "await_command", wait).await;
    assert_eq!(ended["signal"], 9, "{ended}");
    assert!(!lab.services.stop(&records[0]).unwrap());
}

/// A server's own connections are judged as its own, whoever asks it: the way out of each command leads from its network alone.
async fn a_command_never_uses_the_way_out_of_another(sandbox: &Sandbox) {
    let town = town().await;
    let allowed = RuleSet {
        allow: vec![haft::policy::RuleText::new("Bash")],
        ..RuleSet::default()
    };
    let network = CommandNetwork::ask(allow(&[], &town));
    let home = tempfile::tempdir().unwrap();
    let network = network.with_services(Services::new(home.path()));
    let policy = Policy::builder(Profile::Workspace)
        .rules(allowed)
        .build()
        .unwrap();
    let mut scene = Scene::judged(sandbox, network, policy);
    scene.executor = scene.executor.with_approver(ConsentingPerson);
    // Each says the address of its way out that it holds: both have one of their own at the same address.
    let line = "python3 -c \"import socket; s = socket.create_connection(('127.0.0.1', 3128), 20); print('out', s.getpeername())\"";
    let both = tokio::join!(scene.line(line), scene.line(line));
    for seen in [both.0, both.1] {
        assert_eq!(
            seen.data["stdout"], "out ('127.0.0.1', 3128)\n",
            "{}",
            seen.shown
        );
    }
    drop(Arc::clone(&town));
}

async fn a_port_is_exposed_at_an_address_of_its_run_alone(sandbox: &Sandbox) {
    let lab = Lab::new(sandbox);
    let session = &lab.scene.session;
    let expose = async |session: &Session, args: Value| {
        let call = ToolCall::new("expose_port", args.to_string());
        lab.scene.executor.execute(session, call).await
    };
    let task = lab.serve("127.0.0.1", 8765, "hello").await;
    let records = lab
        .until(|records| records.len() == 1 && records[0].serves(8765))
        .await;
    let other = lab.scene.other_session();
    for (session, args) in [
        (session, json!({"port": 8766})),
        (session, json!({"port": 80})),
        (session, json!({"port": 65_536})),
        (session, json!({"port": 3128})),
        (&other, json!({"port": 8765})),
    ] {
        let outcome = expose(session, args.clone()).await;
        assert!(outcome.error.is_some(), "{args}: {outcome:?}");
    }
    let run = &records[0].run;
    let (first, again) = (
        lab.tool(session, "expose_port", json!({"port": 8765}))
            .await,
        lab.tool(session, "expose_port", json!({"port": 8765}))
            .await,
    );
    assert_eq!(first, again);
    assert!(
        first["command"].as_str().unwrap().contains("server.py"),
        "{first}"
    );
    let exposed = lab.services.exposed(run);
    assert_eq!(exposed.len(), 1);
    let at = exposed[0].at;
    assert_eq!(first["url"], format!("http://{at}/"));
    let std::net::IpAddr::V4(host) = at.ip() else {
        panic!("{at}")
    };
    assert!(
        host.is_loopback() && (64..128).contains(&host.octets()[1]),
        "{at}"
    );
    // Not at the console's address, whatever the port.
    let console = SocketAddr::from(([127, 0, 0, 1], at.port()));
    assert!(TcpStream::connect(console).await.is_err());
    assert_eq!(ask_at(at).await.unwrap(), "hello");
    lab.kill(&task).await;
}

async fn a_request_for_a_port_says_what_serves_there_and_holds_for_nothing_else(sandbox: &Sandbox) {
    let mut lab = Lab::new(sandbox);
    lab.serve("127.0.0.1", 8765, "hello").await;
    let serves = |records: &[ServiceRecord]| records.len() == 1 && records[0].serves(8765);
    let run = lab.until(serves).await[0].run.clone();
    let (approver, mut requests) = channel(8);
    lab.scene.executor = lab.scene.executor.clone().with_approver(approver);
    let call = ToolCall::new("expose_port", json!({"port": 8765}).to_string());
    let deciding = async {
        let pending = requests.next().await.unwrap();
        let conditions = pending.request().snapshot.conditions.clone();
        let opens: Vec<_> = conditions
            .iter()
            .map(|one| format!("{} {}", one.name, one.value))
            .collect();
        assert!(
            opens[0].contains("server.py 127.0.0.1 8765 hello` at http://127."),
            "{opens:?}"
        );
        assert!(opens[1].contains("every program"), "{opens:?}");
        // Another command serves there by the time of the decision.
        lab.services.stop(&lab.services.of_run(&run)[0]).unwrap();
        lab.until(<[ServiceRecord]>::is_empty).await;
        lab.serve("127.0.0.1", 8765, "other").await;
        lab.until(serves).await;
        pending.decide(Decision::approve("ann", "test"));
    };
    let (outcome, ()) = tokio::join!(
        lab.scene.executor.execute(&lab.scene.session, call),
        deciding
    );
    let error = outcome.error.as_ref().map_or("", |error| &error.message);
    assert!(error.contains("opens was shown as"), "{outcome:?}");
    assert!(lab.services.exposed(&run).is_empty());
}

/// Asks the server at an address of this machine.
async fn ask_at(at: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(at).await?;
    stream.write_all(b"?").await?;
    let mut said = String::new();
    stream.read_to_string(&mut said).await?;
    Ok(said)
}

async fn an_exposed_port_outlives_a_flood_and_its_server_but_not_its_run(sandbox: &Sandbox) {
    let lab = Lab::new(sandbox);
    let session = &lab.scene.session;
    let serves = |records: &[ServiceRecord]| records.len() == 1 && records[0].serves(8765);
    let task = lab.serve("127.0.0.1", 8765, "hello").await;
    let run = lab.until(serves).await[0].run.clone();
    lab.tool(session, "expose_port", json!({"port": 8765}))
        .await;
    let at = lab.services.exposed(&run)[0].at;
    // Connections that are kept and quiet, beyond the limit, make room for one that is used.
    let mut held = Vec::new();
    for _ in 0..200 {
        held.extend(TcpStream::connect(at).await);
    }
    assert_eq!(ask_at(at).await.unwrap(), "hello");
    drop(held);
    assert_eq!(ask_at(at).await.unwrap(), "hello");
    // A server that is over answers nothing; another one at the port does.
    lab.kill(&task).await;
    lab.until(<[ServiceRecord]>::is_empty).await;
    assert!(ask_at(at).await.is_ok_and(|said| said.is_empty()) || ask_at(at).await.is_err());
    let _task = lab.serve("127.0.0.1", 8765, "again").await;
    lab.until(serves).await;
    assert_eq!(ask_at(at).await.unwrap(), "again");
    session.cancel();
    let end = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(at).await.is_ok() {
        assert!(Instant::now() < end, "{at} is open after the run");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(lab.services.exposed(&run).is_empty());
}

/// Returns true if a program is on the machine; says so if it is not.
fn is_here(program: &str) -> bool {
    let folders = ["/usr/bin", "/usr/local/bin"].map(std::path::PathBuf::from);
    let found = folders.iter().any(|folder| folder.join(program).exists());
    if !found {
        eprintln!("SKIPPED: {program} is not on this machine");
    }
    found
}

impl Lab {
    /// Runs a line and returns what it printed, errors included if it failed.
    async fn line(&self, line: &str) -> String {
        let args = json!({"command": line, "timeout_s": 120});
        let seen = self.tool(&self.scene.session, "run_command", args).await;
        let text = |name: &str| seen[name].as_str().unwrap_or_default().to_owned();
        if seen["exit_code"] == 0 {
            return text("stdout");
        }
        format!("{}{}", text("stdout"), text("stderr"))
    }
}

async fn databases_of_the_system_serve_later_commands(sandbox: &Sandbox) {
    let lab = Lab::new(sandbox);
    if is_here("redis-server") {
        let line =
            "redis-server --port 6380 --save '' --dir /tmp | sed -u 's/Ready to accept/listens/'";
        let task = lab.begin(json!(["bash", "-c", line])).await;
        let said = lab
            .line("redis-cli -p 6380 set a 42 && redis-cli -p 6380 get a")
            .await;
        assert_eq!(said, "OK\n42\n");
        lab.kill(&task).await;
    }
    if is_here("mariadb-install-db") {
        let line = "mariadb-install-db --no-defaults --datadir=$PWD/.my --auth-root-authentication-method=normal >/dev/null && \
                    mariadbd --no-defaults --datadir=$PWD/.my --socket=/tmp/my.sock --port=3307 --bind-address=127.0.0.1 2>&1 | \
                    sed -u 's/ready for connections/listens/'";
        let task = lab.begin(json!(["bash", "-c", line])).await;
        let said = lab
            .line("mariadb -h 127.0.0.1 -P 3307 -u root -Ne 'select 40 + 2'")
            .await;
        assert_eq!(said, "42\n");
        lab.kill(&task).await;
    }
    let cluster = std::fs::read_dir("/usr/lib/postgresql").ok();
    let Some(version) = cluster.into_iter().flatten().flatten().next() else {
        eprintln!("SKIPPED: PostgreSQL is not on this machine");
        return;
    };
    // It refuses to run as root: whoever runs haft, it is an ordinary user in the jail.
    let programs = version.path().join("bin");
    let line = format!(
        "export PATH=$PATH:{}; initdb -D .pg -A trust --no-sync >/dev/null && \
         postgres -D .pg -k /tmp -p 5433 -c fsync=off 2>&1 | sed -u 's/ready to accept/listens/'",
        programs.display()
    );
    let task = lab.begin(json!(["bash", "-c", line])).await;
    let said = lab
        .line("psql -h 127.0.0.1 -p 5433 -d postgres -Atc 'select 40 + 2'")
        .await;
    assert_eq!(said, "42\n");
    lab.kill(&task).await;
}

async fn a_browser_shows_a_page_of_the_runs_server(sandbox: &Sandbox) {
    if !is_here("chromium") {
        return;
    }
    let lab = Lab::new(sandbox);
    let page = "<h1 id=x></h1><script>x.textContent = 'rendered ' + (40 + 2)</script>";
    std::fs::write(lab.scene.root().join("index.html"), page).unwrap();
    let serve =
        "python3 -u -m http.server 5173 --bind 127.0.0.1 2>&1 | sed -u 's/Serving/listens/'";
    let task = lab.begin(json!(["bash", "-c", serve])).await;
    let line = "chromium --headless --disable-gpu --dump-dom http://127.0.0.1:5173/ 2>/dev/null";
    let shown = lab.line(line).await;
    assert!(shown.contains("<h1 id=\"x\">rendered 42</h1>"), "{shown}");
    lab.kill(&task).await;
}
