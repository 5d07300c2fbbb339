//! `echo` and others that print their words, or wait.

use crate::forms::print_words;
use crate::meaning::CommandMeaning;
use crate::program::{OptionHarm, Program, ProgramCall};

/// `echo` prints what looks like an option, too.
pub(super) const PROGRAM: Program = Program::new(&["echo"], meaning)
    .with_options(OptionHarm::None)
    .printing();

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    CommandMeaning {
        only_reads: true,
        ..print_words(call)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn echo_means_what_its_words_say() {
        check(&[
            ("echo a /b", "only reads, prints words"),
            ("echo *", "only reads, Names *"),
            ("echo $(x)", "only reads, globs output"),
            ("echo \"$(x)\"", "only reads"),
            ("echo $x", "only reads, unknown"),
        ]);
    }
}
