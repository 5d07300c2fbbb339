//! `tar`: puts files into an archive, and takes them out of one.

use haft_shell::Options;

use crate::forms::{MAX_LETTERS, each_path, operands, option_values};
use crate::meaning::CommandMeaning;
use crate::path_use::{PathAccess, PathUse};
use crate::program::{Program, ProgramCall};
use crate::word::CommandWord;

pub(super) const PROGRAM: Program = Program::new(&["tar"], meaning);

/// Options that neither name a list of files, nor another folder for those behind them, nor a program.
const OPTIONS: Options = Options {
    flags: "AcdrtuxaBhijJkmnoOpPRsSvwWzZ0",
    valued: "bfHKLNV",
    joined: "",
    long: &[
        "absolute-names",
        "append",
        "auto-compress",
        "bzip2",
        "create",
        "dereference",
        "diff",
        "exclude-vcs",
        "extract",
        "get",
        "gzip",
        "help",
        "keep-old-files",
        "list",
        "no-recursion",
        "numeric-owner",
        "overwrite",
        "preserve-permissions",
        "same-owner",
        "sparse",
        "to-stdout",
        "touch",
        "update",
        "verbose",
        "version",
        "wildcards",
        "xz",
        "zstd",
    ],
    long_valued: &[
        "exclude",
        "file",
        "format",
        "group",
        "mode",
        "mtime",
        "owner",
        "sort",
        "strip-components",
        "transform",
    ],
    number: false,
};

/// The same for taking files out, where other folders are not read.
const TAKING_OUT: Options = Options {
    valued: "bfHKLNVC",
    long_valued: &[
        "directory",
        "exclude",
        "file",
        "group",
        "mode",
        "owner",
        "strip-components",
        "transform",
    ],
    ..OPTIONS
};

/// Every word may be a file. An archive's own name is one, too: what it holds is shown.
fn meaning(call: &ProgramCall<'_>) -> CommandMeaning {
    let mut uses = each_path(call.words, PathAccess::Reads);
    let letters = call.words.first().filter(|word| is_old(word));
    // The letters of the first word are options with or without a dash.
    let dashed = letters.map(|word| format!("-{}", word.text));
    let old = dashed.iter().flat_map(|text| option_values(text));
    uses.extend(
        old.take(MAX_LETTERS)
            .map(|text| PathUse::known(text, PathAccess::Reads)),
    );
    let rest = &call.words[usize::from(letters.is_some())..];
    let takes_out = takes_out(call.words);
    let is_plain = letters.is_none_or(|word| {
        let lists = word.text.contains(['T', 'I', 'X', 'F', 'g']);
        !lists && (takes_out || !word.text.contains('C'))
    });
    let known = if takes_out { &TAKING_OUT } else { &OPTIONS };
    // `@ARCHIVE` of BSD's names another archive.
    let lists = operands(call.words)
        .iter()
        .any(|word| word.text.starts_with('@'));
    CommandMeaning {
        shows_more: !is_plain || !known.know(rest) || lists,
        ..CommandMeaning::showing(uses).or_more()
    }
}

/// Whether it takes files out of an archive, or lists them, and does nothing else.
fn takes_out(words: &[CommandWord<'_>]) -> bool {
    let first = words.first().map_or("", |word| word.text);
    let letters = first.strip_prefix('-').unwrap_or(first);
    let is_short = |word: &CommandWord<'_>| word.text.starts_with('-');
    let has = |word: &str, letters: [char; 5]| !word.starts_with("--") && word.contains(letters);
    let long = ["--app", "--ca", "--con", "--cr", "--u"];
    let puts = |text: &str| {
        has(text, ['c', 'r', 'u', 'A', 'd']) || long.iter().any(|one| text.starts_with(one))
    };
    letters.contains(['x', 't'])
        && !letters.starts_with('-')
        && !puts(first)
        && !words[1..]
            .iter()
            .filter(|word| is_short(word))
            .any(|word| puts(word.text))
}

/// Whether the word is a set of letters such as `czf`.
fn is_old(word: &CommandWord<'_>) -> bool {
    !word.text.starts_with('-') && word.text.bytes().all(|b| b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use crate::tests::check;

    #[test]
    fn tar_means_what_its_words_say() {
        check(&[
            ("tar -cf a b", "Reads f, Reads a, Reads b, unknown"),
            ("tar cf a b", "Reads cf, Reads a, Reads b, Reads f, unknown"),
            ("tar --create --file=a b", "Reads a, Reads b, unknown"),
            (
                "tar -cf a -T l",
                "Reads f, Reads a, Reads l, shows more, unknown",
            ),
            ("tar -xf a -C d", "Reads f, Reads a, Reads d, unknown"),
            (
                "tar -xf a -c -C d",
                "Reads f, Reads a, Reads d, shows more, unknown",
            ),
            (
                "tar -cf a -C d b",
                "Reads f, Reads a, Reads d, Reads b, shows more, unknown",
            ),
        ]);
    }
}
