//! `stat`: prints facts about files, whatever its options.

use crate::forms::name_any_file;
use crate::program::{OptionHarm, Program};

pub(super) const PROGRAM: Program = Program::new(&["stat"], name_any_file)
    .with_options(OptionHarm::None)
    .reading(|_| true);

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
