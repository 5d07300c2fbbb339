//! `comm`: compares two sorted files line by line.

use haft_shell::Options;

use crate::forms::show_operands;
use crate::meaning::CommandMeaning;
use crate::program::{OptionHarm, Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["comm"], meaning).with_options(OptionHarm::None);

/// Options of GNU's `comm`, and `-i` of BSD's.
const OPTIONS: Options = Options {
    flags: "123iz",
    valued: "",
    joined: "",
    long: &[
        "check-order",
        "help",
        "nocheck-order",
        "total",
        "version",
        "zero-terminated",
    ],
    long_valued: &["output-delimiter"],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    show_operands(&OPTIONS, call)
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn comm_means_what_its_words_say() {
        check(&[
            ("comm a b", "Reads a, Reads b"),
            ("comm -12 a b", "Reads a, Reads b"),
            ("comm -1 -2 -3 -i -z a b", "Reads a, Reads b"),
            ("comm --check-order --total a b", "Reads a, Reads b"),
            ("comm --nocheck-order a b -3", "Reads a, Reads b"),
            ("comm --output-delimiter=/c a b", "Reads a, Reads b"),
            ("comm --output-delimiter /c a b", "Reads a, Reads b"),
            ("comm - b", "Reads -, Reads b"),
            ("comm -- -1 b", "Reads -1, Reads b"),
            ("comm a <(sort b)", "Reads a"),
            ("comm a*", "Reads a*"),
            ("comm *", "Reads *"),
            (
                "comm --out=/c a b",
                "Reads /c, Reads a, Reads b, shows more, unknown",
            ),
            ("comm -4 a b", "Reads a, Reads b, shows more, unknown"),
            ("comm \"$x\" b", "Reads $x, Reads b, unknown"),
        ]);
    }
}
