//! `haft policy diff`: what a change of settings or a kept rule lets through, and which recorded calls are judged differently.

use serde_json::{Value, json};

use crate::approvals::{call_in_background, only_one, text};
use crate::harness::{Lab, Ran};
use crate::reload::serve;
use crate::serve::{Server, get};

fn diff(lab: &Lab, old: &str, new: &str, more: &[&str]) -> Ran {
    lab.file("old.toml", old);
    lab.file("new.toml", new);
    lab.run(&[&["policy", "diff", "old.toml", "new.toml"][..], more].concat())
}

/// The settings that the others are compared with.
const BASE: &str = "[policy]\nallow = [\"Bash(git status)\"]\ndeny = [\"Bash(git push *)\"]\n";

/// Settings, made of the base by putting a text in the place of another; the exit code, and a line.
const CHANGES: &[[&str; 4]] = &[
    ["", "", "0", "nothing is judged differently"],
    [
        "git status",
        "git *",
        "1",
        "newly allowed: Bash(git *), e.g. running `git` (ask before, allow now)",
    ],
    [
        "deny",
        "ask",
        "1",
        "asked now, was denied: Bash(git push *), e.g. running `git push` (deny before, ask now)",
    ],
    [
        "git push *",
        "git *",
        "0",
        "newly denied: Bash(git *), e.g. running `git` (ask before, deny now)",
    ],
    [
        "[policy]",
        "[policy]\nprofile = \"trusted\"",
        "1",
        "loosened: policy.profile \"workspace\" → \"trusted\"",
    ],
    [
        "[policy]",
        "[policy]\nprofile = \"read-only\"",
        "0",
        "tightened: policy.profile \"workspace\" → \"read-only\"",
    ],
    [
        "[policy]",
        "[approval]\nmode = \"auto:high\"\n[policy]",
        "1",
        "loosened: approval.mode \"ask\" → \"auto:high\"",
    ],
    [
        "[policy]",
        "[sandbox]\nnetwork = \"none\"\n[policy]",
        "0",
        "tightened: sandbox.network \"ask\" → \"none\"",
    ],
    [
        "[policy]",
        "[budgets.day]\nsends = 5\n[policy]",
        "0",
        "tightened: budgets.day.sends unset → 5",
    ],
    [
        "[policy]",
        "[sandbox]\nnetwork = \"full\"\n[policy]",
        "1",
        "changed both ways: sandbox.network \"ask\" → \"full\" (where commands reach less, fewer of them are asked about, and the reverse)",
    ],
    [
        "[policy]",
        "[policy]\ntrust_workspace = \"no\"",
        "0",
        "tightened: policy.trust_workspace \"yes\" → \"no\"",
    ],
    [
        "[policy]",
        "[policy]\nsecret_names = [\"conf/\"]",
        "0",
        "tightened: policy.secret_names unset → [\"conf/\"]",
    ],
    // What no table judges is said, without its value.
    [
        "[policy]",
        "[web]\nuser_agent = \"s3cret\"\n[policy]",
        "1",
        "changed, not judged: web.user_agent",
    ],
    [
        "[policy]",
        "locale = \"de\"\n[policy]",
        "0",
        "nothing is judged differently",
    ],
];

#[test]
fn a_change_is_described_line_by_line_and_by_the_exit_code() {
    let lab = Lab::new();
    for [from, to, code, line] in CHANGES {
        let new = if from.is_empty() {
            BASE.to_owned()
        } else {
            BASE.replace(from, to)
        };
        let ran = diff(&lab, BASE, &new, &[]);
        assert_eq!(
            ran.code.to_string(),
            *code,
            "{new}\n{}{}",
            ran.stdout,
            ran.stderr
        );
        assert!(
            ran.stdout.lines().any(|own| own == *line),
            "{new}\n{}",
            ran.stdout
        );
        assert!(!ran.stdout.contains("s3cret"), "{}", ran.stdout);
    }
}

/// Settings that confine commands more have more of them run unasked.
#[test]
fn a_setting_that_is_called_stricter_has_no_call_run_that_was_asked_about() {
    let lab = Lab::new();
    let file = |key: &str, word: &str| {
        lab.file(&format!("{word}.toml"), &format!("{key} = \"{word}\"\n"));
        format!("{word}.toml")
    };
    for (key, words) in [
        (
            "sandbox.network",
            &["full", "install", "allow-list", "ask", "none"][..],
        ),
        ("sandbox.changes", &["direct", "copy", "review"]),
        ("sandbox.backend", &["passthrough", "jail"]),
    ] {
        let asks: Vec<bool> = words
            .iter()
            .map(|word| {
                let config = file(key, word);
                let args = [
                    "policy",
                    "explain",
                    "run_command",
                    "--args",
                    "{\"command\":\"make\"}",
                ];
                let ran = lab.run(&[&args[..], &["--config", &config]].concat());
                assert!(
                    ran.stdout.contains("run_command"),
                    "{}{}",
                    ran.stdout,
                    ran.stderr
                );
                !ran.stdout.starts_with("allow")
            })
            .collect();
        assert!(
            asks.contains(&true) && asks.contains(&false),
            "{key}: {asks:?}"
        );
        // Of the pairs between which the verdict changes, each word once.
        let stricter = words.iter().zip(&asks).filter(|(_, asks)| !**asks);
        for ((old, _), (new, _)) in words
            .iter()
            .zip(&asks)
            .filter(|(_, asks)| **asks)
            .zip(stricter.cycle())
        {
            let ran = lab.run(&[
                "policy",
                "diff",
                &format!("{old}.toml"),
                &format!("{new}.toml"),
            ]);
            assert_eq!(
                ran.code, 1,
                "{key} {old} {new}: {}{}",
                ran.stdout, ran.stderr
            );
            assert!(ran.stdout.contains("changed both ways"), "{}", ran.stdout);
        }
    }
}

#[test]
fn what_cannot_be_compared_is_an_error_with_its_line() {
    let lab = Lab::new();
    for (new, shown) in [
        ("[policy]\nallow = [\"Bash(git\"]\n", "new.toml:2:10"),
        ("[policy]\nallow = 3\n", "new.toml:2:9"),
        ("[policy\n", "new.toml:1"),
    ] {
        let ran = diff(&lab, "", new, &[]);
        assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(shown), "{}", ran.stderr);
    }
    for args in [
        &["old.toml", "missing.toml"][..],
        &["old.toml"],
        &[],
        &["--kept", "r-none"],
    ] {
        let ran = lab.run(&[&["policy", "diff"], args].concat());
        assert_eq!(ran.code, 2, "{args:?} {}{}", ran.stdout, ran.stderr);
    }
    assert_eq!(diff(&lab, "", "", &[]).code, 0);
}

#[test]
fn recorded_calls_are_judged_by_both_policies() {
    let lab = Lab::new();
    for path in ["docs/a.md", "docs/b.md", "src/a.rs"] {
        let args = json!({"path": path, "content": "x"}).to_string();
        assert_eq!(lab.run(&["call", "write_file", "--args", &args]).code, 4);
    }
    let found = diff(&lab, "", "policy.allow = [\"Edit(/docs/**)\"]", &["--json"]).json();
    let calls = &found["calls"];
    assert_eq!(
        (&calls["judged"], &calls["not_judged"]),
        (&json!(3), &json!(0)),
        "{found}"
    );
    let group = &calls["groups"][0];
    assert_eq!(
        (&group["before"], &group["after"], &group["count"]),
        (&json!("ask"), &json!("allow"), &json!(2)),
        "{found}"
    );
    assert_eq!(found["looser"], true);
    let shown = lab.run(&["policy", "diff", "old.toml", "new.toml"]).stdout;
    assert!(shown.contains("2 recorded calls that asked would now run:\n  write_file docs/b.md\n  write_file docs/a.md\n"), "{shown}");
}

#[test]
fn a_kept_rule_says_what_it_lets_through_before_and_after_it_is_kept() {
    let lab = Lab::new();
    let args = json!({"path": "docs/a.md", "content": "x"}).to_string();
    let asked = lab
        .run(&["call", "write_file", "--args", &args, "--json"])
        .json();
    let ran = lab.run(&[
        "approvals",
        "approve",
        &text(&asked, "approval"),
        "--scope",
        "always",
    ]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let rules = lab.run(&["policy", "rules", "--json"]).json();
    let found = lab.run(&["policy", "diff", "--kept", &text(&rules[0], "id"), "--json"]);
    assert_eq!(found.code, 1, "{}{}", found.stdout, found.stderr);
    let found: Value = found.json();
    let one = &found["rules"][0];
    assert_eq!(
        (&one["change"], &one["rule"]),
        (&json!("newly_allowed"), &json!("Edit(/docs/a.md)")),
        "{found}"
    );
    assert_eq!(
        (&one["like_call_of"], &one["example"]),
        (&json!("write_file"), &json!("docs/a.md")),
        "{found}"
    );
}

#[test]
fn a_proposal_shows_what_it_lets_through_before_it_is_accepted() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let proposal = json!({"rule": "Edit(/docs/**)", "reason": "docs"});
    let asker = call_in_background(&server, "propose_rule", &proposal);
    let id = text(&only_one(&server), "id");
    let tried = server
        .ask(&get(
            &format!("/api/v1/approvals/{id}/rule"),
            Some(&server.operator),
        ))
        .json();
    let line = "newly allowed: Edit(/docs/**), e.g. writing `docs/a` (ask before, allow now)";
    assert_eq!(tried["newly"], json!([line]), "{tried}");
    let shown = lab.run(&["approvals", "show", &id]).stdout;
    assert!(shown.contains(line), "{shown}");
    let denied = lab.run(&["approvals", "deny", &id]);
    assert_eq!(denied.code, 0, "{}{}", denied.stdout, denied.stderr);
    drop(asker.join());
}

#[test]
fn a_reload_says_in_the_log_what_is_looser() {
    let lab = Lab::new();
    lab.file("haft.toml", "[policy]\ndeny = [\"Bash(git push *)\"]\n");
    let (_server, mut voice) = serve(&lab, &["--trust"]);
    lab.file(
        "haft.toml",
        "[policy]\nallow = [\"Bash(git fetch *)\"]\nsecret_files = \"allow\"\n",
    );
    let log = voice.until("changed settings are in force");
    for line in [
        "policy: newly allowed: Bash(git fetch *), e.g. running `git fetch` (ask before, allow now)",
        "policy: no longer denied: Bash(git push *), e.g. running `git push` (deny before, ask now)",
        "policy: loosened: policy.secret_files \"ask\" → \"allow\"",
    ] {
        assert!(log.contains(line), "{log}");
    }
}
