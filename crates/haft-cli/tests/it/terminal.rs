//! A user at a real terminal, on which the binary shows requests and asks, and the user types.

use crate::harness::{Lab, Ran};
use crate::pty::Pty;

/// What a user waits for, and what they type then.
pub(crate) type Line<'a> = (&'a str, &'a str);

/// Runs a command whose input and messages are a terminal; `stderr` is everything that was shown there.
pub(crate) fn at_terminal(lab: &Lab, args: &[&str], script: &[Line<'_>]) -> Ran {
    let mut pty = Pty::start(lab, args);
    for (expected, typed) in script {
        pty.expect(expected);
        pty.enter(typed);
    }
    pty.end()
}

const WRITE: [&str; 4] = [
    "call",
    "write_file",
    "--args",
    r#"{"path":"a.txt","content":"x"}"#,
];

/// Returns the rules kept for the lab's workspace.
fn read_rules(lab: &Lab) -> String {
    let folder = lab.home().join("rules");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    texts.collect()
}

#[test]
fn u1_always_keeps_a_rule_after_a_yes_alone() {
    // What is typed after "always", the text shown, the exit code, and what is kept.
    type Row<'a> = (&'a str, &'a [Line<'a>], i32, &'a str);
    let run_it = "run it?";
    let keep_it = "keep it? [y/N]";
    let rows: [Row<'_>; 5] = [
        ("Enter is no", &[(keep_it, ""), (run_it, "n")], 3, ""),
        ("n is no", &[(keep_it, "n"), (run_it, "n")], 3, ""),
        (
            "a text is no consent, and no rule that does not cover the call is kept",
            &[
                (keep_it, "e"),
                (keep_it, "Bash(make)"),
                (keep_it, "Edit("),
                (keep_it, ""),
                (run_it, "n"),
            ],
            3,
            "",
        ),
        (
            "a yes keeps what was shown",
            &[(keep_it, "y")],
            0,
            "Edit(/a.txt)",
        ),
        (
            "a typed rule is shown before it is kept",
            &[
                (keep_it, "Edit(/*.txt)"),
                ("Edit(/*.txt)", ""),
                (run_it, "y"),
            ],
            0,
            "",
        ),
    ];
    for (name, answers, code, rule) in rows {
        let lab = Lab::new();
        let script = [&[(run_it, "a")], answers].concat();
        let ran = at_terminal(&lab, &WRITE, &script);
        assert_eq!(ran.code, code, "{name}: {}", ran.stderr);
        let kept = read_rules(&lab);
        assert_eq!(kept.contains("rule ="), !rule.is_empty(), "{name}: {kept}");
        assert!(kept.contains(rule), "{name}: {kept}");
        assert_eq!(lab.work().join("a.txt").exists(), code == 0, "{name}");
    }
}

/// Makes a call that waits for an approval; returns its id.
fn waiting(lab: &Lab, args: &[&str]) -> String {
    let ran = lab.run(&[args, &["--json"]].concat());
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
    ran.json()["approval"].as_str().unwrap().to_owned()
}

fn status(lab: &Lab, id: &str) -> String {
    let shown = lab.run(&["approvals", "show", id, "--json"]).json();
    shown["status"].as_str().unwrap().to_owned()
}

#[test]
fn u2_deciding_at_a_terminal_shows_the_request_and_a_critical_one_needs_its_name() {
    let lab = Lab::new();
    let id = waiting(&lab, &WRITE);
    let ran = at_terminal(&lab, &["approvals", "approve", &id], &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("a.txt") && ran.stderr.contains("1 +x"),
        "{}",
        ran.stderr
    );
    lab.user_settings("tools.enable = [\"delete_file\"]\n");
    let delete = ["call", "delete_file", "--args", r#"{"path":"a.txt"}"#];
    let id = waiting(&lab, &delete);
    let approve = ["approvals", "approve", &id[..10]];
    for typed in ["", "y", "delete"] {
        let ran = at_terminal(&lab, &approve, &[("type delete_file", typed)]);
        assert_eq!(ran.code, 2, "{typed:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("a.txt"), "{typed:?}: {}", ran.stderr);
        assert_eq!(status(&lab, &id), "pending", "{typed:?}");
    }
    // Without a terminal it cannot be typed: a script has an option for it.
    let ran = lab.run(&approve);
    assert_eq!((ran.code, status(&lab, &id).as_str()), (2, "pending"));
    assert!(ran.stderr.contains("--yes"), "{}", ran.stderr);
    let ran = at_terminal(&lab, &approve, &[("type delete_file", "delete_file")]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!lab.work().join("a.txt").exists());
    lab.file("b.txt", "x");
    let delete = ["call", "delete_file", "--args", r#"{"path":"b.txt"}"#];
    let id = waiting(&lab, &delete);
    let ran = lab.run(&["approvals", "approve", &id, "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!lab.work().join("b.txt").exists());
}

#[test]
fn u2_a_rule_for_good_is_shown_before_it_is_kept() {
    let always = |id: &str| ["approvals", "approve", id, "--scope", "always"].map(str::to_owned);
    let lab = Lab::new();
    let id = waiting(&lab, &WRITE);
    let args = always(&id);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    for typed in ["", "n", "e"] {
        let ran = at_terminal(&lab, &args, &[("keep it? [y/N]", typed)]);
        assert_eq!(
            (ran.code, status(&lab, &id).as_str()),
            (2, "pending"),
            "{typed:?}"
        );
        assert!(ran.stderr.contains("Edit(/a.txt)"), "{}", ran.stderr);
        assert_eq!(read_rules(&lab), "");
    }
    let wide = [args.as_slice(), &["--rule", "Bash(make)"]].concat();
    let ran = lab.run(&wide);
    assert_eq!((ran.code, status(&lab, &id).as_str()), (2, "pending"));
    assert!(
        ran.stderr.contains("does not cover this call"),
        "{}",
        ran.stderr
    );
    let ran = lab.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("Edit(/a.txt)"), "{}", ran.stderr);
    assert!(read_rules(&lab).contains("Edit(/a.txt)"));
}
