//! `CommandLine`: the effects that a tool for command lines states, part by part.

use std::rc::Rc;

use haft_command::{
    Bindings, CommandUses, PathAccess, PathUse, ShellWord, folder_of, removed, uses,
};
use haft_shell::{
    AsWord, AssignedValue, Expansions, Line, SimpleCommand, Word, alters_shell, inner_command,
    join_words, layers, plain_words, runs_quoted,
};

use crate::commands::folders::may_move;
use crate::commands::remembered::parse_line;
use crate::commands::risk::{are_harmless, command_risk, discards_content, part_risk};
use haft_types::permission::{Effect, Permission};
use haft_types::spec::Risk;

/// A command line split into parts. A line that cannot be parsed is one part, the line itself, which needs approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Every simple command, including those within substitutions; without duplicates.
    pub parts: Vec<CommandPart>,
    /// Files that redirections open for writing, without `/dev/null`.
    pub writes: Vec<RedirectTarget>,
    /// Files that redirections open for reading, without `/dev/null`.
    pub reads: Vec<RedirectTarget>,
    /// Whether something in it may run more than once.
    repeats: bool,
    /// Whether something in it runs in the background.
    background: bool,
    /// Words that loops iterate over.
    looped: Vec<ShellWord>,
}

/// One simple command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPart {
    /// The command as written, without redirections; `$()` stands for a substitution, whose commands are parts of their own.
    pub command: String,
    /// Its words, if all of them are known before it runs.
    pub argv: Option<Vec<String>>,
    /// How harmful it is.
    pub risk: Risk,
    /// The program within its wrappers, if known.
    program: Option<String>,
    /// Its words, as far as they are known.
    words: Vec<ShellWord>,
    /// Whether nothing before it or beside it changes what its words mean.
    settled: bool,
}

impl CommandPart {
    /// Returns the program that it runs within `timeout`, `nice` and similar wrappers; `None` if only the shell will know it.
    pub fn program(&self) -> Option<&str> {
        self.program.as_deref()
    }
}

/// The target of a redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectTarget {
    /// The path as written, unquoted.
    pub path: String,
    /// Whether the path is literal: without `~`, variables and patterns, which the shell expands.
    pub known: bool,
}

impl CommandLine {
    /// Splits a line. Fast for any text: stops reading a text that is too long, too deeply nested or not a command line.
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
        let Ok(read) = parse_line(line) else {
            return Self::of(vec![whole()], Line::default());
        };
        let read = Rc::unwrap_or_clone(read);
        let parts = &read.commands;
        let beside = Beside {
            moves: parts.iter().any(|part| folder_of(&part.words).is_some()),
            alters: parts.iter().any(|part| alters_shell(&part.words)),
        };
        let parts: Vec<CommandPart> = parts
            .iter()
            .map(|part| {
                let bindings = Bindings::of(&read, part);
                let words = part.words.iter();
                let words = words
                    .flat_map(|word| ShellWord::of(word, &bindings))
                    .collect();
                CommandPart {
                    words,
                    settled: !beside.alters && are_harmless(&part.assignments),
                    ..stated(part, &read, &beside)
                }
            })
            .collect();
        if parts.is_empty() && read.writes.is_empty() {
            return Self::of(vec![whole()], read);
        }
        Self::of(parts, read)
    }

    /// Creates a line of one command that needs no shell, from its text and its words.
    pub fn of_argv(command: String, argv: Vec<String>) -> Self {
        let part = CommandPart {
            command,
            risk: command_risk(&argv),
            program: program(&argv),
            words: argv.iter().map(|word| ShellWord::known(word)).collect(),
            settled: !alters_shell(&argv),
            argv: Some(argv),
        };
        Self::of(vec![part], Line::default())
    }

    fn of(parts: Vec<CommandPart>, line: Line) -> Self {
        let targets = |words: Vec<Word>| {
            let known = |word: Word| RedirectTarget {
                known: word.is_known() && !word.text.starts_with('~'),
                path: word.text,
            };
            let free = |target: &RedirectTarget| target.known && discards_content(&target.path);
            words
                .into_iter()
                .map(known)
                .filter(|target| !free(target))
                .collect()
        };
        let looped = line.loops.iter().flat_map(|one| &one.words);
        Self {
            parts,
            looped: looped
                .flat_map(|word| ShellWord::of(word, &Bindings::NONE))
                .collect(),
            repeats: line.repeats,
            background: line.background,
            writes: targets(line.writes),
            reads: targets(line.reads),
        }
    }

    /// Returns what each part does with files, as far as its words show, in order.
    ///
    /// For judging without a jail: only a part that is understood is known to do nothing else.
    pub fn uses(&self) -> Vec<CommandUses> {
        let mut each: Vec<CommandUses> = self.parts.iter().map(|part| uses(&part.words)).collect();
        // A command that starts itself over and over exhausts the machine, whatever it runs.
        let multiplies = self.repeats && self.background;
        // Where the shell makes file names from a command's output, that command's own uses state them.
        let printed = each
            .iter()
            .all(|uses| uses.prints_words || uses.globs_output);
        for (part, uses) in self.parts.iter().zip(&mut each) {
            let moves =
                self.repeats && uses.paths.iter().any(|place| place.how == PathAccess::Goes);
            uses.understood &=
                part.settled && !multiplies && !moves && (printed || !uses.globs_output);
            // The rest of the line may use the link, which is not there yet.
            if self.parts.len() > 1 && uses.links {
                uses.paths
                    .push(PathUse::unknown(&part.command, PathAccess::MayUse));
            }
        }
        each
    }

    /// Returns the words that its loops iterate over: a later line may use the value that a loop leaves in its variable.
    pub fn looped(&self) -> Vec<PathUse> {
        let each = self.looped.iter();
        each.map(|word| PathUse::new(word, PathAccess::MayUse))
            .collect()
    }

    /// Returns the highest risk of its parts; at least high if it writes a file.
    pub fn risk(&self) -> Risk {
        let parts = self.parts.iter().map(|part| part.risk);
        let writes = (!self.writes.is_empty()).then_some(Risk::High);
        parts.chain(writes).max().unwrap_or(Risk::High)
    }

    /// Whether no part changes the folder that relative paths start at.
    pub fn stays_in_its_folder(&self) -> bool {
        let moves = |part: &CommandPart| match &part.argv {
            Some(words) => folder_of(words).is_some(),
            None => may_move(&part.command),
        };
        !self.parts.iter().any(moves)
    }

    /// Returns the permissions to run its parts.
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

/// Returns the risk of a command line: that of its most harmful part.
pub fn line_risk(line: &str) -> Risk {
    CommandLine::new(line).risk()
}

/// What else a line does that changes what its commands mean.
struct Beside {
    /// Whether a command changes the folder: then git reads other settings.
    moves: bool,
    /// Whether a command sets variables or names: then no command is what it seems to be.
    alters: bool,
}

/// Returns the part of the line as stated to the policy.
fn stated(part: &SimpleCommand, line: &Line, beside: &Beside) -> CommandPart {
    let program = program(&part.words);
    let changed = beside.alters || (beside.moves && program.as_deref() == Some("git"));
    let risk = match part_risk(part, line) {
        _ if part.words.is_empty() && are_harmless(&part.assignments) => Risk::Safe,
        Risk::Safe if changed || !are_harmless(&part.assignments) => Risk::High,
        risk => risk,
    };
    let argv = part.argv();
    CommandPart {
        command: match &argv {
            Some(words) => join_words(words),
            None => in_its_loops(part, line),
        },
        argv,
        risk,
        program,
        words: Vec::new(),
        settled: false,
    }
}

/// Returns the text of a command; if it removes what variables name, with the loops and assignments that set them: what is judged, and
/// what a user approves, is which paths these are.
fn in_its_loops(part: &SimpleCommand, line: &Line) -> String {
    let mut text = part.text.clone();
    let all = layers(&part.words);
    if !all.commands.iter().any(|layer| removed(*layer).is_some()) {
        return text;
    }
    let is_used = |name: &String| {
        part.words.iter().any(|word| {
            !word.is_known()
                && (word.text.contains(&format!("${name}"))
                    || word.text.contains(&format!("${{{name}")))
        })
    };
    let mut names: Vec<&String> = Vec::new();
    let set = line.commands.iter().flat_map(|one| &one.assignments);
    for name in set.filter(|name| is_used(name)) {
        if names.contains(&name) || part.assignments.contains(name) {
            continue;
        }
        names.push(name);
        let values = line.assigned(name).unwrap_or_default();
        let spelled: Option<Vec<String>> = values
            .into_iter()
            .map(|value| match value {
                AssignedValue::Word(word) => spelling(word),
                AssignedValue::Fresh => Some("$(mktemp -d)".to_owned()),
                AssignedValue::Unknown => None,
            })
            .collect();
        for value in spelled.unwrap_or_default().iter().rev() {
            text = format!("{name}={value}; {text}");
        }
    }
    for name in part.within.iter().rev() {
        if !is_used(name) || names.contains(&name) {
            continue;
        }
        names.push(name);
        let values = line.values(name, part).unwrap_or_default();
        let spelled: Option<Vec<String>> = values.into_iter().map(spelling).collect();
        if let Some(words) = spelled.filter(|words| !words.is_empty()) {
            text = format!("for {name} in {}; do {text}; done", words.join(" "));
        }
    }
    text
}

/// Returns a word as the shell reads it; `None` for one that its text does not tell.
fn spelling(word: &Word) -> Option<String> {
    if word.is_known() {
        return Some(join_words(&[&word.text]));
    }
    let open = word.expansions;
    let expands = Expansions::VALUE | Expansions::OUTPUT | Expansions::TILDE;
    let plain = |c: char| c.is_ascii_alphanumeric() || "*?[]{},!^-_./:".contains(c);
    // One with other letters may have been quoted in part.
    (!open.intersects(expands) && word.text.chars().all(plain)).then(|| word.text.clone())
}

/// Returns the program within the known wrappers, if its name is known.
fn program<W: AsWord>(words: &[W]) -> Option<String> {
    let name = inner_command(words).words.first()?;
    name.is_known().then(|| name.text().to_owned())
}
