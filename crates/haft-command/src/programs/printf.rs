//! `printf`: prints its words.
//!
//! zsh and ksh compute its numbers, and those of `test`, as arithmetic, where an index runs commands: `printf %d 'a[$(x)]'`. So a word
//! that may be a number must be one.

use haft_shell::{AsWord as _, conversions, is_number};

use crate::forms::print_words;
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};
use crate::word::CommandWord;

pub(super) const PROGRAM: Program = Program::new(&["printf"], meaning).printing();

/// Conversions whose argument is a text, and those whose argument is a number.
const OF_TEXTS: &str = "sbcq";
const OF_NUMBERS: &str = "diouxXeEfFgGaA";

/// Escapes whose result is a control character, a quote or a backslash. Others may spell a `%`, which zsh reads as a conversion.
const ESCAPES: &[&str] = &[
    "n", "r", "t", "a", "b", "f", "v", "e", "E", "\\", "\"", "'", "033", "x1b", "x1B",
];

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    CommandMeaning {
        unknown: !prints_plainly(call.words),
        ..print_words(call)
    }
}

/// Whether `printf` only prints its words. Its format must not be an option, which could set a variable.
fn prints_plainly(words: &[CommandWord<'_>]) -> bool {
    let Some((format, rest)) = words.split_first() else {
        return false;
    };
    let text = format.text;
    if !format.is_known() || text.starts_with('-') || !escapes_plainly(text) {
        return false;
    }
    let found = conversions(text);
    let texts = found.chars().all(|one| OF_TEXTS.contains(one));
    let numbers = || {
        let known = |one| OF_TEXTS.contains(one) || OF_NUMBERS.contains(one);
        found.chars().all(known) && rest.iter().all(|word| is_plain_number(*word))
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

/// Whether the word is a number that no shell computes.
pub(super) fn is_plain_number(word: CommandWord<'_>) -> bool {
    word.is_known() && is_number(word.text)
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn printf_means_what_its_words_say() {
        check(&[
            ("printf '%s\\n' a \"$(x)\"", "nothing"),
            ("printf %d 1", "prints words"),
            ("printf %d 'a[$(x)]'", "unknown"),
            ("printf -v a x", "prints words, unknown"),
            ("printf %n a", "prints words, unknown"),
            ("printf '\\x25d' a", "prints words, unknown"),
            ("printf", "prints words, unknown"),
        ]);
    }
}
