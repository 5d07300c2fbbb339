//! `PathUse`: one path that a command uses, and what it does with it.

use crate::word::{CommandWord, ShellWord, WordForm};

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
    /// Changes a file in place, by a text that says how.
    Edits,
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

impl PathUse {
    /// Creates the use of a word of a line that is a path.
    pub fn new(word: &ShellWord, how: PathAccess) -> Self {
        Self::of(word.as_word(), how)
    }

    /// Creates the use of a word that is a path.
    pub(crate) fn of(word: CommandWord<'_>, how: PathAccess) -> Self {
        let known = match word.form {
            // Some shells expand `=ls` to the path of that program, and walk all folders for `**`.
            WordForm::Known if word.text.starts_with('=') => PathCertainty::Nothing,
            WordForm::Pattern | WordForm::Here { .. } if word.text.contains("**") => {
                PathCertainty::Nothing
            }
            WordForm::Known | WordForm::Here { splits: false } => PathCertainty::Whole,
            WordForm::Pattern | WordForm::Here { splits: true } => PathCertainty::Pattern,
            WordForm::Home => PathCertainty::Home,
            WordForm::Printed { .. } | WordForm::Pipe | WordForm::Fact | WordForm::Unknown => {
                PathCertainty::Nothing
            }
        };
        Self {
            path: word.text.to_owned(),
            how,
            known,
            puts: None,
        }
    }

    /// Creates the use of a word that is a file's name and nothing else. With `EXTENDED_GLOB`, zsh reads `^`, `#` and `~` as patterns.
    pub(crate) fn file(word: CommandWord<'_>, how: PathAccess) -> Self {
        let behind = word.text.strip_prefix('~').unwrap_or(word.text);
        if behind.contains(['^', '#', '~']) {
            return Self::unknown(word.text, how);
        }
        Self::of(word, how)
    }

    /// Creates the use of a path that is known, or a part of a word that is.
    pub(crate) fn known(path: &str, how: PathAccess) -> Self {
        Self::of(CommandWord::known(path), how)
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
