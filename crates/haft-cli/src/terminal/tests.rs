//! What the prompt shows, and how a typed line is interpreted.

use haft::approval::meaning::{Meaning, MeaningKind};
use haft::approval::preview::{Aspect, FileChange};
use haft::approval::{ApprovalRequest, CallSnapshot};
use haft::audit::redact::Redactor;
use haft::permission::{Condition, Effect, PathClaim, Permission, Verdict};
use haft::spec::Risk;
use haft::testing::approval_request;
use serde_json::json;

use super::choice::{InboxMove, PromptKind, TypedChoice, choice, unclear};
use super::fact;
use super::keep::{Consent, consent};

fn request(
    tool: &str,
    arguments: &str,
    permissions: Vec<Permission>,
    risk: Risk,
) -> ApprovalRequest {
    ApprovalRequest {
        snapshot: CallSnapshot {
            permissions,
            ..CallSnapshot::default()
        },
        risk,
        ..approval_request(tool, arguments).unwrap()
    }
}

/// Returns the permission to run a part of a command line.
fn part(command: &str) -> Permission {
    Permission {
        effect: Effect::Run {
            command: command.into(),
            argv: None,
            jailed: true,
            on_copy: false,
        },
        risk: Risk::High,
    }
}

/// Returns the same request with files that it would change.
fn changing(request: ApprovalRequest, preview: Vec<FileChange>) -> ApprovalRequest {
    ApprovalRequest {
        snapshot: CallSnapshot {
            preview,
            ..request.snapshot
        },
        ..request
    }
}

fn render(request: &ApprovalRequest) -> String {
    let redactor = Redactor::new(["swordfish"]);
    let lines = fact::lines(request, &redactor);
    anstream::adapter::strip_str(&lines.join("\n")).to_string()
}

#[test]
fn enter_is_no_and_critical_needs_the_word() {
    let high = request("write_file", "{}", Vec::new(), Risk::High);
    let critical = request("delete_file", "{}", Vec::new(), Risk::Critical);
    let no = |words: &str| TypedChoice::No(Some(words.to_owned()));
    let rows = [
        ("", TypedChoice::No(None), TypedChoice::No(None)),
        ("n", TypedChoice::No(None), TypedChoice::No(None)),
        ("n not on main ", no("not on main"), no("not on main")),
        ("No  use docs/", no("use docs/"), no("use docs/")),
        ("not on main", TypedChoice::Unclear, TypedChoice::Unclear),
        ("y", TypedChoice::Once, TypedChoice::Unclear),
        ("y do it", TypedChoice::Unclear, TypedChoice::Unclear),
        (" Y ", TypedChoice::Once, TypedChoice::Unclear),
        ("yes", TypedChoice::Once, TypedChoice::Unclear),
        ("s", TypedChoice::Session, TypedChoice::Unclear),
        ("a", TypedChoice::Always, TypedChoice::Unclear),
        ("e", TypedChoice::Edit, TypedChoice::Unclear),
        ("q", TypedChoice::Stop, TypedChoice::Stop),
        ("j", TypedChoice::Unclear, TypedChoice::Unclear),
        ("?", TypedChoice::Why, TypedChoice::Why),
        ("delete_file", TypedChoice::Unclear, TypedChoice::Once),
        ("write_file", TypedChoice::Unclear, TypedChoice::Unclear),
        ("yy", TypedChoice::Unclear, TypedChoice::Unclear),
    ];
    for (typed, at_high, at_critical) in rows {
        let read = |request| choice(typed, request, PromptKind::Prompt);
        assert_eq!(read(&high), at_high, "{typed:?} high");
        assert_eq!(read(&critical), at_critical, "{typed:?} critical");
    }
}

#[test]
fn a_line_that_decides_nothing_says_why() {
    let high = request("write_file", "{}", Vec::new(), Risk::High);
    let critical = request("connect", "{}", Vec::new(), Risk::Critical);
    for (typed, request, says) in [
        (
            "y",
            &critical,
            "`y` does not run a critical call: type connect to run it once",
        ),
        ("yy", &critical, "`yy` is not one of the choices"),
        ("yy", &high, "`yy` is not one of the choices"),
        ("", &high, "nothing is decided yet"),
    ] {
        assert_eq!(unclear(typed, request), says, "{typed:?}");
    }
}

#[test]
fn a_connection_to_a_private_place_is_named_to_run_once_and_can_be_kept() {
    let mut private = request("connect", "{}", Vec::new(), Risk::Critical);
    private.suggested = vec!["Network(registry.internal:443)".to_owned()];
    for (typed, means) in [
        ("connect", TypedChoice::Once),
        ("a", TypedChoice::Always),
        ("y", TypedChoice::Unclear),
        ("s", TypedChoice::Unclear),
    ] {
        assert_eq!(
            choice(typed, &private, PromptKind::Prompt),
            means,
            "{typed:?}"
        );
    }
}

#[test]
fn in_the_inbox_enter_decides_nothing_and_quit_denies_nothing() {
    let high = request("write_file", "{}", Vec::new(), Risk::High);
    let critical = request("delete_file", "{}", Vec::new(), Risk::Critical);
    let rows = [
        ("", TypedChoice::Unclear, TypedChoice::Unclear),
        (
            "q",
            TypedChoice::Go(InboxMove::Quit),
            TypedChoice::Go(InboxMove::Quit),
        ),
        (
            "j",
            TypedChoice::Go(InboxMove::Next),
            TypedChoice::Go(InboxMove::Next),
        ),
        (
            "k",
            TypedChoice::Go(InboxMove::Back),
            TypedChoice::Go(InboxMove::Back),
        ),
        (
            "l",
            TypedChoice::Go(InboxMove::List),
            TypedChoice::Go(InboxMove::List),
        ),
        ("x", TypedChoice::Stop, TypedChoice::Stop),
        ("n", TypedChoice::No(None), TypedChoice::No(None)),
        ("y", TypedChoice::Once, TypedChoice::Unclear),
        ("delete_file", TypedChoice::Unclear, TypedChoice::Once),
    ];
    for (typed, at_high, at_critical) in rows {
        let read = |request| choice(typed, request, PromptKind::Inbox);
        assert_eq!(read(&high), at_high, "{typed:?} high");
        assert_eq!(read(&critical), at_critical, "{typed:?} critical");
    }
}

#[test]
fn u1_nothing_but_a_yes_is_consent_to_a_rule() {
    let rows = [
        ("", Consent::No),
        (" ", Consent::No),
        ("n", Consent::No),
        ("No", Consent::No),
        ("q", Consent::No),
        (" Quit ", Consent::No),
        ("y", Consent::Yes),
        (" YES ", Consent::Yes),
        ("e", Consent::Rule("e".into())),
        ("a", Consent::Rule("a".into())),
        (" Bash(make) ", Consent::Rule("Bash(make)".into())),
    ];
    for (typed, means) in rows {
        assert_eq!(consent(typed), means, "{typed:?}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn the_deciding_fact_comes_whole() {
    let run = part("rm -rf build\n# \u{202e}hidden\x1b[2K");
    let connect = Permission {
        effect: Effect::connect("https://good.example@evil.example/x", "evil.example"),
        risk: Risk::High,
    };
    let private = Permission {
        effect: Effect::Connect {
            url: "registry.internal:443".into(),
            host: "registry.internal".into(),
            method: None,
            leads_to: vec!["10.0.0.7".parse().unwrap()],
        },
        risk: Risk::Critical,
    };
    let write = Permission::write(PathClaim::plain("a.txt"));
    let high = |tool, arguments, permissions| request(tool, arguments, permissions, Risk::High);
    let (old, new): (&[u8], &[u8]) = (b"one\ntwo\nthree\n", b"one\n2\nthree\n");
    let edited = FileChange::new("a.txt", Some(old), Some(new));
    let rows = [
        (
            high("run_command", "{}", vec![run]),
            "$ rm -rf build\n> # \\u{202e}hidden\\x1b[2K",
        ),
        (
            high(
                "run_command",
                r#"{"command":"make 2>&1 | tee log >> .envrc","cwd":"sub","env":{"PATH":"/x"},"background":true,"timeout_s":600}"#,
                vec![
                    part("make"),
                    part("tee log"),
                    Permission::write(PathClaim {
                        path: "sub/.envrc".into(),
                        target: Some("x/.envrc".into()),
                    }),
                ],
            ),
            "$ make 2>&1 | tee log >> .envrc\n  in     sub\n  with   PATH=/x\n  runs   make\n  runs   tee log\n  writes sub/.envrc → x/.envrc\n  background true\n  timeout_s 600",
        ),
        (
            high(
                "connect",
                r#"{"program":"npm","host":"registry.internal","port":443,"leads_to":["10.0.0.7"],"task":"t"}"#,
                vec![private],
            ),
            "npm connects to registry.internal:443\n  at     10.0.0.7, a private address",
        ),
        (
            high(
                "connect",
                r#"{"program":"curl","host":"example.org","port":443,"command":"curl -sS https://example.org/\u202ex","task":"t-1"}"#,
                vec![Permission {
                    effect: Effect::Connect {
                        url: "example.org:443".into(),
                        host: "example.org".into(),
                        method: None,
                        leads_to: Vec::new(),
                    },
                    risk: Risk::High,
                }],
            ),
            "curl connects to example.org:443\n$ curl -sS https://example.org/\\u{202e}x",
        ),
        (
            high("fetch_url", r#"{"url":"x","format":"raw"}"#, vec![connect]),
            "https://good.example@evil.example/x\n  format raw",
        ),
        (
            changing(
                high(
                    "write_file",
                    r#"{"path":"a.txt","content":"…","mode":"append"}"#,
                    vec![write.clone()],
                ),
                vec![edited.clone()],
            ),
            "a.txt (changed)\n   1  one\n   2 -two\n   2 +2\n   3  three\n  mode   append",
        ),
        (
            changing(
                high("apply_patch", r#"{"patch":"…"}"#, vec![write]),
                vec![
                    edited.leading_to(Some("t1".into())),
                    FileChange::new("b", None, Some(b"x\n")),
                    FileChange::new("c", Some(b"x\n"), None),
                    FileChange::new("d", Some(b"x\n"), Some(b"x\n")).moved("e"),
                    FileChange::new("f", Some(b"\xff"), Some(b"\xfe")),
                ],
            ),
            "a.txt → t1 (changed)\n   1  one\n   2 -two\n   2 +2\n   3  three\nb (new file)\n   1 +x\nc (deleted)\nd (moved to e)\nf (changed)\n  not a text: its content is not shown (1 B, sha256 aa687b58b0e7…)",
        ),
        (high("other", r#"{"b":1}"#, Vec::new()), "{\n  \"b\": 1\n}"),
        (
            changing(
                high("apply_changes", "{}", Vec::new()),
                vec![
                    about(
                        "run.sh",
                        Aspect::Mode,
                        Some("mode 0644\n"),
                        Some("mode 0755\n"),
                    ),
                    about("run.sh (mode)", Aspect::Content, None, Some("x\n")),
                    about("nl\nx", Aspect::Content, Some("x\n"), None),
                    about("nl\\nx", Aspect::Content, Some("x\n"), None),
                    about("l", Aspect::Link, None, Some("link to t\n")),
                    about("t", Aspect::BecomesLink, Some("x\n"), Some("link to u\n")),
                    about("e", Aspect::Folder, None, None),
                    about("f, g", Aspect::Folder, None, None),
                ],
            ),
            "run.sh (mode)\n   1 -mode 0644\n   1 +mode 0755\n'run.sh (mode)' (new file)\n   1 +x\n\
             $'nl\\nx' (deleted)\n$'nl\\\\nx' (deleted)\nl (new link)\n   1 +link to t\n\
             t (becomes a link)\n   1 -x\n   1 +link to u\n2 new empty folders: e, 'f, g'",
        ),
    ];
    for (request, expect) in rows {
        assert_eq!(render(&request), expect, "{}", request.tool);
    }
}

fn about(path: &str, aspect: Aspect, before: Option<&str>, after: Option<&str>) -> FileChange {
    let mut change = FileChange::new(path, before.map(str::as_bytes), after.map(str::as_bytes));
    change.aspect = aspect;
    change
}

/// Returns the request for a command's changes that commits a file.
fn committing() -> ApprovalRequest {
    let mut commit = Meaning::new(
        MeaningKind::Commit,
        "commit 'Fix discount' on main: 1 file, +1 −1",
    );
    commit.warnings = vec!["the last commit becomes unreachable: swordfish".to_owned()];
    commit.lines = vec!["author ann".to_owned()];
    commit.files = vec![FileChange::new("src/a.rs", Some(b"old\n"), Some(b"new\n"))];
    commit.parts = vec![Meaning::new(MeaningKind::Commit, "abc123 First\u{202e}")];
    commit.covers = vec![
        ".git/index".to_owned(),
        ".git/HEAD".to_owned(),
        "none".to_owned(),
    ];
    let mut lock = Meaning::new(MeaningKind::Lockfile, "package-lock.json: 1 package added");
    lock.lines = vec!["+ left-pad 1.3.0".to_owned()];
    lock.covers = vec!["package-lock.json".to_owned()];
    let file = |path: &str| FileChange::new(path, None, Some(b"\0"));
    let preview = vec![
        file(".git/HEAD"),
        file(".git/index"),
        FileChange::new("notes.md", None, Some(b"hello\n")),
        file("package-lock.json"),
    ];
    let mut request = changing(
        request(
            "apply_changes",
            r#"{"command":"git commit"}"#,
            Vec::new(),
            Risk::High,
        ),
        preview,
    );
    request.snapshot.meanings = vec![commit, lock];
    request
}

#[test]
fn changes_when_shown_begin_with_what_they_mean() {
    assert_eq!(
        render(&committing()),
        "commit 'Fix discount' on main: 1 file, +1 −1\n  ! the last commit becomes unreachable: [redacted]\n  author ann\n  \
         - abc123 First\\u{202e}\nsrc/a.rs (changed)\n   1 -old\n   1 +new\n\
         package-lock.json: 1 package added\n  + left-pad 1.3.0\n\
         git's own files: 2\nshown above: package-lock.json\nnotes.md (new file)\n   1 +hello\n  \
         command git commit"
    );
}

#[test]
fn long_files_when_shown_say_what_is_missing_and_how_to_see_it() {
    let line = |nth: usize| format!("line {nth}\n");
    let before: String = (0..60_000).map(line).collect();
    let after = before.replace("line 50000\n", "changed\n");
    let long = FileChange::new("long", Some(before.as_bytes()), Some(after.as_bytes()));
    let mut folded = FileChange::new("folded", None, Some(b"x"));
    folded.fold("it cannot be read");
    let mut more = FileChange::unread("node_modules");
    (more.files, more.after_bytes) = (Some(198_000), Some(3 << 20));
    let mut odd = FileChange::new("odd", None, Some(b"caf\xe9\n"));
    odd.clipped = true;
    let request = changing(
        request("apply_changes", "{}", Vec::new(), Risk::High),
        vec![long, folded.clone(), odd, more],
    );
    let shown = render(&request);
    for expect in [
        "long (changed)\n49998  line 49997\n",
        "\n50001 -line 50000\n50001 +changed\n",
        "folded (new file)\n  not shown: it cannot be read (1 B, sha256 2d711642b726…)",
        "   1 +caf\\xe9\n  bytes that are not UTF-8 are shown as \\xNN\n  not all of it is shown (5 B, ",
        "node_modules (and below: 198000 more files, 3.0 MiB)\nnot all is shown: `haft approvals show ap-",
        "--file folded`",
    ] {
        assert!(shown.contains(expect), "{expect}\n{shown}");
    }
    let request = changing(request, vec![folded; 25]);
    let shown = render(&request);
    assert_eq!(shown.matches("not shown").count(), 20);
    assert!(shown.contains("… and 5 more: it cannot be read"), "{shown}");
}

#[test]
fn p9_p16_conditions_are_shown_and_secrets_are_not() {
    let mut request = request(
        "run_command",
        r#"{"command":"echo swordfish","env":{"KEY":"swordfish"}}"#,
        vec![part("echo swordfish")],
        Risk::High,
    );
    request.snapshot.conditions = vec![
        Condition::new("sandbox", "jail, at least no-proc"),
        Condition::new("network", "none"),
    ];
    request.bound = json!({"token": "${env:TOKEN}"})
        .as_object()
        .unwrap()
        .clone();
    assert_eq!(
        render(&request),
        "$ echo [redacted]\n  with   KEY=[redacted]\n  token  \"${env:TOKEN}\" (from the settings)\n  \
         sandbox jail, at least no-proc\n  network none"
    );
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
        render(&request),
        "$ make && git push  allow > out\n  in     sub\n  allow  runs make\n  ask    runs git push  allow\n  ask    writes sub/out"
    );
}
