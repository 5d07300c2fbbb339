//! Reads what the changes that a command left amount to, before the user is asked about them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haft::approval::meaning::{Meaning, MeaningKind};
use haft::change::collect::ViewChange;
use haft::workspace::Workspace;
use tokio::time::timeout;

use crate::command::changes::Views;
use crate::command::changes::note::Fate;
use crate::command::changes::opened_side::open;
use crate::command::changes::pending::PendingChanges;
use crate::command::changes::thumbnails::add_thumbnails;
use crate::command::meaning::{PathChange, ReadOptions, Sides, read};
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
    add_thumbnails(views, changes, &mut meanings).await;
    changes.with_note(|note| note.meanings = meanings);
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
    let of = |change: &ViewChange| PathChange {
        path: change.path.clone(),
        before: change.before.clone(),
        after: change.after.clone(),
    };
    let all = changes.collected.changes.iter().map(of);
    let open = |change: &PathChange, side| open(workspace, changes, &change.path, side);
    let sides = Sides::new(workspace, all, open);
    let asked = |path: &Path| changes.has_fate(path, &Fate::Asked);
    read(&sides, ReadOptions::default(), &asked)
}
