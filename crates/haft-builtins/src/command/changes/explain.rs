//! Reads what the changes that a command left amount to, before the user is asked about them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haft::approval::meaning::{Meaning, MeaningKind};
use haft::text::visible::short_path;
use haft::workspace::Workspace;
use tokio::time::timeout;

use crate::command::changes::Views;
use crate::command::changes::data::UnappliedChange;
use crate::command::changes::fate_table::{Fate, FateTable};
use crate::command::changes::note::CommandReport;
use crate::command::changes::opened_side::sides;
use crate::command::changes::pending::PendingChanges;
use crate::command::changes::thumbnails::add_thumbnails;
use crate::command::meaning::{ReadOptions, one_line, read};
use crate::work::blocking;

/// Time after which the user is asked without an explanation. The readers stop earlier by themselves.
const MAX_TIME: Duration = Duration::from_secs(10);

/// Reads what the changes mean that are asked about, and keeps it in the note. If that fails, they are shown as files.
pub(super) async fn explain(views: &Arc<Views>, changes: &Arc<PendingChanges>) {
    let (at, of) = (Arc::clone(views), Arc::clone(changes));
    let reading = blocking(move |_| {
        let read = || meanings(&at.workspace, &of);
        Ok(catch_unwind(AssertUnwindSafe(read)).ok())
    });
    let mut meanings = match timeout(MAX_TIME, reading).await {
        Ok(Ok(Some(meanings))) => meanings,
        _ => vec![unexplained()],
    };
    let refused = changes.with_note(|note| [refused(&note.fates), dropped(&note.dropped)].concat());
    meanings.extend(changes.with_note(|note| note.ignored.meanings()));
    meanings.splice(0..0, refused);
    let asked = changes.numbers_of(&Fate::Asked);
    let unsaved = views.unsaved(changes);
    meanings.splice(0..0, unsaved.meaning(&changes.collected.changes, &asked));
    let failure = changes.with_note(|note| failure(&note.said));
    meanings.splice(0..0, failure);
    add_thumbnails(views, changes, &mut meanings).await;
    changes.with_note(|note| note.meanings = meanings);
}

/// Returns how the command itself ended, if not well.
fn failure(said: &CommandReport) -> Option<Meaning> {
    const MAX_WORDS: usize = 200;
    let how = match (said.data.exit_code, said.data.signal, said.error()) {
        (Some(0), ..) | (None, None, None) => return None,
        (Some(code), ..) => format!("exit code {code}"),
        (None, Some(signal), _) => format!("signal {signal}"),
        (None, None, Some(error)) => one_line(error.message(), MAX_WORDS),
    };
    let mut meaning = Meaning::new(MeaningKind::Command, "the command itself failed");
    meaning.warnings.push(how);
    Some(meaning)
}

/// Returns what changes in repositories and is not applied, whatever the user decides, by the reason.
fn refused(fates: &FateTable) -> Vec<Meaning> {
    let is_git = |path: &Path| path.iter().any(|part| part.eq_ignore_ascii_case(".git"));
    let in_git = fates.iter().filter(|(path, _)| is_git(path));
    let refused = in_git.filter_map(|(path, fate)| match fate {
        Fate::Refused(why) | Fate::Conflict(why) | Fate::Failed(why) => {
            Some((&**why, path.to_string_lossy()))
        }
        _ => None,
    });
    not_applied(refused, "in a repository")
}

/// Returns what is never applied, such as sockets and names that are not UTF-8.
fn dropped(dropped: &[UnappliedChange]) -> Vec<Meaning> {
    let each = dropped.iter();
    not_applied(
        each.map(|one| (&*one.why, Cow::Borrowed(&*one.path))),
        "of the command",
    )
}

/// Returns one meaning for each reason why something is not applied.
fn not_applied<'a>(
    all: impl Iterator<Item = (&'a str, Cow<'a, str>)>,
    whose: &str,
) -> Vec<Meaning> {
    const MAX_REASONS: usize = 10;
    const MAX_LISTED: usize = 50;
    const MAX_WORDS: usize = 300;
    let mut by_reason: BTreeMap<&str, Vec<Cow<'a, str>>> = BTreeMap::new();
    for (why, path) in all {
        let fits = by_reason.len() < MAX_REASONS || by_reason.contains_key(why);
        let why = if fits { why } else { "for further reasons" };
        by_reason.entry(why).or_default().push(path);
    }
    let meaning = |(why, paths): (&str, Vec<Cow<'_, str>>)| {
        let changes = if paths.len() == 1 {
            "change"
        } else {
            "changes"
        };
        let title = format!(
            "not applied, even if approved: {} {changes} {whose}",
            paths.len()
        );
        let mut meaning = Meaning::new(MeaningKind::GitInternals, title);
        meaning.warnings.push(one_line(why, MAX_WORDS));
        let listed = paths.iter().take(MAX_LISTED);
        meaning.lines = listed.map(|path| short_path(path, MAX_WORDS)).collect();
        if paths.len() > MAX_LISTED {
            let more = paths.len() - MAX_LISTED;
            meaning.lines.push(format!("and {more} more"));
        }
        meaning
    };
    by_reason.into_iter().map(meaning).collect()
}

fn unexplained() -> Meaning {
    let title = "what these changes mean could not be read";
    let mut meaning = Meaning::new(MeaningKind::GitInternals, title);
    meaning
        .warnings
        .push("look at the files one by one".to_owned());
    meaning
}

fn meanings(workspace: &Workspace, changes: &PendingChanges) -> Vec<Meaning> {
    let sides = sides(workspace, &changes.collected);
    let ignored = changes.with_note(|note| note.ignored.clone());
    let asked = |path: &Path| changes.has_fate(path, &Fate::Asked) && !ignored.holds(path);
    read(&sides, ReadOptions::default(), &asked)
}
