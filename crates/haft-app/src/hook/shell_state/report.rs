//! `HeldByShell`: what a shell reported of itself (`run_command` writes the report's form), and what of that the session keeps.

use std::collections::{BTreeMap, BTreeSet};

use haft_shell::{join_words, plain_words};

use crate::hook::shell_state::given::GivenState;
use crate::hook::shell_state::{ShellState, is_function, is_variable};

/// Maximum number of names that a notice lists.
const MOST_NAMED: usize = 4;
/// Maximum length of a name that a session keeps, in bytes.
const LONGEST_NAME: usize = 256;
/// Exported variables that every shell sets itself, and all that change what bash runs or how it reads a line (bash(1) "Shell Variables").
const OF_EACH_SHELL: &[&str] = &[
    // What shells run by themselves: no later line would show it.
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "MAILPATH",
    "_",
    "SHLVL",
    "PWD",
    "OLDPWD",
    "IFS",
    "SHELLOPTS",
    "BASHOPTS",
    "BASH_ARGV0",
    "BASH_COMPAT",
    "BASH_LOADABLES_PATH",
    "BASH_XTRACEFD",
    "CDPATH",
    "CHILD_MAX",
    "EXECIGNORE",
    "FIGNORE",
    "FUNCNEST",
    "GLOBIGNORE",
    "GLOBSORT",
    "HISTFILE",
    "IGNOREEOF",
    "POSIXLY_CORRECT",
    "TIMEFORMAT",
    "TMOUT",
    "auto_resume",
    "histchars",
];
/// Variables that bash sets itself, or that change how it splits and prints words.
const OF_BASH: &[&str] = &[
    "COLUMNS",
    "DIRSTACK",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "HOSTNAME",
    "HOSTTYPE",
    "IFS",
    "LINENO",
    "LINES",
    "MACHTYPE",
    "MAILCHECK",
    "OPTARG",
    "OPTERR",
    "OPTIND",
    "OSTYPE",
    "PIPESTATUS",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
    "UID",
];
/// Beginnings of such names.
const BEGINNINGS: [&str; 5] = ["BASH", "COMP_", "EPOCH", "HIST", "_haft"];

type Texts = BTreeMap<String, String>;

/// What a shell holds at one moment.
#[derive(Debug, Default)]
struct HeldByShell {
    exported: Texts,
    plain: Texts,
    options: [String; 2],
    /// Variables that are arrays.
    arrays: BTreeSet<String>,
    /// Variables that are read-only, integers, or change the case of what they are set to.
    attributed: BTreeSet<String>,
    /// Variables whose values are not text.
    unreadable: BTreeSet<String>,
}

/// What a shell reported of itself.
#[derive(Debug)]
pub(crate) struct ParsedReport {
    before: HeldByShell,
    after: HeldByShell,
    functions: Texts,
    unreadable: Vec<String>,
    aliases: String,
    traps: String,
    jobs: String,
}

/// The state after a line, and what of it is not kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StateChange {
    pub(crate) state: ShellState,
    /// What the next line does not find, for the agent to read.
    pub(crate) lost: Vec<String>,
}

impl ParsedReport {
    /// Whether a shell wrote what it held after its line, and not only before: else the line ended its shell itself.
    pub(crate) fn is_begun(bytes: &[u8]) -> bool {
        bytes.split(|byte| *byte == 0).any(|part| part == b"after")
    }

    /// Reads a report. `None` if it is not whole.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.split(|byte| *byte == 0);
        if parts.next()? != b"before" {
            return None;
        }
        let before = HeldByShell::parse(&mut parts, b"after")?;
        let after = HeldByShell::parse(&mut parts, b"functions")?;
        let (mut functions, mut unreadable) = (Texts::new(), Vec::new());
        loop {
            let part = parts.next()?;
            if part == b"aliases" {
                break;
            }
            match std::str::from_utf8(part).ok().and_then(function) {
                Some((name, text)) => drop(functions.insert(name, text)),
                None => unreadable.push("a function".to_owned()),
            }
        }
        let mut text = |end: &[u8]| {
            let text = String::from_utf8_lossy(parts.next()?).into_owned();
            (parts.next()? == end).then_some(text)
        };
        Some(Self {
            before,
            after,
            functions,
            unreadable,
            aliases: text(b"traps")?,
            traps: text(b"jobs")?,
            jobs: text(b"end")?,
        })
    }

    /// Returns the session's state after a line that found `given` of `state`.
    pub(crate) fn change(self, mut state: ShellState, given: &GivenState) -> StateChange {
        let Self { before, after, .. } = &self;
        let mut lost = Vec::new();
        let names = |one: &Texts, two: &Texts| -> BTreeSet<String> {
            one.keys().chain(two.keys()).cloned().collect()
        };
        for name in names(&before.exported, &after.exported) {
            match after.exported.get(&name) {
                Some(now) if before.exported.get(&name) == Some(now) => {}
                Some(now) => {
                    state.plain.remove(&name);
                    state.exported.insert(name, now.clone());
                }
                None if state.exported.remove(&name).is_some() => {}
                None => lost.push(format!("that ${name} is unset")),
            }
        }
        let mut plain = names(&before.plain, &after.plain);
        plain.extend(given.plain.iter().cloned());
        for name in plain {
            match after.plain.get(&name) {
                Some(now) if before.plain.get(&name) == Some(now) => {}
                Some(now) => drop(state.plain.insert(name, now.clone())),
                None => drop(state.plain.remove(&name)),
            }
        }
        for name in &given.functions {
            if !self.functions.contains_key(name) {
                state.functions.remove(name);
            }
        }
        let arrays = self.after.arrays.difference(&self.before.arrays);
        lost.extend(arrays.map(|name| format!("the array {name}")));
        let new = self.after.attributed.difference(&self.before.attributed);
        lost.extend(new.map(|name| format!("the attributes of ${name}")));
        let new = self.after.unreadable.difference(&self.before.unreadable);
        lost.extend(new.map(|name| format!("${name}, which is not text")));
        lost.extend(self.unreadable.iter().cloned());
        let (aliases, other) = alias_functions(&self.aliases);
        lost.extend(other);
        state.functions.extend(self.functions);
        state.functions.extend(aliases);
        let over = state.bound();
        lost.extend(
            over.into_iter()
                .map(|name| format!("{name}, which is too long")),
        );
        if self.before.options != self.after.options {
            lost.push("options of the shell".to_owned());
        }
        if !self.traps.is_empty() {
            lost.push("traps".to_owned());
        }
        if !self.jobs.is_empty() {
            lost.push("what it left in the background".to_owned());
        }
        StateChange { state, lost }
    }
}

impl StateChange {
    /// Returns the line that says what is not kept.
    pub(crate) fn notice(&self) -> Option<String> {
        let more = self.lost.len().saturating_sub(MOST_NAMED);
        let mut named = self
            .lost
            .iter()
            .take(MOST_NAMED)
            .cloned()
            .collect::<Vec<_>>();
        if more > 0 {
            named.push(format!("and {more} more"));
        }
        (!named.is_empty()).then(|| format!("not kept for the next command: {}", named.join(", ")))
    }
}

impl HeldByShell {
    /// Reads variables and options, up to the word `end`.
    fn parse<'a>(parts: &mut impl Iterator<Item = &'a [u8]>, end: &[u8]) -> Option<Self> {
        let mut held = Self::default();
        let mut is_exported = true;
        loop {
            let part = parts.next()?;
            let Some(at) = part.iter().position(|byte| *byte == b'=') else {
                match part {
                    b"plain" => is_exported = false,
                    b"options" => break,
                    _ => return None,
                }
                continue;
            };
            let name = std::str::from_utf8(&part[..at]).ok();
            if let Some(array) = name.and_then(|name| name.strip_suffix("[]"))
                && is_kept(array, false)
            {
                held.arrays.insert(array.to_owned());
            }
            if let Some(other) = name.and_then(|name| name.strip_suffix('@'))
                && is_kept(other, false)
            {
                held.attributed.insert(other.to_owned());
            }
            let Some(name) = name.filter(|name| is_kept(name, is_exported)) else {
                continue;
            };
            let Ok(value) = std::str::from_utf8(&part[at + 1..]) else {
                held.unreadable.insert(name.to_owned());
                continue;
            };
            let all = if is_exported {
                &mut held.exported
            } else {
                &mut held.plain
            };
            all.insert(name.to_owned(), value.to_owned());
        }
        let mut option = || Some(String::from_utf8_lossy(parts.next()?).into_owned());
        held.options = [option()?, option()?];
        (parts.next()? == end).then_some(held)
    }
}

/// Whether the session keeps a variable of this name.
fn is_kept(name: &str, is_exported: bool) -> bool {
    let of_bash = || {
        OF_BASH.contains(&name)
            || BEGINNINGS
                .iter()
                .any(|beginning| name.starts_with(beginning))
    };
    is_variable(name)
        && name.len() <= LONGEST_NAME
        && !OF_EACH_SHELL.contains(&name)
        && (is_exported || !of_bash())
}

/// Returns the name and the text of a function, as `declare -f` prints one.
fn function(printed: &str) -> Option<(String, String)> {
    let text = printed.trim_end();
    let (name, rest) = text.split_once(" () ")?;
    let is_one = rest.starts_with("\n{ \n") && rest.ends_with("\n}");
    let is_named = is_function(name) && name.len() <= LONGEST_NAME;
    (is_one && is_named).then(|| (name.to_owned(), text.to_owned()))
}

/// Returns aliases, as `alias -p` prints them, as functions of the same meaning: what a function runs can be judged. Also returns which
/// ones are none, because they hold more than a command and its first words.
fn alias_functions(printed: &str) -> (Texts, Vec<String>) {
    let (mut functions, mut other) = (Texts::new(), Vec::new());
    for line in printed.lines() {
        let definition = line.strip_prefix("alias ");
        let alias = definition.and_then(|text| text.split_once('='));
        let body = alias.and_then(|(name, quoted)| {
            let text = plain_words(quoted).filter(|words| words.len() == 1)?;
            let words = plain_words(&text[0]).filter(|words| !words.is_empty())?;
            let command = if words[0] == name { "command " } else { "" };
            Some(format!("{command}{}", join_words(&words)))
        });
        match (alias, body) {
            (Some((name, _)), Some(body)) if is_function(name) => {
                let text = format!("{name} () \n{{ \n    {body} \"$@\"\n}}");
                functions.insert(name.to_owned(), text);
            }
            (Some((name, _)), _) => other.push(format!("the alias {name}")),
            (None, _) => {}
        }
    }
    (functions, other)
}
