//! V10: whatever a command prints, if it cannot be written the command fails, and one line says so.

use crate::agent_run::{says, script};
use crate::harness::{Lab, Ran, ended};

/// Every command that prints, and how it is made to.
const COMMANDS: &[&[&str]] = &[
    &["--help"],
    &["run", "--help"],
    &["--version"],
    &["version"],
    &["help", "run"],
    &["man"],
    &["completions", "bash"],
    &["init", "--dry-run", "--json"],
    &["tools"],
    &["tools", "read_file", "--json"],
    &["call", "list_files"],
    &["call", "list_files", "--json"],
    &["exec", "--", "echo", "x"],
    &["chain", "one.py"],
    &["approvals", "list", "--json"],
    &["policy", "show"],
    &["policy", "explain", "read_file", "path=a.txt"],
    &["policy", "rules", "--json"],
    &["runs", "list", "--json"],
    &["artifacts", "list", "--json"],
    &["skills", "list", "--json"],
    &["hook", "status", "--json"],
    &["mcp", "snippet", "claude-code"],
    &["mcp", "list", "--json"],
    &["memory", "list", "--json"],
    &["config", "show"],
    &["config", "schema"],
    &["token", "list", "--json"],
    &["doctor", "--json"],
    &["serve", "--stdio"],
    &["run", "--acp", "--model", "scripted:first-try"],
];

fn stage() -> Lab {
    let lab = Lab::new();
    lab.file("a.txt", "one\n");
    lab.file("one.py", "print('printed')\n1\n");
    lab
}

/// Runs a command whose standard output is put elsewhere by a shell.
fn to(lab: &Lab, redirection: &str, args: &[&str]) -> Ran {
    let line = format!("exec \"$0\" \"$@\" {redirection}");
    let mut all = vec!["-c", &line, env!("CARGO_BIN_EXE_haft")];
    all.extend(args);
    ended(lab.program("sh", &all).spawn().unwrap())
}

fn check(lab: &Lab, args: &[&str]) {
    for (redirection, cause) in [
        (">/dev/full", "No space left on device"),
        (">&-", "it is closed"),
    ] {
        // A server without a request has written nothing.
        let serves = ["serve", "--acp"].iter().any(|word| args.contains(word));
        if serves && redirection != ">&-" {
            continue;
        }
        let ran = to(lab, redirection, args);
        assert_eq!(ran.code, 1, "{args:?} {redirection}: {}", ran.stderr);
        let line = format!("error: cannot write to standard output: {cause}\n");
        assert_eq!(
            ran.stderr.matches("cannot write").count(),
            1,
            "{args:?} {redirection}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(&line), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_command_whose_output_cannot_be_written_fails_and_says_so() {
    let lab = stage();
    for args in COMMANDS {
        check(&lab, args);
    }
    let model = script(&lab, &says("It is done."));
    check(&lab, &["run", "go", "--model", &model]);
    check(&lab, &["run", "go", "--json", "--model", &model]);
}

#[test]
fn a_command_whose_reader_went_away_fails_quietly_and_one_with_null_does_not() {
    let lab = stage();
    let model = script(&lab, &says("It is done."));
    let run = ["run", "go", "--json", "--model", &model];
    for args in [&["tools", "--json"][..], &run] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = lab.command(args);
        command.stdout(writer);
        let ran = ended(command.spawn().unwrap());
        assert_eq!(ran.code, 1, "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("error"), "{args:?}: {}", ran.stderr);
        let ran = to(&lab, ">/dev/null", args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
        let ran = to(&lab, "1<>/dev/null", args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    }
}
