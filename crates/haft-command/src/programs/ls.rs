//! `ls`: prints names and kinds of files, whatever its options.

use crate::forms::list_any_file;
use crate::meaning::CommandMeaning;
use crate::program::{OptionHarm, Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["ls"], meaning).with_options(OptionHarm::None);

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    CommandMeaning {
        only_reads: true,
        ..list_any_file(call)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn ls_means_what_its_words_say() {
        check(&[
            ("ls", "only reads"),
            ("ls -la a", "only reads, Names a, Names a"),
            ("ls -L", "only reads, NamesBelow ."),
            ("ls --dereference a", "only reads, NamesBelow a"),
            ("ls *", "only reads, Names *"),
        ]);
    }
}
