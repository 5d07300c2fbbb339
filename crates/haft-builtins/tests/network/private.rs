//! `sandbox.network = "ask"` and private addresses: the request says so, and no decision about a name opens another address.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use haft::approval::{ApprovalScope, Decision, PendingRequest, RequestReceiver};
use haft::policy::{Policy, Profile, RuleSet};
use haft::spec::Risk;
use haft_builtins::command::CommandNetwork;
use haft_builtins::web::network::OwnListeners;
use haft_sandbox::Sandbox;
use serde_json::{Value, json};

use crate::ask::{allowing, next, scene, town, with_people, yes};
use crate::{Scene, allow};

pub(crate) async fn all(sandbox: &Sandbox) {
    a_private_host_is_asked_about_with_its_address(sandbox).await;
    a_name_is_looked_up_after_a_person_agreed_to_it(sandbox).await;
    a_name_that_leads_elsewhere_later_is_asked_about_again(sandbox).await;
    metadata_services_are_never_offered(sandbox).await;
    no_command_is_offered_what_haft_itself_serves(sandbox).await;
    a_registry_is_one_request(sandbox).await;
}

fn no() -> Decision {
    Decision::deny("ann", "test")
}

fn arguments(pending: &PendingRequest) -> Value {
    serde_json::from_str(&pending.request().arguments).unwrap()
}

async fn a_private_host_is_asked_about_with_its_address(sandbox: &Sandbox) {
    let town = town().await;
    town.answers("registry.npmjs.org", &[&["10.0.0.7", "10.0.0.6"]]);
    town.answers("registry.internal", &[&["192.168.1.5"]]);
    for (place, leads_to, rule) in [
        (
            "registry.npmjs.org:443",
            &["10.0.0.6", "10.0.0.7"][..],
            "Network(private:registry.npmjs.org:443)",
        ),
        (
            "registry.internal:8443",
            &["192.168.1.5"],
            "Network(registry.internal:8443)",
        ),
        ("10.0.0.9:443", &[], "Network(10.0.0.9:443)"),
    ] {
        let (scene, mut requests) = with_people(scene(sandbox, &town, RuleSet::default()));
        let before = town.connected().len();
        let people = async {
            let pending = next(&mut requests, place).await;
            let request = pending.request();
            assert_eq!(request.risk, Risk::Critical);
            assert!(request.reason.contains("private"), "{}", request.reason);
            assert_eq!(request.suggested, [rule]);
            let shown = arguments(&pending);
            let expect = (!leads_to.is_empty()).then(|| json!(leads_to));
            assert_eq!(shown.get("leads_to"), expect.as_ref());
            assert_eq!(shown["program"], "python3");
            assert_eq!(town.connected().len(), before);
            pending.decide(yes().hold_for(ApprovalScope::Always));
        };
        let script = format!("opened('{place}')");
        let (seen, ()) = tokio::join!(scene.script(&script), people);
        assert!(seen.shown.contains("HTTP/1.1 200"), "{}", seen.shown);
        let reached = seen.data["network_reached"][0].as_str().unwrap();
        assert!(reached.starts_with(place), "{reached}");
        // The stored rule suffices from now on.
        let again = scene.script(&format!("{script}.close()")).await;
        assert!(again.shown.contains("HTTP/1.1 200"), "{}", again.shown);
    }
}

async fn a_name_is_looked_up_after_a_person_agreed_to_it(sandbox: &Sandbox) {
    let town = town().await;
    town.answers("inside.example.com", &[&["10.0.0.7"]]);
    for agreed in [true, false] {
        let (scene, mut requests) = with_people(scene(sandbox, &town, RuleSet::default()));
        let people = async {
            let pending = next(&mut requests, "inside.example.com:443").await;
            assert_eq!(pending.request().risk, Risk::High);
            assert_eq!(arguments(&pending).get("leads_to"), None);
            pending.decide(yes());
            let pending = next(&mut requests, "inside.example.com:443").await;
            assert_eq!(pending.request().risk, Risk::Critical);
            assert_eq!(arguments(&pending)["leads_to"], json!(["10.0.0.7"]));
            pending.decide(if agreed { yes() } else { no() });
        };
        let (seen, ()) = tokio::join!(scene.script("opened('inside.example.com:443')"), people);
        let out = seen.data["stdout"].as_str().unwrap();
        assert_eq!(out.contains("HTTP/1.1 200"), agreed, "{out}");
    }
    assert_eq!(town.connected().len(), 1);
}

async fn a_name_that_leads_elsewhere_later_is_asked_about_again(sandbox: &Sandbox) {
    let town = town().await;
    // One answer per lookup: to connect, to ask, to connect; then the same again.
    let (public, own) = (&[crate::town::PUBLIC][..], &["10.0.0.7"][..]);
    let other = &["10.0.0.8"][..];
    town.answers("turns.example.com", &[public, own, own, own, other, other]);
    let rules = allowing(&[
        "Network(turns.example.com)",
        "Network(turns.example.com:443)",
    ]);
    let (scene, mut requests) = with_people(scene(sandbox, &town, rules));
    let people = async {
        for (address, decision) in [("10.0.0.7", yes()), ("10.0.0.8", no())] {
            let pending = next(&mut requests, "turns.example.com:443").await;
            assert_eq!(arguments(&pending)["leads_to"], json!([address]));
            pending.decide(decision);
        }
    };
    let script = "for _ in range(3): opened('turns.example.com:443').close()";
    let (seen, ()) = tokio::join!(scene.script(script), people);
    let out = seen.data["stdout"].as_str().unwrap();
    assert_eq!(out.matches("HTTP/1.1 200").count(), 2, "{out}");
    assert_eq!(out.matches("HTTP/1.1 403").count(), 1, "{out}");
    let reached: Vec<String> = town
        .connected()
        .iter()
        .map(|to| to.ip().to_string())
        .collect();
    assert_eq!(reached, [crate::town::PUBLIC, "10.0.0.7"]);
}

/// Runs a script to its end; any approval request is a failure.
async fn unasked(scene: &Scene, requests: &mut RequestReceiver, script: &str) -> String {
    tokio::select! {
        seen = scene.script(script) => seen.shown,
        pending = requests.next() => panic!("{:?}", pending.unwrap().request().arguments),
    }
}

async fn metadata_services_are_never_offered(sandbox: &Sandbox) {
    let town = town().await;
    town.answers("pypi.org", &[&["169.254.169.254"]]);
    town.answers("registry.internal", &[&["10.0.0.7", "fd00:ec2::254"]]);
    let rules = allowing(&["Network(169.254.169.254:80)", "Network(evil.example.com)"]);
    town.answers("evil.example.com", &[&["169.254.169.254"]]);
    let (scene, mut requests) = with_people(scene(sandbox, &town, rules));
    for place in [
        "169.254.169.254:80",
        "[fd00:ec2::254]:80",
        "[::ffff:169.254.169.254]:80",
        "168.63.129.16:80",
        "metadata.google.internal:80",
        "pypi.org:443",
        "registry.internal:443",
        "evil.example.com:443",
    ] {
        let script = format!("opened('{place}')");
        let shown = unasked(&scene, &mut requests, &script).await;
        assert!(shown.contains("HTTP/1.1 403"), "{place}: {shown}");
    }
    assert_eq!(town.connected().len(), 0);
}

/// A haft that listens on one port of this machine.
#[derive(Debug)]
struct Console(u16);

impl OwnListeners for Console {
    fn listen_at(&self, address: SocketAddr) -> bool {
        address.ip().is_loopback() && address.port() == self.0
    }
}

async fn no_command_is_offered_what_haft_itself_serves(sandbox: &Sandbox) {
    let town = town().await;
    town.answers("localhost", &[&["127.0.0.1", "::1"]]);
    town.answers("console.example.com", &[&["127.0.0.1"]]);
    let proxy = allow(&[], &town).without_own_listeners(Arc::new(Console(4310)));
    let rules = allowing(&[
        "Network(localhost:4310)",
        "Network(127.0.0.1:4310)",
        "Network([::1]:4310)",
        "Network(private:console.example.com:4310)",
    ]);
    let policy = Policy::builder(Profile::Trusted)
        .rules(rules)
        .build()
        .unwrap();
    let scene = Scene::judged(sandbox, CommandNetwork::ask(proxy), policy);
    let (scene, mut requests) = with_people(scene);
    for host in ["localhost", "127.0.0.1", "[::1]", "console.example.com"] {
        let script = format!("opened('{host}:4310')");
        let shown = unasked(&scene, &mut requests, &script).await;
        assert!(shown.contains("haft itself listens"), "{host}: {shown}");
    }
    assert_eq!(town.connected().len(), 0);
    // haft asks about another server of this machine.
    let people = async {
        next(&mut requests, "localhost:4311").await.decide(yes());
    };
    let (seen, ()) = tokio::join!(scene.script("opened('localhost:4311')"), people);
    assert!(seen.shown.contains("HTTP/1.1 200"), "{}", seen.shown);
}

/// Writes a program of this name to the workspace that runs a script.
fn program(scene: &Scene, name: &str, script: &str) {
    let path = scene.root().join(name);
    let text = format!(
        "#!/usr/bin/env python3\nimport sys\nsys.path.insert(0, '.')\nfrom net import *\n{script}\n"
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

const PYPI: &str = "opened('pypi.org:443').close()\nopened('files.pythonhosted.org:443').close()";

async fn a_registry_is_one_request(sandbox: &Sandbox) {
    let town = town().await;
    let both = ["pypi.org", "files.pythonhosted.org"];
    for (private, rules) in [
        (&[][..], &["Network(pypi)"][..]),
        (
            &["files.pythonhosted.org"],
            &[
                "Network(pypi.org)",
                "Network(private:files.pythonhosted.org:443)",
            ],
        ),
    ] {
        for host in private {
            town.answers(host, &[&["10.0.0.7"]]);
        }
        let (scene, mut requests) = with_people(scene(sandbox, &town, RuleSet::default()));
        program(&scene, "pip", PYPI);
        program(&scene, "other", PYPI);
        let people = async {
            let pending = next(&mut requests, "pypi.org:443").await;
            let request = pending.request();
            assert_eq!(request.snapshot.permissions.len(), 2);
            assert_eq!(request.suggested, rules);
            assert_eq!(arguments(&pending)["also"][0]["host"], both[1]);
            pending.decide(yes().hold_for(ApprovalScope::Always));
        };
        let (seen, ()) = tokio::join!(scene.line("./pip install x"), people);
        let out = seen.data["stdout"].as_str().unwrap();
        assert_eq!(out.matches("HTTP/1.1 200").count(), 2, "{}", seen.shown);
        let again = unasked(&scene, &mut requests, "exec(open('pip').read())").await;
        assert_eq!(again.matches("HTTP/1.1 200").count(), 2, "{again}");
    }
    // For a program that is not an installer, haft asks host by host.
    let (scene, mut requests) = with_people(scene(sandbox, &town, RuleSet::default()));
    program(&scene, "other", PYPI);
    let people = async {
        for host in both {
            let pending = next(&mut requests, &format!("{host}:443")).await;
            assert_eq!(pending.request().snapshot.permissions.len(), 1);
            pending.decide(no());
        }
    };
    let (seen, ()) = tokio::join!(scene.line("./other"), people);
    assert_eq!(seen.data["network_refused"].as_array().unwrap().len(), 2);
}
