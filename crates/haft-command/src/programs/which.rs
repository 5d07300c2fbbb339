//! `which`, `readlink`, `realpath`: print where names lead.

use crate::forms::name_any_file;
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["which", "readlink", "realpath"], meaning);

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    CommandMeaning {
        only_reads: call.name == "which",
        ..name_any_file(call)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn which_means_what_its_words_say() {
        check(&[
            ("which a", "only reads, Names a"),
            ("readlink -f a", "Names a"),
            ("realpath *", "Names *, unknown"),
        ]);
    }
}
