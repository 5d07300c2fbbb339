//! Connections of commands in the background: each is asked about when it is made, and judged by what the run has read by then.

use std::sync::Arc;
use std::time::Duration;

use haft::approval::Decision;
use haft::permission::Verdict;
use haft::policy::{Policy, Profile, RuleSet, UntrustedContent};
use haft_builtins::command::CommandNetwork;
use haft_sandbox::Sandbox;
use serde_json::json;

use crate::ask::{allowing, next, scene, town, with_people, yes};
use crate::town::Town;
use crate::{Scene, allow};

pub(crate) async fn all(sandbox: &Sandbox) {
    a_command_in_the_background_asks_like_any_other(sandbox).await;
    without_anyone_to_ask_a_command_in_the_background_is_refused(sandbox).await;
    a_command_in_the_background_is_guarded_both_ways(sandbox).await;
    a_listed_host_is_guarded_once_the_run_has_read_elsewhere(sandbox).await;
}

/// Connects to a place whenever a file tells it to, and says how that went.
const CONNECTS_ON_DEMAND: &str = "
import time
n = 0
while True:
    while not os.path.exists(f'go{n}'): time.sleep(0.01)
    place = open(f'go{n}').read()
    if not place: break
    stream = dial()
    stream.sendall(f'CONNECT {place} HTTP/1.1\\r\\nHost: {place}\\r\\n\\r\\n'.encode())
    head = b''
    while b'\\r\\n\\r\\n' not in head: head += stream.recv(1)
    print(head.decode(), rest(stream) if b' 200 ' not in head else '')
    stream.close()
    open(f'done{n}', 'w').close()
    n += 1";

/// A command in the background that connects where and when it is told to.
struct Background<'a> {
    scene: &'a Scene,
    task: serde_json::Value,
    steps: usize,
}

impl<'a> Background<'a> {
    async fn start(scene: &'a Scene) -> Self {
        let script = format!("from net import *\n{CONNECTS_ON_DEMAND}");
        let argv = json!(["python3", "-c", script]);
        let started = scene
            .call(json!({ "argv": argv, "background": true }))
            .await;
        let data: serde_json::Value =
            serde_json::from_str(started.data.as_ref().unwrap().get()).unwrap();
        Self {
            scene,
            task: data["task"].clone(),
            steps: 0,
        }
    }

    /// Connects to this place, and returns when it has, or has been refused.
    async fn connect(&mut self, place: &str) {
        let done = self.scene.root().join(format!("done{}", self.steps));
        self.tell(place);
        while !done.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn tell(&mut self, place: &str) {
        let (root, next) = (self.scene.root(), self.scene.root().join("next"));
        std::fs::write(&next, place).unwrap();
        std::fs::rename(&next, root.join(format!("go{}", self.steps))).unwrap();
        self.steps += 1;
    }

    /// Ends it and returns all that it wrote.
    async fn output(mut self) -> String {
        self.tell("");
        let wait = json!({ "task": self.task, "timeout_s": 60 });
        let call = haft::call::ToolCall::new("await_command", wait.to_string());
        let ended = self.scene.executor.execute(&self.scene.session, call).await;
        let data: serde_json::Value =
            serde_json::from_str(ended.data.as_ref().unwrap().get()).unwrap();
        data["stdout"].as_str().unwrap().to_owned()
    }
}

/// Returns a scene where rules allow these connections, after whatever was read, under a guard.
fn guarded(sandbox: &Sandbox, town: &Arc<Town>, rules: &[&str], verdict: Verdict) -> Scene {
    let network = CommandNetwork::ask(allow(&[], town));
    let policy = Policy::builder(Profile::Trusted)
        .rules(allowing(rules))
        .guard(UntrustedContent::new(verdict));
    Scene::judged(sandbox, network, policy.build().unwrap())
}

const BOTH: [&str; 2] = ["Network(example.com)", "Network(other.example.org)"];

async fn a_command_in_the_background_asks_like_any_other(sandbox: &Sandbox) {
    let town = town().await;
    let (scene, mut requests) = with_people(scene(sandbox, &town, RuleSet::default()));
    let mut command = Background::start(&scene).await;
    let people = async {
        next(&mut requests, "example.com:443").await.decide(yes());
        let pending = next(&mut requests, "other.example.org:443").await;
        pending.decide(Decision::deny("ann", "test"));
    };
    let steps = async {
        for place in [
            "example.com:443",
            "example.com:443",
            "other.example.org:443",
        ] {
            command.connect(place).await;
        }
    };
    tokio::join!(people, steps);
    let out = command.output().await;
    assert_eq!(out.matches("HTTP/1.1 200").count(), 2, "{out}");
    assert!(out.contains("ann said no"), "{out}");
}

async fn without_anyone_to_ask_a_command_in_the_background_is_refused(sandbox: &Sandbox) {
    let town = town().await;
    let scene = scene(sandbox, &town, allowing(&["Network(example.com)"]));
    let mut command = Background::start(&scene).await;
    for place in [
        "example.com:443",
        "other.example.org:443",
        "other.example.org:443",
    ] {
        command.connect(place).await;
    }
    let out = command.output().await;
    assert_eq!(out.matches("HTTP/1.1 200").count(), 1, "{out}");
    assert_eq!(out.matches("no approver is available").count(), 2, "{out}");
    assert_eq!(town.connected().len(), 1);
}

/// What a command in the background reads marks the run when it connects, and its later connections are judged with what the run has
/// read by then, also to places that it has connected to before.
async fn a_command_in_the_background_is_guarded_both_ways(sandbox: &Sandbox) {
    for verdict in [Verdict::Ask, Verdict::Deny] {
        let town = town().await;
        let scene = guarded(sandbox, &town, &BOTH, verdict);
        let mut command = Background::start(&scene).await;
        command.connect("example.com:443").await;
        // Another command now sends nothing to another place, and this one does not either.
        let seen = scene.script("connect('other.example.org:443')").await;
        assert!(seen.shown.contains("HTTP/1.1 403"), "{}", seen.shown);
        command.connect("other.example.org:443").await;
        // Data may return to where it came from.
        command.connect("example.com:443").await;
        let out = command.output().await;
        assert_eq!(out.matches("HTTP/1.1 200").count(), 2, "{out}");
        assert!(out.contains("HTTP/1.1 403"), "{out}");
        let read = scene.session.untrusted();
        assert!(
            read.iter()
                .any(|source| source.origin() == "host example.com"),
            "{read:?}"
        );
    }
    // A place that a command connected to before the run read anything is judged anew.
    let town = town().await;
    let (scene, mut requests) = with_people(guarded(sandbox, &town, &BOTH, Verdict::Ask));
    let mut command = Background::start(&scene).await;
    command.connect("example.com:443").await;
    let people = async {
        next(&mut requests, "other.example.org:443")
            .await
            .decide(yes());
        let pending = next(&mut requests, "example.com:443").await;
        assert!(
            pending.request().reason.contains("has read"),
            "{}",
            pending.request().reason
        );
        pending.decide(Decision::deny("ann", "test"));
    };
    let steps = async {
        command.connect("other.example.org:443").await;
        command.connect("example.com:443").await;
    };
    tokio::join!(people, steps);
    let out = command.output().await;
    assert!(out.contains("ann said no"), "{out}");
}

/// Where a list decides, a command that began before the run read a page sends nothing to a listed host afterwards, nor to the page's own,
/// but with a person's consent.
async fn a_listed_host_is_guarded_once_the_run_has_read_elsewhere(sandbox: &Sandbox) {
    let rows = [
        (Verdict::Ask, false, 0, "no approver is available"),
        (Verdict::Ask, true, 2, "200"),
        (Verdict::Deny, true, 0, "the run has read"),
    ];
    for (verdict, consents, connections, says) in rows {
        let town = town().await;
        let hosts = ["example.com", "other.example.org"];
        let network = CommandNetwork::allow_list(allow(&hosts, &town));
        // Rules allow the rest, so that only the guard asks.
        let policy = Policy::builder(Profile::Trusted)
            .rules(allowing(&["Bash", BOTH[0], BOTH[1]]))
            .guard(UntrustedContent::new(verdict));
        let mut scene = Scene::judged(sandbox, network, policy.build().unwrap());
        if consents {
            scene.executor = scene
                .executor
                .with_approver(haft::testing::ConsentingPerson);
        }
        let mut command = Background::start(&scene).await;
        let page = haft::call::ToolCall::new("page", "{}");
        let read = scene.executor.execute(&scene.session, page).await;
        assert!(read.is_ok(), "{read:?}");
        command.connect("other.example.org:443").await;
        command.connect("example.com:443").await;
        let out = command.output().await;
        assert_eq!(
            out.matches("HTTP/1.1 200").count(),
            connections,
            "{verdict:?}: {out}"
        );
        assert!(out.contains(says), "{verdict:?}: {out}");
    }
}
