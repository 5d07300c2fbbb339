//! What commands do with files, as far as their words show: without a jail, a command that is not understood needs a rule.

use super::super::uses::{How, Known};
use super::*;

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
        ("mv a b", &["Moves a", "Writes b"]),
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
        ("cp -r a b", &["MayUse a", "MayUse b"]),
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
        ("cat a", Known::Whole),
        ("cat '~/a'", Known::Whole),
        ("cat ~/a", Known::Home),
        ("cat \"$HOME/a\"", Known::Home),
        ("cat a*", Known::Pattern),
        ("cat 'a*'", Known::Whole),
        ("make **/a", Known::Nothing),
        ("cat =a", Known::Nothing),
        ("make $HOME/../a$b", Known::Nothing),
    ] {
        assert_eq!(known(line), expect, "{line}");
    }
    assert_eq!(
        CommandLine::new("for f in /a; do true; done").looped()[0].how,
        How::MayUse
    );
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
