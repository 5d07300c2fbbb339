//! `test` and `[`: look at files, and compare texts and numbers.

use haft_shell::AsWord as _;

use crate::forms::name_any_file;
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};
use crate::word::CommandWord;

use super::printf::is_plain_number;

pub(super) const PROGRAM: Program = Program::new(&["test", "["], meaning);

/// Tests that compare or take numbers.
const OF_NUMBER_TESTS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-t"];
/// What may be between numbers.
const SIGNS: &[&str] = &["!", "-a", "-o", "]"];

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let found = name_any_file(call);
    CommandMeaning {
        unknown: found.unknown || !tests_plainly(call.words),
        ..found
    }
}

/// Whether it only inspects files, and compares plain texts or plain numbers.
fn tests_plainly(words: &[CommandWord<'_>]) -> bool {
    let numeric = words
        .iter()
        .any(|word| OF_NUMBER_TESTS.contains(&word.text));
    words.iter().all(|word| {
        let sign = |signs: &[&str]| word.is_known() && signs.contains(&word.text);
        if numeric {
            is_plain_number(*word) || sign(OF_NUMBER_TESTS) || sign(SIGNS)
        } else {
            !word.text.contains(['[', '$', '`', '(']) && !matches!(word.text, "-v" | "-R")
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn test_means_what_its_words_say() {
        check(&[
            ("test -f a", "Names a"),
            ("[ a = b ]", "Names a, Names =, Names b, Names ]"),
            ("test 1 -lt 2", "Names 1, Names t, Names 2"),
            (
                "test 'a[$(x)]' -eq 1",
                "Names a[$(x)], Names q, Names 1, unknown",
            ),
            ("test -v a", "Names a, unknown"),
        ]);
    }
}
