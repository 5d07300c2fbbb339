//! Secret files that the words of a command name. Reading one is an effect of the call, judged like that of a file tool.
//!
//! Secrets that no word names are not asked about, because the command cannot see them. So a word missed here reveals nothing.

use std::collections::BTreeSet;
use std::path::Path;

use haft::context::CallContext;
use haft::permission::{PathClaim, Permission};
use haft::policy::{CommandLine, CommandPart};
use haft::result::ToolResult;
use haft_sandbox::{GuardKind, PathGuard};

use crate::command::Commands;

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

/// If the command failed, adds a note on the secrets that it could not see.
pub(super) fn with_note(mut result: ToolResult, secrets: &[String]) -> ToolResult {
    if result.error.is_none() || secrets.is_empty() {
        return result;
    }
    let mut named = secrets
        .iter()
        .take(MAX_NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if secrets.len() > MAX_NAMED {
        named = format!("{named} and {} more", secrets.len() - MAX_NAMED);
    }
    result.notes.push(format!(
        "Commands see secret files as empty: {named}. Use read_file to request access."
    ));
    result
}
