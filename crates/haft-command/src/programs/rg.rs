//! `rg`: searches everything below a folder.

use haft_shell::Options;

use crate::forms::{each_file, each_path, may_name_more, plain, remove_pattern};
use crate::meaning::CommandMeaning;
use crate::path_use::{PathAccess, PathUse};
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program = Program::new(&["rg"], meaning).versioned();

/// Without options that run a program (`--pre`, `-z`) or read patterns from a file.
const OPTIONS: Options = Options {
    flags: "acFHhIiLlNnopqSsUuvwx0.P",
    valued: "ABCEegjMmrTt",
    joined: "",
    long: &[
        "case-sensitive",
        "column",
        "count",
        "count-matches",
        "crlf",
        "debug",
        "files",
        "files-with-matches",
        "files-without-match",
        "fixed-strings",
        "follow",
        "glob-case-insensitive",
        "heading",
        "hidden",
        "ignore-case",
        "invert-match",
        "json",
        "line-number",
        "line-regexp",
        "max-columns-preview",
        "multiline",
        "multiline-dotall",
        "no-column",
        "no-config",
        "no-filename",
        "no-heading",
        "no-ignore",
        "no-ignore-vcs",
        "no-line-number",
        "no-messages",
        "null",
        "null-data",
        "one-file-system",
        "only-matching",
        "passthru",
        "pcre2",
        "pretty",
        "quiet",
        "smart-case",
        "stats",
        "text",
        "trim",
        "type-list",
        "unicode",
        "unrestricted",
        "vimgrep",
        "with-filename",
        "word-regexp",
    ],
    long_valued: &[
        "after-context",
        "before-context",
        "color",
        "colors",
        "context",
        "encoding",
        "glob",
        "iglob",
        "max-columns",
        "max-count",
        "max-depth",
        "max-filesize",
        "path-separator",
        "regexp",
        "replace",
        "sort",
        "sortr",
        "threads",
        "type",
        "type-not",
    ],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let Some(given) = plain(&OPTIONS, call.words) else {
        let how = PathAccess::ReadsBelow { follows: true };
        let mut uses = each_path(call.words, how);
        uses.push(PathUse::known(".", how));
        return CommandMeaning {
            shows_more: may_name_more(call.words) || !OPTIONS.know(call.words),
            ..CommandMeaning::showing(uses).or_more()
        };
    };
    let mut operands = given.words;
    let has = |names: &[&str]| given.values.iter().any(|one| names.contains(&one.name));
    let is_alone = if has(&["e", "regexp"]) || given.flags.contains(&"files") {
        operands.is_empty()
    } else {
        remove_pattern(&mut operands)
    };
    let mut flags = given.flags.iter();
    let follows = flags.any(|flag| matches!(*flag, "L" | "follow"));
    let how = PathAccess::ReadsBelow { follows };
    let mut uses = each_file(operands, how);
    if is_alone {
        uses.push(PathUse::known(".", how));
    }
    CommandMeaning::showing(uses)
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn rg_means_what_its_words_say() {
        check(&[
            ("rg x", "ReadsBelow { follows: false } ."),
            ("rg x a", "ReadsBelow { follows: false } a"),
            ("rg -e -- -L", "ReadsBelow { follows: true } ."),
            (
                "rg K*",
                "ReadsBelow { follows: false } K*, ReadsBelow { follows: false } .",
            ),
            ("rg --files a", "ReadsBelow { follows: false } a"),
            (
                "rg --pre p x",
                "ReadsBelow { follows: true } p, ReadsBelow { follows: true } x, ReadsBelow { follows: true } ., shows more, unknown",
            ),
            ("rg --version", "prints words"),
        ]);
    }
}
