//! What the prompt shows, and what a typed line means.

use haft::approval::ApprovalRequest;
use haft::permission::{Effect, PathClaim, Permission, Verdict};
use haft::spec::Risk;
use haft::testing::approval_request;

use super::{Choice, choice, fact};

fn request(
    tool: &str,
    arguments: &str,
    permissions: Vec<Permission>,
    risk: Risk,
) -> ApprovalRequest {
    ApprovalRequest {
        permissions,
        risk,
        ..approval_request(tool, arguments).unwrap()
    }
}

/// Running a part of a command line.
fn part(command: &str) -> Permission {
    Permission {
        effect: Effect::Run {
            command: command.into(),
            argv: None,
            jailed: true,
        },
        risk: Risk::High,
    }
}

fn shown(request: &ApprovalRequest, workspace: &std::path::Path) -> String {
    let lines = fact::lines(request, workspace);
    anstream::adapter::strip_str(&lines.join("\n")).to_string()
}

#[test]
fn enter_is_no_and_critical_needs_the_word() {
    let high = request("write_file", "{}", Vec::new(), Risk::High);
    let critical = request("delete_file", "{}", Vec::new(), Risk::Critical);
    let rows = [
        ("", Choice::No, Choice::No),
        ("n", Choice::No, Choice::No),
        ("y", Choice::Once, Choice::Unclear),
        (" Y ", Choice::Once, Choice::Unclear),
        ("yes", Choice::Once, Choice::Unclear),
        ("s", Choice::Session, Choice::Unclear),
        ("a", Choice::Always, Choice::Unclear),
        ("e", Choice::Edit, Choice::Unclear),
        ("q", Choice::Stop, Choice::Stop),
        ("?", Choice::Why, Choice::Why),
        ("delete_file", Choice::Unclear, Choice::Once),
        ("write_file", Choice::Unclear, Choice::Unclear),
        ("yy", Choice::Unclear, Choice::Unclear),
    ];
    for (typed, at_high, at_critical) in rows {
        assert_eq!(choice(typed, &high), at_high, "{typed:?} high");
        assert_eq!(choice(typed, &critical), at_critical, "{typed:?} critical");
    }
}

#[test]
fn the_deciding_fact_comes_whole() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "one\ntwo\nthree\n").unwrap();
    let run = part("rm -rf build\n# \u{202e}hidden\x1b[2K");
    let connect = Permission {
        effect: Effect::Connect {
            url: "https://good.example@evil.example/x".into(),
            host: "evil.example".into(),
        },
        risk: Risk::High,
    };
    let write = Permission::write(PathClaim::plain("a.txt"));
    let rows = [
        (
            "run_command",
            "{}",
            vec![run],
            "$ rm -rf build\n> # \\u{202e}hidden\\x1b[2K",
        ),
        (
            "run_command",
            r#"{"command":"make 2>&1 | tee log >> .envrc","cwd":"sub","env":{"PATH":"/x"}}"#,
            vec![
                part("make"),
                part("tee log"),
                Permission::write(PathClaim::plain("sub/.envrc")),
            ],
            "$ make 2>&1 | tee log >> .envrc\n  in     sub\n  with   PATH=/x\n  runs   make\n  runs   tee log\n  writes sub/.envrc",
        ),
        (
            "fetch_url",
            "{}",
            vec![connect],
            "https://good.example@evil.example/x",
        ),
        (
            "write_file",
            r#"{"path":"a.txt","content":"one\n2\nthree\n"}"#,
            vec![write.clone()],
            "a.txt (overwrite)\n one\n-two\n+2\n three",
        ),
        (
            "edit_file",
            r#"{"path":"a.txt","edits":[{"find":"two","replace":"2"},{"start_line":1,"end_line":2,"replace":"x"}]}"#,
            vec![write],
            "a.txt\n@@\n-two\n+2\n@@ lines 1 to 2 become\n+x",
        ),
        ("other", r#"{"b":1}"#, Vec::new(), "{\n  \"b\": 1\n}"),
    ];
    for (tool, arguments, permissions, expect) in rows {
        let request = request(tool, arguments, permissions, Risk::High);
        assert_eq!(shown(&request, folder.path()), expect, "{tool}");
    }
}

#[test]
fn every_part_of_a_command_is_marked_with_its_verdict() {
    let request = ApprovalRequest {
        verdicts: vec![Verdict::Allow, Verdict::Ask, Verdict::Ask],
        ..request(
            "run_command",
            r#"{"command":"make && git push  allow > out","cwd":"sub"}"#,
            vec![
                part("make"),
                part("git push  allow"),
                Permission::write(PathClaim::plain("sub/out")),
            ],
            Risk::High,
        )
    };
    assert_eq!(
        shown(&request, std::path::Path::new("/nowhere")),
        "$ make && git push  allow > out\n  in     sub\n  allow  runs make\n  ask    runs git push  allow\n  ask    writes sub/out"
    );
}
