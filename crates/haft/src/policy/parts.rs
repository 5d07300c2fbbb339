//! `CommandLine`: what a tool that runs command lines states as its effects, part by part.

use super::command::{harmless, risk};
use super::paths::clean;
use super::shell::{self, Line, Open, Simple, Word, take_apart};
use super::words::plain_words;
use super::wrapper::unwrapped;
use crate::permission::{Effect, Permission};
use crate::spec::Risk;

/// A command line taken apart. One that cannot be read is one part, the line itself, which is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Every simple command, also those within substitutions; what occurs twice is there once.
    pub parts: Vec<CommandPart>,
    /// Files that redirections open for writing, without `/dev/null`.
    pub writes: Vec<Target>,
    /// Files that redirections open for reading, without `/dev/null`.
    pub reads: Vec<Target>,
}

/// One simple command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPart {
    /// As it is written, without redirections; `$()` stands for a substitution, whose commands are parts of their own.
    pub command: String,
    /// Its words, where all of them are known before it runs.
    pub argv: Option<Vec<String>>,
    /// How harmful it is.
    pub risk: Risk,
}

/// The target of a redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The path as it is written, with quotes undone.
    pub path: String,
    /// False where the shell makes the path: no `~`, no variable, no pattern.
    pub known: bool,
}

impl CommandLine {
    /// Takes a line apart. Quick for every text: what is too long, too deep or no command line is not read further.
    pub fn new(line: &str) -> Self {
        let plain = plain_words(line).filter(|words| !shell::reads_twice(words));
        if let Some(argv) = plain {
            let part = CommandPart {
                command: line.to_owned(),
                risk: risk(&argv, &[]),
                argv: Some(argv),
            };
            return Self::of(vec![part], Line::default());
        }
        let whole = || CommandPart {
            command: line.to_owned(),
            argv: None,
            risk: Risk::High,
        };
        let Ok(mut read) = take_apart(line) else {
            return Self::of(vec![whole()], Line::default());
        };
        let parts = std::mem::take(&mut read.parts);
        let goes_elsewhere = parts.iter().any(changes_folder);
        let parts: Vec<CommandPart> = parts
            .iter()
            .map(|part| stated(part, goes_elsewhere))
            .collect();
        if parts.is_empty() && read.writes.is_empty() {
            return Self::of(vec![whole()], read);
        }
        Self::of(parts, read)
    }

    fn of(parts: Vec<CommandPart>, line: Line) -> Self {
        let targets = |words: Vec<Word>| {
            let known = |word: Word| Target {
                known: word.open.is_nothing() && !word.text.starts_with('~'),
                path: word.text,
            };
            let free = |target: &Target| target.known && clean(&target.path) == "/dev/null";
            words
                .into_iter()
                .map(known)
                .filter(|target| !free(target))
                .collect()
        };
        Self {
            parts,
            writes: targets(line.writes),
            reads: targets(line.reads),
        }
    }

    /// The highest risk of its parts; one that writes a file is at least high.
    pub fn risk(&self) -> Risk {
        let parts = self.parts.iter().map(|part| part.risk);
        let writes = (!self.writes.is_empty()).then_some(Risk::High);
        parts.chain(writes).max().unwrap_or(Risk::High)
    }

    /// Does no part change the folder that relative paths start at?
    pub fn stays_in_its_folder(&self) -> bool {
        let moves = |part: &CommandPart| match &part.argv {
            Some(words) => folder_of(words).is_some(),
            None => names_mover(&part.command),
        };
        !self.parts.iter().any(moves)
    }

    /// The permissions to run its parts.
    pub fn runs(self, jailed: bool) -> impl Iterator<Item = Permission> {
        self.parts.into_iter().map(move |part| Permission {
            effect: Effect::Run {
                command: part.command,
                argv: part.argv,
                jailed,
            },
            risk: part.risk,
        })
    }
}

/// How harmful a command line is: as the most harmful of its parts.
pub fn line_risk(line: &str) -> Risk {
    CommandLine::new(line).risk()
}

fn stated(part: &Simple, goes_elsewhere: bool) -> CommandPart {
    let texts: Vec<String> = part.words.iter().map(|word| word.text.clone()).collect();
    let open: Vec<Open> = part.words.iter().map(|word| word.open).collect();
    // The settings of another folder can make git run anything.
    let elsewhere = goes_elsewhere && unwrapped(&texts).first().is_some_and(|name| name == "git");
    let risk = match risk(&texts, &open) {
        _ if texts.is_empty() && harmless(&part.assigned) => Risk::Safe,
        Risk::Safe if elsewhere || !harmless(&part.assigned) => Risk::High,
        risk => risk,
    };
    let argv = part.argv();
    CommandPart {
        command: match &argv {
            Some(words) => super::join_words(words),
            None => part.shown.clone(),
        },
        argv,
        risk,
    }
}

/// A command after which relative paths mean others.
fn changes_folder(part: &Simple) -> bool {
    let texts: Vec<String> = part.words.iter().map(|word| word.text.clone()).collect();
    folder_of(&texts).is_some()
}

/// Where a command goes that changes the folder, if it is one and the folder is another; empty where that cannot be told.
pub(crate) fn folder_of(words: &[String]) -> Option<&str> {
    let (name, rest) = unwrapped(words).split_first()?;
    match (name.as_str(), rest) {
        ("cd", [folder]) if clean(folder) == "." && !folder.is_empty() => None,
        ("cd", [folder]) if !folder.starts_with(['-', '~', '$']) => Some(folder),
        ("cd" | "pushd" | "popd", _) => Some(""),
        _ => None,
    }
}

/// Does a command, part of which is only known at run time, change the folder?
pub(crate) fn names_mover(command: &str) -> bool {
    let mut words = command.split([' ', '\t']);
    words.any(|word| matches!(word, "cd" | "pushd" | "popd"))
}
