//! `grep`: its options, and the files that it searches.

use haft_shell::{AsWord, Options};

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

/// What a `grep` searches.
#[derive(Debug)]
pub struct GrepScope<'w, W> {
    /// The files and folders that its words name.
    pub operands: Vec<&'w W>,
    /// The files that its options name: with patterns, or with names to leave out.
    pub lists: Vec<&'w str>,
    /// Whether it searches folders.
    pub descends: bool,
    /// Whether it may follow links in them.
    pub follows: bool,
    /// Whether it may search the folder that it starts in, because no word names a file.
    pub is_implied: bool,
}

/// Returns what a `grep` with these words searches; `None` if an option is unknown.
pub fn search<W: AsWord>(words: &[W]) -> Option<GrepScope<'_, W>> {
    let given = OPTIONS.split(words)?;
    let known = given.values.iter().all(|one| one.is_known);
    if !known || words.iter().any(|word| word.text() == "--context") {
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
    Some(GrepScope {
        operands,
        lists: values(&["exclude-from", "f", "file"]).collect(),
        descends,
        follows,
        is_implied: descends && is_alone,
    })
}

/// Removes the pattern, which comes first, and returns whether it may be the only operand. A pattern that the shell expands may become
/// several words: the rest of them are files.
pub fn remove_pattern<W: AsWord>(operands: &mut Vec<&W>) -> bool {
    if operands.first().is_some_and(|first| first.is_known()) {
        operands.remove(0);
        return operands.is_empty();
    }
    operands.len() < 2
}
