//! `Program`: how a file in `programs/` describes programs, and `ProgramCall`: the command that it is asked about.

use haft_shell::AsWord;

use crate::meaning::CommandMeaning;
use crate::word::{CommandWord, WordForm};

/// What a program may do if one of its words turns out to be an option: a file's name, for example, that a pattern matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionHarm {
    /// Nothing but read and print: no option of it writes or runs anything.
    None,
    /// What its meaning does not say.
    Unknown,
    /// Write or run something. A rule covers a pattern among its words only if it names the exact command.
    Acts,
}

/// Programs of one form, and what their commands mean.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) names: &'static [&'static str],
    pub(crate) options: OptionHarm,
    /// Whether its words are data, which it prints: they may be what other commands print.
    pub(crate) prints: bool,
    /// Whether `--version` makes it run nothing that a workspace names.
    pub(crate) is_versioned: bool,
    /// Whether it may remove files or folders.
    pub(crate) removes: bool,
    /// Whether a command needs no rule in a jail: asked of each command that is judged, so it is a question of its own.
    pub(crate) only_reads: fn(&ProgramCall<'_>) -> bool,
    /// Returns what else a command of one of these programs means.
    pub(crate) meaning: fn(&ProgramCall<'_>) -> CommandMeaning,
}

impl Program {
    pub(crate) const fn new(
        names: &'static [&'static str],
        meaning: fn(&ProgramCall<'_>) -> CommandMeaning,
    ) -> Self {
        Self {
            names,
            options: OptionHarm::Unknown,
            prints: false,
            is_versioned: false,
            removes: false,
            only_reads: |_| false,
            meaning,
        }
    }

    pub(crate) const fn with_options(self, options: OptionHarm) -> Self {
        Self { options, ..self }
    }

    pub(crate) const fn printing(self) -> Self {
        Self {
            prints: true,
            ..self
        }
    }

    /// Says which commands need no rule in a jail: clause 4 of the shell rules.
    pub(crate) const fn reading(self, only_reads: fn(&ProgramCall<'_>) -> bool) -> Self {
        Self { only_reads, ..self }
    }

    pub(crate) const fn removing(self) -> Self {
        Self {
            removes: true,
            ..self
        }
    }

    pub(crate) const fn versioned(self) -> Self {
        Self {
            is_versioned: true,
            ..self
        }
    }
}

/// The words of a command, for the file of its program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramCall<'a> {
    /// The name of the program, without its folder.
    pub(crate) name: &'a str,
    /// The words after the name.
    pub(crate) words: &'a [CommandWord<'a>],
    /// Whether a program such as `xargs` adds words.
    pub(crate) fed: bool,
    /// Whether it is certain that it is this program, and that no word can become an option that matters.
    pub(crate) is_certain: bool,
}

impl ProgramCall<'_> {
    /// Whether all of its words are known before it runs.
    pub(crate) fn is_known(&self) -> bool {
        !self.fed && self.words.iter().all(AsWord::is_known)
    }

    /// Whether a word may be anything, or become an option that matters to the program.
    pub(crate) fn is_open(&self, program: &Program) -> bool {
        self.fed
            || self.words.iter().any(|word| match word.form {
                WordForm::Unknown => true,
                WordForm::Fact | WordForm::Printed { .. } => !program.prints,
                // A pattern must start with a literal other than a dash.
                WordForm::Pattern => {
                    program.options != OptionHarm::None
                        && word.text.starts_with(['*', '?', '[', '-'])
                }
                WordForm::Known | WordForm::Home | WordForm::Here { .. } | WordForm::Pipe => false,
            })
    }
}
