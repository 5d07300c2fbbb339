//! Rows 76 and 77: exactly what the user approved runs, and the user's time is not the script's.

use std::sync::Arc;
use std::time::Duration;

use haft::approval::{ApprovalRequest, Approver, ApproverReply, Decision};
use haft::future::BoxFuture;
use haft::result::Status;
use parking_lot::Mutex;
use serde_json::json;

use crate::runner::Test;
use crate::scene::{Parts, Scene, pretty, trace, value, wait};
use crate::{RAW, assert_broken};

pub(crate) const TESTS: &[Test] = &[
    (
        "no_76_arguments_do_not_change_between_approval_and_run",
        approved_as_seen,
    ),
    (
        "no_77_the_clock_stands_still_while_a_person_thinks",
        patience,
    ),
];

/// A user who takes time, and remembers what was shown.
#[derive(Debug)]
struct Person {
    thinks: Duration,
    yes: bool,
    seen: Mutex<Vec<String>>,
}

impl Approver for Person {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApproverReply> {
        self.seen.lock().push(request.arguments.clone());
        Box::pin(async move {
            // slow on purpose: users are.
            tokio::time::sleep(self.thinks).await;
            if self.yes {
                Decision::approve("ada", "test").into()
            } else {
                Decision::deny("ada", "test")
                    .with_message("not today")
                    .into()
            }
        })
    }
}

fn person(thinks: u64, yes: bool) -> (Scene, Arc<Person>) {
    let person = Arc::new(Person {
        thinks: Duration::from_millis(thinks),
        yes,
        seen: Mutex::default(),
    });
    let scene = Scene::of(Parts {
        approver: Some(Arc::clone(&person) as _),
        ..Parts::default()
    });
    (scene, person)
}

fn approved_as_seen() {
    let (scene, ada) = person(300, true);
    // A second frame with the same id while she reads the first.
    let code = format!(
        "{RAW}call(1, b'critical', b'{{\"a\":\"harmless\"}}')\ntime.sleep(0.05)\ncall(1, b'critical', b'{{\"a\":\"harm\"}}')\ntime.sleep(9)"
    );
    let outcome = wait(scene.chain(&code));
    assert_broken(&outcome, "the id 1 again");
    assert_eq!(
        trace(&outcome),
        ["critical:cancelled"],
        "{}",
        pretty(&outcome)
    );
    // Later changes to the script's object were never sent.
    let code = "a = {'to': ['harmless']}\nasync def f():\n    r = tools.critical(a=a)\n    a['to'][0] = 'harm'\n    return (await r).data\nawait f()";
    let outcome = wait(scene.chain(code));
    assert_eq!(
        value(&outcome),
        json!({"a": {"to": ["harmless"]}}),
        "{}",
        pretty(&outcome)
    );
    let seen = ada.seen.lock().clone();
    assert!(
        seen.iter().all(|seen| !seen.contains("\"harm\"")),
        "{seen:?}"
    );
}

fn patience() {
    let (scene, ada) = person(500, true);
    let code = "for n in range(4):\n    tools.critical(n=n)\n'done'";
    let outcome = wait(scene.chain_with(json!({"code": code, "timeout_s": 1})));
    assert_eq!(
        (outcome.status, value(&outcome)),
        (Status::Ok, json!("done")),
        "{}",
        pretty(&outcome)
    );
    assert_eq!(ada.seen.lock().len(), 4);
    let (scene, _) = person(50, false);
    let code =
        "try:\n    tools.critical(a=1)\nexcept PermissionError as e:\n    said = str(e)\nsaid";
    let outcome = wait(scene.chain(code));
    assert_eq!(
        value(&outcome),
        json!(
            "ada said no: not today (do it another way, or tell the user that it is not permitted here)"
        ),
        "{}",
        pretty(&outcome)
    );
    // The script's own time still runs out.
    let (scene, _) = person(100, true);
    let code = "tools.critical(a=1)\nwhile True:\n    pass";
    let outcome = wait(scene.chain_with(json!({"code": code, "timeout_s": 1})));
    assert_eq!(outcome.status, Status::Timeout, "{}", pretty(&outcome));
    assert_eq!(trace(&outcome), ["critical:ok"]);
}
