//! `date`: prints the time; with other words it sets the clock.

use haft_shell::Options;

use crate::forms::print_words;
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["date"], meaning).printing();

/// Options that only choose the output.
const OPTIONS: Options = Options {
    flags: "uR",
    valued: "d",
    joined: "I",
    long: &["utc", "universal", "rfc-email", "iso-8601"],
    long_valued: &["date", "iso-8601", "rfc-3339"],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let prints = |call: &ProgramCall<'_>| {
        let given = OPTIONS.split(call.words);
        given.is_some_and(|given| given.words.iter().all(|word| word.text.starts_with('+')))
    };
    CommandMeaning {
        unknown: !call.is_known() || !prints(call),
        ..print_words(call)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn date_means_what_its_words_say() {
        check(&[
            ("date", "prints words"),
            ("date -u +%F", "prints words"),
            ("date 0101", "prints words, unknown"),
            ("date -s x", "prints words, unknown"),
            ("date +*", "Names +*, unknown"),
        ]);
    }
}
