//! What a command does to files, as far as its words tell: for a judge without a jail, who must know all of it.
//!
//! A command is understood where its program and all of its options are in the lists here; then what it does is in its uses and
//! nothing else. What is not understood is looked through for words that may name a place, and needs a rule or a person.

use haft_shell::{AsWord, Layer, inner_command};

use super::find;
use super::git;
use super::spelled::{Form, Spelled};

mod changes;
mod printers;
mod readers;
mod scan;
mod scripts;
mod tables;

/// What a command does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Says whether it is there, what kind it is, or what a folder lists.
    Names,
    /// Reads a file.
    Reads,
    /// Reads a file of a repository, now or in an earlier commit.
    ReadsHistory,
    /// Reads a file, or all files below a folder.
    ReadsBelow {
        /// Also where links in the folder lead.
        follows: bool,
    },
    /// Reads files that the repository tracks, whichever have changed.
    ReadsTracked,
    /// Makes or changes a file; makes a folder.
    Writes,
    /// Takes a file or an empty folder away.
    Removes,
    /// Takes a file or a folder away, with all that lies in it.
    Moves,
    /// Goes there: later relative paths of its line start there.
    Goes,
    /// Whatever a program that is not understood does with its words.
    MayUse,
    /// A URL.
    Connects,
}

/// How much of a path is known before the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// All of it: relative or absolute.
    Whole,
    /// A pattern of files (`*`, `?`, `[…]`).
    Pattern,
    /// It begins with `~`, which is the user's home folder.
    Home,
    /// Nothing: it is as it is written.
    Nothing,
}

/// One path that a command uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// As it is written, quotes undone.
    pub path: String,
    /// What is done with it.
    pub how: How,
    /// How much of it is known.
    pub known: Known,
    /// The name that a file gets in it, where the path may be a folder that files are put into.
    pub puts: Option<String>,
}

/// What one command of a line uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own that a command has or has not"
)]
pub struct Uses {
    /// The paths, and what may be one.
    pub paths: Vec<Use>,
    /// It does nothing else: its program and all of its options are known.
    pub understood: bool,
    /// It is git, which does what settings of the repository say.
    pub git: bool,
    /// It prints what the shell makes of another command's output, which may be names of files.
    pub(crate) globs_output: bool,
    /// It prints only what its own words say, or something of the system.
    pub(crate) prints_words: bool,
}

impl Use {
    pub(super) fn new(word: &Spelled, how: How) -> Self {
        let known = match word.form {
            // Some shells read `=ls` as the path of that program, and go through all folders at `**`.
            Form::Known if word.text.starts_with('=') => Known::Nothing,
            Form::Pattern if word.text.contains("**") => Known::Nothing,
            Form::Known => Known::Whole,
            Form::Pattern => Known::Pattern,
            Form::Home => Known::Home,
            Form::Printed { .. } | Form::Pipe | Form::Unknown => Known::Nothing,
        };
        Self {
            path: word.text.clone(),
            how,
            known,
            puts: None,
        }
    }

    fn known(path: &str, how: How) -> Self {
        Self::new(&Spelled::known(path), how)
    }

    /// A path that is known as it is; one that begins with `~` lies in the home folder.
    pub fn of_path(path: &str, how: How) -> Self {
        let known = if path.starts_with('~') {
            Known::Home
        } else {
            Known::Whole
        };
        Self {
            path: path.to_owned(),
            how,
            known,
            puts: None,
        }
    }

    /// A path that only the shell knows.
    pub fn unknown(path: &str, how: How) -> Self {
        Self {
            known: Known::Nothing,
            ..Self::of_path(path, how)
        }
    }
}

impl Uses {
    fn of(paths: Vec<Use>) -> Self {
        Self {
            paths,
            understood: true,
            ..Self::default()
        }
    }

    fn each<'w>(words: impl IntoIterator<Item = &'w Spelled>, how: How) -> Self {
        // What lies behind a pipe of the line is a command of its own.
        let words = words.into_iter().filter(|word| word.form != Form::Pipe);
        Self::of(words.map(|word| Use::new(word, how)).collect())
    }
}

/// What a command with these words uses.
pub(super) fn uses(words: &[Spelled]) -> Uses {
    let layer = inner_command(words);
    let layer = match layer.words {
        // The environment as it is, for a program: `env ls`.
        [env, name, ..]
            if !layer.fed && env.text() == "env" && env.is_known() && is_plain_name(name) =>
        {
            inner_command(&layer.words[1..])
        }
        _ => layer,
    };
    understood(layer).unwrap_or_else(|| Uses {
        paths: scan::places(words),
        ..Uses::default()
    })
}

/// Whatever the name of a file means to them as an option, they read what their words name and print.
const ANY_OPTION: &[&str] = &["cat", "echo", "head", "ls", "stat", "tail"];

fn is_plain_name(word: &Spelled) -> bool {
    word.is_known() && !word.text.starts_with('-') && !word.text.contains('=')
}

fn understood(layer: Layer<'_, Spelled>) -> Option<Uses> {
    let (name, rest) = layer.words.split_first()?;
    // A word that may become an option could mean anything.
    let any = ANY_OPTION.contains(&name.text());
    let open = |word: &Spelled| word.form == Form::Unknown || !(any || may_stand(word));
    if layer.fed || !layer.knows(name) || rest.iter().any(open) {
        return None;
    }
    if let Some(uses) = printers::of(name.text(), rest) {
        return Some(uses);
    }
    // All others take their words for paths.
    if rest
        .iter()
        .any(|word| matches!(word.form, Form::Printed { .. }))
    {
        return None;
    }
    match name.text() {
        "cd" => match rest {
            [folder] if !folder.text.is_empty() && !folder.text.starts_with('-') => {
                Some(Uses::each([folder], How::Goes))
            }
            _ => None,
        },
        "find" => find::only_looks(layer).then(|| find_uses(rest)).flatten(),
        "git" => git::only_reads(layer).then(|| git_uses(rest)),
        name => readers::of(name, rest)
            .or_else(|| scripts::of(name, rest))
            .or_else(|| changes::of(name, rest)),
    }
}

/// A pattern of files whose matches are no options: it says how their names begin.
fn may_stand(word: &Spelled) -> bool {
    word.form != Form::Pattern || !word.text.starts_with(['*', '?', '[', '-'])
}

/// `find` that only looks: it says names, and none beyond links.
fn find_uses(words: &[Spelled]) -> Option<Uses> {
    if words
        .iter()
        .any(|word| matches!(word.text(), "-L" | "-follow"))
    {
        return None;
    }
    let mut uses = Uses::each(
        words.iter().filter(|word| names_place(word.text())),
        How::Names,
    );
    if words
        .first()
        .is_none_or(|word| word.text.starts_with(['-', '(', '!']))
    {
        uses.paths.push(Use::known(".", How::Names));
    }
    Some(uses)
}

fn names_place(word: &str) -> bool {
    !word.starts_with(['-', '(', '!', ')']) && word != "{}"
}

fn git_uses(words: &[Spelled]) -> Uses {
    let texts: Vec<&str> = words.iter().map(AsWord::text).collect();
    let shown = git::git_reads(&texts);
    // Behind the command.
    let named = texts.iter().filter(|text| !text.starts_with('-')).skip(1);
    let how = if shown.contents {
        How::ReadsHistory
    } else {
        How::Names
    };
    // Behind a colon stands a path from the root of the repository, before it a commit; and a commit may be called as a file is.
    let mut paths: Vec<Use> = named
        .flat_map(|text| [Some(*text), text.rsplit_once(':').map(|(_, path)| path)])
        .flatten()
        .filter(|text| !text.is_empty())
        .map(|text| Use::known(text, how))
        .collect();
    let values = texts.iter().filter(|text| text.starts_with('-'));
    let values = values.flat_map(|text| scan::behind_option(text));
    paths.extend(values.map(|text| Use::known(text, How::Names)));
    if !shown.below.is_empty() {
        paths.push(Use::known(".", How::ReadsTracked));
    }
    Uses {
        git: true,
        ..Uses::of(paths)
    }
}
