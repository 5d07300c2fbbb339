//! `rm`, `rmdir`, `unlink`: remove files and folders.

use haft_shell::Options;

use crate::forms::{operand_positions, use_operands};
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["rm", "rmdir", "unlink"], meaning);

/// Of files, without folders.
const OPTIONS: Options = Options {
    flags: "fiIv",
    valued: "",
    joined: "",
    long: &["force", "verbose"],
    long_valued: &[],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let options = if call.name == "rm" {
        &OPTIONS
    } else {
        &Options::NONE
    };
    CommandMeaning {
        // Counted from the name of the program.
        destroys: Some(operand_positions(call.words).map(|at| at + 1).collect()),
        ..use_operands(options, call, PathAccess::Removes)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn rm_means_what_its_words_say() {
        check(&[
            ("rm -f a b", "Removes a, Removes b, destroys a b"),
            ("rm -rf a", "destroys a, unknown"),
            ("rm -rf a -- -b", "destroys a -b, unknown"),
            ("rmdir a", "Removes a, destroys a"),
            ("rmdir -p a", "destroys a, unknown"),
            ("rm \"$x\"", "Removes $x, destroys $x, unknown"),
        ]);
    }
}
