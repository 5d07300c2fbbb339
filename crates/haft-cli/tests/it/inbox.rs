//! `haft approvals` at a terminal: the inbox.

use serde_json::{Value, json};

use crate::approvals::{call_in_background, decide, lines, only_one, show, text, wait};
use crate::harness::Lab;
use crate::pty::Pty;
use crate::serve::{Server, get};

const INBOX: [&str; 3] = ["approvals", "--color", "never"];

fn append(path: &str) -> Value {
    json!({"path": path, "content": "line\n", "mode": "append"})
}

/// Waits until `count` requests are pending; returns their ids, oldest first.
fn pending(server: &Server, count: usize) -> Vec<String> {
    wait("the requests", || {
        let reply = server.ask(&get("/api/v1/approvals", Some(&server.operator)));
        let all: Vec<String> = reply
            .json()
            .as_array()?
            .iter()
            .map(|r| text(r, "id"))
            .collect();
        (all.len() == count).then_some(all)
    })
}

/// Makes a call that is suspended because no client waits for it; returns its id.
fn suspended(lab: &Lab, arguments: &Value) -> String {
    let arguments = arguments.to_string();
    let ran = lab.run(&["call", "write_file", "--args", &arguments, "--json"]);
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    text(&ran.json(), "approval")
}

fn status(lab: &Lab, id: &str) -> String {
    text(
        &lab.run(&["approvals", "show", id, "--json"]).json(),
        "status",
    )
}

#[test]
fn what_is_pending_is_listed_shown_and_decided_and_new_requests_appear() {
    let lab = Lab::new();
    lab.file("b.txt", "one\ntwo\n");
    let server = Server::start(&lab, &[]);
    let first = call_in_background(&server, "write_file", &append("a.txt"));
    pending(&server, 1);
    let second = call_in_background(&server, "write_file", &append("b.txt"));
    pending(&server, 2);
    let mut inbox = Pty::whole(&lab, &INBOX, 100);
    let list = inbox.expect("1 of 2").to_owned();
    assert!(list.contains("2 pending"), "{list}");
    assert!(list.contains("a.txt") && list.contains("b.txt"), "{list}");
    let request = inbox.expect("run it?").to_owned();
    for part in [
        "a.txt (new file)",
        "   1 +line",
        "write_file · high · asked by host",
        "why: ",
        "rule: ",
    ] {
        assert!(request.contains(part), "no {part:?} in {request}");
    }
    inbox.enter("y");
    inbox.expect(" approved by ");
    assert_eq!(first.join().unwrap().unwrap().json()["status"], "ok");
    assert_eq!(lines(&lab.work().join("a.txt")), 1);
    let request = inbox.expect("run it?").to_owned();
    for part in ["1 of 1", "b.txt (changed)", "   1  one", "   3 +line"] {
        assert!(request.contains(part), "no {part:?} in {request}");
    }
    // A request that arrives meanwhile is announced, and the shown one stays.
    let third = call_in_background(&server, "write_file", &append("c.txt"));
    inbox.expect("one more is pending: write_file · high");
    inbox.expect("c.txt");
    inbox.enter("n not into b: use docs/");
    inbox.expect(" denied by ");
    let outcome = second.join().unwrap().unwrap().json();
    let message = text(&outcome["error"], "message");
    assert!(message.ends_with(": not into b: use docs/"), "{outcome}");
    assert_eq!(lines(&lab.work().join("b.txt")), 2);
    inbox.expect("c.txt (new file)");
    inbox.expect("run it?");
    // Neither Enter alone nor quitting decides anything.
    inbox.enter("");
    inbox.expect("run it?");
    inbox.enter("q");
    let ran = inbox.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let id = pending(&server, 1).remove(0);
    assert_eq!(decide(&server, &id, "deny", &json!({})).status, 200);
    assert!(third.join().unwrap().is_some());
}

#[test]
fn a_request_that_is_decided_elsewhere_leaves_the_screen() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let mut inbox = Pty::whole(&lab, &INBOX, 100);
    inbox.expect("no request is pending; new ones appear here");
    let call = call_in_background(&server, "write_file", &append("a.txt"));
    inbox.expect("1 of 1");
    inbox.expect("run it?");
    // Even if a rule was being asked about.
    inbox.enter("a");
    inbox.expect("keep it? [y/N]");
    let id = text(&only_one(&server), "id");
    assert_eq!(decide(&server, &id, "deny", &json!({})).status, 200);
    inbox.expect(&format!("{id} denied by "));
    assert_eq!(call.join().unwrap().unwrap().json()["status"], "denied");
    inbox.expect("no request is pending");
    inbox.enter("y");
    inbox.enter("q");
    assert_eq!(inbox.end().code, 0);
    assert_eq!(show(&server, &id)["decision"]["choice"], "deny");
}

#[test]
fn of_two_inboxes_the_first_decides_and_the_other_goes_on() {
    let lab = Lab::new();
    let ids: Vec<String> = ["a.txt", "b.txt"]
        .iter()
        .map(|path| suspended(&lab, &append(path)))
        .collect();
    let mut inboxes = [Pty::whole(&lab, &INBOX, 100), Pty::whole(&lab, &INBOX, 100)];
    for inbox in &mut inboxes {
        inbox.expect("1 of 2");
        inbox.expect("run it?");
    }
    let [first, second] = &mut inboxes;
    first.enter("y");
    // No client waits: the call runs here.
    first.expect(&format!("{} ok", ids[0]));
    assert_eq!(lines(&lab.work().join("a.txt")), 1);
    second.expect(&format!("{} approved by ", ids[0]));
    for inbox in &mut inboxes {
        inbox.expect("1 of 1");
        inbox.expect("b.txt");
        inbox.expect("run it?");
    }
    let [first, second] = inboxes;
    let mut second = second;
    second.enter("s");
    second.expect(&format!("{} ok", ids[1]));
    for mut inbox in [first, second] {
        inbox.expect("no request is pending");
        inbox.enter("q");
        assert_eq!(inbox.end().code, 0);
    }
    assert_eq!(lines(&lab.work().join("b.txt")), 1);
    for id in &ids {
        assert_eq!(status(&lab, id), "done");
    }
}

#[test]
fn requests_are_skipped_and_come_back() {
    let lab = Lab::new();
    let ids: Vec<String> = ["a.txt", "b.txt"]
        .iter()
        .map(|path| suspended(&lab, &append(path)))
        .collect();
    let mut inbox = Pty::whole(&lab, &INBOX, 100);
    let steps = [
        ("a.txt (new file)", "k"),
        ("this is the first one", ""),
        ("a.txt (new file)", "j"),
        ("2 of 2", ""),
        ("b.txt (new file)", "k"),
        ("1 of 2", ""),
        ("a.txt (new file)", "j"),
        ("b.txt (new file)", "j"),
        ("all 2 skipped", ""),
        ("2 pending", ""),
        ("a.txt (new file)", "x"),
        ("denied by ", ""),
        ("b.txt (new file)", "q"),
    ];
    for (expected, typed) in steps {
        inbox.expect(expected);
        if expected.ends_with("(new file)") {
            inbox.expect("run it?");
        }
        if !typed.is_empty() || expected.starts_with("all ") {
            inbox.enter(typed);
        }
    }
    assert_eq!(inbox.end().code, 0);
    assert_eq!(status(&lab, &ids[0]), "denied");
    assert_eq!(status(&lab, &ids[1]), "pending");
}

#[test]
fn always_is_kept_after_a_yes_and_a_critical_call_needs_its_name() {
    let lab = Lab::new();
    lab.user_settings("tools.enable = [\"delete_file\"]\n");
    lab.file("gone.txt", "x");
    let write = suspended(&lab, &append("a.txt"));
    let arguments = json!({"path": "gone.txt"}).to_string();
    let ran = lab.run(&["call", "delete_file", "--args", &arguments, "--json"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let mut inbox = Pty::whole(&lab, &INBOX, 100);
    inbox.expect("a always (shows the rule)");
    inbox.enter("a");
    inbox.expect("keeps for this workspace: Edit(/a.txt)");
    inbox.expect("keep it? [y/N]");
    inbox.enter("y");
    inbox.expect(&format!("{write} ok"));
    let choices = inbox.expect("type delete_file to run it").to_owned();
    assert!(!choices.contains("a always"), "{choices}");
    inbox.enter("y");
    inbox.expect("type delete_file to run it");
    assert!(lab.work().join("gone.txt").exists());
    inbox.enter("delete_file");
    inbox.expect("no request is pending");
    inbox.enter("q");
    assert_eq!(inbox.end().code, 0);
    assert!(!lab.work().join("gone.txt").exists());
    let again = append("a.txt").to_string();
    assert_eq!(lab.run(&["call", "write_file", "--args", &again]).code, 0);
}

#[test]
fn a_question_is_answered_line_by_line() {
    let lab = Lab::new();
    let question = json!({"title": "Which way\u{1b}[2J", "wait_s": 1, "questions": [
        {"id": "way", "type": "single", "text": "Go", "options": ["left", "right"]}]});
    let arguments = question.to_string();
    let call = ["call", "ask_user", "--args", &arguments, "--json"];
    let ran = lab.run(&[&call[..], &["-c", "tools.enable=[\"ask_user\"]"]].concat());
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    let id = text(&ran.json(), "approval");
    let enabled = [&INBOX[..], &["-c", "tools.enable=[\"ask_user\"]"]].concat();
    let mut inbox = Pty::whole(&lab, &enabled, 100);
    inbox.expect("Which way\\x1b[2J");
    let choices = inbox.expect("answer it?  y answer").to_owned();
    assert!(!choices.contains("s session"), "{choices}");
    inbox.enter("y");
    inbox.expect("2 right");
    inbox.enter("2");
    inbox.expect(&format!("{id} answered by "));
    inbox.expect("no request is pending");
    inbox.enter("q");
    assert_eq!(inbox.end().code, 0);
    let whole = lab.run(&["approvals", "show", &id, "--json"]).json();
    assert_eq!(whole["decision"]["choice"], "answer", "{whole}");
}

#[test]
fn a_request_cannot_write_on_the_terminal_and_a_narrow_one_breaks_between_choices() {
    const COLUMNS: u16 = 40;
    let lab = Lab::new();
    let nasty = "a\u{1b}[2J\u{202e}\u{9b}31m\r\u{7}.txt";
    let content = format!("\u{1b}]0;owned\u{7}\n\u{1b}[1A\u{1b}[2Krun it?  y\n{nasty}\n");
    for path in [nasty, "b.txt"] {
        suspended(&lab, &json!({"path": path, "content": content}));
    }
    let mut inbox = Pty::whole(&lab, &INBOX, COLUMNS);
    inbox.expect("2 pending");
    for (at, path) in [
        (
            "1 of 2",
            "$'a\\x1b[2J\\u202e\\u009b31m\\r\\x07.txt' (new file)",
        ),
        ("2 of 2", "b.txt (new file)"),
    ] {
        inbox.expect(at);
        inbox.expect(path);
        inbox.expect("   2 +\\x1b[1A\\x1b[2Krun it?  y");
        inbox.expect("\nrun it?");
        inbox.expect("? why");
        inbox.enter("j");
    }
    inbox.expect("skipped");
    inbox.enter("q");
    let ran = inbox.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let controls = |c: &char| c.is_control() && !matches!(c, '\r' | '\n');
    assert_eq!(ran.stderr.chars().find(controls), None, "{:?}", ran.stderr);
    assert!(!ran.stderr.contains('\u{202e}'));
    let screen: Vec<&str> = ran.stderr.lines().collect();
    // haft's own text is wrapped or clipped; the request's own lines are complete.
    let own = screen.iter().filter(|line| {
        let choice = [" once", " no", " skip", " why", " always"];
        line.starts_with("  1  ")
            || line.starts_with("run it?")
            || choice
                .iter()
                .any(|w| line.contains(w) && line.starts_with("  "))
    });
    let own: Vec<_> = own.collect();
    assert!(own.len() >= 8, "{own:?}");
    for line in own {
        assert!(
            line.trim_end().chars().count() <= usize::from(COLUMNS),
            "{line:?}"
        );
    }
}

#[test]
fn a_request_of_another_folder_is_decided_under_its_own_rules() {
    let lab = Lab::new();
    let here = suspended(&lab, &append("a.txt"));
    let other = lab.work().join("other");
    std::fs::create_dir(&other).unwrap();
    let folder = other.to_str().unwrap();
    let mut inbox = Pty::whole(
        &lab,
        &["approvals", "--color", "never", "--workspace", folder],
        200,
    );
    inbox.expect("1 of 1");
    inbox.expect(lab.work().to_str().unwrap());
    inbox.expect("run it?");
    inbox.enter("y");
    inbox.expect(&format!("{here} ok"));
    assert_eq!(lines(&lab.work().join("a.txt")), 1);
    // If that folder's settings no longer load, a request can be denied or left.
    let second = suspended(&lab, &append("b.txt"));
    lab.run(&["trust"]);
    lab.file("haft.toml", "policy = 3\n");
    inbox.expect("b.txt");
    inbox.expect("run it?");
    inbox.enter("q");
    assert_eq!(inbox.end().code, 0);
    let mut inbox = Pty::whole(
        &lab,
        &["approvals", "--color", "never", "--workspace", folder],
        200,
    );
    inbox.expect("error: ");
    inbox.expect("haft.toml");
    inbox.expect("run it?");
    inbox.enter("y");
    inbox.expect("nothing was decided");
    inbox.expect("run it?");
    inbox.enter("n later");
    inbox.expect("denied by ");
    inbox.expect("no request is pending");
    inbox.enter("q");
    assert_eq!(inbox.end().code, 0);
    let other = [
        "approvals",
        "show",
        &second,
        "--json",
        "--workspace",
        folder,
    ];
    assert_eq!(text(&lab.run(&other).json(), "status"), "denied");
}

#[test]
fn a_line_that_was_begun_for_one_request_decides_no_other() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let first = call_in_background(&server, "write_file", &append("a.txt"));
    let id = text(&only_one(&server), "id");
    let second = call_in_background(&server, "write_file", &append("b.txt"));
    pending(&server, 2);
    let mut inbox = Pty::whole(&lab, &INBOX, 100);
    inbox.expect("1 of 2");
    inbox.expect("run it?");
    inbox.type_in("y");
    // The terminal has received it: it echoes what is typed.
    inbox.expect("y");
    assert_eq!(decide(&server, &id, "deny", &json!({})).status, 200);
    inbox.expect("b.txt (new file)");
    inbox.expect("run it?");
    inbox.enter("");
    inbox.expect("run it?");
    inbox.enter("n");
    inbox.expect(" denied by ");
    assert!(!lab.work().join("b.txt").exists());
    inbox.enter("q");
    inbox.end();
    for call in [first, second] {
        assert_eq!(call.join().unwrap().unwrap().json()["status"], "denied");
    }
}
