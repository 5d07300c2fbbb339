//! `CommandLine`: what a tool that runs command lines states as its effects, part by part.

use std::rc::Rc;

use haft_shell::{
    AsWord, Line, SimpleCommand, Word, alters_shell, inner_command, join_words, plain_words,
    runs_quoted,
};

use super::command::{command_risk, harmless, keeps_nothing, risk};
use super::folders::{folder_of, may_move};
use super::remembered::take_apart;
use super::spelled::Spelled;
use super::uses::{How, Use, Uses, uses};
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
    /// Something in it may run more than once.
    repeats: bool,
    /// Something in it is not waited for.
    background: bool,
    /// Words that loops go over.
    looped: Vec<Spelled>,
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
    /// The program within its wrappers, where that is known.
    program: Option<String>,
    /// Its words, as far as they can be told.
    words: Vec<Spelled>,
    /// Nothing before it or beside it changes what its words mean.
    settled: bool,
}

impl CommandPart {
    /// The program that it runs within `timeout`, `nice` and their like; `None` where only the shell will know.
    pub fn program(&self) -> Option<&str> {
        self.program.as_deref()
    }
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
        if let Some(argv) = plain_words(line).filter(|words| !runs_quoted(words)) {
            return Self::of_argv(line.to_owned(), argv);
        }
        let whole = || CommandPart {
            command: line.to_owned(),
            argv: None,
            risk: Risk::High,
            program: None,
            words: Vec::new(),
            settled: false,
        };
        let Ok(read) = take_apart(line) else {
            return Self::of(vec![whole()], Line::default());
        };
        let mut read = Rc::unwrap_or_clone(read);
        let parts = std::mem::take(&mut read.commands);
        let elsewhere = parts.iter().any(|part| folder_of(&part.words).is_some());
        let unsettled = parts.iter().any(|part| alters_shell(&part.words));
        let parts: Vec<CommandPart> = parts
            .iter()
            .map(|part| {
                let words = part.words.iter();
                let words = words
                    .flat_map(|word| Spelled::of(word, &read.loops))
                    .collect();
                CommandPart {
                    words,
                    settled: !unsettled && harmless(&part.assignments),
                    ..stated(part, elsewhere, unsettled)
                }
            })
            .collect();
        if parts.is_empty() && read.writes.is_empty() {
            return Self::of(vec![whole()], read);
        }
        Self::of(parts, read)
    }

    /// One command that needs no shell: as it is written, and its words.
    pub fn of_argv(command: String, argv: Vec<String>) -> Self {
        let part = CommandPart {
            command,
            risk: command_risk(&argv),
            program: program(&argv),
            words: argv.iter().map(|word| Spelled::known(word)).collect(),
            settled: !alters_shell(&argv),
            argv: Some(argv),
        };
        Self::of(vec![part], Line::default())
    }

    fn of(parts: Vec<CommandPart>, line: Line) -> Self {
        let targets = |words: Vec<Word>| {
            let known = |word: Word| Target {
                known: word.is_known() && !word.text.starts_with('~'),
                path: word.text,
            };
            let free = |target: &Target| target.known && keeps_nothing(&target.path);
            words
                .into_iter()
                .map(known)
                .filter(|target| !free(target))
                .collect()
        };
        let looped = line.loops.iter().flat_map(|one| &one.words);
        Self {
            parts,
            looped: looped.flat_map(|word| Spelled::of(word, &[])).collect(),
            repeats: line.repeats,
            background: line.background,
            writes: targets(line.writes),
            reads: targets(line.reads),
        }
    }

    /// What each part does with files, as far as its words tell; in their order.
    ///
    /// It is for a judge who has no jail: only a part that is understood does nothing else.
    pub fn uses(&self) -> Vec<Uses> {
        let mut each: Vec<Uses> = self.parts.iter().map(|part| uses(&part.words)).collect();
        // What starts itself over and over takes the whole machine, whatever it runs.
        let multiplies = self.repeats && self.background;
        // Names of files that the shell makes of what a command prints are told for what that command says itself.
        let printed = each
            .iter()
            .all(|uses| uses.prints_words || uses.globs_output);
        for (part, uses) in self.parts.iter().zip(&mut each) {
            let moves = self.repeats && uses.paths.iter().any(|place| place.how == How::Goes);
            uses.understood &=
                part.settled && !multiplies && !moves && (printed || !uses.globs_output);
        }
        each
    }

    /// The words that its loops go over: a later line may use what a loop leaves in its variable.
    pub fn looped(&self) -> Vec<Use> {
        let each = self.looped.iter();
        each.map(|word| Use::new(word, How::MayUse)).collect()
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
            None => may_move(&part.command),
        };
        !self.parts.iter().any(moves)
    }

    /// The permissions to run its parts.
    pub fn runs(self, jailed: bool, on_copy: bool) -> impl Iterator<Item = Permission> {
        self.parts.into_iter().map(move |part| Permission {
            effect: Effect::Run {
                command: part.command,
                argv: part.argv,
                jailed,
                on_copy,
            },
            risk: part.risk,
        })
    }
}

/// How harmful a command line is: as the most harmful of its parts.
pub fn line_risk(line: &str) -> Risk {
    CommandLine::new(line).risk()
}

/// The part as it is stated. Where another part changes the folder, git obeys other settings; where another sets variables or
/// names, no part is what it seems to be.
fn stated(part: &SimpleCommand, elsewhere: bool, unsettled: bool) -> CommandPart {
    let program = program(&part.words);
    let changed = unsettled || (elsewhere && program.as_deref() == Some("git"));
    let risk = match risk(&part.words) {
        _ if part.words.is_empty() && harmless(&part.assignments) => Risk::Safe,
        Risk::Safe if changed || !harmless(&part.assignments) => Risk::High,
        risk => risk,
    };
    let argv = part.argv();
    CommandPart {
        command: match &argv {
            Some(words) => join_words(words),
            None => part.text.clone(),
        },
        argv,
        risk,
        program,
        words: Vec::new(),
        settled: false,
    }
}

/// The program within the wrappers that are looked through, where its name is known.
fn program<W: AsWord>(words: &[W]) -> Option<String> {
    let name = inner_command(words).words.first()?;
    name.is_known().then(|| name.text().to_owned())
}
