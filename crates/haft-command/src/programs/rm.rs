//! `rm`, `rmdir`, `unlink`: remove files and folders.

use haft_shell::Options;

use crate::forms::{each_file, operand_positions, operands, use_operands};
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["rm", "rmdir", "unlink"], meaning).removing();

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
    let removed = operands(call.words);
    let mut found = use_operands(options, call, PathAccess::Removes);
    if found.unknown {
        // A folder, and everything that it holds.
        found.uses = each_file(removed, PathAccess::Removes);
    }
    CommandMeaning {
        // Counted from the name of the program.
        destroys: Some(operand_positions(call.words).map(|at| at + 1).collect()),
        ..found
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn rm_means_what_its_words_say() {
        check(&[
            ("rm -f a b", "Removes a, Removes b, destroys a b"),
            ("rm -rf a", "Removes a, destroys a, unknown"),
            (
                "rm -rf a -- -b",
                "Removes a, Removes -b, destroys a -b, unknown",
            ),
            ("rmdir a", "Removes a, destroys a"),
            ("rmdir -p a", "Removes a, destroys a, unknown"),
            ("rm \"$x\"", "Removes $x, destroys $x, unknown"),
        ]);
    }
}
