//! Bash builtins that affect the rest of a line by setting variables or changing which command a name refers to.

use crate::format::conversions;
use crate::looks::FirstLook;
use crate::variables::is_number;
use crate::word::{AsWord, Expansions};
use crate::wrapper::inner_command;

/// Names of builtins that set variables, run their words as code, or change the meaning of a name, an option or a descriptor.
pub const ALTERING: &[&str] = &[
    ".",
    "alias",
    "bind",
    "builtin",
    "compgen",
    "complete",
    "compopt",
    "declare",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "getopts",
    "hash",
    "history",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "shopt",
    "source",
    "trap",
    "typeset",
    "unalias",
    "unset",
];

const FIRST_LOOK: FirstLook = FirstLook::NONE.with_names(ALTERING);

/// Unary and binary tests that inspect files and texts or compare plain numbers.
const UNARY_TESTS: &str = "-a -b -c -d -e -f -g -h -k -n -p -r -s -t -u -w -x -z -G -L -N -O -S";
const BINARY_TESTS: &str = "= == != < > -nt -ot -ef -eq -ne -lt -le -gt -ge";

/// Options of `set` that only make a script stop earlier or print more.
const STRICTER_OPTIONS: &[&str] = &["errexit", "nounset", "pipefail", "verbose", "xtrace"];

/// Returns true if the command may set a variable, or change the meaning of later commands on its line. Such a builtin also
/// evaluates an index among its words a second time.
pub fn alters_shell<W: AsWord>(words: &[W]) -> bool {
    let inner = inner_command(words).words;
    let Some((name, rest)) = inner.split_first() else {
        return false;
    };
    let no_option =
        |bad: &dyn Fn(&str) -> bool| rest.iter().all(|w| w.is_known() && !bad(w.text()));
    match name.text() {
        "test" | "[" => !only_tests(rest),
        "wait" => !no_option(&|w| w.starts_with('-') && w.contains('p')),
        "printf" => !only_prints(rest),
        "set" => !sets_only_stricter(rest),
        "command" => !queries(rest),
        name => FIRST_LOOK.may_be(name) && ALTERING.contains(&name),
    }
}

/// The variables that a builtin sets.
pub(crate) enum SetByBuiltin<'w> {
    /// None, as far as the line tells.
    Nothing,
    /// These, each to a whole number or to anything.
    Names(Vec<(&'w str, bool)>),
    /// Maybe any variable, or the builtin runs its words.
    Anything,
}

/// Returns the variables that a command sets as a builtin.
pub(crate) fn sets<W: AsWord>(words: &[W]) -> SetByBuiltin<'_> {
    if !alters_shell(words) {
        return SetByBuiltin::Nothing;
    }
    let names = match words.split_first() {
        Some((name, rest)) if name.text() == "read" => names_read(rest),
        Some((name, rest)) if name.text() == "export" => names_exported(rest),
        _ => None,
    };
    names.map_or(SetByBuiltin::Anything, SetByBuiltin::Names)
}

/// Returns the variables of `read -r NAME…`.
fn names_read<W: AsWord>(words: &[W]) -> Option<Vec<(&str, bool)>> {
    let mut words = words.iter();
    let mut names = Vec::new();
    while let Some(word) = words.next() {
        let letters = word.text().strip_prefix('-');
        match letters.filter(|_| names.is_empty()) {
            Some(letters) if word.is_known() && !letters.is_empty() => {
                let valued = letters.trim_start_matches(['r', 's']);
                let is_valued = |option: char| "dnNptu".contains(option);
                match (valued.chars().next(), valued.len()) {
                    (None, _) => {}
                    // The value is the next word.
                    (Some(option), 1) if is_valued(option) => {
                        words
                            .next()
                            .filter(|value| !value.expansions().may_split())?;
                    }
                    (Some(option), _) if is_valued(option) => {}
                    _ => return None,
                }
            }
            _ => names.push((variable(word)?, false)),
        }
    }
    if names.is_empty() {
        names.push(("REPLY", false));
    }
    Some(names)
}

/// Returns the variables of `export NAME=VALUE…`.
fn names_exported<W: AsWord>(words: &[W]) -> Option<Vec<(&str, bool)>> {
    let each = words.iter().map(|word| match word.text().split_once('=') {
        _ if word.expansions().may_split() => None,
        Some((name, value)) => is_name(name).then_some((name, word.is_known() && is_number(value))),
        None => variable(word).map(|name| (name, false)),
    });
    each.collect()
}

/// Returns the name of a variable that a word is: without an index, which would be evaluated.
fn variable<W: AsWord>(word: &W) -> Option<&str> {
    Some(word.text()).filter(|text| word.is_known() && is_name(text))
}

fn is_name(text: &str) -> bool {
    let letter = |b: &u8| b.is_ascii_alphabetic() || *b == b'_';
    text.as_bytes().first().is_some_and(letter)
        && text.bytes().all(|b| letter(&b) || b.is_ascii_digit())
}

/// Returns true if the command is a builtin that would run a substitution among its words even though it is quoted.
pub fn runs_quoted<W: AsWord>(words: &[W]) -> bool {
    let holds = |word: &W| {
        let text = word.text();
        // `$()` is the placeholder of a substitution, which is already a command of its own.
        text.contains('`')
            || text
                .match_indices("$(")
                .any(|(at, _)| !text[at..].starts_with("$()"))
    };
    words.iter().any(holds) && evaluates(words)
}

/// Returns true if the words of `printf` set no variable: neither by an option nor by `%n` in the format.
fn only_prints<W: AsWord>(words: &[W]) -> bool {
    let words = match words.split_first() {
        Some((end, words)) if end.is_known() && end.text() == "--" => words,
        Some((option, _)) if option.text().starts_with('-') => return false,
        _ => words,
    };
    words
        .first()
        .is_some_and(|format| format.is_known() && !conversions(format.text()).contains('n'))
}

/// Returns true if all tests are known and no word can split. Excludes `-v` and `-R`, which evaluate an index a second time.
fn only_tests<W: AsWord>(words: &[W]) -> bool {
    let words = match words.split_last() {
        Some((end, words)) if end.text() == "]" => words,
        _ => words,
    };
    let words = match words.split_first() {
        Some((not, words)) if not.text() == "!" && !words.is_empty() => words,
        _ => words,
    };
    let lists =
        |table: &str, word: &W| word.is_known() && table.split(' ').any(|w| w == word.text());
    let known = match words {
        [test, _] => lists(UNARY_TESTS, test),
        [_, test, _] => lists(BINARY_TESTS, test),
        [] | [_] => true,
        words => words
            .iter()
            .all(|w| w.is_known() && !matches!(w.text(), "-v" | "-R")),
    };
    known && !words.iter().any(|word| word.expansions().may_split())
}

/// Returns true if the command is such a builtin and evaluates its words. `exec` runs its words as they are.
pub(crate) fn evaluates<W: AsWord>(words: &[W]) -> bool {
    let name = inner_command(words).words.first();
    name.is_some_and(|name| name.text() != "exec") && alters_shell(words)
}

/// Returns true if such a builtin gets a word that is unknown and may name a variable with an index.
pub(crate) fn evaluates_unknown<W: AsWord>(words: &[W]) -> bool {
    let names = |word: &W| {
        let (name, _) = word.text().split_once('=').unwrap_or_default();
        let named =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        !word.is_known() && (!named || word.expansions().intersects(Expansions::SPLIT))
    };
    words.iter().any(names) && evaluates(words)
}

/// Returns true for `set -e`, `set -euo pipefail` and the like, which only make a script stop earlier or print more.
fn sets_only_stricter<W: AsWord>(words: &[W]) -> bool {
    let mut named = false;
    words.iter().all(|word| {
        let text = word.text();
        if std::mem::take(&mut named) {
            return word.is_known() && STRICTER_OPTIONS.contains(&text);
        }
        named = text.ends_with('o');
        let letters = text.strip_prefix(['-', '+']).unwrap_or_default();
        word.is_known() && !letters.is_empty() && letters.chars().all(|c| "euvxo".contains(c))
    })
}

/// Returns true for `command -v NAME`, which only reports what a name refers to.
pub(crate) fn queries<W: AsWord>(words: &[W]) -> bool {
    words.first().is_some_and(|word| {
        let text = word.text();
        let letters = text.strip_prefix('-').unwrap_or_default();
        word.is_known()
            && letters.contains(['v', 'V'])
            && letters.chars().all(|c| "pvV".contains(c))
    })
}
