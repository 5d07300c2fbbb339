//! Reports of shells, what sessions keep of them, and what their next lines get.

use haft::shell_report::ShellReport;

use super::given::GivenState;
use super::report::{ParsedReport, StateChange};
use super::stored::StoredState;
use super::*;

/// A report of a shell with these variables before and after its line, exported and its own, and what it has made.
fn report(before: [&str; 2], after: [&str; 2], made: [&[u8]; 4]) -> Vec<u8> {
    let [functions, aliases, traps, jobs] = made;
    let held = |[exported, plain]: [&str; 2]| {
        let each = |all: &str| {
            all.split_terminator('|')
                .flat_map(|one| [one, "\0"])
                .collect::<String>()
        };
        format!("{}plain\0{}options\0hBc\0x\0", each(exported), each(plain))
    };
    let head = format!("before\0{}after\0{}functions\0", held(before), held(after));
    [
        head.as_bytes(),
        functions,
        b"aliases\0",
        aliases,
        b"\0traps\0",
        traps,
        b"\0jobs\0",
        jobs,
        b"\0end\0",
    ]
    .concat()
}

const NONE: [&[u8]; 4] = [b"", b"", b"", b""];

fn changed(state: &ShellState, bytes: &[u8], line: &str) -> StateChange {
    let given = GivenState::of(state, line);
    ParsedReport::parse(bytes)
        .unwrap()
        .change(state.clone(), &given)
}

fn state(
    exported: &[(&str, &str)],
    plain: &[(&str, &str)],
    functions: &[(&str, &str)],
) -> ShellState {
    let texts = |all: &[(&str, &str)]| {
        let pairs = all
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        pairs.collect()
    };
    ShellState {
        exported: texts(exported),
        plain: texts(plain),
        functions: texts(functions),
    }
}

#[test]
fn what_a_line_set_and_unset_is_kept_and_nothing_of_the_shells_own() {
    let old = state(
        &[("OLD", "1"), ("KEPT", "k")],
        &[("p", "q"), ("other", "o")],
        &[],
    );
    let before = [
        "OLD=1|KEPT=k|HOME=/tmp|PATH=/bin",
        "RANDOM=1|BASHPID=7|TERM=dumb",
    ];
    let after = [
        "KEPT=k|HOME=/tmp|PATH=/x:/bin|NEW=a=b\n'c|BASH_ENV=./x|ENV=./x|PROMPT_COMMAND=x|PS4=$(x)|CDPATH=/|BASH_COMPAT=3.1|POSIXLY_CORRECT=|EXECIGNORE=*|BASH_XTRACEFD=1|PWD=/w|_=x|BASH_FUNC_f%%=() { :|IFS=x|p=now",
        "RANDOM=2|BASHPID=8|TERM=dumb|own=$(no)|PS4=$(x)|CDPATH=/|IFS=,|OPTIND=3|HISTCMD=2",
    ];
    let change = changed(&old, &report(before, after, NONE), "p=now");
    let expected = state(
        &[
            ("KEPT", "k"),
            ("PATH", "/x:/bin"),
            ("NEW", "a=b\n'c"),
            ("p", "now"),
        ],
        &[("other", "o"), ("own", "$(no)")],
        &[],
    );
    assert_eq!(
        change,
        StateChange {
            state: expected,
            lost: Vec::new()
        }
    );
}

#[test]
fn a_line_gets_what_it_names_and_what_that_names() {
    let state = state(
        &[("E", "1")],
        &[("a", "x y"), ("b", "2"), ("inner", "3"), ("unused", "4")],
        &[
            ("f", "f () \n{ \n    g $a\n}"),
            ("g", "g () \n{ \n    echo $inner\n}"),
            ("h", "h () \n{ \n    echo\n}"),
        ],
    );
    let f = "f () \n{ \n    g $a\n}\ng () \n{ \n    echo $inner\n}\n";
    for (line, before) in [
        ("ls", ""),
        ("echo $unusedx", ""),
        ("echo ${b:-c}", "b=2\n"),
        ("echo $a-$b", "a='x y'\nb=2\n"),
        ("x && f 1", &*format!("a='x y'\ninner=3\n{f}")),
        ("h", "h () \n{ \n    echo\n}\n"),
    ] {
        let given = GivenState::of(&state, line);
        assert_eq!(given.line(line), format!("{before}{line}"), "{line}");
        assert_eq!(given.env.len(), 1);
    }
    // These run what is not on the line.
    for line in ["eval \"$x\"", "source ./env", ". ./env", "type z"] {
        let given = GivenState::of(&state, line);
        assert_eq!((given.plain.len(), given.functions.len()), (4, 3), "{line}");
    }
}

#[test]
fn functions_are_kept_as_bash_prints_them_and_aliases_as_functions() {
    let printed =
        b"f () \n{ \n    echo 1\n}\n\0bad name () \n{ \n    :\n}\n\0x () \n{ \n    :\n} > out\n\0";
    let aliases =
        b"alias ll='ls -la'\nalias ls='ls --color'\nalias z='a; b'\nalias w='x $y'\nalias time='x'";
    let bytes = report(
        ["", ""],
        ["", ""],
        [printed, aliases, b"trap -- 'x' EXIT", b"12"],
    );
    let change = changed(
        &state(&[], &[], &[("gone", "gone () \n{ \n    :\n}")]),
        &bytes,
        "unset -f gone",
    );
    let functions: Vec<(&str, &str)> = change
        .state
        .functions
        .iter()
        .map(|(name, text)| (&**name, &**text))
        .collect();
    assert_eq!(
        functions,
        [
            ("f", "f () \n{ \n    echo 1\n}"),
            ("ll", "ll () \n{ \n    ls -la \"$@\"\n}"),
            ("ls", "ls () \n{ \n    command ls --color \"$@\"\n}"),
        ]
    );
    let notice = change.notice().unwrap();
    assert_eq!(
        notice,
        "not kept for the next command: a function, a function, the alias z, the alias w, and 3 more"
    );
}

#[test]
fn what_is_too_long_or_no_text_is_dropped_and_named() {
    let arrays = report(
        ["", "COMP_X[]=|old[]="],
        ["", "BASH_X[]=|old[]=|new[]="],
        NONE,
    );
    let change = changed(&ShellState::default(), &arrays, "true");
    assert_eq!(change.lost, ["the array new"]);
    let attributes = report(["", "old@=|UID@="], ["", "old@=|UID@=|new@=|new=1"], NONE);
    let change = changed(&ShellState::default(), &attributes, "true");
    assert_eq!(change.lost, ["the attributes of $new"]);
    let long = "x".repeat(MAX_VARIABLES);
    let mut bytes = report(["", ""], [&format!("A={long}|B=b"), ""], NONE);
    let change = changed(&ShellState::default(), &bytes, "true");
    assert_eq!(change.state, state(&[("B", "b")], &[], &[]));
    assert_eq!(change.lost, ["$A, which is too long"]);
    let at = bytes.windows(3).position(|three| three == b"B=b").unwrap();
    bytes[at + 2] = 0xff;
    let change = changed(&ShellState::default(), &bytes, "true");
    assert_eq!(change.lost[0], "$B, which is not text");
}

#[test]
fn a_report_that_is_not_whole_changes_nothing() {
    let whole = report(["A=1", "b=2"], ["A=2", "b=3"], NONE);
    assert!(ParsedReport::parse(&whole).is_some());
    for end in 0..whole.len() - 1 {
        assert!(ParsedReport::parse(&whole[..end]).is_none(), "{end}");
    }
    let failed = b"before\0failed\0plain\0options\0a\0b\0after\0";
    for other in [&b""[..], b"\0", b"after\0", b"x\0before\0", failed] {
        assert!(ParsedReport::parse(other).is_none());
    }
    assert!(ParsedReport::is_begun(failed) && !ParsedReport::is_begun(b"before\0A=1\0plain\0"));
}

#[test]
fn a_session_finds_its_own_state_and_fails_on_a_broken_one() {
    let home = tempfile::tempdir().unwrap();
    let one = StoredState::named(home.path(), "one");
    let shell = ShellReport::default();
    shell.give(report(["", ""], ["A=1", ""], NONE));
    one.take_up(&shell, &GivenState::default()).unwrap();
    assert_eq!(one.read().unwrap(), state(&[("A", "1")], &[], &[]));
    // It was taken once, and another session has none of it.
    assert_eq!(one.take_up(&shell, &GivenState::default()).unwrap(), None);
    assert!(
        StoredState::named(home.path(), "two")
            .read()
            .unwrap()
            .is_empty()
    );
    let path = home.path().join("hooks/one.shell");
    for text in [
        "",
        "{",
        "{\"exported\":{},\"more\":1}",
        &"x".repeat(1 << 20),
    ] {
        std::fs::write(&path, text).unwrap();
        assert!(one.read().is_err(), "{text:.20}");
    }
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    assert!(one.read().is_err());
}
