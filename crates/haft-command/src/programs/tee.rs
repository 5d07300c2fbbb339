//! `tee`: writes what it reads to files.

use haft_shell::Options;

use crate::forms::use_operands;
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["tee"], meaning);

const OPTIONS: Options = Options {
    flags: "ai",
    valued: "",
    joined: "",
    long: &["append", "ignore-interrupts"],
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
    fn tee_means_what_its_words_say() {
        check(&[("tee -a a", "Writes a"), ("tee -p a", "unknown")]);
    }
}
