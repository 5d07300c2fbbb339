//! What a command does with files outside a jail, where all of it must be known.
//!
//! A command is understood if its meaning is complete. One that is not is searched for words that may name a place, and needs a rule or an
//! approval.

use haft_shell::{AsWord as _, Layer, inner_command};

use crate::path_use::{PathAccess, PathUse};
use crate::programs::uses_of;
use crate::scan;
use crate::word::ShellWord;

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
    /// Whether it creates links, by whose names the rest of the line may use other files.
    pub links: bool,
}

/// Returns what a command with these words does with files.
pub fn uses(words: &[ShellWord]) -> CommandUses {
    let found = uses_of(through_env(inner_command(words)));
    if !found.unknown {
        return CommandUses {
            paths: found.uses,
            understood: true,
            git: found.git,
            globs_output: found.globs_output,
            prints_words: found.prints_words,
            links: found.links,
        };
    }
    let mut paths = scan::places(words);
    let carried = found.uses.into_iter();
    paths.extend(carried.filter(|one| one.how == PathAccess::Carries));
    CommandUses {
        paths,
        links: found.links,
        ..CommandUses::default()
    }
}

/// Returns the program behind `env`, which leaves its environment as it is: `env ls`.
fn through_env(layer: Layer<'_, ShellWord>) -> Layer<'_, ShellWord> {
    match layer.words {
        [env, name, ..]
            if !layer.fed && env.text() == "env" && env.is_known() && is_plain_name(name) =>
        {
            inner_command(&layer.words[1..])
        }
        _ => layer,
    }
}

fn is_plain_name(word: &ShellWord) -> bool {
    word.is_known() && !word.text.starts_with('-') && !word.text.contains('=')
}
