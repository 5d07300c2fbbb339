//! `uniq`: prints lines that differ from the one before.

use haft_shell::Options;

use crate::forms::{each_file, has_late_option, plain, show_any_word, suspect};
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};
use crate::word::WordForm;

pub(super) const PROGRAM: Program = Program::new(&["uniq"], meaning);

const OPTIONS: Options = Options {
    flags: "cdDuiz",
    valued: "fsw",
    joined: "",
    long: &[
        "all-repeated",
        "count",
        "group",
        "repeated",
        "ignore-case",
        "unique",
        "zero-terminated",
    ],
    long_valued: &[
        "all-repeated",
        "check-chars",
        "group",
        "skip-chars",
        "skip-fields",
    ],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    // A late option would be the file that it writes.
    let is_late = has_late_option(&OPTIONS, call.words) != Some(false);
    let given = plain(&OPTIONS, call.words).filter(|_| !is_late);
    if plain(&OPTIONS, call.words).is_none() {
        return suspect(call);
    }
    // It would write a second file, and a pattern may match two.
    match given.as_ref().map(|given| given.words.as_slice()) {
        Some([]) => CommandMeaning::showing(Vec::new()),
        Some([one]) if one.form != WordForm::Pattern => {
            CommandMeaning::showing(each_file([*one], PathAccess::Reads))
        }
        _ => show_any_word(call),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn uniq_means_what_its_words_say() {
        check(&[
            ("uniq -c a", "Reads a"),
            ("uniq", "nothing"),
            ("uniq a b", "Reads a, Reads b, unknown"),
            ("uniq a -c", "Reads a, unknown"),
            ("uniq a*", "Reads a*, unknown"),
        ]);
    }
}
