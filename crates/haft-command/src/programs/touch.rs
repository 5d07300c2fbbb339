//! `touch`: creates files, or gives them the current time.

use haft_shell::Options;

use crate::forms::use_operands;
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["touch"], meaning);

/// With the current time.
const OPTIONS: Options = Options {
    flags: "acm",
    valued: "",
    joined: "",
    long: &["no-create"],
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
    fn touch_means_what_its_words_say() {
        check(&[("touch -c a", "Writes a"), ("touch -r a b", "unknown")]);
    }
}
