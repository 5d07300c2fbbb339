//! `date`: prints the time; with other words it sets the clock.

use haft_shell::Options;

use crate::forms::{any_file, is_short, print_words};
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};
use crate::word::CommandWord;

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
    let mut found = print_words(call);
    if !call.is_known() || !prints(call) {
        found.unknown = true;
        add_files(call, &mut found);
    }
    found
}

/// Adds what an option reads: `-f` a file of dates, which it repeats where they are none, and `-r` the time of a file.
fn add_files(call: &ProgramCall<'_>, found: &mut CommandMeaning) {
    let names_file = |word: &CommandWord<'_>| {
        let long = ["--f", "--r"];
        let short = is_short(word.text) && word.text.contains(['f', 'r']);
        short || long.iter().any(|one| word.text.starts_with(one))
    };
    if call.words.iter().any(names_file) {
        found.shows = true;
        found.uses.extend(any_file(call.words, PathAccess::Reads));
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
            ("date -f a", "Reads a, prints words, unknown"),
            ("date -ufa", "Reads fa, Reads a, prints words, unknown"),
            ("date --file=a", "Reads a, prints words, unknown"),
            ("date -r a +%F", "Reads a, Reads +%F, prints words, unknown"),
            ("date +*", "Names +*, unknown"),
        ]);
    }
}
