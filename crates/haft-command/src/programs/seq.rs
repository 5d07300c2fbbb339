//! `seq`, `sleep`, `true` and others that use no file, whatever their words.

use crate::forms::print_words;
use crate::program::Program;

pub(super) const PROGRAM: Program = Program::new(
    &["true", "false", ":", "seq", "sleep", "basename", "dirname"],
    print_words,
)
.printing();

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn seq_means_what_its_words_say() {
        check(&[
            ("seq 1 5", "prints words"),
            ("basename \"$(x)\"", "nothing"),
            ("true *", "Names *, unknown"),
        ]);
    }
}
