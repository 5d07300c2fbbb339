//! The built-in set of read-only commands: clause 4 of the shell rules.

use haft_shell::{AsWord, Layer, Options};

use crate::old::{find, git};
use crate::path::clean;

/// Programs that only read and print, whatever their options.
const READ_ONLY_PROGRAMS: &[&str] = &[
    "ls", "cat", "echo", "pwd", "head", "tail", "grep", "wc", "which", "stat", "du",
];

/// Options of `diff`, without those that paginate (`-l`), which run another program.
pub(super) const DIFF: Options = Options {
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

/// Whether the command, with all wrappers removed, only reads.
pub fn only_reads<W: AsWord>(layer: Layer<'_, W>) -> bool {
    let Some((name, rest)) = layer.words.split_first() else {
        return false;
    };
    if !layer.knows(name) {
        return false;
    }
    match name.text() {
        "find" => find::only_looks(layer),
        "git" => git::only_reads(layer),
        "diff" => layer.is_known() && DIFF.know(rest),
        "cd" => layer.is_known() && matches!(rest, [folder] if is_below(folder.text())),
        name => READ_ONLY_PROGRAMS.contains(&name),
    }
}

/// Whether the path is relative and stays below the folder it starts in.
fn is_below(path: &str) -> bool {
    !path.is_empty() && !path.starts_with(['-', '/', '~']) && !clean(path).starts_with("..")
}
