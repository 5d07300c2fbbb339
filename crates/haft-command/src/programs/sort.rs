//! `sort`: prints lines in order.

use haft_shell::Options;

use crate::forms::{ValueRoles, show_by_roles};
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

/// With those that write, and those that read more.
const ALL: Options = Options {
    valued: "ktSoT",
    long_valued: &[
        "batch-size",
        "buffer-size",
        "field-separator",
        "files0-from",
        "key",
        "output",
        "parallel",
        "random-source",
        "sort",
        "temporary-directory",
    ],
    ..OPTIONS
};
const ROLES: ValueRoles = ValueRoles {
    reads: &["random-source"],
    writes: &["o", "output"],
    lists: &["files0-from"],
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    show_by_roles(&OPTIONS, &ALL, &ROLES, call)
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
            ("sort -o a b", "Reads b, Edits a, unknown"),
            ("sort -k -- -o a b", "Reads b, Edits a, unknown"),
            ("sort --files0-from=a", "Reads a, shows more, unknown"),
            ("sort --random-source a b", "Reads b, Reads a, unknown"),
            (
                "sort --compress-program=a b",
                "Reads a, Reads b, shows more, unknown",
            ),
        ]);
    }
}
