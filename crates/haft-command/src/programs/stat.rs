//! `stat`: prints facts about files, whatever its options.

use crate::forms::name_any_file;
use crate::meaning::CommandMeaning;
use crate::program::{OptionHarm, Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["stat"], meaning).with_options(OptionHarm::None);

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    CommandMeaning {
        only_reads: true,
        ..name_any_file(call)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn stat_means_what_its_words_say() {
        check(&[
            ("stat a", "only reads, Names a"),
            ("stat -- -x", "only reads, Names -x"),
        ]);
    }
}
