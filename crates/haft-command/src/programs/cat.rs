//! `cat`, `head`, `tail`: print files, whatever their options.

use crate::forms::show_any_file;
use crate::program::{OptionHarm, Program};

pub(super) const PROGRAM: Program = Program::new(&["cat", "head", "tail"], show_any_file)
    .with_options(OptionHarm::None)
    .reading(|_| true);

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn cat_means_what_its_words_say() {
        check(&[
            ("cat a b", "only reads, Reads a, Reads b"),
            ("head -n5 a", "only reads, Reads 5, Reads a"),
            ("tail -n -- -xa", "only reads, Reads a, Reads -xa"),
            ("cat *.rs -", "only reads, Reads *.rs"),
            ("cat $x", "only reads, Reads $x, unknown"),
            ("/bin/cat a", "Reads a, unknown"),
            ("xargs cat a", "only reads, Reads a, unknown"),
        ]);
    }
}
