//! `EditPlan`: what an install or uninstall makes of a settings file, and what is recorded so that it can be undone.
//!
//! The record has a saved text, which is the file without haft, and what haft has written over it. A file that is still as haft wrote it
//! becomes the saved text when the last of haft's parts is removed. Before that, or if the file was changed, a part is removed alone.

use crate::clients::install::record::{InstallRecord, InstalledPart};
use crate::clients::install::reverse::ReverseEdit;
use crate::clients::install::target::{InsertFn, InstallEdit, InstallTarget, InstalledEntry};
use crate::edit::EditError;
use crate::problem::Problem;

/// What an edit changes and records.
pub(super) struct EditPlan {
    pub(super) edit: InstallEdit,
    /// What is recorded before the file is written; `None` if nothing is.
    pub(super) record: Option<InstallRecord>,
    /// The text to restore later.
    pub(super) saved: SavedText,
}

/// The text to restore later.
pub(super) enum SavedText {
    /// The one that is already saved.
    AsItIs,
    /// This text; `None` if there was no file.
    Now(Option<String>),
}

/// An error in preparing what to record.
enum PrepareError {
    Wrong(EditError),
    Problem(Problem),
}

impl From<EditError> for PrepareError {
    fn from(wrong: EditError) -> Self {
        Self::Wrong(wrong)
    }
}

impl From<Problem> for PrepareError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl EditPlan {
    /// Returns a plan that changes no record.
    fn of(edit: InstallEdit) -> Self {
        Self {
            edit,
            record: None,
            saved: SavedText::AsItIs,
        }
    }
}

impl InstallTarget {
    /// Plans what an install does to the file, and what it records, which is nothing if nothing changes.
    pub(super) fn plan(&self, put: InsertFn<'_>) -> Result<EditPlan, Problem> {
        let before = self.file.read()?;
        let text = before.clone().unwrap_or_default();
        let refuse = |wrong| self.refuse(&text, wrong);
        let after = put(&text).map_err(refuse)?;
        let mut edit = self.unchanged_edit(before);
        edit.after = Some(after);
        if !edit.changes() {
            return Ok(EditPlan::of(edit));
        }
        self.file.check_replaceable()?;
        let entry = self.content.entry(&text).map_err(refuse)?;
        edit.replaces = entry.as_ref().is_some_and(|entry| !entry.is_ours);
        self.recorded(edit, entry).map_err(|fault| match fault {
            PrepareError::Wrong(wrong) => refuse(wrong),
            PrepareError::Problem(problem) => problem,
        })
    }

    /// Adds to the plan of an install what it records.
    fn recorded(
        &self,
        edit: InstallEdit,
        entry: Option<InstalledEntry>,
    ) -> Result<EditPlan, PrepareError> {
        let text = edit.before.clone().unwrap_or_default();
        let name = self.content.role().part;
        let known = self.original.load()?;
        let old = known.as_ref().and_then(|known| known.parts.get(&name));
        let is_ours = entry.as_ref().is_some_and(|entry| entry.is_ours);
        let mut made = self.content.missing(&text);
        made.extend(old.into_iter().flat_map(|old| old.made.clone()));
        let part = InstalledPart {
            is_saved: false,
            made,
            reverse: reverse(&edit, old, is_ours),
            replaced: match entry.filter(|entry| !entry.is_ours) {
                Some(entry) => Some(entry.text),
                None => old.and_then(|old| old.replaced.clone()),
            },
        };
        let saved = self.original.text()?;
        let current = known
            .as_ref()
            .filter(|known| known.is_of(&text, saved.as_deref()));
        let (mut record, saved) = match current {
            Some(known) => self.added(&edit, known, saved, is_ours)?,
            None => self.begun(&edit, known.as_ref(), is_ours)?,
        };
        record.parts.insert(name, part);
        Ok(EditPlan {
            edit,
            record: Some(record),
            saved,
        })
    }

    /// Returns the record of one more edit of a file that is as haft wrote it. An entry of haft's that haft did not add goes from the saved
    /// text.
    fn added(
        &self,
        edit: &InstallEdit,
        known: &InstallRecord,
        saved: Option<String>,
        is_ours: bool,
    ) -> Result<(InstallRecord, SavedText), EditError> {
        let text = edit.before.as_deref().unwrap_or_default();
        let after = edit.after.as_deref().unwrap_or_default();
        let record = known.clone().having_written(&[text, after]);
        let old = known.parts.get(&self.content.role().part);
        let is_in_saved = is_ours && old.is_none_or(|old| old.is_saved);
        let saved = saved.filter(|_| known.existed && is_in_saved);
        let without = saved.map(|saved| self.content.without(&saved, old));
        Ok(match without.transpose()?.flatten() {
            Some(without) => (
                record.restoring(Some(&without)),
                SavedText::Now(Some(without)),
            ),
            None => (record, SavedText::AsItIs),
        })
    }

    /// Returns the record of an edit of a file that was changed since, or that haft was not in: restoring means this text without haft.
    fn begun(
        &self,
        edit: &InstallEdit,
        known: Option<&InstallRecord>,
        is_ours: bool,
    ) -> Result<(InstallRecord, SavedText), EditError> {
        let after = edit.after.as_deref().unwrap_or_default();
        let mut kept = edit.before.clone();
        if let Some(text) = edit.before.as_deref().filter(|_| is_ours) {
            let old = known.and_then(|known| known.parts.get(&self.content.role().part));
            let without = self.content.without(text, old)?;
            kept = without.or(kept).filter(|kept| !self.is_spent(kept, known));
        }
        let record = known.cloned();
        let record = record.unwrap_or_else(|| InstallRecord::of_folders(&[]));
        let mut record = record.having_written(&[after]).restoring(kept.as_deref());
        for part in record.parts.values_mut() {
            part.is_saved = true;
        }
        Ok((record, SavedText::Now(kept)))
    }

    /// Whether a file with this text is of no use: it is haft's, or haft made it and nothing is left of what it put there.
    fn is_spent(&self, text: &str, known: Option<&InstallRecord>) -> bool {
        let is_made = known.is_some_and(|known| !known.existed && !known.written.is_empty());
        let is_blank = || text.chars().all(|c| c.is_whitespace() || "{}".contains(c));
        self.content.is_spent(text) || is_made && is_blank()
    }

    /// Plans what the file becomes without haft, if it can be written.
    pub(super) fn without(&self) -> Result<EditPlan, Problem> {
        let before = self.file.read()?;
        let edit = self.unchanged_edit(before.clone());
        let Some(text) = before else {
            return Ok(EditPlan::of(edit));
        };
        let removed = self.removed(edit, &text);
        let plan = removed.map_err(|fault| match fault {
            PrepareError::Wrong(wrong) => self.refuse(&text, wrong),
            PrepareError::Problem(problem) => problem,
        })?;
        if plan.edit.changes() && plan.edit.after.is_some() {
            self.file.check_replaceable()?;
        }
        Ok(plan)
    }

    fn removed(&self, mut edit: InstallEdit, text: &str) -> Result<EditPlan, PrepareError> {
        let known = self.original.load()?;
        let saved = self.original.text()?;
        let name = self.content.role().part;
        let part = known.as_ref().and_then(|known| known.parts.get(&name));
        let current = known
            .as_ref()
            .filter(|known| known.is_of(text, saved.as_deref()));
        let Some(current) = current else {
            let without = self.content.without(text, part)?;
            if without.is_some() {
                edit.after = without.filter(|rest| !self.is_spent(rest, known.as_ref()));
            }
            return Ok(EditPlan::of(edit));
        };
        let mut saved = saved.filter(|_| current.existed);
        let mut saved_now = SavedText::AsItIs;
        if part.is_none_or(|part| part.is_saved)
            && let Some(text) = &saved
            && let Some(without) = self.content.without(text, part)?
        {
            saved = Some(without);
            saved_now = SavedText::Now(saved.clone());
        }
        let below = || part.and_then(|part| part.reverse.as_ref()?.undo(text));
        if current.is_last(&name) {
            edit.after.clone_from(&saved);
        } else if let Some(below) = below() {
            edit.after = Some(below);
        } else if let Some(without) = self.content.without(text, part)? {
            edit.after = Some(without);
        }
        let is_alone = current.parts.keys().all(|other| *other == name);
        if is_alone || part.is_none() && !edit.changes() {
            return Ok(EditPlan::of(edit));
        }
        let after = edit.after.as_deref().unwrap_or_default();
        let record = current.clone().having_written(&[text, after]);
        Ok(EditPlan {
            edit,
            record: Some(record.restoring(saved.as_deref())),
            saved: saved_now,
        })
    }
}

/// Returns what undoes an install, and the ones of the same content before it.
fn reverse(edit: &InstallEdit, old: Option<&InstalledPart>, is_ours: bool) -> Option<ReverseEdit> {
    let text = edit.before.as_deref().unwrap_or_default();
    let below = match old {
        Some(old) => old.reverse.as_ref()?.undo(text)?,
        None if is_ours => return None,
        None => text.to_owned(),
    };
    ReverseEdit::of(&below, edit.after.as_deref()?)
}
