//! What a command does to files, as far as its words show: for judging without a jail, where all of it must be known.
//!
//! A command is understood if its program and all of its options are in these lists; then its uses describe everything it
//! does. A command that is not understood is searched for words that may name a place, and needs a rule or an approval.

use haft_shell::{AsWord, Layer, inner_command};

use crate::old::find;
use crate::old::git;
use crate::path_use::{PathAccess, PathUse};
use crate::word::{ShellWord, WordForm};

mod changes;
mod listers;
mod plain;
mod printers;
mod readers;
mod scan;
mod scripts;
mod tables;

/// What one command of a line does with files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own that a command has or has not"
)]
pub struct CommandUses {
    /// The paths, and words that may be paths.
    pub paths: Vec<PathUse>,
    /// Whether it does nothing else: its program and all of its options are known.
    pub understood: bool,
    /// Whether it is git, which obeys the repository's settings.
    pub git: bool,
    /// Whether it prints the shell's expansion of another command's output, which may be file names.
    pub globs_output: bool,
    /// Whether it prints only its own words, or facts about the system.
    pub prints_words: bool,
}

impl CommandUses {
    fn of(paths: Vec<PathUse>) -> Self {
        Self {
            paths,
            understood: true,
            ..Self::default()
        }
    }

    fn each<'w>(words: impl IntoIterator<Item = &'w ShellWord>, how: PathAccess) -> Self {
        // The command behind a process substitution is a part of its own.
        let words = words.into_iter().filter(|word| word.form != WordForm::Pipe);
        Self::of(
            words
                .map(|word| PathUse::file(word.as_word(), how))
                .collect(),
        )
    }
}

/// Returns what a command with these words does with files.
pub fn uses(words: &[ShellWord]) -> CommandUses {
    let layer = inner_command(words);
    let layer = match layer.words {
        // `env ls`: a program with an unchanged environment.
        [env, name, ..]
            if !layer.fed && env.text() == "env" && env.is_known() && is_plain_name(name) =>
        {
            inner_command(&layer.words[1..])
        }
        _ => layer,
    };
    understood(layer).unwrap_or_else(|| {
        let mut paths = scan::places(words);
        paths.extend(changes::carried(layer.words));
        CommandUses {
            paths,
            ..CommandUses::default()
        }
    })
}

/// Programs that only read files and print, even if a file name is taken for an option.
const ANY_OPTION: &[&str] = &["cat", "echo", "head", "ls", "stat", "tail"];

/// Whether the command with these words creates links.
pub fn creates_links(words: &[ShellWord]) -> bool {
    changes::links(inner_command(words).words)
}

fn is_plain_name(word: &ShellWord) -> bool {
    word.is_known() && !word.text.starts_with('-') && !word.text.contains('=')
}

fn understood(layer: Layer<'_, ShellWord>) -> Option<CommandUses> {
    let (name, rest) = layer.words.split_first()?;
    // A word that may become an option could mean anything.
    let any = ANY_OPTION.contains(&name.text());
    let open =
        |word: &ShellWord| word.form == WordForm::Unknown || !(any || cannot_be_option(word));
    if layer.fed || !layer.knows(name) || rest.iter().any(open) {
        return None;
    }
    if let Some(uses) = printers::of(name.text(), rest) {
        return Some(uses);
    }
    // All others take their words as paths.
    if rest
        .iter()
        .any(|word| matches!(word.form, WordForm::Printed { .. }))
    {
        return None;
    }
    match name.text() {
        "cd" => match rest {
            // zsh reads `+1` as a place in its list of folders.
            [folder] if !folder.text.is_empty() && !folder.text.starts_with(['-', '+']) => {
                Some(CommandUses::each([folder], PathAccess::Goes))
            }
            _ => None,
        },
        "find" => find::only_looks(layer).then(|| find_uses(rest)).flatten(),
        "git" => git::only_reads(layer).then(|| git_uses(rest)),
        name => listers::of(name, rest)
            .or_else(|| readers::of(name, rest))
            .or_else(|| scripts::of(name, rest))
            .or_else(|| changes::of(name, rest)),
    }
}

/// Whether no match of the word can be an option: a pattern must start with a literal.
fn cannot_be_option(word: &ShellWord) -> bool {
    word.form != WordForm::Pattern || !word.text.starts_with(['*', '?', '[', '-'])
}

/// Returns the uses of a read-only `find`: it prints names, and does not follow links.
fn find_uses(words: &[ShellWord]) -> Option<CommandUses> {
    if words
        .iter()
        .any(|word| matches!(word.text(), "-L" | "-follow"))
    {
        return None;
    }
    let mut uses = CommandUses::each(
        words.iter().filter(|word| names_place(word.text())),
        PathAccess::Names,
    );
    if words
        .first()
        .is_none_or(|word| word.text.starts_with(['-', '(', '!']))
    {
        uses.paths.push(PathUse::known(".", PathAccess::Names));
    }
    Some(uses)
}

fn names_place(word: &str) -> bool {
    !word.starts_with(['-', '(', '!', ')']) && word != "{}"
}

fn git_uses(words: &[ShellWord]) -> CommandUses {
    let texts: Vec<&str> = words.iter().map(AsWord::text).collect();
    let shown = git::git_reads(&texts);
    // Skip the git command itself.
    let named = texts.iter().filter(|text| !text.starts_with('-')).skip(1);
    let how = if shown.contents {
        PathAccess::ReadsHistory
    } else {
        PathAccess::Names
    };
    // `COMMIT:PATH` names a path from the repository's root; a commit may also have the name of a file.
    let mut paths: Vec<PathUse> = named
        .flat_map(|text| [Some(*text), text.rsplit_once(':').map(|(_, path)| path)])
        .flatten()
        .filter(|text| !text.is_empty())
        .map(|text| PathUse::known(text, how))
        .collect();
    let values = texts.iter().filter(|text| text.starts_with('-'));
    let values = values.flat_map(|text| scan::option_value(text));
    paths.extend(values.map(|text| PathUse::known(text, PathAccess::Names)));
    // `-L1,5:PATH` shows lines of a file.
    let shows_lines = texts.iter().filter(|text| text.starts_with("-L"));
    let files = shows_lines.filter_map(|text| Some(text.rsplit_once(':')?.1));
    paths.extend(files.map(|text| PathUse::known(text, how)));
    if !shown.below.is_empty() {
        paths.push(PathUse::known(".", PathAccess::ReadsTracked));
    }
    CommandUses {
        git: true,
        ..CommandUses::of(paths)
    }
}
