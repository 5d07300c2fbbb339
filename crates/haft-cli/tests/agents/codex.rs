//! Codex, which runs a hook only after its user has reviewed it, and identifies it by the hook's place and text.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::lab::{self, Answer, Lab, need};

const PROGRAM: &str = "agents/node_modules/.bin/codex";

/// The user's settings, and their file in the home folder.
pub(crate) const SETTINGS_FILE: (&str, &str) = (".codex/config.toml", SETTINGS);

/// Variables that Codex needs with these settings.
pub(crate) const VARIABLES: &[(&str, &str)] = &[("SCRIPTED_KEY", "test")];

const SETTINGS: &str = "# mine\nmodel = \"gpt-5\"\nmodel_provider = \"scripted\"\n\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = \"@URL@/v1\"\nwire_api = \"responses\"\nenv_key = \"SCRIPTED_KEY\"\n\n[analytics]\nenabled = false\n";

/// Returns what Codex reports about the hooks that it reads, asked as an editor would.
fn hooks(lab: &Lab, program: &Path) -> Vec<Value> {
    let mut command = lab.command(program, &["app-server"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let work = lab.path("work");
    for message in [
        json!({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "title": "test", "version": "1"}}}),
        json!({"method": "initialized"}),
        json!({"id": 2, "method": "hooks/list", "params": {"cwds": [work]}}),
    ] {
        writeln!(stdin, "{message}").unwrap();
    }
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answers = lines.filter_map(|line| serde_json::from_str::<Value>(&line.unwrap()).ok());
    let answer = answers.find(|answer| answer["id"] == 2).unwrap();
    drop(stdin);
    child.kill().unwrap();
    child.wait().unwrap();
    let listed = &answer["result"]["data"][0];
    assert_eq!(listed["errors"], json!([]), "{listed}");
    listed["hooks"].as_array().unwrap().clone()
}

fn trusts(hooks: &[Value]) -> Vec<&str> {
    hooks
        .iter()
        .map(|hook| hook["trustStatus"].as_str().unwrap())
        .collect()
}

/// Returns what `haft hook status` reports about Codex.
fn status(lab: &Lab, program: &Path) -> Value {
    let said = lab.haft_beside(program, &["hook", "status", "codex", "--json"]);
    let all: Value = serde_json::from_slice(&said.stdout).unwrap();
    all[0].clone()
}

/// Returns what a review in `/hooks` adds to the settings.
fn review(listed: &[Value]) -> String {
    let each = listed.iter().map(|hook| {
        let key = hook["key"].as_str().unwrap();
        let hash = hook["currentHash"].as_str().unwrap();
        format!("\n[hooks.state.\"{key}\"]\ntrusted_hash = \"{hash}\"\n")
    });
    each.collect()
}

/// Trusts all hooks, as the user of these settings does after a review.
pub(crate) fn review_all(lab: &Lab, program: &Path, settings: &Path) {
    let reviewed = review(&hooks(lab, program));
    let text = std::fs::read_to_string(settings).unwrap();
    std::fs::write(settings, text + &reviewed).unwrap();
}

/// Installs haft's hooks and reviews them.
fn trusted(lab: &Lab, program: &Path, url: &str) {
    let settings = SETTINGS.replace("@URL@", url);
    let file = lab.write(".codex/config.toml", &settings);
    let installed = lab.haft(&["hook", "install", "codex", "--yes"]);
    let said = lab::text(&installed.stderr);
    assert!(
        installed.status.success() && said.contains("/hooks"),
        "{said}"
    );
    let listed = hooks(lab, program);
    assert_eq!(trusts(&listed), ["untrusted"; 5], "{listed:#?}");
    let is_ours = |hook: &Value| {
        let command = hook["command"].as_str();
        command.is_some_and(|command| command.ends_with("haft hook codex"))
    };
    assert!(listed.iter().all(is_ours), "{listed:#?}");
    let before = status(lab, program);
    assert_eq!(before["governed"], "no", "{before}");
    let warning = before["warnings"][0].as_str().unwrap();
    assert!(warning.contains("not reviewed"), "{before}");
    std::fs::write(&file, settings + &review(&listed)).unwrap();
    let after = status(lab, program);
    assert_eq!(after["governed"], "yes", "{after}");
    assert_eq!(after["warnings"], json!([]), "{after}");
    assert!(after["version"].as_str().unwrap().starts_with("0."));
    // A second install changes nothing that Codex checks.
    lab.haft(&["hook", "install", "codex", "--yes"]);
    let listed = hooks(lab, program);
    assert_eq!(trusts(&listed), ["trusted"; 5], "{listed:#?}");
}

#[test]
fn codex_lists_the_hooks_runs_them_once_reviewed_and_trusts_them_after_another_install() {
    let Some(program) = need(PROGRAM) else {
        return;
    };
    for answer in [Answer::Deny, Answer::Allow] {
        let lab = Lab::new(answer);
        let model = lab.model("exec_command", "{ cmd = \"echo hi > made.txt\" }");
        trusted(&lab, &program, &model.url());
        let args = [
            "exec",
            "--sandbox",
            "danger-full-access",
            "--skip-git-repo-check",
            "make it",
        ];
        let mut command = lab.command(&program, &args);
        command.envs(VARIABLES.iter().copied());
        let ran = lab::ended(command);
        let said = format!("{}\n{}", lab::text(&ran.stdout), lab::text(&ran.stderr));
        assert_eq!(model.problems(), Vec::<String>::new(), "{said}");
        let seen = lab.events();
        let is_it =
            |event: &&String| event.contains("\"PreToolUse\"") && event.contains("made.txt");
        assert_eq!(seen.iter().filter(is_it).count(), 1, "{said}\n{seen:#?}");
        assert_eq!(lab.made(), answer == Answer::Allow, "{said}");
        assert!(
            said.contains("all done") && !said.contains("clamping"),
            "{said}"
        );
    }
}
