//! `ln`: makes other names for files; `rsync`: copies with everything in it, links included.

use crate::forms::carry;
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["ln", "rsync"], meaning);

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    CommandMeaning {
        links: call.name == "ln",
        ..carry(call, PathAccess::Reads)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn ln_means_what_its_words_say() {
        check(&[
            (
                "ln -s a b",
                "Reads a, Carries a, Reads b, Carries b, links, unknown",
            ),
            (
                "rsync -a a b",
                "Reads a, Carries a, Reads b, Carries b, unknown",
            ),
        ]);
    }
}
