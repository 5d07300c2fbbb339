//! `pwd`, `whoami`, `uname` and others that print facts about the system; with words, some of them would change it.

use haft_shell::AsWord as _;

use crate::forms::print_words;
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};
use crate::word::CommandWord;

pub(super) const PROGRAM: Program = Program::new(
    &[
        "pwd", "whoami", "uname", "nproc", "arch", "uptime", "hostname", "id", "wait",
    ],
    meaning,
)
.printing()
.reading(|call| call.name == "pwd");

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    // `pwd -P` prints the folder without links.
    let is_plain = |word: &CommandWord<'_>| {
        call.name == "pwd" && word.is_known() && matches!(word.text, "-L" | "-P")
    };
    CommandMeaning {
        unknown: !call.words.iter().all(is_plain),
        ..print_words(call)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn uname_means_what_its_words_say() {
        check(&[
            ("pwd", "only reads, prints words"),
            ("pwd -P", "only reads, prints words"),
            ("pwd -x", "only reads, prints words, unknown"),
            ("hostname", "prints words"),
            ("hostname a", "prints words, unknown"),
        ]);
    }
}
