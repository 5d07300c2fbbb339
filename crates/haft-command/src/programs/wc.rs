//! `wc`: counts what is in files.

use crate::forms::show_any_file;
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["wc"], meaning).reading(|_| true);

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let found = show_any_file(call);
    // `--files0-from` names a list of files.
    let lists = call.words.iter().any(|word| word.text.starts_with("--f"));
    CommandMeaning {
        unknown: found.unknown || lists,
        shows_more: found.shows_more || lists,
        ..found
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn wc_means_what_its_words_say() {
        check(&[
            ("wc -l a", "only reads, Reads a"),
            (
                "wc --files0-from=a",
                "only reads, Reads a, shows more, unknown",
            ),
            ("wc -l *", "only reads, Reads *, unknown"),
            ("wc -l a*", "only reads, Reads a*"),
        ]);
    }
}
