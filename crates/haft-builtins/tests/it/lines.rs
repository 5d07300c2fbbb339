//! The words that the policy judges, the words that are executed and the words that a shell would see are the same.

use haft::policy::{CommandLine, CommandPart, plain_words};
use haft_sandbox::direct_words;
use proptest::prelude::*;

/// Returns the arguments that bash splits a line into; `None` if it does not parse.
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
    let (judged, started) = (plain_words(line), direct_words(line));
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

/// Pieces of lines; their commands do not exist.
const PIECES: &[&str] = &[
    "c0",
    "c1",
    "c2",
    "c3",
    "c0 x",
    "c1 'x'",
    " ",
    "; ",
    "\n",
    " && ",
    " || ",
    " | ",
    " & ",
    "$(",
    ")",
    "`",
    "\"",
    "'",
    "\\",
    "( ",
    " )",
    "{ ",
    "; }",
    "if ",
    "; then ",
    "; fi",
    " # ",
    " <(",
    "${x:-",
    "}",
    "x=",
    "$((",
    "))",
    " <<E\n",
    " <<'E'\n",
    "\nE\n",
    "case a in a) ",
    ";; esac",
    "! ",
    "f() ",
    "f",
    " 2>&1",
    "$'c2'",
    "[[ -n ",
    " ]] ",
    "for i in a b; do ",
    "; done",
    "\\\n",
    " \"$(",
    ")\" ",
    "x[$(",
    ")]=1",
    "=( ",
    "time ",
    "c\"3\"",
    "$x",
    "printf -v 'x[$(c2)]' y",
    "((x['$(c3)']))",
];

/// Returns the commands that bash looks up when it runs a line.
#[expect(clippy::disallowed_methods, reason = "bash is the judge")]
fn bash_runs(line: &str, folder: &std::path::Path) -> Vec<String> {
    let log = folder.join("log");
    std::fs::write(&log, "").unwrap();
    let noted = "command_not_found_handle() { printf '%s\\0' \"$1\" >> \"$NOTED\"; }; export -f command_not_found_handle";
    let script = format!("ulimit -t 2; {noted}\neval \"$LINE\"\nwait");
    let status = std::process::Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", &script])
        .env("LINE", line)
        .env("NOTED", &log)
        .env("PATH", folder)
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status();
    assert!(status.is_ok(), "bash does not start");
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    said.split_terminator('\0').map(str::to_owned).collect()
}

/// Returns whether a word assigns a variable: `name=`, `name+=`, `name[…]=`.
fn is_assignment(word: &str) -> bool {
    let name = word.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let Some((name, rest)) = name.and_then(|end| word.split_at_checked(end)) else {
        return false;
    };
    let value = rest.trim_start_matches('+').starts_with('=');
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    named && (value || (rest.starts_with('[') && rest.contains('=')))
}

/// Returns the first word of a text as a shell reads it, without assignments and quotes; expansions stay as written.
fn first_word(text: &str) -> String {
    let (mut word, mut quote) = (String::new(), None);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => match chars.next() {
                // Joined with the next line.
                Some('\n') | None => {}
                Some(next) => word.push(next),
            },
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            (' ' | '\t' | '\n', None) if word.is_empty() => {}
            (' ' | '\t' | '\n', None) if is_assignment(&word) => word.clear(),
            (' ' | '\t' | '\n', None) => return word,
            _ => word.push(c),
        }
    }
    word
}

/// Returns whether the line could be read; if so, asserts that everything that bash runs is among its parts.
fn check_parts(line: &str, folder: &std::path::Path) -> bool {
    let read = CommandLine::new(line);
    let unread = matches!(&*read.parts, [one] if one.argv.is_none() && one.command == line);
    if unread {
        return false;
    }
    // `time` is a bash keyword or a program; in both cases the rules judge the command that it times.
    let names = |words: &Vec<String>| {
        let timed = words
            .iter()
            .skip_while(|word| matches!(word.as_str(), "time" | "-p"));
        let timed = timed.take(usize::from(
            words.first().is_some_and(|word| word == "time"),
        ));
        words
            .iter()
            .take(1)
            .chain(timed)
            .cloned()
            .collect::<Vec<_>>()
    };
    let of_part = |part: &CommandPart| match &part.argv {
        Some(words) => names(words),
        None => vec![first_word(&part.command)],
    };
    let named: Vec<String> = read.parts.iter().flat_map(of_part).collect();
    let made = |name: &String| {
        ["$", "`", "<(", ">("]
            .iter()
            .any(|mark| name.contains(mark))
    };
    let dynamic = named.iter().any(made);
    for ran in bash_runs(line, folder) {
        let known = named.contains(&ran) || dynamic;
        assert!(known, "{line:?} runs {ran:?}, not only {named:?}");
    }
    true
}

#[test]
fn known_lines_run_what_their_parts_say() {
    let folder = tempfile::tempdir().unwrap();
    for (line, runs) in [
        ("c0 && c1; c2 | c3", 3),
        ("c0 \"$(c1 `c2`)\"", 3),
        ("f() { c0; }; f", 1),
        ("case a in (b) c0;; a) c1;; esac", 1),
        ("c0 <<E\n$(c1)\nE\nc2", 3),
        ("time f ]] ", 1),
        ("\\time ", 1),
        // A word without a name before its `=` is a command.
        ("}x=x[$(c0)printf -v 'x[$(c2)]' y", 2),
    ] {
        assert!(check_parts(line, folder.path()), "{line:?}");
        assert!(bash_runs(line, folder.path()).len() >= runs, "{line:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_bash_runs_is_among_the_parts(pieces in prop::collection::vec(prop::sample::select(PIECES), 1..12)) {
        let folder = tempfile::tempdir().unwrap();
        check_parts(&pieces.concat(), folder.path());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn judge_starter_and_shell_see_the_same_words(line in "ls( [a-z0-9=:~#%@,.+'\" \\\\!^{}\\[\\]-]{0,8}){0,3}") {
        check(&line);
    }
}
