//! Row 26 of the threat model in the real jail: what a command can reach through the proxy, and what it cannot.
//!
//! Its own `main`, because the jail executes this program again.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test whose scene cannot be set has failed; what was skipped is said aloud"
)]

mod agent;
mod ask;
mod background;
mod direct;
mod git_server;
mod gpg;
mod logins;
mod modes;
mod notes;
mod pip;
mod private;
mod requests;
mod rows;
mod services;
mod sockets;
#[expect(
    dead_code,
    reason = "the town of the web tools' tests, which use more of it"
)]
#[path = "../it/town.rs"]
mod town;
#[expect(
    dead_code,
    reason = "the office of the web tools' tests, which use more of it"
)]
#[path = "../it/office.rs"]
mod office;
mod upstream;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft::call::ToolCall;
use haft::permission::{Effect, Permission};
use haft::policy::Policy;
use haft::spec::Risk;
use haft::testing::{ConsentingPerson, TestTool};
use haft::tool::Tool;
use haft::toolset::registry::ToolRegistry;
use haft::workspace::Workspace;
use haft::{Executor, Outcome, Session};
use haft_builtins::Builtins;
use haft_builtins::command::{CommandNetwork, CommandSurroundings};
use haft_builtins::proxy::{AllowList, Proxy};
use haft_sandbox::{Config, Sandbox, Strength};
use serde_json::{Value, json};

use crate::town::Town;

/// The start of the scripts of the rows.
const LIBRARY: &str = include_str!("net.py");

/// A workspace whose commands use this network.
pub(crate) struct Scene {
    dir: tempfile::TempDir,
    pub(crate) executor: Executor,
    pub(crate) session: Session,
    registry: Arc<ToolRegistry>,
}

impl Scene {
    pub(crate) fn new(sandbox: &Sandbox, network: CommandNetwork) -> Self {
        let allow = ConsentingPerson;
        let mut scene = Self::judged(sandbox, network, Policy::trusted());
        scene.executor = scene.executor.with_approver(allow);
        scene
    }

    pub(crate) fn judged(sandbox: &Sandbox, network: CommandNetwork, policy: Policy) -> Self {
        Self::surrounded(sandbox, network, policy, CommandSurroundings::default())
    }

    pub(crate) fn surrounded(
        sandbox: &Sandbox,
        network: CommandNetwork,
        policy: Policy,
        around: CommandSurroundings,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("ws")).unwrap();
        fs::write(dir.path().join("ws/a.txt"), "IN-THE-WORKSPACE").unwrap();
        fs::write(dir.path().join("ws/net.py"), LIBRARY).unwrap();
        let workspace = Workspace::open(&dir.path().join("ws")).unwrap();
        let policy = policy.with_workspace(&workspace).unwrap();
        let mut builtins = Builtins::new(workspace);
        builtins.sandbox = Some(sandbox.clone());
        builtins.network = network;
        builtins.surroundings = around;
        let own = ToolRegistry::new();
        own.add_all(builtins.network.tools().unwrap()).unwrap();
        let registry = ToolRegistry::new();
        let tools = builtins.tools().unwrap();
        let tools = tools.into_iter().map(|tool| tool.tool);
        registry.replace_all("builtin", tools).unwrap();
        registry.add_all([page_of_example()]).unwrap();
        let registry = Arc::new(registry);
        Self {
            dir,
            executor: Executor::new(policy).with_internal_tools(Arc::new(own)),
            session: Session::builder(Arc::clone(&registry) as _)
                .build()
                .unwrap(),
            registry,
        }
    }

    /// Returns another session on the same tools, which is another run.
    pub(crate) fn other_session(&self) -> Session {
        Session::builder(Arc::clone(&self.registry) as _)
            .build()
            .unwrap()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("ws")
    }

    /// Makes programs trust the servers of this town.
    pub(crate) fn trust(&self, town: &Town) {
        fs::write(self.root().join("ca.crt"), pem(town)).unwrap();
    }

    pub(crate) async fn call(&self, args: Value) -> Outcome {
        let call = ToolCall::new("run_command", args.to_string());
        self.executor.execute(&self.session, call).await
    }

    pub(crate) async fn line(&self, line: &str) -> Seen {
        self.seen(json!({ "command": line, "timeout_s": 60 })).await
    }

    pub(crate) async fn script(&self, script: &str) -> Seen {
        let script = format!("from net import *\n{script}");
        let ca = self.root().join("ca.crt");
        let env = json!({ "SSL_CERT_FILE": ca, "PYTHONDONTWRITEBYTECODE": "1" });
        let argv = json!(["python3", "-c", script]);
        self.seen(json!({ "argv": argv, "env": env, "timeout_s": 60 }))
            .await
    }

    async fn seen(&self, args: Value) -> Seen {
        let outcome = self.call(args).await;
        let shown = serde_json::to_string(&outcome).unwrap();
        let data = outcome
            .data
            .as_ref()
            .map(|data| serde_json::from_str(data.get()).unwrap());
        Seen {
            ok: outcome.is_ok(),
            strength: outcome.strength.clone().unwrap_or_default(),
            data: data.unwrap_or_default(),
            shown,
        }
    }
}

/// The result of a command.
pub(crate) struct Seen {
    pub(crate) ok: bool,
    pub(crate) strength: String,
    pub(crate) data: Value,
    pub(crate) shown: String,
}

/// Returns the root certificate of this town's servers as PEM.
pub(crate) fn pem(town: &Town) -> String {
    let text = STANDARD.encode(town.root());
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

/// Returns a proxy that allows these hosts of this town.
pub(crate) fn allow(hosts: &[&str], town: &Arc<Town>) -> Proxy {
    Proxy::new(AllowList::read(hosts).unwrap()).with_network(Arc::clone(town) as _)
}

/// Returns the tool `page`, which reads from example.com outside commands.
fn page_of_example() -> Arc<dyn Tool> {
    let reads = Permission {
        effect: Effect::connect("https://example.com/", "example.com"),
        risk: Risk::Safe,
    };
    TestTool::risky("page", Risk::Safe)
        .wanting(vec![reads])
        .arc()
}

pub(crate) fn public(port: u16) -> SocketAddr {
    SocketAddr::new(town::PUBLIC.parse().unwrap(), port)
}

fn main() {
    haft_sandbox::enter();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let sandbox = Sandbox::new(Config {
            detect_interpreters: true,
            ..Config::default()
        });
        let strength = sandbox.probe().await.strength;
        if strength < Strength::NoProc {
            eprintln!("SKIPPED: the jail's strength here is {strength}");
            return;
        }
        let python = Scene::new(&sandbox, CommandNetwork::default());
        if !python.line("python3 -c 'import ssl'").await.ok {
            eprintln!("SKIPPED: no python3 with ssl in the jail");
            return;
        }
        let rows = rows::all(&sandbox).await;
        modes::all(&sandbox).await;
        ask::all(&sandbox).await;
        background::all(&sandbox).await;
        services::all(&sandbox).await;
        private::all(&sandbox).await;
        direct::all(&sandbox).await;
        pip::all(&sandbox).await;
        upstream::all(&sandbox).await;
        logins::all(&sandbox).await;
        requests::all(&sandbox).await;
        agent::all(&sandbox).await;
        gpg::all(&sandbox).await;
        sockets::all(&sandbox).await;
        notes::all(&sandbox).await;
        eprintln!("network: {rows} rows and the modes: ok");
    });
}
