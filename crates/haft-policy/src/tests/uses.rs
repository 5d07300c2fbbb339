//! What commands do with files, as far as their words show: without a jail, a command that is not understood needs a rule.

use super::*;
use haft_command::PathAccess;
use haft_command::PathCertainty;

/// Returns whether the last part of a line is understood, and its uses as text.
fn last(line: &str) -> (bool, Vec<String>) {
    let uses = CommandLine::new(line).uses();
    let last = uses.last().unwrap();
    let each = last
        .paths
        .iter()
        .map(|one| format!("{:?} {}", one.how, one.path));
    (last.understood, each.collect())
}

#[test]
fn commands_that_are_understood_say_all_that_they_do() {
    for (line, expect) in [
        ("cat a b", &["Reads a", "Reads b"][..]),
        ("cat *.rs", &["Reads *.rs"]),
        ("ls", &[]),
        ("echo a /b", &[]),
        ("grep -n x a", &["Reads a"]),
        ("grep -r x", &["ReadsBelow { follows: false } ."]),
        ("grep -R x a", &["ReadsBelow { follows: true } a"]),
        ("grep -f p a", &["Reads p", "Reads a"]),
        ("find a -name b", &["Names a", "Names b"]),
        ("cd a", &["Goes a"]),
        ("cp a b", &["Reads a", "Writes b"]),
        ("mv a b", &["Moves a", "Carries a", "Writes b"]),
        ("rm -f a b", &["Removes a", "Removes b"]),
        ("tee -a a", &["Writes a"]),
        ("sort -k 2 a", &["Reads a"]),
        ("sed -n 5p a", &["Reads a"]),
        ("git blame a", &["ReadsHistory a"]),
        ("git diff", &["ReadsTracked ."]),
        ("for f in a b; do cat $f; done", &["Reads a", "Reads b"]),
        ("timeout 5 cat a", &["Reads a"]),
    ] {
        let (understood, uses) = last(line);
        assert!(understood, "{line}");
        assert_eq!(uses, expect, "{line}");
    }
}

#[test]
fn grep_searches_what_its_options_leave() {
    let below = "ReadsBelow { follows: false } .";
    let follows = "ReadsBelow { follows: true } .";
    for (line, expect) in [
        ("grep -rn -A 2 KEY", &[below][..]),
        ("grep -r -m 1 KEY", &[below]),
        ("grep -rn KEY -A 2", &[below]),
        ("grep -rin -e KEY -A 2", &[below]),
        ("grep -rn --include '*' -C3 -5 KEY", &[below]),
        ("grep -rf pat", &["Reads pat", below]),
        ("grep --exclude-from=e -r KEY", &["Reads e", below]),
        ("grep -d recurse KEY", &[follows]),
        ("grep --directories rec KEY", &[follows]),
        ("grep -R -A 2 root:x", &[follows]),
        ("grep --label -- -r KEY", &[below]),
        ("grep --label -- -R KEY", &[follows]),
        ("grep --include -- -re KEY", &[below]),
        ("grep --exclude -- -r KEY", &[below]),
        ("grep -A -- -r KEY", &[below]),
        ("grep -e -- -r", &[below]),
        ("egrep --binary-files -- -r KEY", &[below]),
        ("fgrep --label -- -r KEY", &[below]),
        // Each of them may become several words.
        ("grep -r K*", &["ReadsBelow { follows: false } K*", below]),
        ("grep K* a", &["Reads K*", "Reads a"]),
        ("grep -A 2 KEY a", &["Reads a"]),
        ("grep -d skip -e KEY a", &["Reads a"]),
        ("grep -- -r a", &["Reads a"]),
        ("grep -rn -A 2 KEY a", &["ReadsBelow { follows: false } a"]),
        ("rg -. -r --files KEY", &[below]),
        ("rg -e -- -L", &[follows]),
        ("rg K*", &["ReadsBelow { follows: false } K*", below]),
        ("rg --files a", &["ReadsBelow { follows: false } a"]),
    ] {
        let (understood, uses) = last(line);
        assert!(understood, "{line}");
        assert_eq!(uses, expect, "{line}");
    }
    for line in [
        // It takes the next word in some implementations only.
        "grep -rn --context 1 KEY",
        "grep --rec KEY",
        "grep -rS KEY",
        "grep -A a* KEY",
        "grep -e KEY --unknown -r",
    ] {
        assert!(!last(line).0, "{line}");
    }
}

#[test]
fn a_word_behind_dashes_may_be_a_file_or_an_option() {
    for (line, expect) in [
        ("cat -- -x", &["Reads -x"][..]),
        ("head -n -- -xa", &["Reads a", "Reads -xa"]),
        ("stat -- -x", &["Names -x"]),
        ("sort -k -- -u a", &["Reads a"]),
        ("sort -- -u a", &["Reads -u", "Reads a"]),
        (
            "diff -rx --no-dereference a b",
            &[
                "ReadsBelow { follows: true } x",
                "ReadsBelow { follows: true } a",
                "ReadsBelow { follows: true } b",
            ],
        ),
        ("git log --decorate-refs -- -p", &["ReadsTracked ."]),
        (
            "git diff -l --name-only a",
            &["ReadsHistory a", "ReadsTracked ."],
        ),
        ("git diff --name-only -- a", &["Names a"]),
    ] {
        let (understood, uses) = last(line);
        assert!(understood, "{line}");
        assert_eq!(uses, expect, "{line}");
    }
    for line in [
        "sort -k -- -o a b",
        "wc -L -- --files0-from=a",
        "sha256sum --tag -- -c a",
        "find . -name -- -delete",
        "diff -x -- -l a b",
        // `awk` takes both words as files.
        "awk '{print}' -F a",
        "awk '{print}' a -v a",
    ] {
        assert!(!last(line).0, "{line}");
    }
}

#[test]
fn what_is_not_understood_is_looked_through_for_places() {
    for (line, expect) in [
        ("make all", &["MayUse all"][..]),
        ("make -C/x", &["MayUse /x", "MayUse x"]),
        ("make --dir=/x", &["MayUse /x"]),
        ("curl https://a/b", &["Connects https://a/b"]),
        ("curl file:///a", &["MayUse /a"]),
        ("make $x", &["MayUse $x"]),
        (
            "python -c \"open('/a')\"",
            &["MayUse open('/a')", "MayUse /a"],
        ),
        ("git commit -m '/a b'", &["MayUse commit"]),
        ("rm -r a", &["MayUse a"]),
        (
            "cp -r a b",
            &["MayUse a", "MayUse b", "Carries a", "Carries b"],
        ),
        ("sort -o a b", &["MayUse a", "MayUse b"]),
        ("xargs cat", &["MayUse cat"]),
    ] {
        let (understood, uses) = last(line);
        assert!(!understood, "{line}");
        assert_eq!(uses, expect, "{line}");
    }
}

#[test]
fn nothing_is_understood_beside_what_changes_its_meaning() {
    for line in [
        "export A=1; cat a",
        "A=1 cat a",
        "while true; do cat a & done",
        "f() { cat a & }; cat a",
        "read f; cat \"$f\"",
        "cat $x",
        "cat \"$f\"",
        "cat {a,b}",
        "$x a",
        "(cd a; cat b",
    ] {
        assert!(!last(line).0, "{line}");
    }
    let known = |line: &str| CommandLine::new(line).uses()[0].paths[0].known;
    for (line, expect) in [
        ("cat a", PathCertainty::Whole),
        ("cat '~/a'", PathCertainty::Whole),
        ("cat ~/a", PathCertainty::Home),
        ("cat \"$HOME/a\"", PathCertainty::Home),
        ("cat a*", PathCertainty::Pattern),
        ("cat 'a*'", PathCertainty::Whole),
        ("make **/a", PathCertainty::Nothing),
        ("cat =a", PathCertainty::Nothing),
        ("make $HOME/../a$b", PathCertainty::Nothing),
    ] {
        assert_eq!(known(line), expect, "{line}");
    }
    assert_eq!(
        CommandLine::new("for f in /a; do true; done").looped()[0].how,
        PathAccess::MayUse
    );
}

#[test]
fn a_denied_file_is_denied_to_every_program_that_is_known_to_show_files() {
    let lists = Lists {
        deny: &["Read(conf/prod/*)"],
        allow: &["Bash"],
        ..Lists::default()
    };
    for (line, expect) in [
        ("sort conf/prod/key", DENY),
        ("awk '/x y/ {print}' conf/prod/key", DENY),
        ("cp conf/prod/key a", DENY),
        ("mv -t a conf/prod/key", DENY),
        ("rg x conf", ASK),
        ("rg x src", ALLOW),
        ("cut -f1 \"$x\"", ASK),
        ("sha256sum -c list", ASK),
        ("ls conf/prod/key", ALLOW),
        ("rm conf/prod/key", ALLOW),
        ("make conf/prod/key", ALLOW),
    ] {
        assert_eq!(judge(lists, &run(line)).verdict, expect, "{line}");
    }
}

#[test]
fn an_explanation_says_what_a_command_does() {
    let explained = policy(Profile::Workspace, Lists::default()).explain(&run("sort -u a").call());
    let does: Vec<Option<&str>> = explained
        .parts
        .iter()
        .map(|part| part.does.as_deref())
        .collect();
    assert_eq!(does, [None, Some("reads a, and does nothing else")]);
}

#[test]
fn haft_itself_is_asked_about_outside_a_jail_whatever_allows_it() {
    let lists = Lists {
        allow: &["Bash", "Bash(haft *)", "Bash(sh -c 'haft trust')"],
        ..Lists::default()
    };
    let outside = |line: &str, jailed: bool| {
        let mut scene = run(line);
        scene.permissions = CommandLine::new(line).runs(jailed, false).collect();
        judge(lists, &scene)
    };
    for line in [
        "haft trust",
        "/opt/haft approvals approve 1",
        "sh -c 'haft trust'",
        "sudo haft trust",
        "pkill -f haft",
    ] {
        let ruling = outside(line, false);
        assert_eq!(
            (ruling.verdict, &*ruling.rule),
            (ASK, "guard own-commands"),
            "{line}"
        );
    }
    assert_eq!(outside("haft trust", true).verdict, ALLOW);
    assert_eq!(outside("echo haft", false).verdict, ALLOW);
    assert_eq!(outside("cat haft/README.md", false).verdict, ALLOW);
}
