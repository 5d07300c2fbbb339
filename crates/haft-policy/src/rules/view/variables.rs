//! What the values of variables may run: text that deny and ask rules see although it is no command of its line.
//!
//! bash runs the substitutions in a prompt and the file of `BASH_ENV` by itself, and other programs run what `GIT_EDITOR` and the like hold.

use haft_shell::{
    AsWord, AssignedValue, SimpleCommand, ValueUse, alters_shell, fragments, inner_command,
    join_words, layers, split_assignment, value_use,
};
use serde_json::Value;

use super::{CommandView, MAX_SCRIPT_DEPTH, TouchedFiles, to_pattern};
use crate::commands::folders::RunFolders;
use crate::commands::remembered::parse_line;
use crate::commands::risk::are_harmless;
use haft_files::glob::{Glob, GlobToken};

/// What a shell replaces in a word.
const EXPANDS: [char; 6] = ['$', '`', '*', '?', '{', '['];

/// Builtins that name variables without giving them a value.
const NAMING: &[&str] = &["export", "readonly", "unset"];

/// The value that something gives a variable.
struct SetVariable<'a> {
    name: &'a str,
    value: &'a str,
    /// Whether the value is all that the variable holds then.
    is_known: bool,
}

impl CommandView {
    /// Adds what the variables of a call (its argument `env`) may run.
    pub(crate) fn with_variables(mut self, variables: Option<&Value>) -> Self {
        let folders = RunFolders::at(".".to_owned());
        let all = variables.and_then(Value::as_object);
        for (name, value) in all.into_iter().flatten() {
            let set = SetVariable {
                name,
                value: value.as_str().unwrap_or_default(),
                is_known: value.is_string(),
            };
            self.add_value(&set, &folders, 0);
        }
        self
    }

    /// Adds what the assignments of a command may run.
    pub(super) fn add_assigned(
        &mut self,
        part: &SimpleCommand,
        folders: &RunFolders,
        depth: usize,
    ) {
        for (name, value) in part.assignments.iter().zip(&part.values) {
            let (value, is_known) = match value {
                AssignedValue::Word(word) => (word.text.as_str(), word.is_known()),
                AssignedValue::Fresh | AssignedValue::Unknown => ("", false),
            };
            let set = SetVariable {
                name,
                value,
                is_known,
            };
            self.add_value(&set, folders, depth);
        }
    }

    /// Adds what the variables may run that words of a command set: `env NAME=VALUE …`, `export NAME=VALUE`, `read NAME`.
    pub(super) fn add_set_by_words<W: AsWord>(
        &mut self,
        words: &[W],
        folders: &RunFolders,
        depth: usize,
    ) {
        for word in words {
            if let Some((name, value)) = split_assignment(word.text()) {
                let adds = word.text()[name.len()..].starts_with('+');
                let set = SetVariable {
                    name,
                    value,
                    is_known: word.is_known() && !adds,
                };
                self.add_value(&set, folders, depth);
            }
        }
        let builtin = inner_command(words).words.first().map(AsWord::text);
        if !alters_shell(words) || builtin.is_some_and(|name| NAMING.contains(&name)) {
            return;
        }
        let is_run = |name: &str| !matches!(value_use(name), ValueUse::Read | ValueUse::Private);
        let named = |word: &W| {
            // `declare -n NAME=PS4`
            if let Some((_, value)) = split_assignment(word.text()) {
                return is_run(value);
            }
            // `printf -vPS4`, `read 'PS4[0]'`
            let name = word.text().split('[').next().unwrap_or_default();
            is_run(name) || (name.starts_with('-') && name.get(2..).is_some_and(is_run))
        };
        if words.iter().skip(1).any(named) {
            self.add_anything();
        }
    }

    fn add_value(&mut self, set: &SetVariable<'_>, folders: &RunFolders, depth: usize) {
        let how = value_use(set.name);
        let is_open = !set.is_known && !matches!(how, ValueUse::Read | ValueUse::Private);
        if is_open || depth >= MAX_SCRIPT_DEPTH {
            self.add_anything();
        }
        if depth >= MAX_SCRIPT_DEPTH || set.value.is_empty() {
            return;
        }
        let depth = depth + 1;
        // Arithmetic, indexes and prompts run what stands quoted in a value.
        if set.value.contains("$(") || set.value.contains('`') {
            for command in &fragments(&join_words(&[":", set.value])).commands {
                // `git${IFS}push` is one word here, and two when it runs.
                if command.first().is_some_and(|name| name.contains(EXPANDS)) {
                    self.add_anything();
                }
                self.add_layers(&layers(command), folders, depth);
            }
        }
        match how {
            // A prompt may spell a substitution by the numbers of its characters.
            ValueUse::Prompt if has_numbers(set.value) => self.add_anything(),
            ValueUse::Prompt | ValueUse::Private => {}
            ValueUse::Script => {
                let script = format!(". {}", join_words(&[set.value]));
                self.add_script(&script, folders, depth);
            }
            ValueUse::Function => self.add_script(&format!("f {}", set.value), folders, depth),
            ValueUse::Command => self.add_script(command_in(set.value), folders, depth),
            ValueUse::Read if are_harmless(&[set.name.to_owned()]) => {}
            ValueUse::Read => self.add_possible(set.value, depth),
        }
    }

    /// Adds what a program may run that reads a value: haft does not know whether it does.
    fn add_possible(&mut self, value: &str, depth: usize) {
        let value = command_in(value);
        let read = parse_line(value);
        let found = match &read {
            Ok(_) => Vec::new(),
            Err(_) => fragments(value).commands,
        };
        for words in &found {
            self.add_possible_command(words, depth);
        }
        for part in read.iter().flat_map(|line| &line.commands) {
            self.add_possible_command(&part.words, depth);
        }
    }

    fn add_possible_command<W: AsWord>(&mut self, words: &[W], depth: usize) {
        let all = layers(words);
        let commands = all.commands.iter();
        // A value that is a variable's alone is seldom a command.
        let named = commands.filter(|layer| layer.words.first().is_some_and(AsWord::is_known));
        self.doubtful.extend(named.map(|layer| to_pattern(*layer)));
        if depth >= MAX_SCRIPT_DEPTH {
            return;
        }
        for script in &all.scripts {
            self.add_possible(&script.text, depth + 1);
        }
        // git reads settings from variables: `alias.x=!git push`.
        let texts = words.iter().map(AsWord::text);
        for text in texts.filter(|text| text.contains(' ')) {
            let value = text.split_once('=').map_or(text, |(_, value)| value);
            self.add_possible(value, depth + 1);
        }
    }

    /// Adds a command that may be any.
    fn add_anything(&mut self) {
        self.doubtful.push(Glob::from_pieces([GlobToken::Star]));
        self.touch(&RunFolders::at(".".to_owned()), TouchedFiles::unknown());
    }
}

/// Returns the command in a value: less and git have signs before it that say how it is run.
fn command_in(value: &str) -> &str {
    value.trim_start_matches(['!', '|', '-', '@', ' '])
}

/// Whether a prompt has characters by their numbers: `\044` (bash(1) "PROMPTING").
fn has_numbers(prompt: &str) -> bool {
    let mut characters = prompt.chars();
    while let Some(character) = characters.next() {
        if character == '\\' && characters.next().is_some_and(|next| next.is_ascii_digit()) {
            return true;
        }
    }
    false
}
