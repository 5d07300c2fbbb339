//! `grep`: searches files and folders.

use haft_shell::Options;

use crate::forms::{
    MAX_LETTERS, each_file, is_short, may_name_more, operands, option_values, plain, remove_pattern,
};
use crate::meaning::CommandMeaning;
use crate::path_use::{PathAccess, PathUse};
use crate::program::{Program, ProgramCall};

pub(super) const PROGRAM: Program =
    Program::new(&["grep", "egrep", "fgrep"], meaning).reading(|call| call.name == "grep");

/// Options of `grep` that have one meaning in all implementations. A bare `--context` takes the next word only in some of them.
const OPTIONS: Options = Options {
    flags: "0123456789abcEFGHhIiLlnoPqRrsTUVvwxyZz",
    valued: "ABCDdefm",
    joined: "",
    long: &[
        "basic-regexp",
        "binary",
        "byte-offset",
        "color",
        "colour",
        "count",
        "dereference-recursive",
        "extended-regexp",
        "files-with-matches",
        "files-without-match",
        "fixed-strings",
        "help",
        "ignore-case",
        "initial-tab",
        "invert-match",
        "line-buffered",
        "line-number",
        "line-regexp",
        "no-filename",
        "no-group-separator",
        "no-ignore-case",
        "no-messages",
        "null",
        "null-data",
        "only-matching",
        "perl-regexp",
        "quiet",
        "recursive",
        "silent",
        "text",
        "version",
        "with-filename",
        "word-regexp",
    ],
    long_valued: &[
        "after-context",
        "before-context",
        "binary-files",
        "color",
        "colour",
        "context",
        "devices",
        "directories",
        "exclude",
        "exclude-dir",
        "exclude-from",
        "file",
        "group-separator",
        "include",
        "label",
        "max-count",
        "regexp",
    ],
    number: false,
};

fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    known(call).unwrap_or_else(|| suspect(call))
}

/// Returns the meaning of a command all of whose options are known.
fn known(call: &ProgramCall<'_>) -> Option<CommandMeaning> {
    let given = plain(&OPTIONS, call.words)?;
    if call.words.iter().any(|word| word.text == "--context") {
        return None;
    }
    let values = |names: &'static [&str]| {
        let named = given.values.iter();
        let named = named.filter(|one| names.contains(&one.name));
        named.map(|one| one.value)
    };
    let has = |names: &[&str]| given.flags.iter().any(|flag| names.contains(flag));
    let mut folders = values(&["d", "directories"]);
    // How `-d recurse` treats links differs between implementations.
    let by_value = folders.any(|action| !matches!(action, "read" | "skip"));
    let follows = by_value || has(&["R", "dereference-recursive"]);
    let descends = follows || has(&["r", "recursive"]);
    let mut operands = given.words;
    let is_alone = if values(&["e", "f", "file", "regexp"]).next().is_some() {
        operands.is_empty()
    } else {
        remove_pattern(&mut operands)
    };
    let how = if descends {
        PathAccess::ReadsBelow { follows }
    } else {
        PathAccess::Reads
    };
    // Files with patterns, or with names to leave out.
    let lists = values(&["exclude-from", "f", "file"]);
    let mut uses: Vec<PathUse> = lists
        .map(|file| PathUse::known(file, PathAccess::Reads))
        .collect();
    uses.extend(each_file(operands, how));
    if descends && is_alone {
        uses.push(PathUse::known(".", how));
    }
    Some(CommandMeaning::showing(uses))
}

/// Returns the meaning of a command with an unknown option: any word may be its value, and none of them a folder.
fn suspect(call: &ProgramCall<'_>) -> CommandMeaning {
    let texts = || call.words.iter().map(|word| word.text);
    let mut files = operands(call.words);
    if !texts().any(gives_pattern) && !files.is_empty() {
        files.remove(0);
    }
    let descends = texts().any(may_descend);
    let how = if descends {
        PathAccess::ReadsBelow { follows: true }
    } else {
        PathAccess::Reads
    };
    let mut uses = each_file(files, how);
    if descends {
        uses.push(PathUse::known(".", how));
    }
    uses.extend(
        texts()
            .flat_map(|text| option_values(text).take(MAX_LETTERS))
            .map(|text| PathUse::known(text, PathAccess::Reads)),
    );
    CommandMeaning {
        shows_more: may_name_more(call.words) || !OPTIONS.know(call.words),
        ..CommandMeaning::showing(uses).or_more()
    }
}

/// Whether an option gives the pattern, which otherwise comes first.
fn gives_pattern(word: &str) -> bool {
    let long = ["--e", "--f", "--reg"];
    (is_short(word) && word.contains(['e', 'f'])) || long.iter().any(|one| word.starts_with(one))
}

/// Whether an option makes it walk folders: `-r`, `-R`, `-d recurse`, or their long names.
fn may_descend(word: &str) -> bool {
    (is_short(word) && word.contains(['r', 'R', 'd']))
        || word.starts_with("--r")
        || word.starts_with("--d")
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn grep_searches_what_its_options_leave() {
        check(&[
            ("grep -n x a", "only reads, Reads a"),
            ("grep -r x", "only reads, ReadsBelow { follows: false } ."),
            (
                "grep -rf pat",
                "only reads, Reads pat, ReadsBelow { follows: false } .",
            ),
            (
                "grep -d recurse x a",
                "only reads, ReadsBelow { follows: true } a",
            ),
            (
                "grep -r K*",
                "only reads, ReadsBelow { follows: false } K*, ReadsBelow { follows: false } .",
            ),
            ("grep -A 2 x a", "only reads, Reads a"),
            ("grep -- -r a", "only reads, Reads a"),
            ("egrep x a", "Reads a"),
            (
                "grep --context 1 x a",
                "only reads, Reads x, Reads a, unknown",
            ),
            (
                "grep --rec x",
                "only reads, ReadsBelow { follows: true } ., shows more, unknown",
            ),
            ("grep $x a", "only reads, Reads $x, Reads a, unknown"),
        ]);
    }
}
