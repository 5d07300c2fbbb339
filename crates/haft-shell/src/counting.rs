//! Commands whose output is a whole number or nothing, so that arithmetic may use it.

use crate::lexer::{Lexer, Token};
use crate::plain::plain_words;
use crate::variables::is_number;

/// The programs that print numbers in the forms that are read here. A function of such a name prints what it likes.
pub(crate) const COUNTING: &[&str] = &["date", "grep", "nproc", "seq", "wc"];

/// Parts of a date that are digits.
const DATE_DIGITS: &str = "dHjmMNsSyY0123456789";

/// Returns true if a command, the text of a substitution, prints one whole number or nothing: `wc -l < a`, `ls | wc -l`, `date +%s`,
/// `nproc`, `grep -c x a`.
pub(crate) fn prints_number(command: &str) -> bool {
    let Some(last) = last_of_pipeline(command) else {
        return false;
    };
    let (words, fed) = match last.split_once('<') {
        Some((words, file)) => (words, plain_words(file).is_some_and(|file| file.len() == 1)),
        None => (last, true),
    };
    let words = plain_words(words).unwrap_or_default();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    fed && match words.as_slice() {
        ["wc", option] => matches!(*option, "-l" | "-c" | "-m" | "-w"),
        ["date", format] => format.strip_prefix('+').is_some_and(is_digits_of_date),
        ["nproc"] | ["nproc", "--all"] => true,
        // Of one file: of several, each count has its file's name before it.
        ["grep", option, operands @ ..] => {
            counts(option)
                && matches!(operands.len(), 1 | 2)
                && !operands.iter().any(|word| word.starts_with('-'))
        }
        _ => false,
    }
}

/// Returns the numbers of `$(seq A B)` and `$(seq A)`, as written.
pub(crate) fn prints_numbers(raw: &str) -> bool {
    let inner = raw.strip_prefix("$(").and_then(|raw| raw.strip_suffix(')'));
    let words = inner.and_then(plain_words).unwrap_or_default();
    let [name, numbers @ ..] = words.as_slice() else {
        return false;
    };
    name == "seq" && matches!(numbers.len(), 1..=3) && numbers.iter().all(|word| is_number(word))
}

/// Returns the last command of a pipeline; `None` if the text is more than one.
fn last_of_pipeline(text: &str) -> Option<&str> {
    let mut lexer = Lexer::new(text, 0);
    let mut from = 0;
    loop {
        match lexer.next().ok()? {
            (Token::End, _) => return text.get(from..),
            (Token::Sign(crate::lexer::Sign::Pipe), at) => from = at + 1,
            (Token::Word(_) | Token::Redirect(_), _) => {}
            _ => return None,
        }
    }
}

fn is_digits_of_date(format: &str) -> bool {
    !format.is_empty()
        && format.split('%').enumerate().all(|(nth, part)| {
            (nth == 0) == part.is_empty() && part.chars().all(|c| DATE_DIGITS.contains(c))
        })
}

/// Returns true for `-c` and its bundles with options that change what is found, and nothing of what is printed.
fn counts(option: &str) -> bool {
    option.strip_prefix('-').is_some_and(|letters| {
        letters.contains('c') && letters.chars().all(|c| "cEFivwx".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::{prints_number, prints_numbers};

    #[test]
    fn only_commands_that_print_nothing_but_a_number_are_known() {
        for command in [
            "wc -l",
            "wc -l < a.txt",
            "wc -l <a",
            "ls | wc -l",
            "ls 2>&1 | grep -v 'a|b' | wc -l",
            "date +%s",
            "date +%s%N",
            "date +%s%3N",
            "nproc",
            "grep -c 'a b' a.txt",
            "cat a | grep -ci x",
        ] {
            assert!(prints_number(command), "{command}");
        }
        for command in [
            "",
            "wc -l a",
            "wc",
            "wc -lw < a",
            "wc -l < $x",
            "ls; wc -l",
            "ls && wc -l",
            "echo x || wc -l",
            "wc -l | cat",
            "wc -l\necho x",
            "echo x & wc -l",
            "(echo x) | wc -l",
            "echo '| wc -l",
            "echo \"| wc -l\"",
            "date",
            "date +x%s",
            "date +%s-",
            "date +%Z",
            "date +%s -d x",
            "grep -c a b c",
            "grep -cr a b",
            "grep -c a -H",
            "grep a b",
            "seq 1 5",
            "./wc -l",
            "x=1 wc -l",
            "wc -l >&2",
        ] {
            assert!(!prints_number(command), "{command}");
        }
        for raw in ["$(seq 5)", "$(seq 1 5)", "$(seq 1 -2 -5)"] {
            assert!(prints_numbers(raw), "{raw}");
        }
        for raw in [
            "$(seq)",
            "$(seq 1 $x)",
            "$(seq -s x 1 5)",
            "$(seq -f x 5)",
            "$(seq 1 5; id)",
            "seq 5",
            "$(seq 5)$(id)",
        ] {
            assert!(!prints_numbers(raw), "{raw}");
        }
    }
}
