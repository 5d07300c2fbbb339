//! `du`: prints sizes of files.

use crate::forms::list_any_file;
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["du"], meaning).reading(|_| true);

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let found = list_any_file(call);
    // `--files0-from` names a list of files, and prints it where it is none.
    let lists = call.words.iter().any(|word| word.text.starts_with("--f"));
    CommandMeaning {
        unknown: found.unknown || lists,
        shows: true,
        shows_more: found.shows_more || lists,
        ..found
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn du_means_what_its_words_say() {
        check(&[
            ("du -sh a", "only reads, Names h, Names a"),
            ("du -L", "only reads, NamesBelow ."),
            (
                "du --files0-from=a",
                "only reads, Names a, shows more, unknown",
            ),
        ]);
    }
}
