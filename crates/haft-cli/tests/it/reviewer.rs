//! A model that reviews requests before a person is asked (`policy.reviewer`): real processes, and a server in each dialect of models.

use haft_scripted::{Scenario, ScenarioServer, serve};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::approvals::wait;
use crate::harness::{Lab, Ran, ended};
use crate::serve::{Server, get, post};
use crate::wrapped::in_shell;

const ALLOW: &str = r#"{ call = { tool = "verdict", arguments = { verdict = "allow", reason = "it is ordinary work" } } }"#;
const DENY: &str = r#"{ call = { tool = "verdict", arguments = { verdict = "deny", reason = "it looks harmful" } } }"#;
const PASS: &str = r#"{ call = { tool = "verdict", arguments = { verdict = "pass", reason = "I am not sure" } } }"#;

/// A model that gives the same answer to every request.
struct Model {
    server: ScenarioServer,
    _runtime: Runtime,
}

impl Model {
    fn new(say: &str, more: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let turn = format!("expect.tools = [\"verdict\"]\nsay = [{say}]\n{more}");
        let scenario = format!("title = \"A reviewer\"\nkey = \"secret-key\"\n[[turns]]\n{turn}");
        let scenario = Scenario::from_toml(&scenario).unwrap();
        let server = runtime.block_on(serve(scenario)).unwrap();
        Self {
            server,
            _runtime: runtime,
        }
    }

    fn requests(&self) -> usize {
        self.server.requests().len()
    }
}

/// Returns a lab whose user has the model as reviewer, in a dialect, with further settings of the reviewer and others.
fn lab(model: &Model, provider: &str, more: &str, others: &str) -> Lab {
    let mut lab = Lab::new();
    for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"] {
        lab.set(key, "secret-key");
    }
    lab.set("CI", "1");
    let url = model.server.url();
    // A busy machine may take long.
    let more = if more.is_empty() {
        "timeout_s = 300"
    } else {
        more
    };
    lab.user_settings(&format!(
        "[policy.reviewer]\nmodel = \"{provider}:m\"\nbase_url = \"{url}\"\nmay = [\"deny\", \"allow:Edit\", \"allow:Bash\"]\n{more}\n{others}"
    ));
    lab
}

fn write(lab: &Lab, path: &str) -> Ran {
    let arguments = json!({"path": path, "content": "x\n"}).to_string();
    lab.run(&["call", "write_file", "--json", "--args", &arguments])
}

fn reviews(lab: &Lab) -> Vec<Value> {
    let listed = lab.run(&["approvals", "review", "--json"]).json();
    listed.as_array().unwrap().clone()
}

#[test]
fn verdict_of_a_model_in_each_dialect_decides_the_call_and_is_recorded() {
    let providers = ["openai", "openai-chat", "anthropic", "gemini"];
    for (say, code, choice) in [(ALLOW, 0, "approve"), (DENY, 3, "deny"), (PASS, 4, "")] {
        let model = Model::new(say, "");
        for provider in providers {
            let lab = lab(&model, provider, "", "");
            let ran = write(&lab, "a.txt");
            let problems = model.server.problems();
            assert_eq!(ran.code, code, "{provider}: {} {problems:?}", ran.stderr);
            assert_eq!(lab.work().join("a.txt").exists(), code == 0);
            let review = &reviews(&lab)[0];
            assert_eq!(review["review"]["model"], format!("{provider}:m"));
            assert_eq!(review["review"]["decided"], code != 4);
            assert_eq!(
                review["decision"]["choice"].as_str().unwrap_or_default(),
                choice
            );
            let run = ran.json()["run"].as_str().unwrap().to_owned();
            let shown = lab.run(&["runs", "show", &run, "--json"]);
            let events = shown.json()["events"].to_string();
            assert!(
                events.contains(review["review"]["reason"].as_str().unwrap()),
                "{events}"
            );
            assert!(!format!("{events}{}", ran.stdout).contains("secret-key"));
            assert_eq!(lab.run(&["runs", "verify", &run]).code, 0);
        }
        assert_eq!(model.requests(), providers.len());
    }
}

#[test]
fn requests_that_are_a_persons_when_the_model_allows_everything_wait() {
    let model = Model::new(ALLOW, "");
    let rule = "[policy]\nask = [\"Edit(/asked/**)\"]\n";
    for (path, says) in [
        ("asked/a.txt", "your rule Edit(/asked/**)"),
        ("AGENTS.md", "the guard agent-instructions"),
        (".env", "secrets"),
    ] {
        let lab = lab(&model, "anthropic", "", rule);
        let ran = write(&lab, path);
        assert_eq!(ran.code, 4, "{path}: {}", ran.stderr);
        let review = &reviews(&lab)[0]["review"];
        assert_eq!(
            (&review["verdict"], &review["decided"]),
            (&json!("allow"), &json!(false))
        );
        let why = review["opinion"].as_str().unwrap();
        assert!(why.contains(says), "{path}: {why}");
        let id = reviews(&lab)[0]["id"].as_str().unwrap().to_owned();
        let shown = lab.run(&["approvals", "show", &id]).stdout;
        assert!(
            shown.contains("says allow: “it is ordinary work” (an opinion: "),
            "{shown}"
        );
    }
}

#[test]
fn folder_that_is_not_trusted_neither_sets_nor_loosens_a_reviewer() {
    let model = Model::new(ALLOW, "");
    let own = format!(
        "[policy.reviewer]\nmodel = \"anthropic:m\"\nbase_url = \"{}\"\nmay = [\"allow:Edit\"]\ntimeout_s = 1\n",
        model.server.url()
    );
    let mut none = Lab::new();
    none.set("ANTHROPIC_API_KEY", "secret-key");
    none.file("haft.toml", &own);
    assert_eq!(write(&none, "a.txt").code, 4);
    assert_eq!((reviews(&none).len(), model.requests()), (0, 0));
    let deny = lab(&model, "anthropic", "", "");
    let url = model.server.url();
    deny.user_settings(&format!(
        "[policy.reviewer]\nmodel = \"anthropic:m\"\nbase_url = \"{url}\"\ntimeout_s = 300\n"
    ));
    deny.file("haft.toml", &own);
    assert_eq!(write(&deny, "a.txt").code, 4);
    let opinion = &reviews(&deny)[0]["review"]["opinion"];
    assert_eq!(opinion, "policy.reviewer.may holds no allow");
}

#[test]
fn model_without_a_verdict_leaves_the_request_to_a_person_and_says_why() {
    let allow = ALLOW;
    let two = format!("{ALLOW}, {ALLOW}");
    let cut = "stop = \"length\"";
    let late = "delay_ms = 60000";
    let refused = "faults = [{ status = { code = 400, message = \"no\" } }]";
    let broken = "faults = [{ abort_after = 20 }, { abort_after = 20 }]";
    let chat = "openai-chat";
    let rows = [
        // Gemini's requests cannot say that one call is enough; the server refuses what its provider would not answer.
        ("gemini", two.as_str(), "", "more than one verdict"),
        (chat, r#"{ text = "{\"verdict\":\"allow\"}" }"#, "", ""),
        (chat, r#"{ refusal = "I will not" }"#, "", ""),
        (chat, allow, cut, "ended early"),
        (chat, allow, late, "did not answer within 0.3 s"),
        (chat, allow, refused, "400"),
        (chat, allow, broken, ""),
    ];
    for (provider, say, more, says) in rows {
        let model = Model::new(say, more);
        let limit = if more == late { "timeout_s = 0.3" } else { "" };
        let lab = lab(&model, provider, limit, "");
        let ran = write(&lab, "a.txt");
        assert_eq!(ran.code, 4, "{says}: {}", ran.stderr);
        let review = &reviews(&lab)[0]["review"];
        assert_eq!(
            (&review["verdict"], &review["failed"]),
            (&json!("pass"), &json!(true))
        );
        let reason = review["reason"].as_str().unwrap();
        assert!(reason.contains(says), "{says}: {reason}");
    }
}

#[test]
fn settings_of_a_reviewer_that_are_wrong_stop_the_start_and_a_missing_key_does_not() {
    let lab = Lab::new();
    for (settings, says) in [
        ("may = \"allow:Everything\"", "\"allow:Everything\""),
        ("may = 3", "neither a word nor a list"),
        ("may = [\"deny\", 3]", "neither a word nor a list"),
        ("model = \"gpt\"", "policy.reviewer.model"),
        ("model = \"antropic:m\"", "did you mean `anthropic:m`"),
        ("model = \"compatible:m\"", "needs a base URL"),
    ] {
        lab.user_settings(&format!("[policy.reviewer]\n{settings}\n"));
        let ran = write(&lab, "a.txt");
        assert_eq!(ran.code, 5, "{settings}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
    }
    lab.user_settings("[policy.reviewer]\nmodel = \"anthropic:m\"\n");
    assert_eq!(write(&lab, "a.txt").code, 4);
    let review = &reviews(&lab)[0]["review"];
    assert_eq!(
        review["reason"],
        "no key for anthropic: set ANTHROPIC_API_KEY"
    );
    let doctor = lab.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("anthropic:m may: deny; no key for"),
        "{doctor}"
    );
}

#[test]
fn request_whose_process_is_killed_during_the_review_is_decided_by_a_person() {
    let model = Model::new(ALLOW, "delay_ms = 600000");
    let lab = lab(&model, "anthropic", "", "");
    let arguments = json!({"path": "a.txt", "content": "x\n"}).to_string();
    let mut command = lab.command(&["call", "write_file", "--args", &arguments]);
    let child = command.spawn().unwrap();
    wait("a review", || reviews(&lab).into_iter().next());
    let process = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(process, Signal::KILL).unwrap();
    ended(child);
    let pending = reviews(&lab).remove(0);
    assert_eq!(
        (&pending["status"], &pending["review"]["verdict"]),
        (&json!("pending"), &Value::Null)
    );
    // Made again, it finds its request, and the model is not asked a second time.
    let again = lab.run(&["call", "write_file", "--args", &arguments]);
    assert_eq!(
        (again.code, reviews(&lab).len()),
        (4, 1),
        "{}",
        again.stderr
    );
    let id = pending["id"].as_str().unwrap();
    let approved = lab.run(&["approvals", "approve", id]);
    assert_eq!(approved.code, 0, "{}", approved.stderr);
    assert!(lab.work().join("a.txt").exists());
}

#[test]
fn person_who_says_otherwise_is_counted_with_the_verdicts_that_are_known() {
    let model = Model::new(DENY, "");
    let lab = lab(&model, "anthropic", "", "");
    for path in ["a.txt", "b.txt", "c.txt"] {
        assert_eq!(write(&lab, path).code, 3);
    }
    let ids: Vec<String> = reviews(&lab)
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect();
    for (id, word) in [(&ids[0], "agree"), (&ids[1], "disagree")] {
        let said = lab.run(&["approvals", "review", id, word]);
        assert_eq!(said.code, 0, "{}", said.stderr);
    }
    let stats = lab
        .run(&["approvals", "review", "--stats", "--json"])
        .json();
    let edit = &stats["classes"]["Edit"];
    assert_eq!((&edit["reviewed"], &edit["denied"]), (&json!(3), &json!(3)));
    assert_eq!(edit["deny"], json!({"known": 2, "otherwise": 1}));
    assert!(edit["cost"]["input"].as_u64().unwrap() > 0);
    let table = lab.run(&["approvals", "review", "--stats"]).stdout;
    assert!(table.contains("allow 0 of 0, deny 1 of 2"), "{table}");
    let wrong = lab.run(&["approvals", "review", "ap-none", "agree"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
}

#[test]
fn calls_of_scripts_and_commands_of_agents_are_reviewed_too() {
    let model = Model::new(ALLOW, "");
    let lab = lab(&model, "anthropic", "", "");
    let script = "tools.write_file(path='a.txt', content='x')\nprint('written')";
    let ran = lab.run_with(&["chain", "-"], script);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(model.requests(), 1);
    let model = Model::new(ALLOW, "");
    let settings = "[hook]\nwrap = \"jail\"\nwait_s = 20\n[policy]\ncommands = \"ask\"\n[sandbox]\nnetwork = \"none\"\n";
    let lab = self::lab(&model, "anthropic", "", settings);
    let line = crate::wrapped::wrapped(&lab, "touch made.txt && echo reviewed");
    let ran = in_shell(&lab, &line);
    assert_eq!(
        (ran.code, ran.stdout.trim()),
        (0, "reviewed"),
        "{}",
        ran.stderr
    );
    // The agent's command claims the decision that was made before; what it changed is asked about by itself.
    let classes: Vec<Value> = reviews(&lab)
        .iter()
        .map(|one| one["review"]["class"].clone())
        .collect();
    assert_eq!(classes, [json!("Edit"), json!("Bash")]);
    assert_eq!(model.requests(), 2);
    assert!(lab.work().join("made.txt").exists());
}

#[test]
fn caller_of_a_reviewed_call_gets_no_word_of_the_model() {
    let model = Model::new(DENY, "");
    let lab = lab(&model, "anthropic", "", "");
    let server = Server::start(&lab, &[]);
    let body = json!({"tool": "write_file", "arguments": {"path": "a.txt", "content": "x"}});
    let body = body.to_string();
    let reply = server.ask(&post("/api/v1/calls", &server.call, &body));
    assert!(
        reply.body.contains("reviewer anthropic:m said no"),
        "{}",
        reply.body
    );
    let run = reply.json()["run"].as_str().unwrap().to_owned();
    let paths = [
        "/api/v1/approvals?status=all".to_owned(),
        "/api/v1/calls".to_owned(),
        format!("/api/v1/runs/{run}"),
    ];
    for path in &paths {
        let seen = server.ask(&get(path, Some(&server.call))).body;
        assert!(seen.contains("write_file"), "{path}: {seen}");
        assert!(!seen.contains("it looks harmful"), "{path}: {seen}");
    }
    assert!(!reply.body.contains("it looks harmful"), "{}", reply.body);
    let seen = server.ask(&get(&paths[0], Some(&server.operator))).body;
    assert!(seen.contains("it looks harmful"), "{seen}");
}
