//! `haft run` with a real model: it reads a prompt, chooses a tool, and its choice is judged, approved or denied, and recorded.
//!
//! Only if `HAFT_SMALL_MODEL` asks for it, since it takes a minute and the model may be wrong:
//!
//! - `needle`: a model of 35 MB on this machine's CPU, which `HAFT_SMALL_MODEL=needle make needs` installs below `HAFT_NEEDS`;
//! - `PROVIDER:MODEL`, such as `ollama:qwen3:4b`: a model that `haft run --model` accepts, with `HAFT_SMALL_MODEL_URL` as its address if
//!   it is a different one.
//!
//! The model's text is not checked: the tool ran or did not, and the policy held. A model this small makes calls from a prompt, but does
//! not always know when it is done: a run may end by its budget of turns.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::agent_run::{of_type, run_json};
use crate::harness::Lab;

/// All tools of the model: it is small, and many tools confuse it.
const TOOLS: [&str; 3] = ["list_files", "read_file", "write_file"];

/// A model that can be used.
struct SmallModel {
    arguments: Vec<String>,
    /// The server of the model, which runs until this is dropped.
    _server: Option<Server>,
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl SmallModel {
    /// Returns the requested model, if there is one.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn new() -> Option<Self> {
        let Ok(wanted) = std::env::var("HAFT_SMALL_MODEL") else {
            eprintln!(
                "SKIPPED: no real model; HAFT_SMALL_MODEL=needle asks one on this machine's CPU"
            );
            return None;
        };
        if wanted != "needle" {
            let url = std::env::var("HAFT_SMALL_MODEL_URL");
            let url = url.map(|url| vec!["--base-url".to_owned(), url]);
            let model = vec!["--model".to_owned(), wanted];
            return Some(Self {
                arguments: [model, url.unwrap_or_default()].concat(),
                _server: None,
            });
        }
        let needs = std::env::var_os("HAFT_NEEDS").map(PathBuf::from);
        let python = needs.map(|needs| needs.join("needle/bin/python"));
        let Some(python) = python.filter(|python| python.exists()) else {
            eprintln!(
                "SKIPPED: needle is not below HAFT_NEEDS; `HAFT_SMALL_MODEL=needle make needs` installs it"
            );
            return None;
        };
        let (server, url) = serve(python);
        let arguments = ["--model", "compatible:needle-3", "--base-url", &url];
        Some(Self {
            arguments: arguments.map(str::to_owned).to_vec(),
            _server: Some(server),
        })
    }

    /// Runs a task; returns how it ended, and all lines.
    fn run(&self, lab: &Lab, args: &[&str]) -> (String, Vec<Value>) {
        let model = self.arguments.iter().map(String::as_str);
        let most = ["--max-turns", "2"];
        let args: Vec<&str> = args.iter().copied().chain(most).chain(model).collect();
        let (ran, lines) = run_json(lab, &args);
        let end = lines.last().unwrap()["end"].as_str().unwrap().to_owned();
        let answered = ["done", "budget", "suspended", "repeating"].contains(&end.as_str());
        assert!(answered, "{}{}", ran.stdout, ran.stderr);
        (end, lines)
    }
}

/// Starts the model's server and returns it with its address.
#[expect(
    clippy::disallowed_methods,
    reason = "a server of another program, as its users start it"
)]
fn serve(python: PathBuf) -> (Server, String) {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/it/models/needle_server.py"
    );
    let mut command = Command::new(python);
    command.args(["-I", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut url = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut url).unwrap();
    let server = Server(child);
    assert!(url.starts_with("http://127.0.0.1:"), "{url:?}");
    (server, url.trim().to_owned())
}

fn stage(rules: &str) -> Lab {
    let lab = Lab::new();
    lab.file("README.md", "# Shop\n\nA small project.\n");
    let listed = lab.run(&["tools", "--json"]).json();
    let names = listed.as_array().unwrap().iter();
    let names = names.map(|tool| tool["name"].as_str().unwrap());
    let others: Vec<&str> = names.filter(|name| !TOOLS.contains(name)).collect();
    lab.user_settings(&format!("tools.disable = {others:?}\n{rules}"));
    lab
}

/// Returns the only result of a tool in these lines.
fn result<'l>(lines: &'l [Value], tool: &str) -> &'l Value {
    let results = of_type(lines, "tool_result");
    let result = results.iter().find(|line| line["tool"] == tool);
    result.unwrap_or_else(|| panic!("no result of {tool}: {lines:?}"))
}

#[test]
fn a_real_model_reads_a_file_and_what_it_writes_is_asked_about_or_denied() {
    let Some(model) = SmallModel::new() else {
        return;
    };
    let lab = stage("");
    let (_, lines) = model.run(&lab, &["read the file README.md"]);
    let read = result(&lines, "read_file");
    assert_eq!(read["ok"], true, "{read}");
    assert!(read["text"].as_str().unwrap().contains("A small project."));

    // The model's write waits for the operator, and happens once after the approval.
    let write = "write the text hello into the file notes.txt";
    let (end, lines) = model.run(&lab, &[write]);
    assert_eq!(end, "suspended", "{lines:?}");
    let approvals = of_type(&lines, "approval");
    assert_eq!(approvals[0]["tool"], "write_file");
    let file = lab.work().join("notes.txt");
    assert!(!file.exists());
    let id = approvals[0]["approval"].as_str().unwrap();
    let approved = lab.run(&["approvals", "approve", id]);
    assert_eq!(approved.code, 0, "{}", approved.stderr);
    assert!(std::fs::read_to_string(&file).unwrap().contains("hello"));
    let run = lines[0]["run"].as_str().unwrap();
    model.run(&lab, &["--resume", run]);

    // A deny rule is final, whatever the model wants.
    let lab = stage("policy.deny = [\"Edit(/notes.txt)\"]\n");
    let (end, lines) = model.run(&lab, &[write]);
    let denied = result(&lines, "write_file");
    assert_eq!(denied["ok"], false, "{denied}");
    assert_eq!(denied["outcome"]["status"], "denied", "{denied}");
    assert!(end != "suspended" && !lab.work().join("notes.txt").exists());
    let verified = lab.run(&["runs", "verify", "--all"]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
}
