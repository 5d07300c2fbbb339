//! `GivenState`: the part of a session's shell state that one line gets, as part of the call that is judged.

use std::collections::{BTreeMap, BTreeSet};

use haft_shell::join_words;

use crate::hook::shell_state::ShellState;

/// Commands that run or print what their words alone do not show.
const RUN_MORE: [&str; 7] = [
    "source", ".", "eval", "declare", "typeset", "compgen", "type",
];

/// What one line gets of its session's state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GivenState {
    /// The variables that programs see.
    pub(crate) env: BTreeMap<String, String>,
    /// The names of the shell's own variables that the line gets.
    pub(super) plain: Vec<String>,
    /// The names of the functions that the line gets.
    pub(super) functions: Vec<String>,
    /// The text in front of the line.
    before: String,
}

impl GivenState {
    /// Returns what a line gets. A variable of the shell or a function that it does not name would only make it longer: what it does not get
    /// does not exist for it, so what is judged is what runs.
    pub(crate) fn of(state: &ShellState, line: &str) -> Self {
        let runs_more = words(line).any(|word| RUN_MORE.contains(&word));
        let mut named: BTreeSet<&str> = words(line).collect();
        let mut functions: BTreeSet<&str> = BTreeSet::new();
        let mut unread: Vec<&str> = Vec::new();
        // The functions that a function names, too.
        loop {
            for (name, text) in &state.functions {
                if (runs_more || named.contains(&**name)) && functions.insert(name) {
                    unread.push(text);
                }
            }
            let Some(text) = unread.pop() else { break };
            named.extend(words(text));
        }
        let plain = state.plain.keys();
        let plain = plain.filter(|name| runs_more || named.contains(&***name));
        let plain: Vec<String> = plain.cloned().collect();
        let mut before = String::new();
        for name in &plain {
            let value = join_words(&[&*state.plain[name]]);
            before.extend([name, "=", &value, "\n"]);
        }
        for name in &functions {
            before.extend([&*state.functions[*name], "\n"]);
        }
        Self {
            env: state.exported.clone(),
            functions: functions.into_iter().map(str::to_owned).collect(),
            plain,
            before,
        }
    }

    /// Returns the text that the shell gets for a line.
    pub(crate) fn line(&self, line: &str) -> String {
        format!("{}{line}", self.before)
    }
}

/// Returns the longest texts of a line that could be names, also those within others.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let within = |c: char| c.is_ascii_alphanumeric() || "_-.:+".contains(c);
    let whole = line
        .split(move |c| !within(c))
        .filter(|word| !word.is_empty());
    // `$a-$b`, `${a:-b}`, `a+=b`
    whole.flat_map(|word| {
        let parts = word.split(|c: char| !(c == '_' || c.is_ascii_alphanumeric()));
        std::iter::once(word).chain(parts.filter(move |part| *part != word && !part.is_empty()))
    })
}
