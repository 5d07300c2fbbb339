//! `hexdump`: prints the bytes of files.

use haft_shell::Options;

use crate::forms::show_operands;
use crate::meaning::CommandMeaning;
use crate::program::{OptionHarm, Program, ProgramCall};

pub(super) const PROGRAM: Program =
    Program::new(&["hexdump", "hd"], meaning).with_options(OptionHarm::None);

/// Options of util-linux and BSD, without `-f`, which names a file of formats.
const OPTIONS: Options = Options {
    flags: "CXbcdovx",
    valued: "ens",
    joined: "",
    long: &[
        "canonical",
        "help",
        "no-squeezing",
        "one-byte-char",
        "one-byte-hex",
        "one-byte-octal",
        "two-bytes-decimal",
        "two-bytes-hex",
        "two-bytes-octal",
        "version",
    ],
    long_valued: &["format", "length", "skip"],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    show_operands(&OPTIONS, call)
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn hexdump_means_what_its_words_say() {
        check(&[
            ("hexdump -C a", "Reads a"),
            ("hexdump -n 16 -s4 -v a b", "Reads a, Reads b"),
            ("hexdump -e '1/1 \"%x\"' a", "Reads a"),
            ("hexdump -f a b", "Reads a, Reads b, shows more, unknown"),
            ("hexdump *", "Reads *"),
            ("hd \"$x\"", "Reads $x, unknown"),
        ]);
    }
}
