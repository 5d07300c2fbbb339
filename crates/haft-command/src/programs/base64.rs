//! `base64`: prints a file in another form.

use crate::forms::{is_short, show_any_file};
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["base64"], meaning);

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let found = show_any_file(call);
    // That of macOS writes a file with `-o`.
    let mut words = call.words.iter().map(|word| word.text);
    let writes =
        words.any(|text| text.starts_with("--o") || (is_short(text) && text.contains('o')));
    CommandMeaning {
        unknown: found.unknown || writes,
        ..found
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn base64_means_what_its_words_say() {
        check(&[
            ("base64 -d a", "Reads a"),
            ("base64 -o b a", "Reads b, Reads a, unknown"),
        ]);
    }
}
