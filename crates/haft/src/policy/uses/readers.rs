//! Commands that read the files that their words name, and print from them.

use haft_shell::{AsWord, Operands, Options};

use super::scan::option_value;
use super::tables::{RG, SORT, UNIQ};
use super::{How, Use, Uses};
use crate::policy::readers::DIFF;
use crate::policy::spelled::{Form, Spelled};

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

/// Commands that print names, kinds and sizes of files, whatever their options.
const NAME_LISTERS: &[&str] = &[
    "ls", "stat", "du", "which", "readlink", "realpath", "test", "[",
];

/// Returns what such a command does with files.
pub(super) fn of(name: &str, words: &[Spelled]) -> Option<Uses> {
    match name {
        _ if FILE_READERS.contains(&name) => files(name, words, How::Reads),
        _ if NAME_LISTERS.contains(&name) => files(name, words, How::Names),
        "grep" | "egrep" | "fgrep" => Some(grep(words)),
        "diff" => diff(words),
        "sort" => Some(Uses::each(plain(&SORT, words)?.words, How::Reads)),
        "uniq" => {
            let operands = plain(&UNIQ, words)?.words;
            // `uniq` would write a second file.
            (operands.len() < 2).then(|| Uses::each(operands, How::Reads))
        }
        "rg" => rg(words),
        _ => None,
    }
}

/// Returns the operands if every option is known and no value names a place.
pub(super) fn plain<'w>(options: &Options, words: &'w [Spelled]) -> Option<Operands<'w, Spelled>> {
    let operands = options.split(words)?;
    operands
        .values
        .iter()
        .all(|given| given.is_known)
        .then_some(operands)
}

/// Returns the uses where every word may be a file, on its own or after an option. `None` for options that read file names from a file.
fn files(name: &str, words: &[Spelled], how: How) -> Option<Uses> {
    let short = |word: &Spelled| word.text.starts_with('-') && !word.text.starts_with("--");
    let lists = |word: &Spelled| match name {
        "wc" | "du" => word.text.starts_with("--f"),
        _ if name.ends_with("sum") => {
            word.text.starts_with("--c") || (short(word) && word.text.contains('c'))
        }
        _ => false,
    };
    if words.iter().any(lists) {
        return None;
    }
    let each = words.iter().flat_map(|word| paths(word, how));
    // A delimiter, not the root: `cut -d/`.
    let each = each.filter(|place| place.path != "/" || words.iter().any(|word| word.text == "/"));
    Some(Uses::of(each.collect()))
}

/// Returns the parts of a word that may be a path.
fn paths(word: &Spelled, how: How) -> Vec<Use> {
    if word.form == Form::Pipe {
        return Vec::new();
    }
    if !word.text.starts_with('-') {
        return vec![Use::new(word, how)];
    }
    let behind = option_value(&word.text);
    behind.map(|text| Use::known(text, how)).collect()
}

/// Returns the uses of `grep`: its pattern comes first unless an option gives it, or may give it.
fn grep(words: &[Spelled]) -> Uses {
    let short = |word: &Spelled| word.text.starts_with('-') && !word.text.starts_with("--");
    let long =
        |word: &Spelled, names: &[&str]| names.iter().any(|name| word.text.starts_with(name));
    let gives = |word: &Spelled| {
        (short(word) && word.text.contains(['e', 'f'])) || long(word, &["--e", "--f", "--reg"])
    };
    let descends = |word: &Spelled| {
        (short(word) && word.text.contains(['r', 'R', 'd'])) || long(word, &["--r", "--d"])
    };
    let follows =
        |word: &Spelled| (short(word) && word.text.contains(['R', 'd'])) || long(word, &["--d"]);
    let below = words.iter().any(descends);
    let how = if below {
        let follows = words.iter().any(follows);
        How::ReadsBelow { follows }
    } else {
        How::Reads
    };
    let end = words
        .iter()
        .position(|word| word.text == "--")
        .unwrap_or(words.len());
    let operands = words[..end]
        .iter()
        .filter(|word| !word.text.starts_with('-') || word.text == "-");
    let mut operands: Vec<&Spelled> = operands
        .chain(words.get(end + 1..).unwrap_or_default())
        .collect();
    if !words[..end].iter().any(gives) && !operands.is_empty() {
        operands.remove(0);
    }
    let mut uses = Uses::each(operands.iter().copied(), how);
    if below && operands.is_empty() {
        uses.paths.push(Use::known(".", how));
    }
    let options = words[..end]
        .iter()
        .filter(|word| word.text.starts_with('-'));
    let values = options.flat_map(|word| option_value(&word.text));
    uses.paths
        .extend(values.map(|text| Use::known(text, How::Reads)));
    uses
}

/// Returns the uses of `diff`, which walks folders and follows links in them.
fn diff(words: &[Spelled]) -> Option<Uses> {
    let plain = |word: &Spelled| word.is_known() || word.form == Form::Pipe;
    if !words.iter().all(plain) || !DIFF.know(words) {
        return None;
    }
    let follows = !words.iter().any(|word| word.text == "--no-dereference");
    let each = words
        .iter()
        .flat_map(|word| paths(word, How::ReadsBelow { follows }));
    Some(Uses::of(each.collect()))
}

/// Returns the uses of `rg`, which searches everything below a folder.
fn rg(words: &[Spelled]) -> Option<Uses> {
    let given = plain(&RG, words)?;
    let mut operands = given.words;
    let has = |names: &[&str]| given.values.iter().any(|one| names.contains(&one.name));
    let lists = words.iter().any(|word| word.text == "--files");
    if !has(&["e", "regexp"]) && !lists {
        if operands.is_empty() {
            return None;
        }
        operands.remove(0);
    }
    let short = |word: &Spelled| word.text.starts_with('-') && !word.text.starts_with("--");
    let follows = words
        .iter()
        .any(|word| word.text == "--follow" || short(word) && word.text.contains('L'));
    let how = How::ReadsBelow { follows };
    let mut uses = Uses::each(operands.iter().copied(), how);
    if operands.is_empty() {
        uses.paths.push(Use::known(".", how));
    }
    Some(uses)
}
