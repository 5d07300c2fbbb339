//! `sed`, `awk` and `jq`: which scripts only read their files and do nothing else.

use haft_shell::{AsWord, Options};

use super::CommandUses;
use super::readers::plain;
use super::scan::has_late_option;
use super::tables::JQ;
use crate::path_use::PathAccess;
use crate::word::ShellWord;

/// Options of `sed`, without `-i` and script files.
const SED: Options = Options {
    flags: "nErsuz",
    valued: "e",
    joined: "",
    long: &[
        "quiet",
        "silent",
        "regexp-extended",
        "separate",
        "unbuffered",
        "null-data",
        "posix",
        "sandbox",
    ],
    long_valued: &["expression"],
    number: false,
};

/// Options of `awk`, without program files and libraries.
const AWK: Options = Options {
    flags: "",
    valued: "Fv",
    joined: "",
    // The awk of BSD and macOS ignores long options, and takes the word behind for the program.
    long: &[],
    long_valued: &[],
    number: false,
};

/// Names permitted in an `awk` program: none of them starts a program or names a file.
const AWK_NAMES: &[&str] = &[
    "print", "printf", "NR", "FNR", "NF", "FS", "OFS", "RS", "ORS", "BEGIN", "END", "length",
    "substr", "if", "else", "next", "exit", "gsub", "sub", "toupper", "tolower", "index", "int",
    "a", "b", "c", "i", "n", "s", "x", "y", "sum", "count", "total", "max", "min", "line", "last",
    "seen", "in", "for", "found", "f", "p",
];

/// Words in a `jq` filter that read more than the input, or the environment.
const FILTER_READS: &[&str] = &[
    "env",
    "include",
    "import",
    "input",
    "inputs",
    "input_filename",
    "debug",
    "stderr",
    "halt",
    "halt_error",
    "get_search_list",
    "modulemeta",
];

/// Returns what such a command does with files.
pub(super) fn of(name: &str, words: &[ShellWord]) -> Option<CommandUses> {
    let (options, fine): (&Options, fn(&str) -> bool) = match name {
        "sed" => (&SED, only_prints),
        "awk" => (&AWK, only_shows),
        "jq" => (&JQ, only_filters),
        _ => return None,
    };
    if name == "awk" && has_late_option(options, words)? {
        return None;
    }
    let given = plain(options, words)?;
    let mut scripts: Vec<&str> = Vec::new();
    let mut files = given.words;
    for one in given
        .values
        .iter()
        .filter(|one| matches!(one.name, "e" | "expression"))
    {
        scripts.push(one.value);
    }
    if scripts.is_empty() {
        if files.is_empty() || !files[0].is_known() {
            return None;
        }
        scripts.push(files.remove(0).text());
    }
    // Words such as `x=/etc` are variables to awk and files to the others; they are judged as files.
    scripts
        .into_iter()
        .all(fine)
        .then(|| CommandUses::each(files, PathAccess::Reads))
}

/// Whether a `sed` script only prints, counts and skips lines by number: `1,5p`, `$=`, `3q`. Writing, reading and running need others.
fn only_prints(script: &str) -> bool {
    !script.is_empty()
        && script
            .chars()
            .all(|c| c.is_ascii_digit() || ",$;p=qd! ~+".contains(c))
}

/// Whether an `awk` program has no pipe, no redirection and no unknown names. Words in its strings and patterns count as names, too.
fn only_shows(script: &str) -> bool {
    let signs = "_{}()[]$ ,;:.+-*/%=!~^\"\t&#'\\";
    let fine = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let known = |name: &str| {
        name.is_empty() || name.bytes().all(|b| b.is_ascii_digit()) || AWK_NAMES.contains(&name)
    };
    !script.is_empty() && script.chars().all(fine) && script.split(|c| !is_part(c)).all(known)
}

/// Whether a `jq` filter reads only its input: no variables, no formats, no word that reads more.
fn only_filters(filter: &str) -> bool {
    let signs = "_.[]|,:\"' (){}?-+*/=<>!;#%";
    let fine = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let mut names = filter.split(|c| !is_part(c));
    filter.chars().all(fine) && !names.any(|name| FILTER_READS.contains(&name))
}
