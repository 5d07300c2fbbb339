//! The entry point of a call without a waiting client: one process asks, an operator decides, another process runs it.

use std::path::Path;

use serde_json::Value;

use crate::binary::asking;
use crate::table::{Got, Row, lines};

/// Runs `haft call`, which is suspended if approval is needed; then the row's approver decides.
pub(crate) fn resume(scene: &tempfile::TempDir, row: &Row) -> Got {
    let home = scene.path().join("home");
    let call = ["call", row.tool, "--args", row.arguments];
    let asked = run(scene.path(), row, &call);
    let Some(id) = asked["approval"].as_str() else {
        // No approval is needed: the call runs as through any other entry point.
        return got(&asked, &home);
    };
    assert_eq!(asked["status"], "suspended");
    let request = run(scene.path(), row, &["approvals", "show", id]);
    let risks = ["safe", "high", "critical"];
    let risk = |word: &str| risks.iter().position(|known| *known == word).unwrap();
    let yes = row
        .auto
        .is_some_and(|most| risk(request["risk"].as_str().unwrap()) <= risk(most));
    let word = if yes { "approve" } else { "deny" };
    let outcome = run(scene.path(), row, &["approvals", word, id]);
    got(&outcome, &home)
}

fn run(scene: &Path, row: &Row, args: &[&str]) -> Value {
    let output = asking(scene, row)
        .args(args)
        .arg("--json")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}: {said}"))
}

/// Returns the outcome and the lines, without the one about the pending call.
fn got(outcome: &Value, home: &Path) -> Got {
    let mut lines = lines(home);
    lines.retain(|line| line != "ended:suspended");
    Got {
        status: outcome["status"].as_str().unwrap().to_owned(),
        lines,
    }
}
