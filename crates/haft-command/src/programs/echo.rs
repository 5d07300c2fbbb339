//! `echo` and others that print their words, or wait.

use crate::forms::print_words;
use crate::program::{OptionHarm, Program};

/// `echo` prints what looks like an option, too.
pub(super) const PROGRAM: Program = Program::new(&["echo"], print_words)
    .with_options(OptionHarm::None)
    .printing()
    .reading(|_| true);

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
