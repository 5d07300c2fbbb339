//! `sort`: prints lines in order.

use haft_shell::Options;

use crate::forms::show_operands;
use crate::meaning::CommandMeaning;
use crate::program::{OptionHarm, Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["sort"], meaning).with_options(OptionHarm::Acts);

/// Without options that write (`-o`, `-T`) or run a program.
const OPTIONS: Options = Options {
    flags: "bdfgiMhnRrVCcmsuz",
    valued: "ktS",
    joined: "",
    long: &[
        "check",
        "dictionary-order",
        "general-numeric-sort",
        "human-numeric-sort",
        "ignore-case",
        "ignore-leading-blanks",
        "ignore-nonprinting",
        "merge",
        "month-sort",
        "numeric-sort",
        "reverse",
        "stable",
        "unique",
        "version-sort",
        "zero-terminated",
    ],
    long_valued: &["buffer-size", "field-separator", "key", "parallel", "sort"],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    show_operands(&OPTIONS, call)
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn sort_means_what_its_words_say() {
        check(&[
            ("sort -k 2 a", "Reads a"),
            ("sort -k -- -u a", "Reads a"),
            ("sort -- -u a", "Reads -u, Reads a"),
            ("sort -o a b", "Reads a, Reads b, unknown"),
            ("sort -k -- -o a b", "Reads -o, Reads a, Reads b, unknown"),
        ]);
    }
}
