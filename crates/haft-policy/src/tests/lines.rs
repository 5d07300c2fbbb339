//! Parsing command lines: the commands and files of a line, and lines that are not parsed at all.

use std::time::{Duration, Instant};

use super::*;

/// Checks that a line has these parts, and `> target` and `< target` redirections.
fn check(line: &str, expect: &[&str]) {
    let read = CommandLine::new(line);
    let parts = read.parts.iter().map(|part| part.command.clone());
    let writes = read.writes.iter().map(|to| format!("> {}", to.path));
    let reads = read.reads.iter().map(|from| format!("< {}", from.path));
    let found: Vec<String> = parts.chain(writes).chain(reads).collect();
    assert_eq!(found, expect, "{line:?}");
}

#[test]
fn every_simple_command_is_a_part() {
    for (line, expect) in [
        (
            "a && b || c; d | e |& f & g\nh",
            &["a", "b", "c", "d", "e", "f", "g", "h"][..],
        ),
        ("a; a; a b", &["a", "a b"]),
        ("a 'b c' \"d\" e\\ f $'\\x67'", &["a 'b c' d 'e f' g"]),
        ("a \"$x\" b*", &["a \"$x\" b*"]),
        ("x=1 a b", &["x=1 a b"]),
        ("x=1", &["x=1"]),
        ("(a; b)", &["a", "b"]),
        ("{ a; b; }", &["a", "b"]),
        ("! a | b", &["a", "b"]),
        ("time a; time -p b", &["a", "b"]),
        (
            "if a; then b; elif c; then d; else e; fi",
            &["a", "b", "c", "d", "e"],
        ),
        (
            "while a; do b; done; until c; do d; done",
            &["a", "b", "c", "d"],
        ),
        ("for f in a b; do c \"$f\"; done", &["c \"$f\""]),
        ("for PATH in a; do c; done", &["PATH=$PATH", "c"]),
        ("for ((i = 0; i < 3; i++)); do a; done", &["a"]),
        ("case $x in (a|b) c;; d) e;& *) f;; esac", &["c", "e", "f"]),
        ("f() { a; }; function g { b; }", &["a", "b"]),
        ("[[ -f x && $(a) ]] || b", &["b", "a"]),
        ("((2 > $#)) && a", &["a"]),
        ("i=0; while ((i++ < 3)); do a; done", &["i=0", "a"]),
        ("[ -f x ] && a", &["'[' -f x ']'", "a"]),
        ("export A=1 B=$(a)", &["export A=1 B=$()", "a"]),
        ("a # b; c", &["a"]),
        ("a # b\nc", &["a", "c"]),
        ("a <<E\n$(b)\n\\$(c)\nE\nd", &["a", "d", "b"]),
        ("a <<'E'\n$(b)\nE", &["a"]),
        ("a <<-E | c\n\t`b`\n\tE", &["a", "c", "b"]),
        ("a <<<\"$(b)\"", &["a", "b"]),
    ] {
        check(line, expect);
    }
}

#[test]
fn what_runs_where_a_word_is_expanded_is_a_part() {
    for line in [
        "a $(b)",
        "a `b`",
        "a \"$(b)\"",
        "a \"`b`\"",
        "a <(b)",
        "a x<(b)",
        "a ${x:-$(b)}",
        "a \"${x:-$(b)}\"",
        "a ${x:-<(b)}",
        "a ${x:-'$(b)'}",
        "a ${x/$(b)/y}",
        "a x=$(b)",
        "a {x,$(b)}",
        "a <<<$(b)",
        "a <<E\n`b`\nE",
        "a 2>&1 <<E\n${x:-$(b)}\nE",
    ] {
        let read = CommandLine::new(line);
        let found: Vec<&str> = read.parts.iter().map(|part| &*part.command).collect();
        assert!(
            found.len() == 2 && found[0].starts_with('a'),
            "{line:?} {found:?}"
        );
        assert_eq!(found[1], "b", "{line:?}");
    }
    for (line, expect) in [
        ("x=$(b)", &["x=$()", "b"][..]),
        ("for i in $(b); do a; done", &["a", "b"]),
        ("case $(b) in `c`) a;; esac", &["a", "b", "c"]),
        ("a > $(b)", &["a", "b", "> $()"]),
        ("a > >(b)", &["a", "b"]),
        ("a $(b $(c `d`))", &["a $()", "b $()", "c $()", "d"]),
        ("a `b \\`c\\``", &["a $()", "b $()", "c"]),
        // Nothing parses the text again.
        ("x='y[$(b)]'", &["x='y[$(b)]'"]),
        ("[[ 'x[$(b)]' == y ]] && a", &["a"]),
    ] {
        check(line, expect);
    }
}

#[test]
fn redirections_are_files() {
    for (line, expect) in [
        (
            "a > b >> 'c d' 2> e &> f >| g",
            &["a", "> b", "> c d", "> e", "> f", "> g"][..],
        ),
        ("a < b <> c", &["a", "> c", "< b", "< c"]),
        ("a 2>&1 >&2 2>&- <&3 > /dev/null 2>/dev/./null", &["a"]),
        ("a >& b &>> c", &["a", "> b", "> c"]),
        ("a 4> b 3< c", &["a", "> b", "< c"]),
        ("> a", &["> a"]),
        ("> a b", &["b", "> a"]),
        ("(a) >> b", &["a", "> b"]),
        ("while a; do b; done > c", &["a", "b", "> c"]),
        ("f() { a; } > b", &["a", "> b"]),
        ("a 2 > b", &["a 2", "> b"]),
        ("a x2> b", &["a x2", "> b"]),
        ("a > >(b)", &["a", "b"]),
        // AP1: a quoted text that looks like a substitution is a file.
        ("a > '>()'", &["a", "> >()"]),
        ("a > \\<\\(\\)", &["a", "> <()"]),
        ("a < '<()'", &["a", "< <()"]),
        ("a > '>'\"()\"", &["a", "> >()"]),
        // AP2: `..` after a link leads elsewhere than the text says.
        (
            "a > /x/link/../../dev/null",
            &["a", "> /x/link/../../dev/null"],
        ),
        ("a > /dev/../dev/null", &["a", "> /dev/../dev/null"]),
    ] {
        check(line, expect);
    }
}

/// Returns lines that are too long, too deeply nested or have too many parts.
fn immense() -> Vec<String> {
    let n = |text: &str, times: usize| text.repeat(times);
    vec![
        n("(", 30),
        n("((", 30),
        n("{ ", 20_000),
        n("$(", 30),
        n("$( ", 3_000),
        n("`", 9_999),
        n("${", 3_000),
        n("<(", 3_000),
        n("\"$(", 3_000),
        n("$((", 2_000),
        n("if ", 3_000),
        n("case x in ", 900),
        n("! ", 4_999) + "(",
        n("a <<E\n", 1_000),
        n("a=(", 3_000),
        n("[[ ( ", 1_000),
        format!("{}ls{}", n("(", 17), n(")", 17)),
        format!("{}ls{}", n("{ ", 17), n("; }", 17)),
        format!("{}ls{}", n("$(", 17), n(")", 17)),
        format!("echo $(({}1{}))", n("(", 17), n(")", 17)),
        format!("echo {}", n("a", 9_996)),
        format!("cat <<E\n{}\nE", n("x", 1 << 20)),
        format!("echo $(({}))", n("9", 9_000) + ")"),
        (0..500)
            .map(|i| format!("a{i};"))
            .collect::<Vec<_>>()
            .concat(),
    ]
}

/// Returns lines that are not command lines, or cannot be parsed.
fn broken() -> Vec<String> {
    vec![
        "echo 'a".into(),
        "echo \"a".into(),
        "echo `a".into(),
        "echo $(a".into(),
        "echo ${a".into(),
        "echo $'a".into(),
        "ls \\".into(),
        "ls\0 -la".into(),
        "ls | | ls".into(),
        "ls && ".into(),
        "ls ;; ls".into(),
        "fi".into(),
        "ls; }".into(),
        "if ls; then; fi".into(),
        "{ }".into(),
        "cat <<E\nx".into(),
        "cat <<$x\n$x\n".into(),
        "ls ${x@P}".into(),
        "ls $[1]".into(),
        "ls $\\\n(sudo id)".into(),
        "ls {fd}> a".into(),
        "ls {fd[0]}< a".into(),
        "coproc ls".into(),
        "select x in a; do ls; done".into(),
        "ls $\"a\"".into(),
        "x=(ls)".into(),
        "x[1]=ls".into(),
        "ls $((ls); (ls))".into(),
        "((ls); (ls))".into(),
        "ls \"$\\\n(sudo id)\"".into(),
        "ls $'\\c'".into(),
        "ls !(a)".into(),
        "a() ls".into(),
        "ls $(ls # )".into(),
        "echo \"${x:-'$(sudo id)'}\"".into(),
    ]
}

/// No rule allows any of these, none takes long, and none needs a deep stack.
#[test]
fn what_cannot_be_taken_apart_is_asked_about_at_once() {
    let lines = [immense(), broken()].concat();
    let judged = move || {
        let all = Lists {
            allow: &[
                "*",
                "Edit",
                "Bash(ls)",
                "Bash(ls *)",
                "Bash(echo *)",
                "Bash(cat *)",
            ],
            ..Lists::default()
        };
        let (allowing, denying) = (
            policy(Profile::Workspace, all),
            policy(
                Profile::Trusted,
                Lists {
                    deny: &["Bash(*)"],
                    ..all
                },
            ),
        );
        for line in &lines {
            let started = Instant::now();
            let scene = run(line);
            let shown: String = line.chars().take(40).collect();
            assert_eq!(allowing.judge(&scene.call()).verdict, ASK, "{shown:?}");
            assert_eq!(denying.judge(&scene.call()).verdict, DENY, "{shown:?}");
            // A hundred times the usual time: this only detects a hang, and does not depend on the clock.
            assert!(started.elapsed() < Duration::from_secs(20), "{shown:?}");
        }
    };
    let small = std::thread::Builder::new().stack_size(512 * 1024);
    small.spawn(judged).unwrap().join().unwrap();
}

#[test]
fn a_line_that_cannot_be_read_is_still_denied_by_what_can_be_seen() {
    let lists = Lists {
        deny: &["Bash(sudo *)"],
        allow: &["Bash"],
        ..Lists::default()
    };
    for line in [
        "ls ( ; sudo id",
        "sudo id; (((",
        "ls $(sudo id",
        "if ls; sudo id",
        "coproc x { sudo id; }",
    ] {
        assert_eq!(judge(lists, &run(line)).verdict, DENY, "{line}");
    }
    let long = format!("echo {}; sudo id", "a".repeat(10_000));
    assert_eq!(judge(lists, &run(&long)).verdict, DENY);
}

#[test]
fn what_a_deny_could_match_at_run_time_is_asked_about() {
    let lists = Lists {
        deny: &["Bash(git push *)", "Read(.env)"],
        allow: &["Bash"],
        ..Lists::default()
    };
    for (line, expect) in [
        ("git $X origin", ASK),
        ("git $X push origin", ASK),
        ("git \"$(echo push)\"", ASK),
        ("git commit -m \"$MESSAGE\"", ALLOW),
        ("echo $X", ALLOW),
        ("cat $X", ASK),
        ("cat .e*", ASK),
        ("cd sub && cat .env", DENY),
        ("ls $X", ALLOW),
    ] {
        assert_eq!(judge(lists, &run(line)).verdict, expect, "{line}");
    }
    let lists = Lists {
        deny: &["Read(/sub/key)", "Edit(/sub/out)"],
        allow: &["Bash", "Edit"],
        ..Lists::default()
    };
    for (line, expect) in [
        ("cd sub && cat key", DENY),
        ("cd sub; echo x > out", DENY),
        ("cat key", ALLOW),
        ("echo x > out", ALLOW),
        ("cat < sub/key", DENY),
    ] {
        assert_eq!(judge(lists, &run(line)).verdict, expect, "{line}");
    }
}

#[test]
fn patterns_do_not_cover_what_needs_more() {
    let lists = Lists {
        allow: &[
            "Bash",
            "Bash(git *)",
            "Bash(npm run *)",
            "Bash(find *)",
            "Bash(cd *)",
        ],
        ..Lists::default()
    };
    for line in [
        "find . -name *.ts",
        "git diff *.ts",
        "sort *.txt",
        "cd sub && git status",
        "FOO=1 npm run x",
        "eval ls",
        "sh -c ls",
        "PATH=/tmp/x; npm run x",
    ] {
        assert_eq!(judge(lists, &run(line)).verdict, ASK, "{line}");
    }
    // A carriage return is part of the word.
    let ends = Lists {
        allow: &["Bash(ls)", "Bash(ls *)"],
        deny: &["Bash(sudo *)"],
        ..Lists::default()
    };
    assert_eq!(judge(ends, &run("ls\r\nls\r\n")).verdict, ASK);
    assert_eq!(judge(ends, &run("ls\r\nsudo id\r\n")).verdict, DENY);
    let quoted = Lists {
        allow: &["Bash(npm run *)"],
        ..Lists::default()
    };
    assert_eq!(judge(quoted, &run("npm \"run $X\"")).verdict, ASK);
    assert_eq!(judge(quoted, &run("npm run \"$X\"")).verdict, ALLOW);
}
