//! `sh` and other shells, `.` and `source`: they read files of commands, and say what they do not understand of them.

use crate::forms::{is_short, show_any_word};
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};
use crate::word::CommandWord;

pub(super) const PROGRAM: Program =
    Program::new(&[".", "ash", "dash", "ksh", "sh", "source"], meaning);

/// The text after `-c` does not name a file: its commands are judged by themselves.
pub(super) fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let gives_text = |word: &CommandWord<'_>| is_short(word.text) && word.text.contains('c');
    let before = call.words.iter().position(gives_text);
    let words = &call.words[..before.unwrap_or(call.words.len())];
    let mut found = show_any_word(&ProgramCall { words, ..*call });
    // It runs what it reads from its input.
    let is_input = |text: &str| matches!(text, "-" | "/dev/stdin") || text.starts_with("/dev/fd/");
    let is_alone = before.is_none() && words.iter().all(|word| word.is_option());
    found.shows_more |= is_alone || words.iter().any(|word| is_input(word.text));
    found
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn a_shell_reads_the_files_that_it_names() {
        check(&[
            (". ./a", "Reads ./a, unknown"),
            ("source a b", "Reads a, Reads b, unknown"),
            ("sh -x a", "Reads a, unknown"),
            ("sh -c 'ls a' b", "unknown"),
            ("sh -x a -c b", "Reads a, unknown"),
            ("sh", "shows more, unknown"),
            ("sh -x", "shows more, unknown"),
            (". /dev/stdin", "Reads /dev/stdin, shows more, unknown"),
        ]);
    }
}
