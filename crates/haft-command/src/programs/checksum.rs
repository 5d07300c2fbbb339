//! `sha256sum` and others: print checksums of files.

use crate::forms::{is_short, show_any_file};
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(
    &["cksum", "md5sum", "sha1sum", "sha256sum", "sha512sum"],
    meaning,
);

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let found = show_any_file(call);
    // `-c` reads the files that a list names.
    let mut words = call.words.iter().map(|word| word.text);
    let checks =
        words.any(|text| text.starts_with("--c") || (is_short(text) && text.contains('c')));
    CommandMeaning {
        unknown: found.unknown || checks,
        shows_more: found.shows_more || checks,
        ..found
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn checksum_means_what_its_words_say() {
        check(&[
            ("sha256sum a", "Reads a"),
            ("md5sum -c a", "Reads a, shows more, unknown"),
            (
                "sha1sum --tag -- -c a",
                "Reads -c, Reads a, shows more, unknown",
            ),
        ]);
    }
}
