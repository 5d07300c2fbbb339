//! K2: a command's changes to what git ignores are a part of its one request, and an approval for good keeps a rule for the folder.

use serde_json::{Value, json};

use crate::harness::{Lab, Ran};
use crate::signals::jailed;

fn lab() -> Lab {
    let lab = Lab::new();
    lab.file(".gitignore", "node_modules/\nign/\n");
    let made = lab.program("git", &["init", "-q"]).status().unwrap();
    assert!(made.success());
    lab
}

fn command(lab: &Lab, line: &str) -> Ran {
    let arguments = json!({ "command": line }).to_string();
    lab.run(&["call", "run_command", "--args", &arguments])
}

/// Returns the only request that waits, as `approvals show --json` prints it.
fn request(lab: &Lab) -> Value {
    let listed = lab.run(&["approvals", "list", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    let shown = lab.run(&["approvals", "show", &id, "--json"]).stdout;
    serde_json::from_str(&shown).unwrap()
}

#[test]
fn ignored_changes_when_denied_are_dropped_with_the_rest() {
    let lab = lab();
    if !jailed(&lab) {
        return;
    }
    let line = "mkdir ign; echo evil > ign/x; echo y > a";
    assert_eq!(command(&lab, line).code, 4);
    let request = request(&lab);
    let title = "ign/, ignored by git: 1 file, 5 bytes";
    assert!(request.to_string().contains(title), "{request}");
    let id = request["id"].as_str().unwrap();
    assert_eq!(lab.run(&["approvals", "deny", id]).code, 0);
    assert!(!lab.work().join("ign").exists());
    assert!(!lab.work().join("a").exists());
}

#[test]
fn ignored_folder_when_approved_for_good_is_changed_unasked_by_other_commands() {
    let lab = lab();
    if !jailed(&lab) {
        return;
    }
    let line = "mkdir node_modules; echo a > node_modules/x; echo y > a";
    assert_eq!(command(&lab, line).code, 4);
    let request = request(&lab);
    assert_eq!(request["suggested"], json!(["Edit(/node_modules)"]));
    let id = request["id"].as_str().unwrap();
    let approve = ["approvals", "approve", id, "--scope", "always", "--yes"];
    let ran = lab.run(&approve);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for line in [
        "rm -rf node_modules",
        "mkdir -p node_modules/b; echo b > node_modules/b/c",
    ] {
        let ran = command(&lab, line);
        assert_eq!(ran.code, 0, "{line}: {}", ran.stderr);
    }
    assert!(lab.work().join("node_modules/b/c").exists());
    // Nothing else is covered.
    assert_eq!(command(&lab, "echo z > a").code, 4);
    assert_eq!(command(&lab, "mkdir ign; echo z > ign/x").code, 4);
}
