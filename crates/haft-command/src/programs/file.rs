//! `file`: prints what kind of file each is.

use haft_shell::Options;

use crate::forms::show_operands;
use crate::meaning::CommandMeaning;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["file"], meaning);

/// Without `-C`, which writes a compiled table, `-f` and `-m`, which name lists and tables, `-p`, which sets the time of each file back,
/// `-z` and `-Z`, which start programs that unpack, and `-S`, which takes its own confinement off.
const OPTIONS: Options = Options {
    flags: "0EILNbhiklnr",
    valued: "F",
    joined: "",
    long: &[
        "apple",
        "brief",
        "dereference",
        "extension",
        "help",
        "keep-going",
        "list",
        "mime",
        "mime-encoding",
        "mime-type",
        "no-buffer",
        "no-dereference",
        "no-pad",
        "print0",
        "raw",
        "version",
    ],
    long_valued: &["separator"],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    show_operands(&OPTIONS, call)
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn file_means_what_its_words_say() {
        check(&[
            ("file a b", "Reads a, Reads b"),
            ("file -b --mime-type a", "Reads a"),
            ("file -bi -F : a", "Reads a"),
            ("file -", "Reads -"),
            ("file a*", "Reads a*"),
            ("file *", "Reads *, unknown"),
            ("file -C -m a", "Reads a, shows more, unknown"),
            ("file -bC a", "Reads C, Reads a, shows more, unknown"),
            ("file --compile a", "Reads a, shows more, unknown"),
            ("file -f a", "Reads a, shows more, unknown"),
            ("file --files-from=a", "Reads a, shows more, unknown"),
            ("file -z a", "Reads a, shows more, unknown"),
            ("file -p a", "Reads a, shows more, unknown"),
            ("file -- -C", "Reads -C"),
            ("file \"$x\"", "Reads $x, unknown"),
        ]);
    }
}
