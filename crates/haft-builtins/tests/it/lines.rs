//! The words that the policy judges, the words that are started and the words that a shell would see are the same words.

use haft::policy::plain_words;
use haft_sandbox::parse_simple;
use proptest::prelude::*;

/// How bash splits a line into arguments; `None` where it does not parse.
#[expect(clippy::disallowed_methods, reason = "bash is the judge")]
fn bash_words(line: &str) -> Option<Vec<String>> {
    let script = format!("set -- {line}\nprintf '%s\\0' \"$@\"");
    let output = std::process::Command::new("bash")
        .args(["--norc", "--noprofile", "-c", &script])
        .env("HOME", "/home/somebody")
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let words = said.split_terminator('\0').map(str::to_owned).collect();
    output.status.success().then_some(words)
}

fn check(line: &str) {
    let (judged, started) = (plain_words(line), parse_simple(line));
    if let (Some(judged), Some(started)) = (&judged, &started) {
        assert_eq!(judged, started, "{line:?}");
    }
    for words in [judged, started].into_iter().flatten() {
        assert_eq!(Some(words), bash_words(line), "{line:?}");
    }
}

#[test]
fn lines_that_look_plain_and_are_not_are_read_by_nobody() {
    for line in [
        "ls ~",
        "ls ~root",
        "ls a~b",
        "ls --x=~/y",
        "ls a:~",
        "ls {a,b}",
        "ls a{1..3}",
        "ls [ab]*",
        "ls x?",
        "ls #c",
        "ls a#c",
        "ls $'x'",
        "ls $\"x\"",
        "ls \"a b\"c'd e'",
        "ls ''",
        "ls \"\"",
        "ls a\\ b",
        "ls \\\nb",
        "ls 'a\nb'",
        "ls\tb",
        "ls a\u{b}b",
        "ls a\u{a0}b",
        "ls !x",
        "ls \"a!b\"",
        "ls 2>x",
        "ls 2 >x",
        "ls a=b",
        "ls é",
        "ls a\rb",
    ] {
        check(line);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn judge_starter_and_shell_see_the_same_words(line in "ls( [a-z0-9=:~#%@,.+'\" \\\\!^{}\\[\\]-]{0,8}){0,3}") {
        check(&line);
    }
}
