//! What a command does, as far as its words tell: how harmful it is, and which files it reads or edits.

use serde_json::Value;

use super::paths::clean;
use super::shell::Open;
use super::words::plain_words;
use super::wrapper::{FIND_ACTIONS, base_name, layers, unwrapped};
use crate::arguments::Arguments;
use crate::spec::Risk;

/// Programs that only read and print, whatever their options: clause 4 of the shell rules.
const READERS: &[&str] = &[
    "ls", "cat", "echo", "pwd", "head", "tail", "grep", "wc", "which", "stat", "du",
];

/// Commands of git that only read, without the options below.
const GIT_READERS: &[&str] = &["status", "log", "diff", "show"];

/// Beginnings of options that make a reading command of git write a file or run a program; git takes abbreviations.
const GIT_WRITES: &[&str] = &["--o", "--ex", "--te"];

/// Builtins of a shell that no program of that name stands for.
const SHELL_ONLY: &[&str] = &[
    ".",
    ":",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "continue",
    "declare",
    "dirs",
    "disown",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "noglob",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "times",
    "trap",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

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
    risk(argv, &[])
}

/// The same of words some of which are only known at run time; `open` says which, and is empty where all are known.
pub(crate) fn risk(words: &[String], open: &[Open]) -> Risk {
    if removes_critical(words, open, &Places::default()) {
        return Risk::Critical;
    }
    let inner = unwrapped(words);
    let (before, behind) = open.split_at(open.len().saturating_sub(inner.len()));
    let name_known = behind.first().is_none_or(|open| open.is_nothing());
    let through = before.iter().all(|open| open.is_nothing());
    if name_known && through && reads_only(inner, behind.iter().all(|open| open.is_nothing())) {
        return Risk::Safe;
    }
    Risk::High
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

/// The words to start a program with where a line needs no shell: plain words, the first of which is no builtin of a shell.
pub fn direct_argv(line: &str) -> Option<Vec<String>> {
    plain_words(line).filter(|words| !SHELL_ONLY.contains(&words[0].as_str()))
}

/// Is it of the read-only set? Where a word is not `known`, only if no option of the program does harm.
fn reads_only(words: &[String], known: bool) -> bool {
    let Some((name, rest)) = words.split_first() else {
        return false;
    };
    let none = |bad: &dyn Fn(&str) -> bool| known && !rest.iter().any(|w| bad(w));
    match name.as_str() {
        "find" => none(&|w| FIND_ACTIONS.contains(&w)),
        // Paginating runs `pr`.
        "diff" => none(&|w| w.starts_with("--p") || (is_short(w) && w.contains('l'))),
        "cd" => rest.len() == 1 && none(&|w| w.starts_with(['-', '/', '~']) || leaves(w)),
        "git" => {
            let rest = rest
                .strip_prefix(&["--no-pager".to_owned()])
                .unwrap_or(rest);
            rest.first()
                .is_some_and(|w| GIT_READERS.contains(&w.as_str()))
                && none(&|w| GIT_WRITES.iter().any(|option| w.starts_with(option)))
        }
        name => READERS.contains(&name),
    }
}

fn is_short(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--")
}

fn leaves(path: &str) -> bool {
    clean(path).starts_with("..")
}

/// `rm` or `rmdir` of a critical path, also within wrappers: clause 15. `open` as for `risk`.
pub(crate) fn removes_critical(argv: &[String], open: &[Open], places: &Places) -> bool {
    layers(argv).into_iter().any(|words| {
        let Some((name, rest)) = words.split_first() else {
            return false;
        };
        let from = argv.len() - rest.len();
        matches!(base_name(name), "rm" | "rmdir")
            && operands(rest).any(|at| match open.get(from + at) {
                Some(open) if !open.is_nothing() => could_be_critical(&rest[at], *open, places),
                _ => is_critical(&rest[at], places),
            })
    })
}

/// Where the words are that are no options; all of them after `--`.
fn operands(words: &[String]) -> impl Iterator<Item = usize> {
    let end = words.iter().position(|w| w == "--").unwrap_or(words.len());
    let before = (0..end).filter(|at| !words[*at].starts_with('-') || words[*at].len() == 1);
    before.chain(end + 1..words.len())
}

/// The same of a word that the shell expands: as if its variables were empty, and its patterns met everything.
fn could_be_critical(word: &str, open: Open, places: &Places) -> bool {
    if open.has(Open::PRINTED | Open::TILDE | Open::ARRAY) {
        return true;
    }
    if open.has(Open::BRACE) && word.contains(['/', '~', '.']) {
        return true;
    }
    let mut path = without_variables(word, places);
    if path.is_empty() {
        return false;
    }
    while let Some((folder, name)) = path.rsplit_once('/')
        && !folder.is_empty()
        && is_any_name(name)
    {
        path = folder.to_owned();
    }
    is_any_name(&path) || is_critical(&path, places)
}

/// A pattern that every name fits, or every hidden one.
fn is_any_name(name: &str) -> bool {
    name.contains('*') && name.chars().all(|c| "*?.[]!".contains(c))
}

/// The text with every variable empty, but those that name a critical path.
fn without_variables(word: &str, places: &Places) -> String {
    let mut text = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        let braced = after
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'));
        let (name, behind) = braced.unwrap_or_else(|| {
            let word = |c: char| c != '_' && !c.is_ascii_alphanumeric();
            let end = after.find(word).unwrap_or(after.len());
            // `$@` and its like are one sign.
            after.split_at(end.max(after.chars().next().map_or(0, char::len_utf8)))
        });
        match name {
            "HOME" => text.push_str(places.home.as_deref().unwrap_or("/home/user")),
            "PWD" | "OLDPWD" => text.push('.'),
            _ => {}
        }
        rest = behind;
    }
    text + rest
}

/// The root, its direct children, a home, the working directory and its parents, and what a shell would make of `~` or `*`.
fn is_critical(target: &str, places: &Places) -> bool {
    if target.is_empty() || target.starts_with('~') || matches!(target, "*" | "./*") {
        return !target.is_empty();
    }
    let path = clean(target);
    if !path.starts_with('/') {
        return path == "." || path.split('/').all(|part| part == "..");
    }
    let parts = path.split('/').filter(|part| !part.is_empty()).count();
    let below = |folder: &Option<String>| {
        folder.as_ref().is_some_and(|folder| {
            folder
                .strip_prefix(path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    let somebodys_home = parts == 2 && (path.starts_with("/home/") || path.starts_with("/Users/"));
    parts < 2 || somebodys_home || below(&places.workspace) || below(&places.home)
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

/// Is it one of the programs that print what a file holds?
pub(crate) fn prints(name: &str) -> bool {
    PRINTERS.contains(&base_name(name))
}

/// The files that a printing command names; `sed -i` edits them.
pub(crate) fn touched(words: &[String]) -> Touched {
    let mut found = Touched::default();
    let Some((name, rest)) = words.split_first() else {
        return found;
    };
    let name = base_name(name);
    if !PRINTERS.contains(&name) {
        return found;
    }
    let mut files: Vec<&str> = operands(rest).map(|at| rest[at].as_str()).collect();
    if matches!(name, "sed" | "grep") {
        // The script or pattern comes first unless an option gives it.
        let given = |w: &String| {
            (is_short(w) && w.contains(['e', 'f']))
                || ["--e", "--f", "--reg"]
                    .iter()
                    .any(|option| w.starts_with(option))
        };
        if !rest.iter().any(given) && !files.is_empty() {
            files.remove(0);
        }
    }
    let in_place = |w: &String| (is_short(w) && w.contains('i')) || w.starts_with("--i");
    if name == "sed" && rest.iter().any(in_place) {
        found.edits = files.iter().map(|&file| clean(file)).collect();
    }
    let values = rest.iter().filter(|w| w.starts_with("--"));
    files.extend(values.filter_map(|w| Some(w.split_once('=')?.1)));
    found.reads = files.into_iter().map(clean).collect();
    found
}
