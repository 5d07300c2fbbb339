//! Words of `printf` and `test` that no shell evaluates.
//!
//! zsh and ksh compute the numbers of both as arithmetic, where an index runs commands: `printf %d 'a[$(x)]'`. So a word that may be a
//! number must be one.

use haft_shell::{AsWord, conversions, is_number};

use crate::word::ShellWord;

/// Conversions whose argument is a text, and those whose argument is a number.
const OF_TEXTS: &str = "sbcq";
const OF_NUMBERS: &str = "diouxXeEfFgGaA";

/// Escapes whose result is a control character, a quote or a backslash. Others may spell a `%`, which zsh reads as a conversion.
const ESCAPES: &[&str] = &[
    "n", "r", "t", "a", "b", "f", "v", "e", "E", "\\", "\"", "'", "033", "x1b", "x1B",
];

/// Tests that compare or take numbers.
const OF_NUMBER_TESTS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-t"];
/// What may be between numbers.
const SIGNS: &[&str] = &["!", "-a", "-o", "]"];

/// Whether `printf` only prints its words. Its format must not be an option, which could set a variable.
pub(super) fn prints_plainly(words: &[ShellWord]) -> bool {
    let Some((format, rest)) = words.split_first() else {
        return false;
    };
    let text = format.text.as_str();
    if !format.is_known() || text.starts_with('-') || !escapes_plainly(text) {
        return false;
    }
    let found = conversions(text);
    let texts = found.chars().all(|one| OF_TEXTS.contains(one));
    let numbers = || {
        let known = |one| OF_TEXTS.contains(one) || OF_NUMBERS.contains(one);
        found.chars().all(known) && rest.iter().all(is_plain_number)
    };
    texts || numbers()
}

fn escapes_plainly(format: &str) -> bool {
    let mut rest = format;
    while let Some((_, behind)) = rest.split_once('\\') {
        let Some(escape) = ESCAPES.iter().find(|one| behind.starts_with(**one)) else {
            return false;
        };
        rest = &behind[escape.len()..];
    }
    true
}

/// Whether `test` or `[` only inspects files, and compares plain texts or plain numbers.
pub(super) fn tests_plainly(words: &[ShellWord]) -> bool {
    let numeric = words
        .iter()
        .any(|word| OF_NUMBER_TESTS.contains(&word.text()));
    words.iter().all(|word| {
        let sign = |signs: &[&str]| word.is_known() && signs.contains(&word.text());
        if numeric {
            is_plain_number(word) || sign(OF_NUMBER_TESTS) || sign(SIGNS)
        } else {
            !word.text.contains(['[', '$', '`', '(']) && !matches!(word.text(), "-v" | "-R")
        }
    })
}

fn is_plain_number(word: &ShellWord) -> bool {
    word.is_known() && is_number(word.text())
}
