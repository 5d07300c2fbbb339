//! `which`, `readlink`, `realpath`: print where names lead.

use crate::forms::name_any_file;
use crate::program::Program;

pub(super) const PROGRAM: Program = Program::new(&["which", "readlink", "realpath"], name_any_file)
    .reading(|call| call.name == "which");

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn which_means_what_its_words_say() {
        check(&[
            ("which a", "only reads, Names a"),
            ("readlink -f a", "Names a"),
            ("realpath *", "Names *, unknown"),
        ]);
    }
}
