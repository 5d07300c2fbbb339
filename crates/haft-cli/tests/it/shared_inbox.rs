//! Two haft processes that share a database but no state folder: the remaining one acts on decisions.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::approvals::{call_in_background, decide, lines, only_one, show, text, wait};
use crate::cluster::Cluster;
use crate::harness::Lab;
use crate::serve::Server;

/// Starts a server with its own state folder, on this database and on the lab's workspace.
fn server(lab: &Lab, name: &str, url: &str) -> Server {
    let home = lab.home().join(name);
    let store = format!("store.url={url}");
    Server::start(lab, &["-c", &store, "--home", home.to_str().unwrap()])
}

fn append() -> Value {
    json!({"path": "log.txt", "content": "line\n", "mode": "append"})
}

#[test]
fn the_haft_that_is_left_runs_what_was_asked_of_the_one_that_was_killed() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    for (word, status, count) in [("approve", "done", 1), ("deny", "denied", 0)] {
        let lab = Lab::new();
        let url = cluster.database();
        let first = server(&lab, "one", &url);
        let second = server(&lab, "two", &url);
        let asker = call_in_background(&first, "write_file", &append());
        let id = text(&only_one(&second), "id");
        drop(first);
        assert!(asker.join().unwrap().is_none());
        assert_eq!(decide(&second, &id, word, &json!({})).status, 200);
        let entry = wait("the outcome", || {
            let entry = show(&second, &id);
            entry["outcome"].is_object().then_some(entry)
        });
        assert_eq!(entry["status"], status, "{entry}");
        assert_eq!(lines(&lab.work().join("log.txt")), count);
        assert_eq!(decide(&second, &id, "approve", &json!({})).status, 409);
    }
}

#[test]
fn a_decision_at_one_haft_is_acted_on_by_the_other_that_waits() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let lab = Lab::new();
    let url = cluster.database();
    let (first, second) = (server(&lab, "one", &url), server(&lab, "two", &url));
    let asker = call_in_background(&first, "write_file", &append());
    let id = text(&only_one(&second), "id");
    assert_eq!(decide(&second, &id, "approve", &json!({})).status, 200);
    let outcome = asker.join().unwrap().unwrap().json();
    assert_eq!(outcome["status"], "ok", "{outcome}");
    assert_eq!(lines(&lab.work().join("log.txt")), 1);
}

#[test]
fn a_script_that_waited_in_a_killed_haft_goes_on_in_the_other() {
    let Some(cluster) = Cluster::shared() else {
        return;
    };
    let lab = Lab::new();
    let url = cluster.database();
    let (first, second) = (server(&lab, "one", &url), server(&lab, "two", &url));
    let code = "n = len(tools.list_files().data['entries'])\n\
                tools.write_file(path='log.txt', content='one\\n', mode='append')\nprint('done', n)";
    let asker = call_in_background(&first, "tool_chain", &json!({ "code": code }));
    let id = text(&only_one(&second), "id");
    drop(first);
    assert!(asker.join().unwrap().is_none());
    // AF1: a script that started over would see it.
    lab.file("new.txt", "");
    assert_eq!(decide(&second, &id, "approve", &json!({})).status, 200);
    let entry = wait("the script's end", || {
        let entry = show(&second, &id);
        (entry["outcome"]["tool"] == "tool_chain").then_some(entry)
    });
    assert_eq!(
        entry["outcome"]["content"][0]["text"], "done 0\n",
        "{entry}"
    );
    assert_eq!(lines(&lab.work().join("log.txt")), 1);
}

#[test]
fn a_database_that_is_gone_for_a_while_loses_and_doubles_nothing() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let lab = Lab::new();
    let url = cluster.database();
    let haft = server(&lab, "one", &url);
    let asker = call_in_background(&haft, "write_file", &append());
    let id = text(&only_one(&haft), "id");
    cluster.crash();
    // A new call fails with a clear error, within its limits, and runs nothing.
    let begun = Instant::now();
    let other = json!({"path": "other.txt", "content": "x"});
    let refused = call_in_background(&haft, "write_file", &other)
        .join()
        .unwrap();
    let refused = refused.unwrap().json();
    assert_eq!(refused["error"]["kind"], "unavailable", "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(decide(&haft, &id, "approve", &json!({})).status, 503);
    cluster.run();
    let decided = wait("the database", || {
        let reply = decide(&haft, &id, "approve", &json!({}));
        (reply.status != 503).then_some(reply)
    });
    assert_eq!(decided.status, 200, "{}", decided.body);
    let outcome = asker.join().unwrap().unwrap().json();
    assert_eq!(outcome["status"], "ok", "{outcome}");
    assert_eq!(lines(&lab.work().join("log.txt")), 1);
    assert!(!lab.work().join("other.txt").exists());
}
