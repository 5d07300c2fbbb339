//! `diff`: compares files and folders, and follows links in folders.

use haft_shell::{AsWord as _, Options};

use crate::forms::{each_path, may_name_more};
use crate::meaning::CommandMeaning;
use crate::path_use::PathAccess;
use crate::program::{Program, ProgramCall};
use crate::word::{CommandWord, WordForm};

pub(super) const PROGRAM: Program =
    Program::new(&["diff"], meaning).reading(|call| call.is_known() && OPTIONS.know(call.words));

/// Without those that paginate (`-l`), which run another program.
const OPTIONS: Options = Options {
    flags: "abBcdeEHinNpqrstTuvwyZ",
    valued: "CFILSUWxX",
    joined: "",
    long: &[
        "brief",
        "color",
        "context",
        "ed",
        "expand-tabs",
        "help",
        "ignore-all-space",
        "ignore-blank-lines",
        "ignore-case",
        "ignore-file-name-case",
        "ignore-space-change",
        "ignore-tab-expansion",
        "ignore-trailing-space",
        "initial-tab",
        "left-column",
        "minimal",
        "new-file",
        "no-dereference",
        "no-ignore-file-name-case",
        "normal",
        "rcs",
        "recursive",
        "report-identical-files",
        "show-c-function",
        "side-by-side",
        "speed-large-files",
        "strip-trailing-cr",
        "suppress-blank-empty",
        "suppress-common-lines",
        "text",
        "unified",
        "unidirectional-new-file",
        "version",
    ],
    long_valued: &[
        "color",
        "context",
        "exclude",
        "exclude-from",
        "from-file",
        "horizon-lines",
        "ignore-matching-lines",
        "label",
        "show-function-line",
        "starting-file",
        "tabsize",
        "to-file",
        "unified",
        "width",
    ],
    number: true,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let fine = OPTIONS.know(call.words);
    let is_plain = |word: &CommandWord<'_>| word.is_known() || word.form == WordForm::Pipe;
    let more = may_name_more(call.words);
    // `--no-dereference` may be the value of another option.
    let uses = each_path(call.words, PathAccess::ReadsBelow { follows: true });
    CommandMeaning {
        unknown: more || !fine || !call.words.iter().all(is_plain),
        shows_more: more || !fine,
        ..CommandMeaning::showing(uses)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn diff_means_what_its_words_say() {
        check(&[
            (
                "diff a b",
                "only reads, ReadsBelow { follows: true } a, ReadsBelow { follows: true } b",
            ),
            (
                "diff -l a b",
                "ReadsBelow { follows: true } a, ReadsBelow { follows: true } b, shows more, unknown",
            ),
            ("diff a <(sort b)", "ReadsBelow { follows: true } a"),
            (
                "diff -x -- -l a b",
                "ReadsBelow { follows: true } -l, ReadsBelow { follows: true } a, ReadsBelow { follows: true } b, shows more, unknown",
            ),
            (
                "diff a b*",
                "ReadsBelow { follows: true } a, ReadsBelow { follows: true } b*, unknown",
            ),
        ]);
    }
}
