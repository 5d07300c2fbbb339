//! `haft hook install`, `uninstall` and `status` as a user types them, and what `haft doctor` reports about agents.

use std::fs;

use serde_json::Value;

use crate::lab::{Answer, Lab, text};

#[test]
fn an_install_shows_the_change_and_does_nothing_unasked() {
    let lab = Lab::new(Answer::Allow);
    let before = "{\n  \"model\": \"opus\"\n}\n";
    let file = lab.write(".claude/settings.json", before);
    let read = || fs::read_to_string(&file).unwrap();
    let dry = lab.haft(&["hook", "install", "claude", "--dry-run"]);
    assert!(
        text(&dry.stdout).contains("haft hook claude\""),
        "{}",
        text(&dry.stdout)
    );
    assert!(text(&dry.stderr).contains("would change"));
    // Stdin is not a terminal: the user cannot be asked.
    let refused = lab.haft(&["hook", "install", "claude"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("--yes"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(read(), before);
    let done = lab.haft(&["hook", "install", "claude", "--yes", "--json"]);
    let shown: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(shown[0]["files"][0]["changed"], true, "{shown}");
    assert!(read().contains("haft hook claude") && read().contains("\"onFailure\": \"block\""));
    let again = lab.haft(&["hook", "install", "claude"]);
    assert!(
        text(&again.stderr).contains("already has haft"),
        "{}",
        text(&again.stderr)
    );
    let gone = lab.haft(&["hook", "uninstall", "claude", "--yes"]);
    assert!(gone.status.success(), "{}", text(&gone.stderr));
    assert_eq!(read(), before);
}

#[test]
fn options_of_the_install_stand_in_the_entry() {
    let lab = Lab::new(Answer::Allow);
    let home = lab.path("state").display().to_string();
    lab.haft(&["hook", "install", "gemini", "--yes", "--home", &home]);
    let settings = fs::read_to_string(lab.path("home/.gemini/settings.json")).unwrap();
    assert!(
        settings.contains(&format!("haft hook gemini --home {home}\"")),
        "{settings}"
    );
    // It is haft's own entry, with or without options.
    lab.haft(&[
        "hook",
        "uninstall",
        "gemini",
        "--yes",
        "--home",
        &lab.path("other").display().to_string(),
    ]);
    let settings = fs::read_to_string(lab.path("home/.gemini/settings.json")).unwrap();
    assert!(!settings.contains("haft"), "{settings}");
}

#[test]
fn the_status_and_the_doctor_name_what_is_missing_and_what_stands_in_the_way() {
    let lab = Lab::new(Answer::Allow);
    lab.write(
        ".gemini/settings.json",
        "{\"hooksConfig\": {\"disabled\": [\"haft\"]}}",
    );
    lab.write(".claude/settings.json", "{\"hooks\": {\"PreToolUse\": [{\"matcher\": \"Bash\", \"hooks\": [{\"type\": \"command\", \"command\": \"/gone/haft hook claude\"}]}]}}");
    lab.haft(&["hook", "install", "gemini", "--yes"]);
    let said = lab.haft(&["hook", "status", "--json"]);
    let all: Vec<Value> = serde_json::from_slice(&said.stdout).unwrap();
    let of = |name: &str| all.iter().find(|one| one["agent"] == name).unwrap();
    assert_eq!(all.len(), 12);
    assert_eq!(of("gemini")["governed"], "no");
    assert!(
        of("gemini")["warnings"][0]
            .as_str()
            .unwrap()
            .contains("hooksConfig.disabled")
    );
    let claude = of("claude");
    assert_eq!(claude["governed"], "partly");
    let warnings = claude["warnings"].to_string();
    assert!(
        warnings.contains("only for `Bash`") && warnings.contains("/gone/haft"),
        "{warnings}"
    );
    assert!(
        claude["missing"]
            .as_array()
            .unwrap()
            .contains(&"PostToolUse".into())
    );
    assert!(!claude["gaps"].as_array().unwrap().is_empty());
    assert_eq!(of("codex")["governed"], "no");
    let doctor = lab.haft(&["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let lines: Vec<String> = checks
        .iter()
        .filter(|check| check["name"] == "agent")
        .map(Value::to_string)
        .collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(
        lines
            .iter()
            .any(|line| line.contains("Gemini CLI: not governed")),
        "{lines:#?}"
    );
}

#[test]
fn an_unknown_agent_is_named_with_those_there_are() {
    let lab = Lab::new(Answer::Allow);
    let said = lab.haft(&["hook", "install", "codx", "--yes"]);
    assert_eq!(said.status.code(), Some(2));
    assert!(
        text(&said.stderr).contains("did you mean `codex`?"),
        "{}",
        text(&said.stderr)
    );
    let nothing = lab.haft(&["hook", "install", "--yes"]);
    assert!(
        text(&nothing.stderr).contains("no coding agent was found"),
        "{}",
        text(&nothing.stderr)
    );
}
