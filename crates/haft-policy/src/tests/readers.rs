//! The built-in set of read-only commands (clause 4), and lines that are too long to judge (clause 16).

use haft_shell::plain_words;

use super::*;
use crate::commands::risk::command_risk;

fn check(line: &str, risk: Risk) {
    assert_eq!(command_risk(&plain_words(line).unwrap()), risk, "{line}");
}

#[test]
fn reading_forms_of_git_with_known_options_are_safe() {
    for line in [
        // P13: the form in the finding.
        "git log --oneline -5",
        "git status",
        "git status -sb --untracked-files=no",
        "git status --porcelain=v2 -uall --ignored -z",
        "git log",
        "git log -p --stat -n 3 --since=yesterday --author=x -- src",
        "git log --graph --all --format='%h %an %s' --date=short -10",
        "git log -Sneedle -G 'a.*b' -L1,5:src/a.rs --follow --reverse",
        "git log main..HEAD ^v1 --no-merges --first-parent",
        "git diff",
        "git diff --stat HEAD~1",
        "git diff --cached --name-only -U5 -M90% -w --word-diff=color",
        "git diff a...b -- src/a.rs",
        "git show HEAD:src/a.rs",
        "git show --stat --oneline -s HEAD",
        "git --no-pager log -p",
        "git -P diff",
        "timeout 5 git status",
        "git blame -w -L1,5 src/a.rs",
        "git reflog",
        "git reflog -5",
        "git reflog show HEAD --date=iso",
        "git branch",
        "git branch -avv",
        "git branch --show-current",
        "git branch --list 'x*'",
        "git tag",
        "git tag -l 'v*' --sort=-v:refname",
        "git remote -v",
        "git stash list",
        "git rev-parse --abbrev-ref HEAD",
        "git ls-files -m -o --exclude-standard src",
        "git describe --tags --always",
        "git shortlog -sn HEAD",
    ] {
        check(line, Risk::Safe);
    }
}

#[test]
fn every_other_form_of_git_is_asked_about() {
    for line in [
        "git",
        "git log --output=x",
        "git log --outp=x",
        "git log --output x",
        "git diff --output=x",
        "git log -- --output=x",
        "git diff --ext-diff",
        "git diff --ext",
        "git diff --textconv",
        "git diff --no-index a b",
        "git diff -Oorder",
        "git log --show-signature",
        "git log --format='%h %G?'",
        "git log --pretty='%+GK'",
        "git show --format='%<(20)% GS'",
        "git log --remerge-diff",
        "git log --diff-merges=remerge",
        "git show --submodule=diff",
        "git log --stdin",
        "git log --exec=x",
        "git log --onelin",
        "git status --unknown",
        "git -C sub status",
        "git -c core.fsmonitor=./x status",
        "git -c core.pager=x log",
        "git -p log",
        "git --paginate log",
        "git --git-dir=x status",
        "git --work-tree=x status",
        "git --exec-path=x status",
        "git --config-env=core.pager=X log",
        "git branch topic",
        "git branch -v topic",
        "git branch -D main",
        "git branch -m main",
        "git branch --list -D main",
        "git branch --edit-description",
        "git tag v1",
        "git tag -v v1",
        "git tag --format='%(signature)'",
        "git blame --contents=x src/a.rs",
        "git blame --contents x src/a.rs",
        "git reflog expire --all",
        "git reflog delete main@1",
        "git reflog show -p",
        "git reflog --format='%G?'",
        "git stash list -p",
        "git stash",
        "git remote show origin",
        "git remote add x y",
        "git rev-parse --parseopt",
        "git ls-files -X x",
        "git describe --dirty",
        "git shortlog --output=x",
        "git grep -Oless x",
        "/usr/bin/git status",
    ] {
        check(line, Risk::High);
    }
}

#[test]
fn an_option_of_git_behind_dashes_that_may_be_a_value_is_asked_about() {
    for line in [
        "git log -1 --decorate-refs -- --output=x",
        "git log --decorate-refs-exclude -- --output=x",
        "git show -s --decorate-refs -- --output=x",
        "git log -L -- --output=x",
        "git log --since -- src --output=x",
        "git log --grep -- --grep -- --output=x",
        "git diff -S -- --ext-diff",
        "git diff --line-prefix -- --output x",
        "git log --format=%h --author -- '--format=%G?'",
        "git shortlog --since -- --output=x",
        "git blame --since -- --contents=x src/a.rs",
        "git describe --always --match -- --dirty",
        "git ls-files -c -- -X x",
        "git status -- --unknown",
        // The value of an option is no option: these create a branch or a tag.
        "git branch --sort --list topic",
        "git branch --sort -- --list topic",
        "git branch -- --list topic",
        "git tag --sort -l v1",
        "git tag --sort -- -l v1",
    ] {
        check(line, Risk::High);
    }
    for line in [
        "git log -n 3 -- src",
        "git log --since -- src",
        "git branch --sort -v --list x",
        "git branch --list --sort refname x",
        "git tag -n --list x",
    ] {
        check(line, Risk::Safe);
    }
}

#[test]
fn a_form_of_git_with_a_word_of_the_shell_is_asked_about() {
    for line in [
        "git log $X",
        "git show \"$X\"",
        "git diff *.rs",
        "git log --format=\"$X\"",
    ] {
        assert_eq!(line_risk(line), Risk::High, "{line}");
    }
}

#[test]
fn find_and_diff_are_safe_with_what_is_known_to_look_alone() {
    for line in [
        "find",
        "find . src -maxdepth 2 -type f -name '*.rs' -not -path './target/*' -print0",
        "find . ( -name a -o -iname b ) -a ! -empty -mtime -7 -size +10k -perm -u+x -ls",
        "find -L . -newermt 2024-01-01 -printf '%p %s' -prune -quit",
        "find . -name -delete",
        "diff a b",
        "diff -ru --color=always a b",
        "diff -U3 -x '*.o' --exclude=y a b",
        "diff -y -W 80 -5 a b",
        "diff --unified=3 --from-file=a b c",
        "diff -- -u b",
    ] {
        check(
            &line
                .replace("( ", "\\( ")
                .replace(" )", " \\)")
                .replace("! ", "\\! "),
            Risk::Safe,
        );
    }
    for line in [
        "find . -delete",
        "find . -exec ls ';'",
        "find . -ok rm x",
        "find . -execdir ls '{}' +",
        "find . -fprint x",
        "find . -fprintf x y",
        "find . -fls x",
        "find . -fprint0 x",
        "find . -unknown",
        "find . -name",
        "find . -name a -delete",
        "diff -l a b",
        "diff -ul a b",
        "diff --paginate a b",
        "diff --pag a b",
        "diff --unknown a b",
        "diff -- -l b",
        "diff -x -- -l a b",
        "diff --label -- --paginate a b",
    ] {
        check(line, Risk::High);
    }
    for line in [
        "find $X",
        "find \"$X\" -name a",
        "diff $X b",
        "cd $X",
        "find . -name *.rs",
    ] {
        assert_eq!(line_risk(line), Risk::High, "{line}");
    }
}

#[test]
fn git_in_another_folder_obeys_other_settings() {
    let lists = Lists {
        allow: &["Bash(git status)", "Bash(git *)", "Bash(cd *)", "Bash"],
        ..Lists::default()
    };
    let in_folder = |line: &str, cwd: &str| {
        let mut scene = run(line);
        scene.arguments = json!({"command": line, "cwd": cwd}).to_string();
        // As the command tool states it: a read-only form in another folder is not read-only.
        scene
            .permissions
            .iter_mut()
            .for_each(|p| p.risk = p.risk.max(Risk::High));
        judge(lists, &scene).verdict
    };
    for line in [
        "git status",
        "git diff",
        "timeout 5 git status",
        "git push",
        "ls; git log $X",
    ] {
        // P4: `cwd` changes the folder.
        assert_eq!(in_folder(line, "bare"), ASK, "{line}");
        assert_eq!(in_folder(line, "sub/../bare"), ASK, "{line}");
        assert_eq!(in_folder(line, "."), ALLOW, "{line}");
        assert_eq!(in_folder(line, "sub/.."), ALLOW, "{line}");
    }
    assert_eq!(in_folder("make", "bare"), ALLOW);
}

#[test]
fn a_folder_that_is_changed_under_another_spelling_is_another_folder() {
    // AP3: part of the command is only known at run time, and its name is quoted.
    let lists = Lists {
        deny: &["Edit(sub/**)"],
        allow: &[
            "Bash(cd *)",
            "Bash(make)",
            "Bash(git *)",
            "Bash(/usr/bin/git *)",
            "Edit(key)",
        ],
        ..Lists::default()
    };
    for cd in ["cd", "c\\d", "'cd'", "\"c\"d", "$'cd'", "command c\\d"] {
        for then in ["make > key", "git gc", "/usr/bin/git gc"] {
            let line = format!("for x in sub; do {cd} \"$x\"; done; {then}");
            assert_eq!(judge(lists, &run(&line)).verdict, ASK, "{line}");
        }
    }
    let named = judge(lists, &run("cd sub; /usr/bin/git gc"));
    assert_eq!(named.verdict, ASK, "git by its path");
    assert_eq!(judge(lists, &run("make > key")).verdict, ALLOW);
}

#[test]
fn a_command_of_more_than_ten_thousand_characters_is_asked_about() {
    let long = |length: usize| format!("echo {}", "a".repeat(length - 5));
    let lists = Lists {
        allow: &["Bash", "Bash(echo *)", "Bash(echo a*)"],
        ..Lists::default()
    };
    let as_argv = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let permissions = CommandLine::of_argv(line.to_owned(), words.clone())
            .runs(true, false)
            .collect();
        tool(
            "run_command",
            Risk::Safe,
            &json!({"argv": words}),
            permissions,
        )
    };
    // P13: without shell syntax, as a line and as argv.
    for (length, expect) in [(10_000, ALLOW), (10_001, ASK), (20_000, ASK)] {
        let line = long(length);
        for scene in [run(&line), as_argv(&line)] {
            for profile in [Profile::Workspace, Profile::Trusted] {
                let verdict = policy(profile, lists).judge(&scene.call()).verdict;
                assert_eq!(verdict, expect, "{profile}: {length}");
            }
            let reading = policy(Profile::ReadOnly, Lists::default());
            let expect = if expect == ALLOW { ALLOW } else { DENY };
            assert_eq!(reading.judge(&scene.call()).verdict, expect, "{length}");
        }
    }
    let denying = Lists {
        deny: &["Bash(echo *)"],
        ..lists
    };
    assert_eq!(judge(denying, &as_argv(&long(10_001))).verdict, DENY);
}
