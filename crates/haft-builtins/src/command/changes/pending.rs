//! `PendingChanges`: an ended command with undecided changes: its report, and the fate of each change.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use haft::ErrorKind;
use haft::call::RunId;
use haft::change::PathText;
use haft::change::collect::{CollectedChanges, ViewChange};
use haft::context::CallContext;
use haft::error::ToolError;
use haft::result::{Failure, ToolResult};
use haft::workspace::Workspace;
use parking_lot::Mutex;

use crate::command::RunData;
use crate::command::changes::change_outcomes::SAME_REPOSITORY;
use crate::command::changes::data::{AppliedChange, UnappliedChange};
use crate::command::changes::fate_table::Fate;
use crate::command::changes::folder::UPPER;
use crate::command::changes::note::{CommandNote, CommandReport, NOTE, StoredNote, read};
use crate::command::changes::view::OpenView;
use crate::command::changes::{Views, failed, versions};

/// Maximum number of paths that a message names.
const MAX_NAMED: usize = 5;
/// Maximum number of changes that are listed, each with its reason, where none of what was asked about is applied.
const MAX_LISTED: usize = 50;

/// An ended command whose changes are being decided.
#[derive(Debug)]
pub(super) struct PendingChanges {
    pub(super) collected: CollectedChanges,
    note: Mutex<CommandNote>,
    /// `None` if the changes are only inspected.
    view: Option<OpenView>,
}

impl PendingChanges {
    pub(super) fn new(view: OpenView, collected: CollectedChanges, note: CommandNote) -> Self {
        Self {
            collected,
            note: Mutex::new(note),
            view: Some(view),
        }
    }

    /// Reads the note and the current changes, for inspection only.
    pub(super) fn look(views: &Views, run: &RunId, name: &str) -> Result<Self, ToolError> {
        let folder = views
            .folder(run, name)
            .map_err(|error| view_missing(&error))?;
        let note = read(&folder).map_err(|error| view_missing(&error))?;
        if note.repository != repository_of(&views.workspace) {
            return Err(ToolError::conflict(
                "the workspace's git repository is no longer the one that the command worked on",
            )
            .with_advice("nothing was applied; run the command again"));
        }
        let upper = folder.join(UPPER);
        let workspace = &views.workspace;
        let collected = CollectedChanges::collect_again(workspace, &upper, note.since, &note.git);
        let collected = collected.map_err(|error| failed("read", error))?;
        Ok(Self {
            note: Mutex::new(note.about(&collected.changes)),
            collected,
            view: None,
        })
    }

    /// Reads the note and the changes with the view locked, so that only this process can decide about them.
    pub(super) fn load(views: &Views, run: &RunId, view: OpenView) -> Result<Self, ToolError> {
        let looked = Self::look(views, run, &view.name)?;
        Ok(Self {
            view: Some(view),
            ..looked
        })
    }

    /// Returns the folder with the changes, or `None` if they are only inspected.
    pub(super) fn upper(&self) -> Option<PathBuf> {
        Some(self.view.as_ref()?.layers().upper)
    }

    /// Returns the name of the view's folder, or an empty string if it is only inspected.
    pub(super) fn name(&self) -> String {
        self.view
            .as_ref()
            .map(|view| view.name.clone())
            .unwrap_or_default()
    }

    /// Sets whether the view is kept for a decision when this is dropped. Otherwise it is removed.
    pub(super) fn keep(&self, kept: bool) {
        if let Some(view) = &self.view {
            view.keep(kept);
        }
    }

    /// Records that haft begins to apply the changes.
    pub(super) fn begin(&self) -> io::Result<()> {
        self.view.as_ref().map_or(Ok(()), OpenView::begin)
    }

    /// Leaves the view's files in place whatever is decided, because some exist nowhere else.
    pub(super) fn keep_files(&self) {
        if let Some(view) = &self.view {
            view.keep_until_run_ends();
            // No process may decide about it again.
            let _ = fs::remove_file(view.folder.join(NOTE));
        }
    }

    pub(super) fn with_note<T>(&self, look: impl FnOnce(&mut CommandNote) -> T) -> T {
        look(&mut self.note.lock())
    }

    /// Writes the note to disk. From then on, another process can resume the decision.
    pub(super) fn save(&self) -> io::Result<()> {
        let Some(view) = &self.view else {
            return Err(io::Error::other("it is only looked at"));
        };
        let folder = &view.folder;
        let draft = folder.join("view.draft");
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = BufWriter::new(options.open(&draft)?);
        self.with_note(|note| serde_json::to_writer(&mut file, note))?;
        file.into_inner()?.sync_all()?;
        fs::rename(draft, folder.join(NOTE))?;
        fs::File::open(folder)?.sync_all()?;
        view.keep(true);
        Ok(())
    }

    /// Returns whether a path has this fate.
    pub(super) fn has_fate(&self, path: &Path, fate: &Fate) -> bool {
        self.with_note(|note| note.fates.get(path) == Some(fate))
    }

    /// Returns whether any change has this fate.
    pub(super) fn has_any(&self, fate: &Fate) -> bool {
        self.with_note(|note| {
            let mut each = 0..self.collected.changes.len();
            each.any(|at| note.fates.at(at) == Some(fate))
        })
    }

    /// Returns the numbers of the changes that have this fate.
    pub(super) fn numbers_of(&self, fate: &Fate) -> Vec<usize> {
        let each = 0..self.collected.changes.len();
        self.with_note(|note| each.filter(|at| note.fates.at(*at) == Some(fate)).collect())
    }

    /// Returns the changes that have this fate when they are asked for.
    pub(super) fn changes_of(&self, fate: Fate) -> impl Iterator<Item = ViewChange<'_>> {
        let each = 0..self.collected.changes.len();
        let of_fate = move |at: &usize| self.with_note(|note| note.fates.at(*at) == Some(&fate));
        each.filter(of_fate)
            .filter_map(|at| self.collected.changes.get(at))
    }

    /// Sets the new fate of all changes that have the fate `from`.
    pub(super) fn decide(&self, from: &Fate, to: impl Fn(&Path) -> Fate) {
        self.with_note(|note| note.fates.decide(from, to));
    }

    /// Notes that the changes with this fate are applied, as far as they pass.
    pub(super) fn add_applied(&self, fate: &Fate, passes: impl Fn(&Path) -> bool) {
        let changes = &self.collected.changes;
        self.with_note(|note| {
            let of_fate: Vec<usize> = (0..changes.len())
                .filter(|at| note.fates.at(*at) == Some(fate))
                .collect();
            let applied = of_fate.into_iter().filter_map(|at| changes.get(at));
            let applied = applied.filter(|change| passes(change.path));
            note.add_applied(applied.map(|change| AppliedChange::of(&change)));
        });
    }

    /// Builds the result of the call that applied the allowed changes.
    pub(super) fn applied(&self) -> Result<ToolResult, ToolError> {
        let (changes, more) = self.with_note(|note| (note.applied.clone(), note.more_applied));
        ToolResult::data(&RunData {
            changes,
            more_changes: (more > 0).then_some(more),
            ..RunData::default()
        })
    }

    /// Adds to the error where files are that exist nowhere else, if there are any.
    fn with_remaining_files(&self, error: ToolError) -> ToolError {
        let Some(upper) = self.view.as_ref().and_then(OpenView::left) else {
            return error;
        };
        let (run, call) = self.with_note(|note| (note.run.to_string(), note.call.to_string()));
        error.for_operator(format!(
            "applying failed midway: `haft runs undo {run} {call}` undoes what was applied; everything that the command left is kept in {} until the run is deleted",
            upper.display()
        ))
    }

    /// Builds the result of the command, with the fates of its changes.
    pub(super) async fn result(&self, context: &CallContext) -> Result<ToolResult, ToolError> {
        let in_conflict = self.with_note(|note| versions::in_conflict(&note.fates));
        let versions = versions::keep(&in_conflict, &self.collected, context).await;
        let (said, changes, more_changes, times) = self.with_note(|note| {
            let times = note.times.clone().unwrap_or_default();
            (
                note.said.clone(),
                note.applied.clone(),
                note.more_applied,
                times,
            )
        });
        let (mut not_applied, mut why_not) =
            self.with_note(|note| (note.dropped.clone(), UnappliedReason::Refused));
        let dropped = not_applied.len();
        self.with_note(|note| {
            for (path, fate) in note.fates.iter() {
                let (Fate::Refused(why) | Fate::Conflict(why) | Fate::Failed(why)) = fate else {
                    continue;
                };
                why_not = why_not.max(UnappliedReason::of(fate));
                let path = path.to_string_lossy();
                let version = versions.iter().find(|(kept, _)| *kept == path);
                not_applied.push(UnappliedChange {
                    path: path.into_owned(),
                    why: why.clone(),
                    kept: version.map(|(_, artifact)| artifact.reference.clone()),
                });
            }
        });
        let data = RunData {
            command: said.data.clone(),
            changes,
            more_changes: (more_changes > 0).then_some(more_changes),
            touched: (times.set > 0).then_some(times.set),
            not_applied,
        };
        // Pipes and sockets are never applied, so a command that leaves one has not failed.
        let refused = data.not_applied.get(dropped..).unwrap_or_default();
        let error = partly_applied(&said, refused, why_not);
        let error = error.map(|error| self.with_remaining_files(error));
        let mut result = ToolResult::data(&data)?;
        result.artifacts.clone_from(&said.artifacts);
        for (_, version) in versions {
            if !result.artifacts.contains(&version) {
                result.artifacts.push(version);
            }
        }
        result.error = error.or_else(|| said.error());
        result.notes = said.notes;
        result.notes.extend(times.note);
        result.summary = said.summary;
        result.strength = said.strength;
        Ok(result)
    }

    /// Builds the result of the call that applied these changes, given by their numbers, which were asked about. If it applied all of them, it succeeded, whatever
    /// else became of the command.
    pub(super) async fn result_of_applying(
        &self,
        asked: &[usize],
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let mut result = self.result(context).await?;
        let is_done = self.with_note(|note| {
            let mut each = asked.iter();
            each.all(|at| note.fates.at(*at) == Some(&Fate::Applied))
        });
        let Some(failed) = result.error.take_if(|_| is_done) else {
            return Ok(result);
        };
        let changes = match asked.len() {
            1 => "1 change".to_owned(),
            count => format!("{count} changes"),
        };
        let summary = format!(
            "applied what was approved ({changes}); the command itself: {}",
            failed.message()
        );
        result.outer_error = Some(failed);
        Ok(result.with_summary(summary))
    }
}

/// Builds the result of a command whose changes with this fate are not applied, for this reason: nothing of it is read but its note.
pub(super) fn without_applying(
    note: StoredNote,
    fate: &Fate,
    why: &Failure,
) -> Result<ToolResult, ToolError> {
    let all: Vec<UnappliedChange> = note
        .fates
        .iter()
        .filter_map(|(path, known)| {
            let why = match known {
                Fate::Refused(why) | Fate::Conflict(why) | Fate::Failed(why) => why.clone(),
                known => (known == fate).then(|| why.message.clone())?,
            };
            Some(UnappliedChange {
                path: path.to_string_lossy().into_owned(),
                why,
                kept: None,
            })
        })
        .collect();
    let why_not = match why.kind {
        ErrorKind::Conflict => UnappliedReason::Conflict,
        ErrorKind::Failed | ErrorKind::Unavailable => UnappliedReason::Failed,
        _ => UnappliedReason::Refused,
    };
    let outer = partly_applied(&note.said, &all, why_not);
    let left_out = all.len().saturating_sub(MAX_LISTED);
    let listed = all.into_iter().take(MAX_LISTED);
    let mut result = ToolResult::data(&RunData {
        command: note.said.data,
        changes: note.applied,
        more_changes: (note.more_applied > 0).then_some(note.more_applied),
        touched: None,
        not_applied: note
            .dropped
            .into_iter()
            .take(MAX_LISTED)
            .chain(listed)
            .collect(),
    })?;
    if left_out > 0 {
        result
            .notes
            .push(format!("{left_out} more were not applied"));
    }
    result.artifacts = note.said.artifacts;
    result.notes.extend(note.said.notes);
    result.strength = note.said.strength;
    result.outer_error = outer;
    Ok(result)
}

/// The most serious reason why changes were not applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum UnappliedReason {
    Refused,
    Conflict,
    Failed,
}

impl UnappliedReason {
    fn of(fate: &Fate) -> Self {
        match fate {
            Fate::Failed(_) => Self::Failed,
            Fate::Conflict(_) => Self::Conflict,
            _ => Self::Refused,
        }
    }

    fn error(self, words: String) -> ToolError {
        let (kind, advice) = match self {
            Self::Refused => (
                ErrorKind::Denied,
                "the command ran on a copy: what was not applied is not in the workspace",
            ),
            Self::Conflict => (
                ErrorKind::Conflict,
                "read the file as it is now, and run the command again; where `data.not_applied` says `kept`, that artifact has its version",
            ),
            Self::Failed => (
                ErrorKind::Failed,
                "the command ran on a copy: what was not applied is not in the workspace; fix what failed, and run it again",
            ),
        };
        ToolError::new(kind, words).with_advice(advice)
    }
}

/// Builds the error for changes that were not applied. If the command itself failed, the error says both.
fn partly_applied(
    report: &CommandReport,
    not_applied: &[UnappliedChange],
    why_not: UnappliedReason,
) -> Option<ToolError> {
    if not_applied.is_empty() {
        return None;
    }
    // A reason of its own says more.
    let (joint, own): (Vec<_>, Vec<_>) = not_applied
        .iter()
        .partition(|one| one.why == SAME_REPOSITORY);
    let first = own.into_iter().chain(joint).take(MAX_NAMED);
    let mut names: Vec<String> = first
        .map(|one| format!("{}: {}", one.path, one.why))
        .collect();
    let more = not_applied.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    let count = match not_applied.len() {
        1 => "1 change was".to_owned(),
        count => format!("{count} changes were"),
    };
    let words = format!("{count} not applied ({})", names.join("; "));
    Some(match report.error() {
        Some(error) => {
            let kind = error.kind();
            let joint = ToolError::new(kind, format!("{}; {words}", error.message()));
            match error.advice() {
                Some(advice) => joint.with_advice(advice.to_owned()),
                None => joint,
            }
        }
        None => why_not.error(words),
    })
}

/// Returns the repository outside of the workspace, for a command's note.
pub(super) fn repository_of(workspace: &Workspace) -> Option<PathText> {
    let folder = workspace.repository()?.folder();
    Some(PathText(folder.to_owned()))
}

pub(super) fn view_missing(error: &io::Error) -> ToolError {
    ToolError::conflict(format!(
        "the command's copy of the workspace no longer exists: {error}"
    ))
    .with_advice("nothing was applied; run the command again")
}
