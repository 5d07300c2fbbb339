//! Two hundred concurrent scripts are isolated from each other, one row per kind of state; and nothing of them is left.

use std::time::Duration;

use futures_util::future::join_all;
use haft::result::Status;
use haft::session::RunLimits;
use serde_json::{Value, json};

use crate::runner::Test;
use crate::scene::{Parts, Scene, engine, pretty, value, wait};

pub(crate) const TESTS: &[Test] = &[
    ("two_hundred_scripts_at_once_stay_apart", stay_apart),
    ("a_script_finds_nothing_of_the_one_before", nothing_before),
    ("a_dropped_chain_is_ended_and_recorded", dropped),
    (
        "a_cancelled_chain_is_cancelled_whatever_its_script_does",
        cancelled,
    ),
    (
        "a_chain_whose_time_is_over_is_late_whatever_its_script_does",
        late,
    ),
];

/// A kind of state: how a script marks its own, and what it sees of it afterwards. `MARK` is a unique number.
const KINDS: &[(&str, &str, &str)] = &[
    ("globals", "globals()['x'] = MARK", "x"),
    (
        "modules",
        "import json, sys, types\nassert 'planted' not in sys.modules\nsys.modules['planted'] = types.SimpleNamespace(x=MARK)\nassert not hasattr(json, 'x')\njson.x = MARK",
        "[__import__('planted').x, json.x]",
    ),
    (
        "builtins",
        "import builtins\nassert not hasattr(builtins, 'x')\nbuiltins.x = MARK",
        "x",
    ),
    (
        "environ",
        "import os\nassert 'X' not in os.environ\nos.environ['X'] = str(MARK)",
        "os.environ['X']",
    ),
    (
        "tmp",
        "assert not __import__('os').listdir('/tmp')\nopen('/tmp/x', 'w').write(str(MARK))",
        "open('/tmp/x').read()",
    ),
    (
        "workspace",
        "assert not __import__('os').listdir('/workspace')\nopen('x', 'w').write(str(MARK))",
        "open('x').read()",
    ),
    (
        "cwd",
        "import os\nassert os.getcwd() == '/workspace'\nos.mkdir('d%d' % MARK)\nos.chdir('d%d' % MARK)",
        "os.getcwd()",
    ),
    ("artifacts", "a = artifacts.put(str(MARK))", "a.read()"),
    ("output", "print('mark', MARK)", "MARK"),
    (
        "calls",
        "r = tools.echo(x=MARK)",
        "[r.data['x'], tools.echo(y=MARK).data['y']]",
    ),
];

fn stay_apart() {
    let scenes: Vec<Scene> = (0..200).map(|_| Scene::new()).collect();
    let wait_for_others = "tools.sleep(s=0.05)\n";
    let outcomes = wait(join_all(scenes.iter().enumerate().map(|(mark, scene)| {
        let (_, plant, look) = KINDS[mark % KINDS.len()];
        let code = format!("{plant}\n{wait_for_others}{look}").replace("MARK", &mark.to_string());
        async move { scene.chain(&code).await }
    })));
    for (mark, outcome) in outcomes.iter().enumerate() {
        let (kind, _, look) = KINDS[mark % KINDS.len()];
        let seen = value(outcome);
        let text = mark.to_string();
        let expect = match kind {
            "environ" | "tmp" | "workspace" | "artifacts" => json!(text),
            "cwd" => json!(format!("/workspace/d{mark}")),
            "modules" | "calls" => json!([mark, mark]),
            _ => json!(mark),
        };
        assert_eq!(seen, expect, "{kind}: {look}\n{}", pretty(outcome));
        let printed = outcome.text();
        let expect = if kind == "output" {
            format!("mark {mark}\n")
        } else {
            String::new()
        };
        assert_eq!(printed, expect, "{kind}");
    }
    // No two of them have the same random numbers.
    let code = "import random, uuid, os\n[random.random(), str(uuid.uuid4()), str(uuid.uuid1()), os.urandom(8).hex(), random.Random().random()]";
    let scenes: Vec<Scene> = (0..50).map(|_| Scene::new()).collect();
    let outcomes = wait(join_all(scenes.iter().map(|scene| scene.chain(code))));
    for at in 0..5 {
        let mut seen: Vec<String> = outcomes.iter().map(|o| value(o)[at].to_string()).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 50, "value {at}");
    }
}

fn nothing_before() {
    // One after another, from the same pool.
    for (kind, plant, _) in KINDS {
        for mark in 0..4 {
            let scene = Scene::new();
            let outcome = wait(scene.chain(&plant.replace("MARK", &mark.to_string())));
            assert!(outcome.is_ok(), "{kind}\n{}", pretty(&outcome));
        }
    }
    let code = "import gc, sys\n[sum('MARKED' in repr(o) for o in gc.get_objects() if isinstance(o, (str, list)) and len(o) < 50), 'MARKED' + 'X' in sys.modules]";
    let scene = Scene::new();
    wait(scene.chain("x = ['MARKED', 'BEFORE']\nimport atexit"));
    let outcome = wait(scene.chain(code));
    assert_eq!(
        value(&outcome)[1],
        Value::Bool(false),
        "{}",
        pretty(&outcome)
    );
}

/// Waits until the script has made a call.
async fn called(scene: &Scene) {
    while scene.audit.words().len() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn dropped() {
    let scene = Scene::new();
    let engine = engine();
    wait(async {
        tokio::select! {
            outcome = scene.chain("tools.sleep(s=600)") => panic!("{}", pretty(&outcome)),
            () = called(&scene) => {}
        }
        drop(engine);
    });
    let words = scene.audit.words();
    assert_eq!(
        words,
        [
            "run",
            "started",
            "started",
            "ended:cancelled",
            "ended:cancelled"
        ]
    );
}

/// What a script may do with a call that ends because the session was cancelled.
const CANCELLED: &[(&str, &str)] = &[
    ("it fails", "tools.sleep(s=600)"),
    (
        "it goes on",
        "try:\n    tools.sleep(s=600)\nexcept Exception:\n    pass\n'went on'",
    ),
    (
        "it tries again",
        "while True:\n    try:\n        tools.sleep(s=600)\n    except Exception:\n        pass",
    ),
];

fn cancelled() {
    for (what, code) in CANCELLED {
        let scene = Scene::new();
        let outcome = wait(async {
            let cancel = async {
                called(&scene).await;
                scene.session.cancel();
            };
            tokio::join!(scene.chain(code), cancel).0
        });
        let shown = pretty(&outcome);
        assert_eq!(outcome.status, Status::Cancelled, "{what}: {shown}");
        assert_eq!(outcome.calls.len(), 1, "{what}");
        assert_eq!(outcome.calls[0].status, Status::Cancelled, "{what}");
    }
}

/// A call that is limited by the rest of the script's time may end before the script's own clock is checked.
fn late() {
    for _ in 0..20 {
        let scene = Scene::of(Parts {
            limits: RunLimits {
                approval_timeout: Duration::from_millis(100),
                call_timeout: Duration::from_millis(300),
                total_timeout: Duration::from_millis(300),
                ..Parts::default().limits
            },
            ..Parts::default()
        });
        let outcome = wait(scene.chain(CANCELLED[1].1));
        let shown = pretty(&outcome);
        assert_eq!(outcome.status, Status::Timeout, "{shown}");
        assert!(shown.contains("the script did not end"), "{shown}");
    }
}
