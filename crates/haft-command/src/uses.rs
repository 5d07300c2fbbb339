//! What a command does to files, as far as its words show: for judging without a jail, where all of it must be known.
//!
//! A command is understood if its program and all of its options are in these lists; then its uses describe everything it
//! does. A command that is not understood is searched for words that may name a place, and needs a rule or an approval.

use haft_shell::{AsWord, Layer, inner_command};

use crate::find;
use crate::git;
use crate::spelled::{ShellWord, WordForm};

mod changes;
mod listers;
mod plain;
mod printers;
mod readers;
mod scan;
mod scripts;
mod tables;

/// What a command does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathAccess {
    /// Shows whether it exists, what kind it is, or what a folder lists.
    Names,
    /// Shows names and kinds of everything below a folder, also where links lead.
    NamesBelow,
    /// Reads a file.
    Reads,
    /// Reads a file of a repository, now or in an earlier commit.
    ReadsHistory,
    /// Reads a file, or all files below a folder.
    ReadsBelow {
        /// Whether it also follows links in the folder.
        follows: bool,
    },
    /// Reads files that the repository tracks, whichever of them changed.
    ReadsTracked,
    /// Creates or changes a file; creates a folder.
    Writes,
    /// Removes a file or an empty folder.
    Removes,
    /// Moves a file, or a folder with everything in it, to another path.
    Moves,
    /// Puts it at another path as it is: a link in it may lead elsewhere from there, or lead to what the line uses by the new path.
    Carries,
    /// Changes to this folder: later relative paths of the line start there.
    Goes,
    /// May do anything with it: the program is not understood.
    MayUse,
    /// Connects to it: the path is a URL.
    Connects,
}

/// How much of a path is known before the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathCertainty {
    /// All of it: relative or absolute.
    Whole,
    /// A glob pattern (`*`, `?`, `[…]`).
    Pattern,
    /// The part after `~`, which is the user's home folder.
    Home,
    /// Nothing: the text is as written.
    Nothing,
}

/// One path that a command uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathUse {
    /// The path as written, unquoted.
    pub path: String,
    /// What the command does with it.
    pub how: PathAccess,
    /// How much of it is known.
    pub known: PathCertainty,
    /// The name of the file put into it, if the path may be a folder.
    pub puts: Option<String>,
}

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

impl PathUse {
    /// Creates the use of a word that is a path.
    pub fn new(word: &ShellWord, how: PathAccess) -> Self {
        let known = match word.form {
            // Some shells expand `=ls` to the path of that program, and walk all folders for `**`.
            WordForm::Known if word.text.starts_with('=') => PathCertainty::Nothing,
            WordForm::Pattern if word.text.contains("**") => PathCertainty::Nothing,
            WordForm::Known => PathCertainty::Whole,
            WordForm::Pattern => PathCertainty::Pattern,
            WordForm::Home => PathCertainty::Home,
            WordForm::Printed { .. } | WordForm::Pipe | WordForm::Unknown => PathCertainty::Nothing,
        };
        Self {
            path: word.text.clone(),
            how,
            known,
            puts: None,
        }
    }

    /// Creates the use of a word that is a file's name and nothing else. With `EXTENDED_GLOB`, zsh reads `^`, `#` and `~` as patterns.
    fn file(word: &ShellWord, how: PathAccess) -> Self {
        let behind = word.text.strip_prefix('~').unwrap_or(&word.text);
        if behind.contains(['^', '#', '~']) {
            return Self::unknown(&word.text, how);
        }
        Self::new(word, how)
    }

    fn known(path: &str, how: PathAccess) -> Self {
        Self::new(&ShellWord::known(path), how)
    }

    /// Creates a use of a path that is known as written; one that starts with `~` lies in the home folder.
    pub fn of_path(path: &str, how: PathAccess) -> Self {
        let known = if path.starts_with('~') {
            PathCertainty::Home
        } else {
            PathCertainty::Whole
        };
        Self {
            path: path.to_owned(),
            how,
            known,
            puts: None,
        }
    }

    /// Creates a use of a path that only the shell knows.
    pub fn unknown(path: &str, how: PathAccess) -> Self {
        Self {
            known: PathCertainty::Nothing,
            ..Self::of_path(path, how)
        }
    }
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
        Self::of(words.map(|word| PathUse::file(word, how)).collect())
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
