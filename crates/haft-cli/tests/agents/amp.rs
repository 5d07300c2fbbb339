//! Amp, whose threads require an account: its plugin runtime loads haft's plugin without one, and is called here as Amp calls it.

use std::io::{BufRead, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::lab::{self, Answer, Lab, need};

const PROGRAM: &str = "agents/node_modules/.bin/amp";

/// A plugin that keeps the runtime, which Amp writes to a file to run the plugin.
const KEEPS: &str = "import fs from \"node:fs\";\nexport default function () { fs.copyFileSync(process.argv[1], process.cwd() + \"/runtime.ts\"); }\n";

/// The runtime of Amp with haft's plugin.
struct Runtime {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Runtime {
    fn start(lab: &Lab, program: &Path, plugin: &Path) -> Self {
        let file = lab.path("work/runtime.ts");
        if !file.exists() {
            // Amp runs a plugin in the plugin's own folder.
            let keeps = lab.path("work/keeps.ts");
            std::fs::write(&keeps, KEEPS).unwrap();
            let words = ["plugins", "exec", keeps.to_str().unwrap(), "session.start"];
            let data = "{\"thread\": {\"id\": \"T-1\"}}";
            let words = [words.as_slice(), &["--data", data]].concat();
            let ran = lab::ended(lab.command(program, &words));
            assert!(file.exists(), "{}", lab::text(&ran.stderr));
        }
        let mut command = lab.command(program, &[file.to_str().unwrap(), plugin.to_str().unwrap()]);
        command
            .env("BUN_BE_BUN", "1")
            .env("AMP_PLUGIN_URI", format!("file://{}", plugin.display()))
            .stdin(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        Self {
            stdin: child.stdin.take().unwrap(),
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
        }
    }

    /// Returns what Amp should do with a call of its shell tool, and the text of the dialog. The user answers the dialog with `approves`;
    /// `None` = there is no screen.
    fn call(&mut self, root: &Path, approves: Option<bool>) -> (Value, Option<Value>) {
        let mut dialog = None;
        loop {
            let line = self.lines.next().unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            let mut answer = json!({"type": "response", "id": message["id"]});
            match message["method"].as_str() {
                Some("client.info") => {
                    let root = format!("file://{}", root.display());
                    answer["result"] = json!({"ampURL": "http://127.0.0.1:1/", "workspaceRoot": root, "authenticatedUser": null, "executorKind": "local"});
                }
                Some("ui.confirm") => {
                    dialog = Some(message["params"]["options"].clone());
                    match approves {
                        Some(approves) => answer["result"] = approves.into(),
                        None => answer["error"] = "no screen".into(),
                    }
                }
                None if message["event"] == "runtime.ready" => {
                    answer = json!({"type": "request", "id": "call", "method": "tool.call", "params": {
                        "tool": "Bash", "toolUseID": "one", "input": {"cmd": "echo hi > made.txt"}, "thread": {"id": "T-1"},
                    }});
                }
                None if message["id"] == "call" => return (message["result"].clone(), dialog),
                _ => answer["result"] = Value::Null,
            }
            writeln!(self.stdin, "{answer}").unwrap();
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_plugin_runtime_of_amp_does_what_haft_answers() {
    let Some(program) = need(PROGRAM) else {
        return;
    };
    let allow = json!({"action": "allow"});
    for (answer, approves, expect) in [
        (Answer::Deny, Some(true), Err(lab::REASON)),
        (Answer::Allow, Some(false), Ok(())),
        (Answer::Ask, Some(true), Ok(())),
        (Answer::Ask, Some(false), Err("the user did not approve")),
        (Answer::Ask, None, Err("Amp could not ask its user")),
    ] {
        let lab = Lab::new(answer);
        let installed = lab.haft(&["hook", "install", "amp", "--yes"]);
        let errors = lab::text(&installed.stderr);
        assert!(installed.status.success(), "{errors}");
        let plugin: PathBuf = lab.path("home/.config/amp/plugins/haft.ts");
        // Not the folder in which Amp is started.
        let root = lab.path("project");
        std::fs::create_dir(&root).unwrap();
        let (result, dialog) = Runtime::start(&lab, &program, &plugin).call(&root, approves);
        match expect {
            Ok(()) => assert_eq!(result, allow, "{answer:?}, {approves:?}"),
            Err(reason) => {
                assert_eq!(result["action"], "reject-and-continue", "{result}");
                let message = result["message"].as_str().unwrap();
                assert!(message.contains(reason), "{result}");
            }
        }
        assert_eq!(dialog.is_some(), answer == Answer::Ask);
        if let Some(dialog) = dialog {
            assert_eq!(dialog["requireHuman"], true, "{dialog}");
            let message = dialog["message"].as_str().unwrap();
            assert!(message.contains("made.txt"), "{dialog}");
        }
        let runs = lab.runs();
        let client = runs[0]["client"].as_str().unwrap_or_default();
        assert!(client.starts_with("Amp"), "{runs:#?}");
        assert_eq!(runs[0]["workspace"], root.to_str().unwrap(), "{runs:#?}");
    }
}
