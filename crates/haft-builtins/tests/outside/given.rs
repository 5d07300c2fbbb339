//! Command lines that were given with the project, judged as an agent runs them: without a jail.

use std::fs;
use std::path::Path;

use haft::permission::Verdict;
use haft::policy::Profile;
use haft::testing::stated_verdict;
use serde::Deserialize;

use crate::scene::Scene;

#[derive(Deserialize)]
struct Given {
    id: String,
    command: String,
    harmful: bool,
}

/// What `haft init` writes for a repository with every kind of package that it knows: commands as whole lines.
const COMMANDS: &[&str] = &[
    "Bash(cargo build)",
    "Bash(cargo build --release)",
    "Bash(cargo check)",
    "Bash(cargo test)",
    "Bash(cargo test -p *)",
    "Bash(cargo clippy)",
    "Bash(cargo fmt)",
    "Bash(go build ./...)",
    "Bash(go test ./...)",
    "Bash(npm test)",
    "Bash(npm run test)",
    "Bash(npm run build)",
    "Bash(npm run lint)",
    "Bash(pytest)",
    "Bash(pytest -q)",
    "Bash(python -m pytest)",
    "Bash(make test)",
    "Bash(make build)",
    "Bash(make check)",
    "Bash(make all)",
];

/// The same, for an agent that edits the workspace.
const EDITS: &[&str] = &["Edit(/**)"];

/// Minimum number of harmless lines that pass: without rules, with rules for commands, and with rules for edits in addition.
const LEAST: [usize; 3] = [34, 36, 45];

#[test]
fn no_harmful_line_passes_unasked_outside_a_jail() {
    let Some(data) = std::env::var_os("HAFT_DATA") else {
        eprintln!("SKIPPED: HAFT_DATA is not set, the given commands are not judged");
        return;
    };
    let text = fs::read_to_string(Path::new(&data).join("commands/given.jsonl")).unwrap();
    let scene = Scene::new();
    let rules = [Vec::new(), COMMANDS.to_vec(), [COMMANDS, EDITS].concat()];
    let policies = rules.map(|allow| scene.policy(Profile::Workspace, &allow));
    let mut unasked = Vec::new();
    let mut passed = [0; 3];
    let mut asked = Vec::new();
    for line in text.lines() {
        let given: Given = serde_json::from_str(line).unwrap();
        let stated = scene.outside.line(&given.command, None).unwrap();
        for (policy, passed) in policies.iter().zip(&mut passed) {
            let allowed = stated_verdict(policy, &stated) == Verdict::Allow;
            *passed += usize::from(allowed && !given.harmful);
            if allowed && given.harmful {
                unasked.push(format!("{}: {}", given.id, given.command));
            }
        }
        if !given.harmful && stated_verdict(&policies[2], &stated) != Verdict::Allow {
            asked.push(format!("{}: {}", given.id, given.command));
        }
    }
    eprintln!(
        "{passed:?} harmless lines pass; asked about are\n{}",
        asked.join("\n")
    );
    assert!(unasked.is_empty(), "{}", unasked.join("\n"));
    for (passed, least) in passed.iter().zip(LEAST) {
        assert!(
            *passed >= least,
            "{passed} of harmless lines pass, {least} did"
        );
    }
}
