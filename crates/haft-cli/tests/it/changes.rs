//! `haft runs diff` and `haft runs undo`: show and undo the changes of calls, including those of an undo.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Lab, Ran};

const TRUSTED: [&str; 2] = ["--profile", "trusted"];

const SCRIPT: &str = "
tools.write_file(path='new/a.txt', content='a\\n')
tools.read_file(path='b.txt')
tools.edit_file(path='b.txt', edits=[{'find': 'two', 'replace': '2'}])
tools.read_file(path='c.txt')
tools.move_file(**{'from': 'c.txt', 'to': 'd/c.txt'})
tools.read_file(path='e.txt')
tools.apply_patch(patch='*** Begin Patch\\n*** Delete File: e.txt\\n*** End Patch')
";

fn lab() -> Lab {
    let lab = Lab::new();
    for (name, text) in [
        ("b.txt", "one\ntwo\n"),
        ("c.txt", "see\n"),
        ("e.txt", "end\n"),
    ] {
        lab.file(name, text);
    }
    lab
}

/// Returns the run of a script that changes four files.
fn changed(lab: &Lab) -> String {
    let chain = [&["chain", "-", "--json"][..], &TRUSTED].concat();
    let outcome = lab.run_with(&chain, SCRIPT).json();
    assert_eq!(outcome["status"], "ok", "{outcome}");
    outcome["run"].as_str().unwrap().to_owned()
}

fn files(lab: &Lab) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut todo = vec![lab.work()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(lab.work()).unwrap();
            let name = name.to_str().unwrap().to_owned();
            if path.is_dir() {
                all.push((name, String::new()));
                todo.push(path);
            } else {
                all.push((name, fs::read_to_string(path).unwrap()));
            }
        }
    }
    all.sort();
    all
}

fn undo(lab: &Lab, of: &[&str]) -> Ran {
    lab.run(&[&["runs", "undo"], of, &["--json"]].concat())
}

#[test]
fn what_a_run_changed_is_shown_taken_back_and_brought_back() {
    let lab = lab();
    let before = files(&lab);
    let run = changed(&lab);
    let after = files(&lab);
    assert_ne!(before, after);
    let diff = lab.run(&["runs", "diff", &run, "--json"]).json();
    let changes = diff["changes"].as_array().unwrap();
    let told = |change: &Value| {
        let [path, action] =
            ["path", "action"].map(|name| change[name].as_str().unwrap().to_owned());
        (path, action)
    };
    let told: Vec<_> = changes.iter().map(told).collect();
    let expect = [
        ("new", "create"),
        ("new/a.txt", "create"),
        ("b.txt", "modify"),
        ("d", "create"),
        ("d/c.txt", "move"),
        ("e.txt", "delete"),
    ];
    assert_eq!(
        told,
        expect.map(|(path, action)| (path.to_owned(), action.to_owned()))
    );
    assert!(
        changes[2]["diff"].as_str().unwrap().contains("-two\n+2\n"),
        "{diff}"
    );
    assert_eq!(changes[4]["from"], "c.txt");
    let shown = lab.run(&["runs", "diff", &run]);
    assert!(shown.stdout.contains("-end"), "{}", shown.stdout);
    // Without confirmation.
    let refused = undo(&lab, &[&run]);
    assert_eq!(
        (refused.code, files(&lab)),
        (2, after.clone()),
        "{}",
        refused.stderr
    );
    let undone = undo(&lab, &[&run, "--yes"]);
    assert_eq!(undone.code, 0, "{}{}", undone.stdout, undone.stderr);
    assert_eq!(files(&lab), before);
    // Already undone.
    let twice = undo(&lab, &[&run, "--yes"]);
    assert_eq!(twice.code, 1, "{}", twice.stderr);
    assert!(twice.stderr.contains("nothing to undo"), "{}", twice.stderr);
    // The undo is a recorded run, and can be undone like any other.
    let again = undone.json()["run"].as_str().unwrap().to_owned();
    assert_eq!(lab.run(&["runs", "verify", &again]).code, 0);
    let back = undo(&lab, &[&again, "--yes"]);
    assert_eq!(back.code, 0, "{}{}", back.stdout, back.stderr);
    assert_eq!(files(&lab), after);
}

#[test]
fn one_call_is_taken_back_and_the_others_stay() {
    let lab = lab();
    let run = changed(&lab);
    let diff = lab
        .run(&["runs", "diff", &run, "call-1.3", "--json"])
        .json();
    assert_eq!(diff["changes"][0]["path"], "b.txt", "{diff}");
    let undone = undo(&lab, &[&run, "call-1.3", "--yes"]);
    assert_eq!(undone.code, 0, "{}{}", undone.stdout, undone.stderr);
    let now = files(&lab);
    assert!(
        now.contains(&("b.txt".into(), "one\ntwo\n".into())),
        "{now:?}"
    );
    assert!(now.contains(&("new/a.txt".into(), "a\n".into())), "{now:?}");
    let none = lab.run(&["runs", "diff", &run, "call-9", "--json"]).json();
    assert_eq!(none["changes"], json!([]));
}

#[test]
fn what_changed_since_or_is_denied_is_not_taken_back() {
    let lab = lab();
    let run = changed(&lab);
    lab.file("b.txt", "mine\n");
    let after = files(&lab);
    let conflict = undo(&lab, &[&run, "--yes"]);
    assert_eq!(
        (conflict.code, files(&lab)),
        (1, after),
        "{}",
        conflict.stderr
    );
    assert!(
        conflict
            .stderr
            .contains("b.txt: it was changed after the run"),
        "{}",
        conflict.stderr
    );
    assert!(conflict.stderr.contains("--force"), "{}", conflict.stderr);
    lab.file("b.txt", "one\n2\n");
    let after = files(&lab);
    let deny = ["-c", "policy.deny=[\"Edit(/e.txt)\"]"];
    let denied = lab.run(&[&["runs", "undo", &run, "--yes"][..], &deny].concat());
    assert_eq!(
        (denied.code, files(&lab)),
        (3, after),
        "{}{}",
        denied.stdout,
        denied.stderr
    );
    for (args, code) in [
        (&["runs", "diff", "20200101-000000-00000000"][..], 2),
        (&["runs", "undo", "../x", "--yes"], 2),
        (&["runs", "undo", &run, "--yes", "--workspace", "/tmp"], 2),
    ] {
        let ran = lab.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn with_force_what_was_changed_since_is_kept_beside() {
    let lab = lab();
    let before = files(&lab);
    let run = changed(&lab);
    for (name, text) in [
        ("b.txt", "mine\n"),
        ("new/a.txt", "mine, too\n"),
        ("b.txt.before-undo", "from earlier\n"),
    ] {
        lab.file(name, text);
    }
    let after = files(&lab);
    let refused = undo(&lab, &[&run, "--force"]);
    assert_eq!((refused.code, files(&lab)), (2, after.clone()));
    assert!(
        refused.stderr.contains("b.txt as b.txt.before-undo.2"),
        "{}",
        refused.stderr
    );
    let undone = undo(&lab, &[&run, "--force", "--yes"]);
    assert_eq!(undone.code, 0, "{}{}", undone.stdout, undone.stderr);
    let mut expect = before;
    for (name, text) in [
        ("b.txt.before-undo", "from earlier\n"),
        ("b.txt.before-undo.2", "mine\n"),
        ("new", ""),
        ("new/a.txt.before-undo", "mine, too\n"),
    ] {
        expect.push((name.to_owned(), text.to_owned()));
    }
    expect.sort();
    assert_eq!(files(&lab), expect);
    // The undo can be undone like any other: the versions that were kept are restored.
    let again = undone.json()["run"].as_str().unwrap().to_owned();
    let back = undo(&lab, &[&again, "--yes"]);
    assert_eq!(back.code, 0, "{}{}", back.stdout, back.stderr);
    assert_eq!(files(&lab), after);
}

#[test]
fn a_long_file_when_not_shown_whole_is_shown_alone_while_its_copy_exists() {
    let lab = lab();
    lab.file("long.txt", &"a line\n".repeat(400_000));
    let call = |line: &str| {
        let arguments = json!({ "command": line }).to_string();
        lab.run(&["call", "run_command", "--args", &arguments, "--json"])
    };
    let ran = call("sed -i 's/a line/another/' long.txt; printf 'caf\\351\\n' > odd.txt");
    if ran.code != 4 {
        eprintln!("SKIPPED: no view here: {}", ran.stdout);
        return;
    }
    let id = ran.json()["approval"].as_str().unwrap().to_owned();
    let shown = lab.run(&["approvals", "show", &id]);
    for expect in [
        "not all of it is shown",
        &format!("haft approvals show {id} --file long.txt"),
        "+caf\\xe9",
    ] {
        assert!(
            shown.stdout.contains(expect),
            "{expect}: {:.2000}",
            shown.stdout
        );
    }
    assert!(shown.stdout.len() < 4 << 20, "{}", shown.stdout.len());
    let file = |path: &str, offset: &str| {
        let show = ["approvals", "show", &id, "--file", path, "--offset", offset];
        lab.run(&[&show[..], &["--json"]].concat())
    };
    let first = file("long.txt", "0").json();
    assert!(
        first["after"]["text"]
            .as_str()
            .unwrap()
            .starts_with("another\n")
    );
    assert_eq!(first["before"]["bytes"], 2_800_000);
    assert!(
        first["before"].get("next").is_none(),
        "it fits: {}",
        first["before"]["bytes"]
    );
    let rest = file("long.txt", "2799993").json();
    assert_eq!(rest["before"]["text"], "a line\n");
    assert_eq!(file("odd.txt", "0").json()["after"]["text"], "caf\\xe9\n");
    let other = file("b.txt", "0");
    assert_eq!(other.code, 1);
    assert!(
        other.stderr.contains("not one of the files"),
        "{}",
        other.stderr
    );
    assert_eq!(lab.run(&["approvals", "approve", &id]).code, 0);
    let gone = file("long.txt", "0");
    assert_eq!(gone.code, 1);
    assert!(gone.stderr.contains("no longer exists"), "{}", gone.stderr);
}

#[test]
fn a_request_when_the_command_failed_begins_with_that() {
    let lab = lab();
    let arguments = json!({ "command": "echo left > '  ! nothing is lost'; exit 3" }).to_string();
    let ran = lab.run(&["call", "run_command", "--args", &arguments, "--json"]);
    if ran.code != 4 {
        eprintln!("SKIPPED: no view here: {}", ran.stdout);
        return;
    }
    let id = ran.json()["approval"].as_str().unwrap().to_owned();
    let shown = lab.run(&["approvals", "show", &id]).stdout;
    let begins = "the command itself failed\n  ! exit code 3\n'  ! nothing is lost' (new file)\n";
    assert!(shown.contains(begins), "{shown}");
}

#[test]
fn paths_when_a_person_reads_them_are_told_apart_everywhere() {
    let lab = lab();
    lab.file("run.sh", "#!/bin/sh\n");
    let line = r#"printf x > "$(printf 'nl\nx')"; printf x > 'nl\nx'; printf x > 'run.sh (mode)'; chmod +x run.sh;
        mkdir -p 'a, b' "$(printf 'e\nf')"; printf x > 'a, b/.mcp.json'"#;
    let arguments = json!({ "command": line }).to_string();
    let ran = lab.run(&["call", "run_command", "--args", &arguments, "--json"]);
    if ran.code != 4 {
        eprintln!("SKIPPED: no view here: {}", ran.stdout);
        return;
    }
    let id = ran.json()["approval"].as_str().unwrap().to_owned();
    let shown = lab.run(&["approvals", "show", &id]).stdout;
    for expect in [
        "$'nl\\nx' (new file)",
        "$'nl\\\\nx' (new file)",
        "'run.sh (mode)' (new file)",
        "run.sh (mode)\n   1 -mode 0",
        "1 new empty folder: $'e\\nf'",
        "'a, b/.mcp.json' (new file)",
        "why     'a, b/.mcp.json' is protected",
    ] {
        assert!(shown.contains(expect), "{expect}\n{shown}");
    }
    let listed = lab.run(&["approvals", "list", "--json"]).json();
    assert_eq!(
        listed[0]["fact"]["text"], "'a, b/.mcp.json' and 5 more",
        "{listed}"
    );
}

/// Runs git in the workspace as its user would.
#[expect(
    clippy::disallowed_methods,
    reason = "the user's own command, not haft's"
)]
fn git(lab: &Lab, args: &[&str]) {
    let mut command = std::process::Command::new("git");
    let command = command.args(args).current_dir(lab.work());
    let command = command.env("GIT_CONFIG_GLOBAL", "/dev/null");
    assert!(command.status().unwrap().success(), "{args:?}");
}

#[test]
fn a_file_of_a_commit_when_not_shown_whole_is_shown_alone_while_its_copy_exists() {
    let lab = lab();
    lab.file("long.txt", "short\n");
    git(&lab, &["init", "-q"]);
    git(&lab, &["add", "long.txt"]);
    let author = ["-c", "user.name=a", "-c", "user.email=a@b"];
    git(&lab, &[&author[..], &["commit", "-qm", "one"]].concat());
    lab.file("long.txt", &"a line\n".repeat(400_000));
    let line = "git -c user.name=a -c user.email=a@b commit -qam two";
    let arguments = json!({ "command": line }).to_string();
    let ran = lab.run(&["call", "run_command", "--args", &arguments, "--json"]);
    if ran.code != 4 {
        eprintln!("SKIPPED: no view here: {}", ran.stdout);
        return;
    }
    let id = ran.json()["approval"].as_str().unwrap().to_owned();
    let shown = lab.run(&["approvals", "show", &id]).stdout;
    // The file itself does not change: only the commit has it.
    assert!(shown.contains("commit 'two' on "), "{shown:.2000}");
    let advice = format!("haft approvals show {id} --file ");
    let (_, name) = shown.split_once(&advice).expect("the advice");
    let name = name.lines().next().unwrap().trim_end_matches('`');
    assert!(name.ends_with(":long.txt"), "{name}");
    let page = lab.run(&["approvals", "show", &id, "--file", name, "--json"]);
    let page = page.json();
    assert_eq!(page["before"]["text"], "short\n", "{page:.500}");
    assert_eq!(page["after"]["bytes"], 2_800_000);
    let other = lab.run(&["approvals", "show", &id, "--file", "none.txt"]);
    assert_eq!(other.code, 1, "{}", other.stderr);
}

#[test]
fn a_secret_in_a_request_hides_nothing_but_itself() {
    let lab = lab();
    lab.file("gone.txt", "old\n");
    lab.file(
        "notes.txt",
        "-----BEGIN PRIVATE KEY-----\nMIIEabcd1\n-----END PRIVATE KEY-----\n",
    );
    let line = "echo '# -----BEGIN PRIVATE KEY-----' > aaa.txt; echo 'id' > evil.sh; rm gone.txt; sed -i s/abcd1/efgh2/ notes.txt; mkfifo pipe";
    let arguments = json!({ "command": line }).to_string();
    let ran = lab.run(&["call", "run_command", "--args", &arguments, "--json"]);
    if ran.code != 4 {
        eprintln!("SKIPPED: no view here: {}", ran.stdout);
        return;
    }
    let id = ran.json()["approval"].as_str().unwrap().to_owned();
    let shown = lab.run(&["approvals", "show", &id]).stdout;
    for expect in [
        "+# [redacted]",
        "evil.sh (new file)\n   1 +id",
        "gone.txt (deleted)",
        "notes.txt (changed)\n  what changes is [redacted]",
        "not applied, even if approved: 1 change of the command\n  ! it is a named pipe\n  pipe",
    ] {
        assert!(shown.contains(expect), "{expect}: {shown}");
    }
    assert!(!shown.contains("MIIE"), "{shown}");
}
