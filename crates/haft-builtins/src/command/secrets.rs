//! Secret files that the words of a command name. Reading one is an effect of the call, judged like that of a file tool.
//!
//! Secrets that no word names are not asked about, because the command cannot see them. So a word missed here reveals nothing.

use std::collections::BTreeSet;
use std::path::Path;

use haft::context::CallContext;
use haft::permission::{PathClaim, Permission};
use haft::policy::{CommandLine, CommandPart};
use haft_sandbox::{GuardKind, PathGuard};

use crate::command::said_notes::SECRETS_NOTE;
use crate::command::{CommandData, Commands, RunCommandInput};

/// Maximum number of words that are checked per line.
const MAX_WORDS: usize = 256;
/// Maximum length of a word that may be a path, in bytes.
const MAX_WORD: usize = 4_096;
/// Maximum number of secrets that a result names.
const MAX_NAMED: usize = 5;

impl Commands {
    /// Returns the permissions to read the secrets that a line names, if it starts in this folder.
    pub(super) fn named_secrets(&self, line: &CommandLine, cwd: &str) -> Vec<Permission> {
        if self.network.packages_workdir().is_some() {
            return Vec::new();
        }
        let mut claims: BTreeSet<(String, Option<String>)> = BTreeSet::new();
        let words = line.parts.iter().flat_map(words);
        for word in words.take(MAX_WORDS) {
            let named = self.secret(cwd, &word.text, word.in_history);
            claims.extend(named.map(|claim| (claim.path, claim.target)));
        }
        let claims = claims.into_iter();
        claims
            .map(|(path, target)| Permission::read(PathClaim { path, target }))
            .collect()
    }

    /// Returns the secret at a path, which its own name or the target of a link may identify.
    fn secret(&self, cwd: &str, word: &str, in_history: bool) -> Option<PathClaim> {
        let (workspace, names) = (self.workspace(), self.workspace().secret_names());
        let path = Path::new(cwd).join(word);
        let place = workspace.place(&path.to_string_lossy()).ok()?;
        let claim = place.claim().ok()?;
        let covered = names.covers(&claim.path)
            || claim
                .target
                .as_deref()
                .is_some_and(|target| names.covers(target));
        let there = in_history
            || place
                .kind()
                .is_some_and(|kind| kind != haft::workspace::EntryKind::Directory);
        (covered && there).then_some(claim)
    }
}

/// A word of a command that may be a path.
struct PathWord {
    text: String,
    /// True if the word may name a file of an earlier commit, which need not exist now.
    in_history: bool,
}

/// Returns the words after the program, and the parts of them that follow `=`, `@`, `:` or an option letter.
fn words(part: &CommandPart) -> Vec<PathWord> {
    let git = part.program() == Some("git");
    let texts: Vec<&str> = match &part.argv {
        Some(argv) => argv.iter().skip(1).map(String::as_str).collect(),
        None => part.command.split_whitespace().skip(1).collect(),
    };
    let mut words = Vec::new();
    for text in texts.into_iter().filter(|text| text.len() <= MAX_WORD) {
        let text = text.trim_matches(['"', '\'']);
        let after = ['=', '@', ':'].map(|mark| text.rsplit_once(mark).map(|(_, rest)| rest));
        let before_colon = text.split_once(':').map(|(first, _)| first);
        let option = text
            .strip_prefix('-')
            .filter(|rest| !rest.starts_with('-'))
            .and_then(|rest| rest.char_indices().nth(1).map(|(at, _)| &rest[at..]));
        let inner = after.into_iter().chain([before_colon, option]).flatten();
        for (at, path) in std::iter::once(text).chain(inner).enumerate() {
            if !path.is_empty() && !path.starts_with('-') {
                words.push(PathWord {
                    text: path.to_owned(),
                    in_history: git && at > 0,
                });
            }
        }
    }
    words
}

/// Returns the secrets that are hidden from a command, for its result.
pub(super) fn hidden_secrets(guards: &[PathGuard], context: &CallContext) -> Vec<String> {
    let denials = context.denials();
    let hidden = guards
        .iter()
        .filter(|guard| guard.kind == GuardKind::Hidden);
    let paths = hidden.map(|guard| guard.path.to_string_lossy().into_owned());
    let mut secrets: Vec<String> = paths.filter(|path| denials.is_secret(path)).collect();
    secrets.sort();
    secrets
}

/// Words of programs that miss a variable, which a file named `.env` may hold, in lower case.
const VARIABLE_WORDS: [&str; 6] = [
    "environment variable",
    "env var",
    "dotenv",
    "os.environ",
    "process.env",
    "getenv",
];

/// Returns the note for a command that failed on the secrets that it could not see, if its words or its output name one of them, or
/// say that a variable is missing.
pub(super) fn note(
    secrets: &[String],
    input: &RunCommandInput,
    data: &CommandData,
) -> Option<String> {
    let line = input.command.iter().map(String::as_str);
    let argv = input.argv.iter().flatten().map(String::as_str);
    let output = [data.stdout.as_str(), data.stderr.as_str()];
    let texts: Vec<&str> = line.chain(argv).chain(output).collect();
    let misses_variable = !secrets.is_empty()
        && output.iter().any(|text| {
            let text = text.to_lowercase();
            VARIABLE_WORDS.iter().any(|words| text.contains(words))
        });
    let is_cause = |path: &&String| {
        let name = path.rsplit('/').next().unwrap_or(path);
        misses_variable && name.starts_with(".env")
            || texts.iter().any(|text| names_file(text, name))
    };
    let causes: Vec<&str> = secrets
        .iter()
        .take(MAX_WORDS)
        .filter(is_cause)
        .map(String::as_str)
        .collect();
    let more = causes.len().saturating_sub(MAX_NAMED);
    let mut named = causes
        .into_iter()
        .take(MAX_NAMED)
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        named = format!("{named} and {more} more");
    }
    (!named.is_empty()).then(|| {
        format!(
            "{SECRETS_NOTE}: {named}. A command whose words name such a file (`… .env`) asks the user for access to it."
        )
    })
}

/// Whether a text names a file of this name, and not one whose name only has it in it.
fn names_file(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + name.len()..].chars();
        let goes_on = match after.next() {
            Some('.') => after.next().is_some_and(is_part),
            next => next.is_some_and(is_part),
        };
        !before.is_some_and(|c| is_part(c) || c == '.') && !goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::{names_file, note};
    use crate::command::said_notes::SECRETS_NOTE;
    use crate::command::{CommandData, RunCommandInput};

    #[test]
    fn a_file_is_named_by_its_whole_name() {
        for (text, name, expect) in [
            ("cat .env", ".env", true),
            ("source ./web/.env && x", ".env", true),
            ("--env-file=.env", ".env", true),
            ("could not read '.env'.", ".env", true),
            ("missing .env.", ".env", true),
            ("process.env.HOME", ".env", false),
            ("cat .env.example", ".env", false),
            ("cat .env_old", ".env", false),
            ("x.env", ".env", false),
            ("é.env", ".env", false),
            ("web/dev.key: empty", "dev.key", true),
            ("mydev.key", "dev.key", false),
            ("", ".env", false),
        ] {
            assert_eq!(names_file(text, name), expect, "{text}");
        }
    }

    #[test]
    fn secrets_are_named_where_they_can_be_the_cause() {
        let secrets = [".env".to_owned(), "web/dev.key".to_owned()];
        for (line, output, expect) in [
            ("exit 3", "", ""),
            ("grep -q x a.txt", "", ""),
            ("sh -c 'test -s .env'", "", ": .env. "),
            (
                "npm test",
                "DATABASE_URL: environment variable is missing",
                ": .env. ",
            ),
            (
                "python3 a.py",
                "KeyError: 'X'\n  os.environ['X']",
                ": .env. ",
            ),
            ("node a.js", "cannot parse web/dev.key", ": web/dev.key. "),
            ("cat .env dev.key", "", ": .env, web/dev.key. "),
        ] {
            let input = RunCommandInput::from_line(line);
            let data = CommandData {
                stderr: output.to_owned(),
                ..CommandData::default()
            };
            let said = note(&secrets, &input, &data).unwrap_or_default();
            assert_eq!(said.is_empty(), expect.is_empty(), "{line}: {said}");
            assert!(said.contains(expect), "{line}: {said}");
            assert!(said.is_empty() || said.starts_with(SECRETS_NOTE), "{said}");
            assert_eq!(note(&[], &input, &data), None);
        }
    }
}
