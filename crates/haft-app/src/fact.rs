//! `Fact`: what a request is about, in one line of limited length: the command, the file, the address.

use std::collections::HashSet;
use std::fmt::Write as _;

use haft::approval::ApprovalRequest;
use haft::approval::meaning::MeaningKind;
use haft::approval::preview::{Aspect, FileChange, FileChangeKind};
use haft::approval::snapshot::CallSnapshot;
use haft::audit::redact::Redactor;
use haft::permission::{EXPOSE_EFFECT, EXPOSED_CONDITION, Effect};
use haft::text::visible::{self, path};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::coverage::coverage;

/// Maximum length of the line, in bytes.
const MAX_LINE: usize = 400;

/// The fact that matters most for a decision.
#[derive(Debug, Serialize)]
pub struct Fact {
    /// Its kind: `command`, `diff`, `url`, `arguments`, `question`.
    pub kind: &'static str,
    /// The line, secrets redacted.
    pub text: String,
    /// What happens to the files: `create`, `edit`, `delete`, `move`, or `change` if they differ in that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<&'static str>,
    /// The number of lines that are added, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// The number of lines that are removed, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
}

impl Fact {
    /// Returns the fact of a request.
    pub fn of(request: &ApprovalRequest, redactor: &Redactor) -> Self {
        let (kind, text) = headline(request);
        let text = redactor.redact_within(&text, MAX_LINE).into_owned();
        let files = &request.snapshot.preview[..];
        let shows_files = kind == "diff" && request.snapshot.meanings.is_empty();
        let files = if shows_files { files } else { &[] };
        let lines = files.iter().try_fold((0, 0), |sum: (u64, u64), file| {
            let (added, removed) = file.lines()?;
            Some((sum.0 + added, sum.1 + removed))
        });
        let lines = lines.filter(|_| !files.is_empty());
        Self {
            kind,
            text,
            action: action(files),
            added: lines.map(|lines| lines.0),
            removed: lines.map(|lines| lines.1),
        }
    }

    /// Returns what will happen: `edit src/retry.rs +3 −3`.
    pub fn sentence(&self) -> String {
        let action = self
            .action
            .map_or_else(String::new, |action| format!("{action} "));
        let lines = match (self.added, self.removed) {
            (Some(added), Some(removed)) if added + removed > 0 => format!(" +{added} −{removed}"),
            _ => String::new(),
        };
        format!("{action}{}{lines}", self.text)
    }
}

/// Returns what happens to the files, if it is the same for all of them.
fn action(files: &[FileChange]) -> Option<&'static str> {
    let first = files.first()?.action;
    let alike = files.iter().all(|file| file.action == first);
    Some(match first {
        _ if !alike => "change",
        FileChangeKind::Create => "create",
        FileChangeKind::Change => "edit",
        FileChangeKind::Delete => "delete",
        FileChangeKind::Move => "move",
    })
}

fn headline(request: &ApprovalRequest) -> (&'static str, String) {
    if let Some(form) = &request.form {
        return ("question", form.title.clone());
    }
    if let Some(rule) = request.proposal() {
        let arguments: Map<String, Value> =
            serde_json::from_str(&request.arguments).unwrap_or_default();
        let reason = arguments.get("reason").and_then(Value::as_str);
        let covers = coverage(rule).map_or_else(String::new, |covers| format!(" · {covers}"));
        let text = format!("allow {rule}{covers} · “{}”", reason.unwrap_or_default());
        return ("arguments", text);
    }
    let effects = || request.snapshot.permissions.iter().map(|p| &p.effect);
    let run = effects().find_map(|effect| match effect {
        Effect::Run { command, .. } => Some(command.clone()),
        _ => None,
    });
    if let Some(first) = run {
        return ("command", whole_command(&request.arguments, first));
    }
    if let Some(text) = meaning_line(&request.snapshot) {
        return ("diff", text);
    }
    if let Some(text) = files_line(&request.snapshot) {
        return ("diff", text);
    }
    if let Some(text) = effects().find_map(|effect| exposure(effect, &request.snapshot)) {
        return ("arguments", text);
    }
    let connections: Vec<String> = effects().filter_map(connection).collect();
    let logins: Vec<String> = effects().filter_map(login).collect();
    match (connections.is_empty(), logins.is_empty()) {
        (true, true) => ("arguments", request.arguments.clone()),
        (true, false) => ("arguments", logins.join(" · ")),
        (false, _) => ("url", [connections, logins].concat().join(" · ")),
    }
}

/// Returns the first file that would change, and the number of others.
fn files_line(snapshot: &CallSnapshot) -> Option<String> {
    let covered = covered(snapshot);
    let all = || snapshot.preview.iter();
    // git's own files are named where there is nothing else.
    let has_others = all().any(|file| !file.is_among(&covered));
    let files = || all().filter(|file| !has_others || !file.is_among(&covered));
    let change = files().next()?;
    let number: u64 = files().map(|file| file.files.unwrap_or(1)).sum();
    let more = number.saturating_sub(1);
    let path = match (&change.target, change.aspect) {
        (Some(target), _) => format!("{} (a link to {})", path(&change.path), path(target)),
        (None, Aspect::Mode) => format!("{} (mode)", path(&change.path)),
        (None, Aspect::Folder) => path(&format!("{}/", change.path)),
        (None, _) => path(&change.path),
    };
    Some(match (&change.to, more) {
        (Some(to), _) => format!("{path} → {}", visible::path(to)),
        (None, 0) => path,
        (None, more) => format!("{path} and {more} more"),
    })
}

/// Returns the paths that meanings explain.
fn covered(snapshot: &CallSnapshot) -> HashSet<&str> {
    let covers = snapshot.meanings.iter().flat_map(|meaning| &meaning.covers);
    covers.map(String::as_str).collect()
}

/// Returns what the changes amount to: the first meaning, and the number of further ones and of files that none of them
/// explains. git's own files and how the command ended are neither named nor counted.
fn meaning_line(snapshot: &CallSnapshot) -> Option<String> {
    let meanings = snapshot.meanings.iter();
    let unsaid = [MeaningKind::GitInternals, MeaningKind::Command];
    let mut shown = meanings.filter(|meaning| !unsaid.contains(&meaning.kind));
    let first = shown.next()?;
    let covered = covered(snapshot);
    let files = snapshot.preview.iter();
    let others = files.filter(|file| !file.is_among(&covered)).count();
    let counted = |number: usize, noun: &str| match number {
        0 => None,
        1 => Some(format!("1 more {noun}")),
        number => Some(format!("{number} more {noun}s")),
    };
    let more = [counted(shown.count(), "change"), counted(others, "file")];
    let more: Vec<String> = more.into_iter().flatten().collect();
    Some(if more.is_empty() {
        first.title.clone()
    } else {
        format!("{} and {}", first.title, more.join(", "))
    })
}

/// Returns the address, and the private address that it leads to, if any.
fn connection(effect: &Effect) -> Option<String> {
    let Effect::Connect { url, leads_to, .. } = effect else {
        return None;
    };
    let method = effect.method_shown();
    let method = method.map_or_else(String::new, |method| format!("{method} "));
    Some(match leads_to.first() {
        Some(to) => format!("{method}{url} ({to}, private)"),
        None => format!("{method}{url}"),
    })
}

/// Returns the port that a call opens, what serves there, and to whom.
fn exposure(effect: &Effect, snapshot: &CallSnapshot) -> Option<String> {
    let Effect::Other { kind, value } = effect else {
        return None;
    };
    if kind != EXPOSE_EFFECT {
        return None;
    }
    let opens = snapshot.conditions.iter();
    let opens = opens.filter(|condition| condition.name == EXPOSED_CONDITION);
    let opens: Vec<&str> = opens.map(|condition| condition.value.as_str()).collect();
    let of = match opens.len() {
        0 => String::new(),
        _ => format!(" of {}", opens.join(" or ")),
    };
    Some(format!(
        "open port {value}{of} to every program of this machine, until the run ends"
    ))
}

/// Returns the login that a command uses, and by what.
fn login(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Sign { purpose, by } => Some(format!("{purpose} by {by}")),
        _ => None,
    }
}

/// Returns the command line as given, since only its parts may be judged, and every other argument of the call.
fn whole_command(arguments: &str, first: String) -> String {
    let arguments: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
    let given = arguments.get("command").and_then(Value::as_str);
    let mut line = given.map_or(first, str::to_owned);
    for (name, value) in &arguments {
        if name != "command" && name != "argv" {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            // Writing to a string does not fail.
            let _ = write!(line, " · {name}={value}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use haft::approval::CallSnapshot;
    use haft::approval::meaning::{Meaning, MeaningKind};
    use haft::approval::preview::FileChange;

    use super::meaning_line;

    #[test]
    fn a_change_set_is_named_by_its_first_meaning_and_counts_the_rest() {
        let meaning = |kind, title: &str, covers: &[&str]| Meaning {
            covers: covers.iter().map(|path| (*path).to_owned()).collect(),
            ..Meaning::new(kind, title)
        };
        let commit = || meaning(MeaningKind::Commit, "commit 'x' on main", &["a"]);
        let internals = || {
            meaning(
                MeaningKind::GitInternals,
                "git's own files",
                &[".git/index"],
            )
        };
        let tag = || meaning(MeaningKind::Tag, "tag v1", &[]);
        let rows = [
            (vec![], None),
            (vec![internals()], None),
            (
                vec![commit(), internals()],
                Some("commit 'x' on main and 1 more file"),
            ),
            (
                vec![commit(), tag()],
                Some("commit 'x' on main and 1 more change, 2 more files"),
            ),
        ];
        for (meanings, line) in rows {
            let file = |path: &str| FileChange::new(path, None, Some(b"x"));
            let snapshot = CallSnapshot {
                preview: ["a", "b", ".git/index"].map(file).to_vec(),
                meanings,
                ..CallSnapshot::default()
            };
            assert_eq!(meaning_line(&snapshot).as_deref(), line);
        }
    }
}
