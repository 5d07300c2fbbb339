//! `haft run --acp`, line by line: invalid messages, how it ends, what is refused.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::agent_run::{APPEND, LONG, calls, says, script};
use crate::editor_client::Peer;
use crate::harness::Lab;
use crate::signals::jailed;

/// A client that writes lines itself.
struct Client {
    peer: Peer,
    id: u64,
}

impl Client {
    fn start(lab: &Lab, args: &[&str]) -> Self {
        let args = [&["run", "--acp"], args].concat();
        let peer = Peer::start(&mut lab.command(&args));
        Self { peer, id: 0 }
    }

    fn initialized(lab: &Lab, args: &[&str]) -> Self {
        let mut client = Self::start(lab, args);
        let said = client.ask("initialize", &json!({"protocolVersion": 1}));
        assert_eq!(said["result"]["authMethods"], json!([]), "{said}");
        client
    }

    fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.id += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        self.peer.send(&line.to_string());
        self.id
    }

    fn ended(&mut self, id: u64) -> Value {
        self.peer
            .until(|line| line["id"] == id && line.get("method").is_none())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        self.ended(id)
    }

    fn notify(&mut self, method: &str, params: &Value) {
        let line = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.peer.send(&line.to_string());
    }

    fn open(&mut self, lab: &Lab) -> String {
        let opened = self.ask("session/new", &json!({"cwd": lab.work(), "mcpServers": []}));
        let id = opened["result"]["sessionId"].as_str();
        id.unwrap_or_else(|| panic!("{opened}")).to_owned()
    }

    fn prompt(&mut self, session: &str, words: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": words}]);
        self.begin(
            "session/prompt",
            &json!({"sessionId": session, "prompt": prompt}),
        )
    }

    /// Waits until the command of [`LONG`] is running.
    fn started(&mut self) {
        self.peer.until(|line| {
            let update = &line["params"]["update"];
            update["content"][0]["content"]["text"] == "```\nstarted\n```"
        });
    }
}

/// Returns the code and the message of an error.
fn error(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    let code = error["code"].as_i64();
    (
        code.unwrap_or_else(|| panic!("{answer}")),
        error["message"].as_str().unwrap(),
    )
}

/// Sends invalid requests, each of which is refused with a reason.
#[rustfmt::skip]
fn refusals(lab: &Lab, client: &mut Client) {
    let work = lab.work();
    let text = json!([{"type": "text", "text": "hi"}]);
    for (method, params, code, says) in [
        ("nonsense", json!({}), -32601, "nonsense"),
        ("session/new", json!({"cwd": "work"}), -32602, "absolute"),
        ("session/new", json!({}), -32602, "cwd"),
        ("session/new", json!({"cwd": work.join("none")}), -32602, "find the workspace"),
        ("session/new", json!({"cwd": lab.home().parent()}), -32602, "home folder"),
        ("session/new", json!({"cwd": work, "additionalDirectories": ["/srv"]}), -32602, "one folder"),
        ("session/load", json!({"cwd": work, "sessionId": "20"}), -32602, "20"),
        ("session/load", json!({"cwd": work, "sessionId": "../../x"}), -32602, "../../x"),
        ("session/prompt", json!({"sessionId": "none", "prompt": text}), -32002, "session/new"),
        ("session/close", json!({"sessionId": "none"}), -32002, "none"),
        ("session/set_mode", json!({"sessionId": "none", "modeId": "x"}), -32002, "none"),
        ("authenticate", json!({"methodId": "x"}), -32602, "authMethods"),
    ] {
        let answer = client.ask(method, &params);
        let (is, message) = error(&answer);
        assert!(
            is == code && message.contains(says),
            "{method} {params}: {answer}"
        );
    }
}

#[test]
fn lines_that_are_no_message_are_answered_and_the_client_goes_on() {
    let lab = Lab::new();
    let mut client = Client::start(&lab, &["--model", "scripted:first-try"]);
    for (line, code) in [
        ("{", -32700),
        ("hello", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":[],"method":"x"}"#, -32600),
        (r#"{"id":7,"method":"x"}"#, -32600),
    ] {
        client.peer.send(line);
        let answer = client.peer.until(|line| line.get("error").is_some());
        assert_eq!(error(&answer).0, code, "{line}: {answer}");
    }
    let early = client.ask("session/new", &json!({"cwd": lab.work(), "mcpServers": []}));
    assert_eq!(error(&early), (-32600, "the first request is `initialize`"));
    let long = json!({"jsonrpc": "2.0", "method": "x", "params": "x".repeat(33 << 20)});
    client.peer.send(&long.to_string());
    let answer = client.peer.until(|line| line.get("error").is_some());
    assert!(error(&answer).1.contains("32 MiB"), "{answer}");
    let said = client.ask("initialize", &json!({"protocolVersion": 99}));
    assert_eq!(
        said["result"]["protocolVersion"], 1,
        "the latest that there is: {said}"
    );
    client.notify("session/cancel", &json!({"sessionId": "none"}));
    client.notify("$/unknown", &json!({}));
    refusals(&lab, &mut client);
    let listed = client.ask("session/list", &json!({}));
    assert_eq!(listed["result"]["sessions"], json!([]), "{listed}");
    let session = client.open(&lab);
    for prompt in [json!([]), json!([{"type": "video"}]), json!("hi")] {
        let params = json!({"sessionId": session, "prompt": prompt});
        let answer = client.ask("session/prompt", &params);
        assert_eq!(error(&answer).0, -32602, "{answer}");
    }
    assert_eq!(client.peer.end().code, 0);
}

#[test]
fn without_a_model_or_a_key_a_session_is_refused_with_what_to_set() {
    let lab = Lab::new();
    for (args, says) in [
        (&[][..], "model.default"),
        (&["--model", "anthropic:claude"], "ANTHROPIC_API_KEY"),
    ] {
        let mut client = Client::initialized(&lab, args);
        let answer = client.ask("session/new", &json!({"cwd": lab.work(), "mcpServers": []}));
        let (_, message) = error(&answer);
        for part in [says, "--model scripted:first-try"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert_eq!(message.lines().count(), 1, "{message}");
        let ran = client.peer.end();
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    }
    let runs = lab.run(&["runs", "list", "--json"]).json();
    assert_eq!(runs, json!([]), "nothing was begun");
    for (args, says) in [
        (&["run", "--acp", "hi"][..], "--acp"),
        (&["run", "--acp", "--dry-run"], "--acp"),
        (&["run", "--acp", "--workspace", "."], "omit --workspace"),
    ] {
        let ran = lab.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}");
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_second_prompt_is_refused_and_sessions_do_not_wait_for_each_other() {
    let lab = Lab::new();
    let turns = [calls(&[APPEND]), says("Over.")].concat();
    let model = script(&lab, &turns);
    let mut client = Client::initialized(&lab, &["--model", &model]);
    let (first, second) = (client.open(&lab), client.open(&lab));
    let waits = client.prompt(&first, "write");
    let asked = client
        .peer
        .until(|line| line["method"] == "session/request_permission");
    let refused = client.prompt(&first, "and now?");
    let refused = client.ended(refused);
    let (code, message) = error(&refused);
    assert!(
        code == -32600 && message.contains("session/cancel"),
        "{refused}"
    );
    let other = client.prompt(&second, "write");
    let beside = client.peer.until(|line| {
        line["method"] == "session/request_permission" && line["params"]["sessionId"] == *second
    });
    for (asked, option) in [(&beside, "allow-once"), (&asked, "reject")] {
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": outcome});
        client.peer.send(&answer.to_string());
    }
    let (mut ended, mut left) = (Vec::new(), 2);
    while left > 0 {
        let done = client
            .peer
            .until(|line| line["result"].get("stopReason").is_some());
        ended.push(done["id"].as_u64().unwrap());
        left -= 1;
    }
    ended.sort_unstable();
    assert_eq!(ended, [waits, other]);
    let written = std::fs::read_to_string(lab.work().join("a.txt")).unwrap();
    assert_eq!(written, "x\n", "one was allowed, the other rejected");
    assert_eq!(client.peer.end().code, 0);
}

#[test]
fn a_request_that_is_cancelled_ends_its_prompt() {
    let lab = Lab::new();
    let turns = "[[turns]]\nfaults = [{ hang_after = 0 }]\nsay = [{ text = \"Never.\" }]\n";
    let model = script(&lab, turns);
    let mut client = Client::initialized(&lab, &["--model", &model]);
    let session = client.open(&lab);
    let prompt = client.prompt(&session, "hi");
    client.notify("$/cancel_request", &json!({"requestId": prompt}));
    let done = client.ended(prompt);
    assert_eq!(done["result"]["stopReason"], "cancelled", "{done}");
}

#[test]
fn stdin_that_closes_ends_what_runs_and_what_waits() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let model = script(&lab, &[calls(&[LONG]), says("Over.")].concat());
    for (profile, waits) in [("trusted", false), ("workspace", true)] {
        let args = [
            "--model",
            &model,
            "--profile",
            profile,
            "-c",
            "policy.commands=ask",
        ];
        let mut client = Client::initialized(&lab, &args);
        let session = client.open(&lab);
        client.prompt(&session, "go");
        if waits {
            client
                .peer
                .until(|line| line["method"] == "session/request_permission");
        } else {
            client.started();
        }
        let ran = client.peer.end();
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{profile}");
        let verified = lab.run(&["runs", "verify", &session]);
        assert_eq!(verified.code, 0, "{profile}: {}", verified.stderr);
    }
}

#[test]
fn a_session_is_loaded_after_haft_was_killed_and_nothing_runs_twice() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    let turns = format!(
        "{}[[turns]]\nexpect.results = [{{ call = \"c\", contains = \"may have run\" }}]\nsay = [{{ text = \"I look.\" }}]\n{}",
        calls(&[LONG]),
        says("Over.")
    );
    let args = ["--model", &script(&lab, &turns), "--profile", "trusted"];
    let mut client = Client::initialized(&lab, &args);
    let session = client.open(&lab);
    client.prompt(&session, "go");
    client.started();
    kill_process(Pid::from_child(client.peer.child()), Signal::KILL).unwrap();
    drop(client);
    let mut client = Client::initialized(&lab, &args);
    let params = json!({"sessionId": session, "cwd": lab.work(), "mcpServers": []});
    let loaded = client.ask("session/load", &params);
    assert!(loaded.get("result").is_some(), "{loaded}");
    let prompt = client.prompt(&session, "on");
    let done = client.ended(prompt);
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    assert_eq!(client.peer.end().code, 0);
    let log = std::fs::read_to_string(lab.work().join("log.txt")).unwrap_or_default();
    assert!(log.lines().count() <= 1, "{log}");
}

#[test]
fn a_folder_that_nobody_trusts_only_tightens_and_says_so() {
    let lab = Lab::new();
    lab.file("haft.toml", "policy.allow = [\"Edit\"]\n");
    let model = script(&lab, &[calls(&[APPEND]), says("Over.")].concat());
    for trusted in [false, true] {
        if trusted {
            assert_eq!(lab.run(&["trust", "."]).code, 0);
        }
        let mut client = Client::initialized(&lab, &["--model", &model]);
        let session = client.open(&lab);
        let prompt = client.prompt(&session, "write");
        let next = client
            .peer
            .until(|line| line["id"] == prompt || line["method"] == "session/request_permission");
        assert_eq!(next.get("result").is_some(), trusted, "{next}");
        let words = serde_json::to_string(&client.peer.seen).unwrap();
        assert_eq!(words.contains("haft trust"), !trusted, "{words}");
        drop(client);
        assert_eq!(lab.work().join("a.txt").exists(), trusted);
    }
}

#[test]
fn more_sessions_than_there_is_room_for_are_refused_until_one_is_closed() {
    let lab = Lab::new();
    let mut client = Client::initialized(&lab, &["--model", "scripted:first-try"]);
    let sessions: Vec<String> = (0..16).map(|_| client.open(&lab)).collect();
    let new = json!({"cwd": lab.work(), "mcpServers": []});
    let refused = client.ask("session/new", &new);
    assert!(error(&refused).1.contains("session/close"), "{refused}");
    let closed = client.ask("session/close", &json!({"sessionId": sessions[0]}));
    assert_eq!(closed["result"], json!({}), "{closed}");
    client.open(&lab);
    assert_eq!(client.peer.end().code, 0);
}
