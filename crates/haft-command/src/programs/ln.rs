//! `ln`: makes other names for files; `rsync`: copies with everything in it, links included.

use haft_shell::{AsWord as _, Options};

use crate::forms::carry;
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};

use super::cp;

pub(super) const PROGRAM: Program = Program::new(&["ln", "rsync"], meaning);

/// Options of `rsync` that name neither a list of files, nor filters from a file, nor a program.
const RSYNC: Options = Options {
    flags: "0468abcdghiklmnopqrstuvxyzACDEHIJKLNOPRSUWX",
    valued: "@BT",
    joined: "",
    long: &[
        "acls",
        "append",
        "archive",
        "backup",
        "checksum",
        "compress",
        "copy-links",
        "cvs-exclude",
        "del",
        "delete",
        "delete-after",
        "delete-before",
        "delete-delay",
        "delete-during",
        "delete-excluded",
        "devices",
        "dirs",
        "dry-run",
        "existing",
        "force",
        "group",
        "hard-links",
        "human-readable",
        "ignore-errors",
        "ignore-existing",
        "ignore-times",
        "inplace",
        "itemize-changes",
        "links",
        "list-only",
        "no-motd",
        "numeric-ids",
        "omit-dir-times",
        "one-file-system",
        "owner",
        "partial",
        "perms",
        "progress",
        "prune-empty-dirs",
        "quiet",
        "recursive",
        "relative",
        "remove-source-files",
        "safe-links",
        "size-only",
        "sparse",
        "stats",
        "times",
        "update",
        "verbose",
        "version",
        "whole-file",
        "xattrs",
    ],
    long_valued: &[
        "backup-dir",
        "block-size",
        "bwlimit",
        "chmod",
        "chown",
        "compare-dest",
        "copy-dest",
        "exclude",
        "exclude-from",
        "include",
        "info",
        "link-dest",
        "log-file",
        "max-delete",
        "max-size",
        "min-size",
        "modify-window",
        "out-format",
        "partial-dir",
        "password-file",
        "suffix",
        "temp-dir",
        "timeout",
    ],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let known = if call.name == "ln" { &cp::ALL } else { &RSYNC };
    let meaning = carry(known, call, PathAccess::Reads);
    CommandMeaning {
        links: call.name == "ln",
        // A symbolic link shows nothing of what it names: rules judge what is reached by it.
        shows: !(call.name == "ln" && makes_symbolic(call)),
        ..meaning
    }
}

/// Whether the links are symbolic for certain: with `-s` or `--symbolic` before any word that is not known and before any option that
/// takes a word as its value.
fn makes_symbolic(call: &ProgramCall<'_>) -> bool {
    let known = call.words.iter().take_while(|word| word.is_known());
    let words = known.map(|word| word.text).take_while(|word| *word != "--");
    let options: Vec<&str> = words
        .filter(|word| word.starts_with('-') && *word != "-")
        .collect();
    let is_plain = |option: &&str| {
        let letters = option.strip_prefix('-').unwrap_or_default();
        letters == "-symbolic" || letters.chars().all(|c| "sfnivrbTLP".contains(c))
    };
    let is_symbolic = |option: &&str| *option == "--symbolic" || option.contains('s');
    options.iter().all(is_plain) && options.iter().any(is_symbolic)
}

#[cfg(test)]
mod tests {
    use crate::tests::{check, shows_files};

    #[test]
    fn ln_means_what_its_words_say() {
        check(&[
            (
                "ln -s a b",
                "Reads a, Carries a, Reads b, Carries b, links, unknown",
            ),
            (
                "ln a b",
                "Reads a, Carries a, Reads b, Carries b, links, unknown",
            ),
            (
                "rsync -a a b",
                "Reads a, Carries a, Reads b, Carries b, unknown",
            ),
        ]);
    }

    #[test]
    fn ln_shows_what_a_hard_link_gives_another_name() {
        for (line, shows) in [
            ("ln -s a b", false),
            ("ln -sfn a b", false),
            ("ln --symbolic a b", false),
            ("ln -s ../a$x b$y", false),
            ("ln -s $x b", false),
            ("ln a b", true),
            ("ln -f a b", true),
            ("ln --suffix -s a b", true),
            ("ln -S -s a b", true),
            ("ln -t -s a", true),
            ("ln -- -s b", true),
            ("ln $x -s a b", true),
            ("rsync -s a b", true),
        ] {
            assert_eq!(shows_files(line), shows, "{line}");
        }
    }
}
