//! `cut` and other tools for lines and columns: they print what they read, whatever their options.

use crate::forms::show_any_file;
use crate::program::Program;

pub(super) const PROGRAM: Program = Program::new(
    &[
        "cut", "nl", "tac", "rev", "paste", "fold", "expand", "unexpand", "cmp", "join", "od",
    ],
    show_any_file,
);

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn cut_means_what_its_words_say() {
        check(&[
            ("cut -d: -f1 a", "Reads :, Reads 1, Reads a"),
            ("cut -d/ -f1 a", "Reads 1, Reads a"),
            ("tac a", "Reads a"),
            ("join a <(sort b)", "Reads a"),
            ("paste \"$x\"", "Reads $x, unknown"),
        ]);
    }
}
