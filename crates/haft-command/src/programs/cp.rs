//! `cp`: copies files.

use haft_shell::Options;

use crate::forms::{carry, is_short, put};
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["cp"], meaning);

/// Of files, without folders, links and backups.
const OPTIONS: Options = Options {
    flags: "finupv",
    valued: "",
    joined: "",
    long: &[
        "force",
        "interactive",
        "no-clobber",
        "preserve",
        "update",
        "verbose",
    ],
    long_valued: &[],
    number: false,
};

/// All options of `cp`, `mv` and `ln`: none of them names a list of files.
pub(super) const ALL: Options = Options {
    flags: "abcdfFhHiIlLnNpPRrsTuvwxXZ",
    valued: "St",
    joined: "",
    long: &[
        "archive",
        "attributes-only",
        "backup",
        "context",
        "copy-contents",
        "debug",
        "dereference",
        "directory",
        "exchange",
        "force",
        "help",
        "interactive",
        "keep-directory-symlink",
        "link",
        "logical",
        "no-clobber",
        "no-copy",
        "no-dereference",
        "no-target-directory",
        "one-file-system",
        "parents",
        "physical",
        "preserve",
        "recursive",
        "reflink",
        "relative",
        "remove-destination",
        "strip-trailing-slashes",
        "symbolic",
        "symbolic-link",
        "update",
        "verbose",
        "version",
    ],
    long_valued: &[
        "backup",
        "context",
        "no-preserve",
        "preserve",
        "reflink",
        "sparse",
        "suffix",
        "target-directory",
        "update",
    ],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let found = put(&OPTIONS, call, PathAccess::Reads)
        .unwrap_or_else(|| carry(&ALL, call, PathAccess::Reads));
    let symbolic = |text: &str| text.starts_with("--s") || (is_short(text) && text.contains('s'));
    CommandMeaning {
        links: call.words.iter().any(|word| symbolic(word.text)),
        ..found
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn cp_means_what_its_words_say() {
        check(&[
            ("cp a b", "Reads a, Writes b"),
            ("cp a b c", "Reads a, Writes c, Reads b, Writes c"),
            (
                "cp -r a b",
                "Reads a, Carries a, Reads b, Carries b, unknown",
            ),
            (
                "cp -s a b",
                "Reads a, Carries a, Reads b, Carries b, links, unknown",
            ),
            (
                "cp a* b",
                "Reads a*, Carries a*, Reads b, Carries b, unknown",
            ),
            (
                "cp a/.. b",
                "Reads a/.., Carries a/.., Reads b, Carries b, unknown",
            ),
        ]);
    }
}
