//! `ShellState`: what an agent's next command finds as an earlier one left it: variables and functions, with their bounds.
//!
//! It is what a command in the jail wrote, so it is never put in force by itself: it becomes part of the next call (its argument `env`, and
//! text in front of its line), and that call is judged as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) mod given;
pub(crate) mod report;
pub(crate) mod stored;

/// Maximum size of all variables of a session, in bytes.
pub(super) const MAX_VARIABLES: usize = 32 << 10;
/// Maximum size of all functions of a session, in bytes.
pub(super) const MAX_FUNCTIONS: usize = 32 << 10;

/// What the shell of a session holds besides its folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ShellState {
    /// Variables that programs see.
    pub(super) exported: BTreeMap<String, String>,
    /// Variables of the shell alone.
    pub(super) plain: BTreeMap<String, String>,
    /// Functions by name, as bash prints them.
    pub(super) functions: BTreeMap<String, String>,
}

impl ShellState {
    /// Whether it holds nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.exported.is_empty() && self.plain.is_empty() && self.functions.is_empty()
    }

    /// Removes what is beyond the bounds, the longest first. Returns the names of what it removed.
    pub(super) fn bound(&mut self) -> Vec<String> {
        let mut removed = Vec::new();
        while size(&self.exported) + size(&self.plain) > MAX_VARIABLES {
            let all = if longest(&self.exported) >= longest(&self.plain) {
                &mut self.exported
            } else {
                &mut self.plain
            };
            removed.extend(remove_longest(all).map(|name| format!("${name}")));
        }
        while size(&self.functions) > MAX_FUNCTIONS {
            removed.extend(remove_longest(&mut self.functions).map(|name| format!("{name}()")));
        }
        removed
    }
}

fn size(all: &BTreeMap<String, String>) -> usize {
    all.iter().map(|(name, text)| name.len() + text.len()).sum()
}

fn longest(all: &BTreeMap<String, String>) -> usize {
    all.values().map(String::len).max().unwrap_or_default()
}

fn remove_longest(all: &mut BTreeMap<String, String>) -> Option<String> {
    let name = all.iter().max_by_key(|(_, text)| text.len());
    let name = name.map(|(name, _)| name.clone())?;
    all.remove(&name);
    Some(name)
}

/// Whether a text is the name of a variable.
pub(super) fn is_variable(name: &str) -> bool {
    let fits = |c: char| c == '_' || c.is_ascii_alphanumeric();
    name.chars().all(fits) && name.starts_with(|c: char| !c.is_ascii_digit())
}

/// Words that begin or end a compound command, so that no function is called by them (bash(1) "RESERVED WORDS").
const RESERVED: [&str; 17] = [
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while",
];

/// Whether a text is the name of a function that can be defined by writing it in front of `()` without quotes.
pub(super) fn is_function(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.:+".contains(c);
    !name.is_empty()
        && name.chars().all(fits)
        && !name.starts_with(['-', '+'])
        && !RESERVED.contains(&name)
}

#[cfg(test)]
mod tests;
