//! `ls`: prints names and kinds of files, whatever its options.

use crate::forms::list_any_file;
use crate::program::{OptionHarm, Program};

pub(super) const PROGRAM: Program = Program::new(&["ls"], list_any_file)
    .with_options(OptionHarm::None)
    .reading(|_| true);

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
