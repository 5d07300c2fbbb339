//! `sandbox.network = "ask"`: each connection is judged when it is made, and held until the user decides.

use std::sync::Arc;
use std::time::Duration;

use haft::approval::inbox::{RequestFilter, RequestStatus};
use haft::approval::{ApprovalScope, Decision, PendingRequest, RequestReceiver, channel};
use haft::budget::{Budgets, EffectLimits};
use haft::permission::Effect;
use haft::policy::{Policy, Profile, RuleSet};
use haft_builtins::command::CommandNetwork;
use haft_sandbox::Sandbox;
use serde_json::json;

use crate::town::{Town, page};
use crate::{Scene, allow};

pub(crate) async fn all(sandbox: &Sandbox) {
    updates_of_browsers_are_not_asked_about(sandbox).await;
    a_person_decides_about_each_host_once(sandbox).await;
    an_approval_for_the_session_holds_for_its_command_line(sandbox).await;
    without_anyone_to_ask_it_fails_at_once(sandbox).await;
    rules_decide_before_people(sandbox).await;
    a_thousand_connections_share_one_request(sandbox).await;
    a_thousand_hosts_are_a_few_requests_at_a_time(sandbox).await;
    a_thousand_hosts_that_nobody_decides_about_leave_no_request(sandbox).await;
    a_decision_that_was_changed_to_another_host_opens_none(sandbox).await;
    time_stands_still_while_a_person_thinks(sandbox).await;
    an_answer_after_the_end_changes_nothing(sandbox).await;
    each_connection_counts_as_a_send(sandbox).await;
    a_command_that_goes_around_the_proxy_is_told_why_it_fails(sandbox).await;
}

/// A thousand connections at once, each to a host of its own or all to one.
const CROWD: &str = "
import net, threading
heads = []
net.print = heads.append
def some(n):
    for i in range(5): opened(place(n * 5 + i)).close()
threads = [threading.Thread(target=some, args=(n,)) for n in range(200)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print({head: heads.count(head) for head in heads})";

const GET: &str = "get('https://example.com/')";

pub(crate) async fn town() -> Arc<Town> {
    Town::new(|_| page("text/plain", "here")).await
}

pub(crate) fn scene(sandbox: &Sandbox, town: &Arc<Town>, rules: RuleSet) -> Scene {
    let network = CommandNetwork::ask(allow(&[], town));
    let policy = Policy::builder(Profile::Trusted).rules(rules);
    let scene = Scene::judged(sandbox, network, policy.build().unwrap());
    scene.trust(town);
    scene
}

pub(crate) fn with_people(scene: Scene) -> (Scene, RequestReceiver) {
    let (approver, requests) = channel(8);
    let executor = scene.executor.clone().with_approver(approver);
    (Scene { executor, ..scene }, requests)
}

pub(crate) fn allowing(rules: &[&str]) -> RuleSet {
    RuleSet {
        allow: rules.iter().map(|rule| (*rule).into()).collect(),
        ..RuleSet::default()
    }
}

/// Returns the next request, which must be about this host and port.
pub(crate) async fn next(requests: &mut RequestReceiver, place: &str) -> PendingRequest {
    let pending = requests.next().await.unwrap();
    let request = pending.request();
    assert_eq!(request.tool.as_str(), "connect");
    let effect = &request.snapshot.permissions[0].effect;
    assert!(
        matches!(effect, Effect::Connect { url, .. } if url == place),
        "{effect:?}"
    );
    pending
}

pub(crate) fn yes() -> Decision {
    Decision::approve("ann", "test")
}

/// What a browser asks its maker on its own needs no person; a rule may allow it.
async fn updates_of_browsers_are_not_asked_about(sandbox: &Sandbox) {
    let town = town().await;
    let script = "connect('update.googleapis.com:443')";
    let (scene_with_people, mut requests) = with_people(scene(sandbox, &town, RuleSet::default()));
    let seen = tokio::select! {
        seen = scene_with_people.script(script) => seen,
        pending = requests.next() => panic!("{:?}", pending.unwrap().request()),
    };
    let refused = seen.data["network_refused"].to_string();
    assert!(
        refused.contains("browsers ask it for updates"),
        "{}",
        seen.shown
    );
    let ruled = scene(
        sandbox,
        &town,
        allowing(&["Network(update.googleapis.com)"]),
    );
    let seen = ruled.script(script).await;
    assert!(!seen.shown.contains("browsers ask it"), "{}", seen.shown);
}

async fn a_person_decides_about_each_host_once(sandbox: &Sandbox) {
    let town = town().await;
    let (scene, mut requests) = with_people(scene(sandbox, &town, RuleSet::default()));
    let script = format!("{GET}\n{GET}\nconnect('other.example.org:443')");
    let people = async {
        let pending = next(&mut requests, "example.com:443").await;
        let shown: serde_json::Value = serde_json::from_str(&pending.request().arguments).unwrap();
        assert_eq!(shown["program"], "python3");
        assert_eq!(shown["host"], "example.com");
        assert_eq!(shown["port"], 443);
        assert!(shown["command"].as_str().unwrap().contains("get("));
        pending.decide(yes());
        let pending = next(&mut requests, "other.example.org:443").await;
        pending.decide(Decision::deny("ann", "test"));
    };
    let (seen, ()) = tokio::join!(scene.script(&script), people);
    let out = seen.data["stdout"].as_str().unwrap();
    assert_eq!(out.matches("READ 200").count(), 2, "{out}");
    assert!(out.contains("HTTP/1.1 403"), "{out}");
    assert!(out.contains("ann said no"), "{out}");
    let refused = seen.data["network_refused"][0].as_str().unwrap();
    assert!(
        refused.starts_with("connection to other.example.org:443 refused"),
        "{refused}"
    );
    assert!(seen.strength.contains(", network ask"), "{}", seen.strength);
}

/// One decision covers all connections to a host, but each of them can carry data out.
async fn each_connection_counts_as_a_send(sandbox: &Sandbox) {
    let town = town().await;
    let network = CommandNetwork::ask(allow(&[], &town));
    let policy = Policy::builder(Profile::Trusted).rules(allowing(&["Network(example.com)"]));
    let budgets = Budgets::of_run(EffectLimits {
        sends: Some(2),
        ..EffectLimits::default()
    });
    let policy = policy.build().unwrap().with_budgets(budgets);
    let scene = Scene::judged(sandbox, network, policy);
    scene.trust(&town);
    let script = "connect('example.com:443')\n".repeat(3);
    let seen = scene.script(&script).await;
    let out = &seen.shown;
    assert_eq!(out.matches("HTTP/1.1 200").count(), 2, "{out}");
    assert_eq!(out.matches("HTTP/1.1 403").count(), 1, "{out}");
}

async fn an_approval_for_the_session_holds_for_its_command_line(sandbox: &Sandbox) {
    let town = town().await;
    for (scope, asks_again) in [(ApprovalScope::Once, true), (ApprovalScope::Session, false)] {
        let (scene, mut requests) = with_people(scene(sandbox, &town, RuleSet::default()));
        let people = async {
            next(&mut requests, "example.com:443")
                .await
                .decide(yes().hold_for(scope));
        };
        let (seen, ()) = tokio::join!(scene.script(GET), people);
        assert!(seen.ok, "{}", seen.shown);
        let same = scene.script(GET);
        if asks_again {
            let people = async {
                next(&mut requests, "example.com:443").await.decide(yes());
            };
            assert!(tokio::join!(same, people).0.ok);
        } else {
            assert!(same.await.ok);
        }
        // Another command line needs its own approval.
        let people = async {
            let pending = next(&mut requests, "example.com:443").await;
            pending.decide(Decision::deny("ann", "test"));
        };
        let other = scene.script("connect('example.com:443')");
        let (seen, ()) = tokio::join!(other, people);
        assert!(seen.shown.contains("ann said no"), "{}", seen.shown);
        // So does the same line with another variable.
        let people = async {
            let pending = next(&mut requests, "example.com:443").await;
            pending.decide(Decision::deny("ann", "test"));
        };
        let script = format!("from net import *\n{GET}");
        let env = json!({"SSL_CERT_FILE": scene.root().join("ca.crt"), "PYTHONDONTWRITEBYTECODE": "1", "MODE": "all"});
        let other = scene.call(json!({"argv": ["python3", "-c", script], "env": env}));
        let (outcome, ()) = tokio::join!(other, people);
        let shown = serde_json::to_string(&outcome).unwrap();
        assert!(shown.contains("ann said no"), "{shown}");
    }
}

async fn without_anyone_to_ask_it_fails_at_once(sandbox: &Sandbox) {
    let town = town().await;
    let scene = scene(sandbox, &town, RuleSet::default());
    let outcome = scene
        .call(json!({ "argv": ["python3", "-c", format!("from net import *\n{GET}")] }))
        .await;
    let shown = serde_json::to_string(&outcome).unwrap();
    assert!(!outcome.is_ok(), "{shown}");
    assert!(
        shown.contains("connection to example.com:443 refused"),
        "{shown}"
    );
    assert!(shown.contains("no approver"), "{shown}");
    let operator = outcome.operator.unwrap();
    assert!(operator.contains("Network(example.com)"), "{operator}");
    assert!(!shown.contains("Network("), "a model is not told: {shown}");
}

async fn rules_decide_before_people(sandbox: &Sandbox) {
    let town = town().await;
    let denied = RuleSet {
        deny: vec!["Network(example.com)".into()],
        ..allowing(&["Network"])
    };
    for (rules, reached) in [
        (allowing(&["Network(example.com)"]), true),
        (allowing(&["Network(*.example.com)"]), false),
        (denied, false),
    ] {
        let scene = scene(sandbox, &town, rules);
        let seen = scene.script(GET).await;
        assert_eq!(seen.ok, reached, "{}", seen.shown);
    }
    // A rule for a name does not open a private address that it resolves to.
    town.answers("inside.example.com", &[&["10.0.0.7"]]);
    let scene = scene(sandbox, &town, allowing(&["Network"]));
    let seen = scene.script("connect('inside.example.com:443')").await;
    assert!(seen.shown.contains("no approver"), "{}", seen.shown);
    assert!(seen.shown.contains("private-addresses"), "{}", seen.shown);
    assert_eq!(seen.data.get("network_reached"), None);
    assert_eq!(town.connected().len(), 1);
}

async fn a_thousand_connections_share_one_request(sandbox: &Sandbox) {
    let town = town().await;
    let (scene, mut requests) = with_people(scene(sandbox, &town, RuleSet::default()));
    let script = format!("place = lambda n: 'example.com:443'\n{CROWD}");
    let people = async {
        next(&mut requests, "example.com:443").await.decide(yes());
        requests.next().await.is_none()
    };
    let seen = tokio::select! {
        seen = scene.script(&script) => seen,
        _ = people => panic!("it was asked about twice"),
    };
    let out = seen.data["stdout"].as_str().unwrap();
    assert_eq!(out, "{'HTTP/1.1 200 OK': 1000}\n");
}

async fn a_thousand_hosts_are_a_few_requests_at_a_time(sandbox: &Sandbox) {
    let town = town().await;
    let (scene, mut requests) = with_people(scene(sandbox, &town, RuleSet::default()));
    let script = format!("place = lambda n: f'h{{n}}.example.com:443'\n{CROWD}");
    let mut asked = 0;
    let people = async {
        let mut open = Vec::new();
        while open.len() < 8 {
            open.push(requests.next().await.unwrap());
        }
        // The ninth arrives once one of these is decided.
        tokio::select! {
            biased;
            _ = requests.next() => panic!("nine requests at once"),
            () = std::future::ready(()) => {}
        }
        loop {
            for pending in open.drain(..) {
                asked += 1;
                pending.decide(Decision::deny("ann", "test"));
            }
            open.push(requests.next().await.unwrap());
        }
    };
    let seen = tokio::select! {
        seen = scene.script(&script) => seen,
        () = people => unreachable!(),
    };
    assert!(asked <= 64, "{asked}");
    let out = seen.data["stdout"].as_str().unwrap();
    assert_eq!(out, "{'HTTP/1.1 403 Forbidden': 1000}\n");
    assert!(
        seen.shown.contains("already asked for 64 hosts")
            || seen.shown.contains("more were refused")
    );
    assert_eq!(town.connected().len(), 0);
}

async fn a_thousand_hosts_that_nobody_decides_about_leave_no_request(sandbox: &Sandbox) {
    let town = town().await;
    let (scene, mut requests) = with_people(scene(sandbox, &town, RuleSet::default()));
    let inbox = scene.executor.inbox();
    let pending = RequestFilter {
        tenant: "local".into(),
        status: vec![RequestStatus::Pending],
        limit: 100,
        ..RequestFilter::default()
    };
    let script = format!("place = lambda n: f'h{{n}}.example.com:443'\n{CROWD}");
    let people = async {
        loop {
            let request = requests.next().await.unwrap();
            let open = inbox.list(&pending).await.unwrap().len();
            assert!(open <= 8, "{open} requests at once");
            // Like the call of a client whose wait has timed out.
            request.suspend();
        }
    };
    let seen = tokio::select! {
        seen = scene.script(&script) => seen,
        () = people => unreachable!(),
    };
    let out = seen.data["stdout"].as_str().unwrap();
    assert_eq!(out, "{'HTTP/1.1 403 Forbidden': 1000}\n");
    assert!(
        seen.shown.contains("nobody approved it within"),
        "{}",
        seen.shown
    );
    assert_eq!(inbox.list(&pending).await.unwrap().len(), 0);
    assert_eq!(town.connected().len(), 0);
}

async fn time_stands_still_while_a_person_thinks(sandbox: &Sandbox) {
    let town = town().await;
    let (scene, mut requests) = with_people(scene(sandbox, &town, RuleSet::default()));
    let argv = json!(["python3", "-c", format!("from net import *\n{GET}")]);
    let env = json!({ "SSL_CERT_FILE": scene.root().join("ca.crt") });
    let people = async {
        let pending = next(&mut requests, "example.com:443").await;
        // slow on purpose: longer than the command may take.
        tokio::time::sleep(Duration::from_secs(12)).await;
        pending.decide(yes());
    };
    let call = scene.call(json!({ "argv": argv, "env": env, "timeout_s": 10 }));
    let (outcome, ()) = tokio::join!(call, people);
    assert!(outcome.is_ok(), "{outcome:?}");
}

async fn an_answer_after_the_end_changes_nothing(sandbox: &Sandbox) {
    let town = town().await;
    let (scene, mut requests) = with_people(scene(sandbox, &town, RuleSet::default()));
    // Ends as soon as the request is there.
    let script = "
stream = dial()
stream.sendall(b'CONNECT example.com:443 HTTP/1.1\\r\\nHost: example.com:443\\r\\n\\r\\n')
import time
while not os.path.exists('asked'): time.sleep(0.01)
";
    let root = scene.root();
    let people = async {
        let pending = next(&mut requests, "example.com:443").await;
        std::fs::write(root.join("asked"), "").unwrap();
        pending
    };
    let (seen, pending) = tokio::join!(scene.script(script), people);
    assert!(seen.ok, "{}", seen.shown);
    while !pending.is_withdrawn() {
        tokio::task::yield_now().await;
    }
    pending.decide(yes());
    assert_eq!(town.connected().len(), 0);
}

async fn a_decision_that_was_changed_to_another_host_opens_none(sandbox: &Sandbox) {
    let town = town().await;
    let (scene, mut requests) = with_people(scene(sandbox, &town, RuleSet::default()));
    let people = async {
        let pending = next(&mut requests, "example.com:443").await;
        let edited = pending
            .request()
            .arguments
            .replace("example.com\",", "other.example.com\",");
        pending.decide(yes().with_arguments(edited));
    };
    let (seen, ()) = tokio::join!(scene.script("connect('example.com:443')"), people);
    assert!(
        seen.shown.contains("edited to another host"),
        "{}",
        seen.shown
    );
    assert_eq!(town.connected().len(), 0);
}

async fn a_command_that_goes_around_the_proxy_is_told_why_it_fails(sandbox: &Sandbox) {
    let town = town().await;
    let scene = scene(sandbox, &town, RuleSet::default());
    let outcome = scene
        .call(json!({ "argv": ["python3", "-c", "from net import *\ndirect('db.example.com', 5432)"] }))
        .await;
    let shown = serde_json::to_string(&outcome).unwrap();
    assert!(!outcome.is_ok(), "{shown}");
    for told in ["HTTPS_PROXY", "ports 22, 80, 443", "db.example.com"] {
        assert!(shown.contains(told), "{shown}");
    }
    let operator = outcome.operator.unwrap();
    assert!(
        operator.contains("`Network(db.example.com:PORT)`"),
        "{operator}"
    );
    // The loopback of the command's own network is not the proxy's.
    let server = "
import http.server, threading
server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
get(f'http://localhost:{server.server_port}/a.txt')";
    let seen = scene.script(server).await;
    assert!(seen.shown.contains("IN-THE-WORKSPACE"), "{}", seen.shown);
}
