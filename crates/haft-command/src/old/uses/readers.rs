//! Commands that read the files that their words name, and print from them.

use haft_shell::{AsWord, Operands, Options};

use super::CommandUses;
use super::scan::{has_late_option, option_value};
use super::tables::{RG, SORT, UNIQ};
use crate::old::grep::{self, remove_pattern};
use crate::old::readers::DIFF;
use crate::path_use::{PathAccess, PathUse};
use crate::word::{ShellWord, WordForm};

/// Commands that read files and print, whatever their options; an option's value may be a file, too.
const FILE_READERS: &[&str] = &[
    "cat",
    "head",
    "tail",
    "wc",
    "cut",
    "nl",
    "tac",
    "rev",
    "paste",
    "fold",
    "expand",
    "unexpand",
    "cmp",
    "comm",
    "join",
    "cksum",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "od",
    "base64",
];

/// Returns what such a command does with files.
pub(super) fn of(name: &str, words: &[ShellWord]) -> Option<CommandUses> {
    match name {
        _ if FILE_READERS.contains(&name) => files(name, words, PathAccess::Reads),
        "grep" | "egrep" | "fgrep" => grep(words),
        "diff" => diff(words),
        "sort" => Some(CommandUses::each(
            plain(&SORT, words)?.words,
            PathAccess::Reads,
        )),
        // A late option would be the file that `uniq` writes.
        "uniq" if has_late_option(&UNIQ, words)? => None,
        "uniq" => {
            let operands = plain(&UNIQ, words)?.words;
            // `uniq` would write a second file, and a pattern may match two.
            let is_one = match operands.as_slice() {
                [] => true,
                [one] => one.form != WordForm::Pattern,
                _ => false,
            };
            is_one.then(|| CommandUses::each(operands, PathAccess::Reads))
        }
        "rg" => rg(words),
        _ => None,
    }
}

/// Returns the operands if every option is known and no value names a place.
pub(super) fn plain<'w>(
    options: &Options,
    words: &'w [ShellWord],
) -> Option<Operands<'w, ShellWord>> {
    let operands = options.split(words)?;
    operands
        .values
        .iter()
        .all(|given| given.is_known)
        .then_some(operands)
}

/// Returns the uses where every word may be a file, on its own or after an option. `None` for options that name a list
/// of files to read, or a file to write.
pub(super) fn files(name: &str, words: &[ShellWord], how: PathAccess) -> Option<CommandUses> {
    let short = |word: &ShellWord| word.text.starts_with('-') && !word.text.starts_with("--");
    let lists = |word: &ShellWord| match name {
        "wc" | "du" => word.text.starts_with("--f"),
        // The `base64` of macOS writes a file with `-o`.
        "base64" => word.text.starts_with("--o") || (short(word) && word.text.contains('o')),
        _ if name.ends_with("sum") => {
            word.text.starts_with("--c") || (short(word) && word.text.contains('c'))
        }
        _ => false,
    };
    if words.iter().any(lists) {
        return None;
    }
    let each = each_path(words, how);
    // A delimiter, not the root: `cut -d/`.
    let each = each.filter(|place| place.path != "/" || words.iter().any(|word| word.text == "/"));
    Some(CommandUses::of(each.collect()))
}

/// Returns all that may be a path. Behind `--`, a word that looks like an option may be a file, or still an option, because `--` may be
/// the value of one; a glob pattern may match files called `--`.
fn each_path(words: &[ShellWord], how: PathAccess) -> impl Iterator<Item = PathUse> {
    let mut ended = false;
    words.iter().flat_map(move |word| {
        let mut each = paths(word, how);
        if word.text.starts_with('-') && (ended || word.form == WordForm::Pattern) {
            each.push(PathUse::new(word, how));
        }
        ended |= word.text == "--";
        each
    })
}

/// Returns the parts of a word that may be a path.
fn paths(word: &ShellWord, how: PathAccess) -> Vec<PathUse> {
    if word.form == WordForm::Pipe {
        return Vec::new();
    }
    if !word.text.starts_with('-') {
        return vec![PathUse::file(word.as_word(), how)];
    }
    let behind = option_value(&word.text);
    behind.map(|text| PathUse::known(text, how)).collect()
}

/// Returns the uses of `grep`.
fn grep(words: &[ShellWord]) -> Option<CommandUses> {
    let search = grep::search(words)?;
    let how = if search.descends {
        let follows = search.follows;
        PathAccess::ReadsBelow { follows }
    } else {
        PathAccess::Reads
    };
    let lists = search
        .lists
        .iter()
        .map(|file| PathUse::known(file, PathAccess::Reads));
    let mut paths: Vec<PathUse> = lists.collect();
    paths.extend(CommandUses::each(search.operands, how).paths);
    if search.is_implied {
        paths.push(PathUse::known(".", how));
    }
    Some(CommandUses::of(paths))
}

/// Returns the uses of `diff`, which walks folders and follows links in them.
fn diff(words: &[ShellWord]) -> Option<CommandUses> {
    let plain = |word: &ShellWord| word.is_known() || word.form == WordForm::Pipe;
    if !words.iter().all(plain) || !DIFF.know(words) {
        return None;
    }
    // `--no-dereference` may be the value of another option.
    let each = each_path(words, PathAccess::ReadsBelow { follows: true });
    Some(CommandUses::of(each.collect()))
}

/// Returns the uses of `rg`, which searches everything below a folder.
fn rg(words: &[ShellWord]) -> Option<CommandUses> {
    let given = plain(&RG, words)?;
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
    let mut uses = CommandUses::each(operands.iter().copied(), how);
    if is_alone {
        uses.paths.push(PathUse::known(".", how));
    }
    Some(uses)
}
