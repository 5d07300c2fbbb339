//! The entry point of a coding agent's hook: haft judges the tools that the agent runs itself like its own.

use std::fs;
use std::io::Write as _;

use serde_json::{Value, json};

use crate::binary::bare;
use crate::table::{Row, lines, scene};

/// Returns the same call of a tool of Claude Code, or `None` if it has no such tool.
fn event(scene: &tempfile::TempDir, row: &Row) -> Option<String> {
    let tool = match row.tool {
        "read_file" => "Read",
        "write_file" => "Write",
        _ => return None,
    };
    // The bytes as they are: the hook also rejects what can be read in two ways.
    let input = row.arguments.replace("\"path\"", "\"file_path\"");
    let cwd = json!(scene.path().join("ws"));
    Some(format!(
        "{{\"session_id\":\"s\",\"cwd\":{cwd},\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"{tool}\",\"tool_input\":{input},\"tool_use_id\":\"t\"}}"
    ))
}

/// Returns whether the hook's answer lets the call run.
fn allows(scene: &tempfile::TempDir, row: &Row, event: &str) -> bool {
    let settings = json!({
        "policy": {"profile": row.profile, "allow": row.allow, "ask": row.ask, "deny": row.deny},
        "approval": {"mode": row.auto.map_or("deny".to_owned(), |risk| format!("auto:{risk}"))},
        "hook": {"ask": "haft"},
    });
    let file = scene.path().join("config/haft/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, toml::to_string(&settings).unwrap()).unwrap();
    let mut child = bare(scene.path()).args(["hook", "claude"]).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(event.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let decision = &said["hookSpecificOutput"]["permissionDecision"];
    let allowed = decision == "allow";
    let denied = decision == "deny" || output.status.code() == Some(2);
    assert!(
        allowed != denied,
        "{}: {said} {}",
        row.name,
        String::from_utf8_lossy(&output.stderr)
    );
    let started = lines(&scene.path().join("home")).contains(&"started".to_owned());
    assert_eq!(started, allowed, "{}: the record says otherwise", row.name);
    allowed
}

/// Returns the rows whose verdict is wrong.
pub(crate) fn wrong(rows: Vec<Row>) -> Vec<String> {
    let check = |row: Row| {
        let scene = scene();
        // A rule for one of haft's tools does not cover an agent's tool; rules for classes and files do.
        let rules = [row.allow, row.ask, row.deny].concat();
        if rules.iter().any(|rule| rule.contains('_')) {
            return None;
        }
        let event = event(&scene, &row)?;
        // The agent decides whether a valid call succeeds.
        let expect = row.status == "ok" || row.starts;
        let got = allows(&scene, &row, &event);
        (got != expect).then(|| format!("hook: {}: expected {expect}, got {got}", row.name))
    };
    rows.into_iter().filter_map(check).collect()
}
