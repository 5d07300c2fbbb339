//! `bash` and `zsh`: shells of which it is known that `--version` runs nothing; otherwise as `sh`.

use crate::program::Program;

use super::shell;

pub(super) const PROGRAM: Program = Program::new(&["bash", "zsh"], shell::meaning).versioned();

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn bash_reads_the_files_that_it_names() {
        check(&[
            ("bash -x a", "Reads a, unknown"),
            ("bash --rcfile a -ic 'ls b'", "Reads a, unknown"),
            ("zsh --version", "prints words"),
        ]);
    }
}
