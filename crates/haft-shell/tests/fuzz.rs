//! Fuzz targets of the reader: its parts agree with each other on every line.

use std::path::Path;

use haft_fuzz::{SHELL_WORDS, fuzz};
use haft_shell::{AsWord, MOST_PARTS, fragments, join_words, parse, plain_words};

/// Words that start a shell construct, or that are not part of the command.
const KEYWORDS: &[&str] = &[
    "if", "then", "else", "elif", "while", "until", "do", "time", "coproc",
];

fn each_line(target: impl Fn(&str)) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/shell");
    fuzz(&corpus, SHELL_WORDS, |input| {
        target(&String::from_utf8_lossy(input));
    });
}

/// If a line consists of plain words and the exact reader accepts it, it is one command of these words there, too.
#[test]
fn fuzz_plain_words_are_the_words_of_the_one_command() {
    each_line(|line| {
        let Some(words) = plain_words(line) else {
            return;
        };
        // `time` is a keyword of the shell.
        if words[0] != "time"
            && let Ok(read) = parse(line)
        {
            assert_eq!(read.commands.len(), 1, "{:?}", read.commands);
            assert_eq!(read.commands[0].argv(), Some(words.clone()));
        }
        if let Some(again) = plain_words(&join_words(&words)) {
            assert_eq!(again, words);
        }
    });
}

/// The reader finds a command appended to a line that it reads, and its output is bounded.
#[test]
fn fuzz_a_command_behind_a_line_is_found() {
    each_line(|line| {
        let Ok(read) = parse(line) else { return };
        assert!(read.commands.len() + read.writes.len() + read.reads.len() <= MOST_PARTS);
        // A backslash at the end joins the next line.
        if !line.ends_with('\\')
            && let Ok(more) = parse(&format!("{line}\nzq9 x"))
        {
            assert!(more.commands.iter().any(|command| command.text == "zq9 x"));
        }
    });
}

/// A command that the reader finds is also found by the search in unreadable lines.
#[test]
fn fuzz_a_command_that_is_read_is_also_seen() {
    each_line(|line| {
        let Ok(read) = parse(line) else { return };
        let seen = fragments(line);
        for command in &read.commands {
            let Some(name) = command.words.first().map(|word| word.text.as_str()) else {
                continue;
            };
            let plain = !name.is_empty() && name.chars().all(char::is_alphanumeric);
            if plain && !KEYWORDS.contains(&name) {
                let named = |words: &Vec<String>| words.iter().any(|word| word == name);
                assert!(seen.commands.iter().any(named), "{name}: {seen:?}");
            }
        }
        for target in &read.writes {
            let known = target.is_known();
            assert!(!known || seen.targets.contains(&target.text), "{seen:?}");
        }
    });
}
