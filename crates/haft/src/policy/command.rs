//! What a command does, as far as its words tell: how harmful it is, and which files it reads or edits.

use serde_json::Value;

use super::paths::clean;
use super::readers::only_reads;
use super::removal::{Ground, removes_critical};
use super::shell::AsWord;
use super::words::{LONGEST_LINE, join_words};
use super::wrapper::{Layer, base_name, unwrapped};
use crate::arguments::Arguments;
use crate::spec::Risk;

/// Places a policy knows by name: the folder its relative paths start at, and the user's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The workspace's root, absolute and cleaned.
    pub workspace: Option<String>,
    /// The user's home folder, absolute and cleaned.
    pub home: Option<String>,
}

/// How harmful a command is: the built-in read-only set is safe, removing a critical path is critical, all else is high.
pub fn command_risk(argv: &[String]) -> Risk {
    if is_too_long(&join_words(argv)) {
        return risk(argv).max(Risk::High);
    }
    risk(argv)
}

/// The same of words some of which may only be known at run time.
pub(crate) fn risk<W: AsWord>(words: &[W]) -> Risk {
    if removes_critical(words, &Ground::root(&Places::default())) {
        Risk::Critical
    } else if only_reads(unwrapped(words)) {
        Risk::Safe
    } else {
        Risk::High
    }
}

/// Is the command longer than one that is judged at all? Clause 16 of the shell rules.
pub(crate) fn is_too_long(command: &str) -> bool {
    command.len() > LONGEST_LINE && command.chars().count() > LONGEST_LINE
}

/// Variables that change nothing about which command runs: clause 6 of the shell rules.
const HARMLESS_VARIABLES: &[&str] = &["NODE_ENV", "NO_COLOR"];

/// Do these variables change nothing about which command runs?
pub(crate) fn harmless(variables: &[String]) -> bool {
    variables
        .iter()
        .all(|name| HARMLESS_VARIABLES.contains(&name.as_str()))
}

/// Does a call set variables (its argument `env`) that could make its command another one?
pub(crate) fn sets_variables(arguments: &Arguments) -> bool {
    match arguments.value().get("env") {
        None | Some(Value::Null) => false,
        Some(Value::Object(variables)) => variables
            .keys()
            .any(|name| !HARMLESS_VARIABLES.contains(&name.as_str())),
        Some(_) => true,
    }
}

/// Programs that print what a file holds. Clause 14 names the first four; the others are in the read-only set, so a denied file
/// would be read unasked through them.
const PRINTERS: &[&str] = &["cat", "head", "tail", "sed", "grep", "diff"];

/// Files that a command names where rules on files speak of it too: clause 14.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) reads: Vec<String>,
    pub(crate) edits: Vec<String>,
    /// Also files that are only known at run time.
    pub(crate) unknown: bool,
}

/// The files that a printing command names; `sed -i` edits them.
pub(crate) fn touched<W: AsWord>(layer: Layer<'_, W>) -> Touched {
    let mut found = Touched::default();
    let Some((name, rest)) = layer.words.split_first() else {
        return found;
    };
    let name = base_name(name.text());
    if !PRINTERS.contains(&name) {
        return found;
    }
    found.unknown = !layer.is_known();
    let rest: Vec<&str> = rest.iter().map(AsWord::text).collect();
    let mut files: Vec<&str> = operands(&rest).collect();
    if matches!(name, "sed" | "grep") {
        // The script or pattern comes first unless an option gives it.
        let given = |w: &&str| {
            (is_short(w) && w.contains(['e', 'f']))
                || ["--e", "--f", "--reg"]
                    .iter()
                    .any(|option| w.starts_with(option))
        };
        if !rest.iter().any(given) && !files.is_empty() {
            files.remove(0);
        }
    }
    let in_place = |w: &&str| (is_short(w) && w.contains('i')) || w.starts_with("--i");
    if name == "sed" && rest.iter().any(in_place) {
        found.edits = files.iter().map(|&file| clean(file)).collect();
    }
    let values = rest.iter().filter(|w| w.starts_with("--"));
    files.extend(values.filter_map(|w| Some(w.split_once('=')?.1)));
    found.reads = files.into_iter().map(clean).collect();
    found
}

/// The words that are no options; all of them after `--`.
fn operands<'a>(words: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let end = words.iter().position(|w| *w == "--");
    let end = end.unwrap_or(words.len());
    let before = words[..end].iter();
    let before = before.filter(|w| !w.starts_with('-') || w.len() == 1);
    before
        .chain(words.get(end + 1..).unwrap_or_default())
        .copied()
}

fn is_short(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--")
}
