//! `mv`: moves files.

use haft_shell::Options;

use crate::forms::{carry, put};
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};

use super::cp;

pub(super) const PROGRAM: Program = Program::new(&["mv"], meaning);

const OPTIONS: Options = Options {
    flags: "finuv",
    valued: "",
    joined: "",
    long: &["force", "interactive", "no-clobber", "update", "verbose"],
    long_valued: &[],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    put(&OPTIONS, call, PathAccess::Moves)
        .unwrap_or_else(|| carry(&cp::ALL, call, PathAccess::Moves))
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn mv_means_what_its_words_say() {
        check(&[
            ("mv a b", "Moves a, Carries a, Writes b"),
            (
                "mv -t b a",
                "Moves b, Carries b, Moves a, Carries a, unknown",
            ),
            (
                "mv \"$x\" b",
                "Moves $x, Carries $x, Moves b, Carries b, unknown",
            ),
        ]);
    }
}
