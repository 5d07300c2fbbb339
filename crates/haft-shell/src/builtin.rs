//! Builtins of bash by what they do to the rest of a line: some set variables, or change which command a name stands for.

use crate::looks::FirstLook;
use crate::word::{AsWord, Expansions};
use crate::wrapper::inner_command;

/// Names of builtins that set variables, run what their words say, or change what a name, an option or a descriptor stands for.
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

const LOOK: FirstLook = FirstLook::NONE.and_all(ALTERING);

/// Tests of one word, and of two, that look at files and texts or compare plain numbers.
const OF_ONE: &str = "-a -b -c -d -e -f -g -h -k -n -p -r -s -t -u -w -x -z -G -L -N -O -S";
const OF_TWO: &str = "= == != < > -nt -ot -ef -eq -ne -lt -le -gt -ge";

/// Settings that end a script earlier or show more of it.
const STRICTER: &[&str] = &["errexit", "nounset", "pipefail", "verbose", "xtrace"];

/// True where the command may set a variable, or make later commands of its line mean something else. Such a builtin also
/// expands an index among its words once more.
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
        "printf" => !rest.first().is_some_and(|format| {
            format.is_known() && (format.text() == "--" || !format.text().starts_with('-'))
        }),
        "set" => !sets_only_stricter(rest),
        "command" => !queries(rest),
        name => LOOK.may_be(name) && ALTERING.contains(&name),
    }
}

/// True where the command is a builtin that would run a substitution among its words although it is quoted.
pub fn runs_quoted<W: AsWord>(words: &[W]) -> bool {
    let holds = |word: &W| {
        let text = word.text();
        // What stands for a substitution of the line is a command of its own.
        text.contains('`')
            || text
                .match_indices("$(")
                .any(|(at, _)| !text[at..].starts_with("$()"))
    };
    words.iter().any(holds) && evaluates(words)
}

/// Tests that are known, of words that are one each. `-v` and `-R` expand an index once more.
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
        [test, _] => lists(OF_ONE, test),
        [_, test, _] => lists(OF_TWO, test),
        [] | [_] => true,
        words => words
            .iter()
            .all(|w| w.is_known() && !matches!(w.text(), "-v" | "-R")),
    };
    known
        && !words
            .iter()
            .any(|word| word.expansions().intersects(Expansions::SPLIT))
}

/// Is it such a builtin, and one that evaluates its words? `exec` runs them as they are.
pub(crate) fn evaluates<W: AsWord>(words: &[W]) -> bool {
    let name = inner_command(words).words.first();
    name.is_some_and(|name| name.text() != "exec") && alters_shell(words)
}

/// Does such a builtin get a word that is not known, and may name a variable with an index?
pub(crate) fn evaluates_unknown<W: AsWord>(words: &[W]) -> bool {
    let names = |word: &W| {
        let (name, _) = word.text().split_once('=').unwrap_or_default();
        let named =
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        !word.is_known() && (!named || word.expansions().intersects(Expansions::SPLIT))
    };
    words.iter().any(names) && evaluates(words)
}

/// `set -e`, `set -euo pipefail`: what ends a script earlier or shows more of it.
fn sets_only_stricter<W: AsWord>(words: &[W]) -> bool {
    let mut named = false;
    words.iter().all(|word| {
        let text = word.text();
        if std::mem::take(&mut named) {
            return word.is_known() && STRICTER.contains(&text);
        }
        named = text.ends_with('o');
        let letters = text.strip_prefix(['-', '+']).unwrap_or_default();
        word.is_known() && !letters.is_empty() && letters.chars().all(|c| "euvxo".contains(c))
    })
}

/// `command -v NAME`: only says what a name stands for.
pub(crate) fn queries<W: AsWord>(words: &[W]) -> bool {
    words.first().is_some_and(|word| {
        let text = word.text();
        let letters = text.strip_prefix('-').unwrap_or_default();
        word.is_known()
            && letters.contains(['v', 'V'])
            && letters.chars().all(|c| "pvV".contains(c))
    })
}
