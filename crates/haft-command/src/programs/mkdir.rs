//! `mkdir`: creates folders.

use haft_shell::Options;

use crate::forms::use_operands;
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["mkdir"], meaning);

/// Without modes.
const OPTIONS: Options = Options {
    flags: "pv",
    valued: "",
    joined: "",
    long: &["parents", "verbose"],
    long_valued: &[],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    use_operands(&OPTIONS, call, PathAccess::Writes)
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn mkdir_means_what_its_words_say() {
        check(&[
            ("mkdir -p a b", "Writes a, Writes b"),
            ("mkdir -m 7 a", "unknown"),
        ]);
    }
}
