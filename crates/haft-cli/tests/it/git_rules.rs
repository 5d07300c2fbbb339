//! Rules for git's commands on a line with others: beside settings by which git may start a program, and in a submodule.

use std::process::Command;

use crate::harness::{Lab, Ran};
use crate::signals::jailed;

const RULES: &str = "[policy]\nallow = [\"Bash(git add *)\", \"Bash(git commit *)\", \"Bash(touch *)\", \"Bash(git -C part *)\"]\n";

/// A lab whose workspace is a repository with a commit; `None` where there is no git, or no jail.
fn lab() -> Option<Lab> {
    let lab = Lab::new();
    lab.user_settings(RULES);
    lab.file("a.txt", "1\n");
    let is_made = git(&lab, "init -q . && git add -A && git commit -q -m first");
    if !is_made {
        #[expect(clippy::print_stderr, reason = "a test says what it skips")]
        {
            eprintln!("SKIPPED: there is no git");
        }
        return None;
    }
    jailed(&lab).then_some(lab)
}

/// Runs git as the user does.
fn git(lab: &Lab, words: &str) -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "the user's own git, outside of haft"
    )]
    let mut shell = Command::new("bash");
    shell
        .current_dir(lab.work())
        .args(["-c", &format!("git {words}")]);
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_AUTHOR_NAME", "a"),
        ("GIT_AUTHOR_EMAIL", "a@b"),
        ("GIT_COMMITTER_NAME", "a"),
        ("GIT_COMMITTER_EMAIL", "a@b"),
    ] {
        shell.env(name, value);
    }
    shell.status().is_ok_and(|status| status.success())
}

/// What a person reads of the pending request, which is denied then; empty if there is none.
fn request(lab: &Lab) -> String {
    let all = lab.run(&["approvals", "list", "--json"]).json();
    let all = all.as_array().unwrap();
    let pending = all.iter().find(|one| one["status"] == "pending");
    let Some(id) = pending.and_then(|one| one["id"].as_str()) else {
        return String::new();
    };
    let shown = lab.run(&["approvals", "show", id]).stdout;
    lab.run(&["approvals", "deny", id]);
    shown
}

fn exec(lab: &Lab, line: &str) -> Ran {
    lab.run(&["exec", "--wait", "0", "--", line])
}

#[test]
fn a_reading_git_command_beside_a_covered_one_is_covered_whatever_settings_say() {
    let Some(lab) = lab() else { return };
    assert!(git(&lab, "config user.name a && git config user.email a@b"));
    let commit = "echo 2 >> a.txt && git add -A && git commit -q -m work && git log -1 --format=%s";
    let commit = commit.replace("echo 2 >> a.txt && ", "");
    for (section, setting) in [
        ("", ""),
        ("[gpg]", "gpg.format ssh"),
        ("[log]", "log.showSignature true"),
        ("[format]", "format.pretty oneline"),
        ("[filter \"lfs\"]", "filter.lfs.required true"),
    ] {
        let has = !setting.is_empty();
        assert!(!has || git(&lab, &format!("config {setting}")), "{setting}");
        lab.file("a.txt", &format!("{setting}\n"));
        let ran = exec(&lab, &commit);
        assert_eq!(
            (ran.code, &*ran.stdout),
            (0, "work\n"),
            "{section}: {}",
            ran.stderr
        );
        // Beside another command it is not, and the result and the explanation say why.
        let line = format!("touch new{}.txt && git log -1", setting.len());
        let ran = exec(&lab, &line);
        assert_eq!(
            ran.code,
            if has { 4 } else { 0 },
            "{section}: {}",
            ran.stderr
        );
        let why = format!("{section} in .git/config");
        let explained = lab.run(&[
            "policy",
            "explain",
            "run_command",
            &format!("command={line}"),
        ]);
        for text in [&request(&lab), &explained.stdout] {
            assert_eq!(text.contains(" in .git/config"), has, "{section}: {text}");
            assert!(!has || text.contains(&why), "{section}: {text}");
        }
        assert!(
            !has || git(
                &lab,
                &format!("config --unset {}", setting.split(' ').next().unwrap())
            )
        );
    }
}

#[test]
fn a_commit_in_a_submodule_is_covered_by_the_rule_that_the_result_names() {
    let Some(lab) = lab() else { return };
    let part = Lab::new();
    part.file("p.txt", "1\n");
    assert!(git(
        &part,
        "init -q . && git add -A && git commit -q -m part"
    ));
    let add = format!(
        "-c protocol.file.allow=always submodule add -q {} part && git commit -q -m sub && git -C part config user.name a && git -C part config user.email a@b",
        part.work().display()
    );
    assert!(git(&lab, &add));
    lab.file("part/p.txt", "2\n");
    let ran = exec(&lab, "cd part && git commit -q -a -m two");
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    let shown = request(&lab);
    assert!(shown.contains("`Bash(git -C part commit *)`"), "{shown}");
    let ran = exec(&lab, "git -C part commit -q -a -m two");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // Where no rule would cover it, none is named.
    exec(&lab, "cd part && git tag x");
    let shown = request(&lab);
    assert!(!shown.contains("git -C part"), "{shown}");
}
