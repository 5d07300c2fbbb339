//! Commands whose words are data: they print them, or facts about the system, and use no file.

use haft_shell::{AsWord, Options};

use super::CommandUses;
use super::plain::prints_plainly;
use crate::path_use::{PathAccess, PathUse};
use crate::word::{ShellWord, WordForm};

/// Commands whose words are always data.
const WITH_OPERANDS: &[&str] = &[
    "echo", "true", "false", ":", "seq", "sleep", "basename", "dirname",
];

/// Commands that print facts about the system; with arguments, some of them would change it.
const WITHOUT_OPERANDS: &[&str] = &[
    "pwd", "whoami", "uname", "nproc", "arch", "uptime", "hostname", "id", "date", "wait",
];

/// Options of `date` that only choose the output.
const DATE: Options = Options {
    flags: "uR",
    valued: "d",
    joined: "I",
    long: &["utc", "universal", "rfc-email", "iso-8601"],
    long_valued: &["date", "iso-8601", "rfc-3339"],
    number: false,
};

/// Programs with a safe `--version`: none of them runs anything that a workspace names before it answers.
const VERSIONED: &[&str] = &[
    "bash", "clang", "cmake", "curl", "docker", "g++", "gcc", "git", "java", "jq", "less", "make",
    "node", "npm", "perl", "php", "python", "python3", "rg", "ruby", "wget", "zsh",
];

/// Returns what such a command does with files.
pub(super) fn of(name: &str, words: &[ShellWord]) -> Option<CommandUses> {
    let known = || words.iter().all(AsWord::is_known);
    match name {
        _ if WITH_OPERANDS.contains(&name) => Some(printed(words)),
        "printf" => prints_plainly(words).then(|| printed(words)),
        _ if WITHOUT_OPERANDS.contains(&name) && words.is_empty() => Some(quiet(words)),
        "date" if known() => {
            let operands = DATE.split(words)?.words;
            let formats = operands.iter().all(|word| word.text.starts_with('+'));
            formats.then(|| quiet(words))
        }
        "tr" if known() => Some(CommandUses::of(Vec::new())),
        _ => match words {
            [version] if version.text() == "--version" && version.is_known() => {
                VERSIONED.contains(&name).then(|| quiet(words))
            }
            _ => None,
        },
    }
}

/// Returns the uses of a command that prints its words; patterns among them become file names.
fn printed(words: &[ShellWord]) -> CommandUses {
    let open = words
        .iter()
        .filter(|word| matches!(word.form, WordForm::Pattern | WordForm::Home));
    let paths: Vec<PathUse> = open
        .map(|word| PathUse::new(word, PathAccess::Names))
        .collect();
    CommandUses {
        globs_output: words
            .iter()
            .any(|word| word.form == WordForm::Printed { splits: true }),
        ..CommandUses {
            paths,
            ..quiet(words)
        }
    }
}

fn quiet(words: &[ShellWord]) -> CommandUses {
    CommandUses {
        prints_words: words
            .iter()
            .all(|word| word.is_known() && !word.text.contains(['*', '?', '['])),
        ..CommandUses::of(Vec::new())
    }
}
