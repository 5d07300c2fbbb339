//! A settings file that haft adds something to: edited in place so that after a kill at any moment the next edit can continue, and restored
//! byte for byte if nothing else changed it.

use std::fmt;
use std::path::PathBuf;

use crate::clients::install::record::{InstallRecord, InstalledPart, SettingsBackup};
use crate::clients::install::reverse::ReverseEdit;
use crate::clients::install::step::EditStep;
use crate::clients::settings_file::EditableFile;
use crate::edit::EditError;
use crate::problem::Problem;
use crate::site::StateFolder;

/// The change of a settings file, made or planned.
#[derive(Debug, Clone)]
pub struct InstallEdit {
    /// The file.
    pub file: PathBuf,
    /// Its previous text; `None` if it did not exist.
    pub before: Option<String>,
    /// Its new text; `None` if it was removed.
    pub after: Option<String>,
    /// The backup of the original file.
    pub backup: Option<PathBuf>,
    /// Whether it replaces an entry with haft's name that starts something else. That entry is saved, and restored when haft is removed.
    pub replaces: bool,
}

impl InstallEdit {
    /// Returns whether anything changes.
    pub fn changes(&self) -> bool {
        self.before != self.after
    }
}

/// What haft adds to a settings file, and how it is found there again.
pub(crate) trait InstallContent: fmt::Debug {
    /// Returns what it is to the file, and whose file that is.
    fn role(&self) -> ContentRole;

    /// Returns the entry in a text: haft's, or another in its place.
    fn entry(&self, text: &str) -> Result<Option<InstalledEntry>, EditError>;

    /// Returns the names of the objects and lists that hold the content and that a text does not have: haft creates them.
    fn missing(&self, text: &str) -> Vec<String>;

    /// Returns the text without the content, with what it replaced; `None` if the text does not have it.
    fn without(
        &self,
        text: &str,
        known: Option<&InstalledPart>,
    ) -> Result<Option<String>, EditError>;

    /// Returns whether a text without the content is useless, so that the file can be removed.
    fn is_spent(&self, text: &str) -> bool {
        let _ = text;
        false
    }
}

/// What haft's content is to a settings file.
pub(crate) struct ContentRole {
    /// Its name in the record of the file.
    pub(crate) part: String,
    /// The program that the file belongs to.
    pub(crate) owner: &'static str,
    /// What to do if the file cannot be edited.
    pub(crate) by_hand: String,
}

/// An entry in haft's place in the settings.
pub(crate) struct InstalledEntry {
    /// Its text in the file.
    pub(crate) text: String,
    /// Whether it starts haft.
    pub(crate) is_ours: bool,
}

impl InstalledEntry {
    /// Returns an entry whose text is not recorded: it is recognized by what it starts.
    pub(crate) fn unrecorded(is_ours: bool) -> Self {
        Self {
            text: String::new(),
            is_ours,
        }
    }
}

/// Adds the content to a text.
pub(crate) type InsertFn<'a> = &'a dyn Fn(&str) -> Result<String, EditError>;

/// Performs the steps of an edit, one after the other. A test stops where a process could be killed.
pub(crate) type StepRunner<'a> = &'a mut dyn FnMut(EditStep<'_>) -> Result<(), Problem>;

/// What an edit changes and records.
struct EditPlan {
    edit: InstallEdit,
    /// What is recorded before the file is written; `None` if nothing is.
    record: Option<InstallRecord>,
    /// The text to restore later.
    saved: SavedText,
}

/// The text to restore later.
enum SavedText {
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

/// A settings file, what haft adds to it, and haft's record of that.
#[derive(Debug)]
pub(crate) struct InstallTarget {
    pub(crate) content: Box<dyn InstallContent>,
    pub(crate) file: EditableFile,
    pub(crate) original: SettingsBackup,
}

impl InstallTarget {
    /// Adds the content; `dry_run` only returns what the file would become.
    pub(crate) fn put_in(
        &self,
        home: StateFolder<'_>,
        put: InsertFn<'_>,
        dry_run: bool,
    ) -> Result<InstallEdit, Problem> {
        if dry_run {
            return Ok(self.plan(put)?.edit);
        }
        home.create()?;
        self.install(put, &mut EditStep::take)
    }

    /// Removes the content; `dry_run` only returns what the file would become.
    pub(crate) fn take_out(
        &self,
        home: StateFolder<'_>,
        dry_run: bool,
    ) -> Result<InstallEdit, Problem> {
        if dry_run {
            return Ok(self.without()?.edit);
        }
        if self.file.read()?.is_none() && self.original.load()?.is_none() {
            return Ok(self.unchanged_edit(None));
        }
        home.create()?;
        self.uninstall(&mut EditStep::take)
    }

    /// Adds the content. After any step, the next install or uninstall can continue: what haft is about to write is recorded before it is
    /// written.
    pub(crate) fn install(
        &self,
        put: InsertFn<'_>,
        hands: StepRunner<'_>,
    ) -> Result<InstallEdit, Problem> {
        let _own = self.original.lock()?;
        let made = self.file.missing_folders();
        if !made.is_empty() {
            hands(EditStep::KeepRecord(
                &self.original,
                InstallRecord::of_folders(&made),
            ))?;
            hands(EditStep::MakeFolders(&self.file))?;
        }
        let _lock = self.file.lock()?;
        self.file.sweep();
        let EditPlan {
            mut edit,
            record,
            saved,
        } = self.plan(put)?;
        let Some(record) = record else {
            return Ok(edit);
        };
        let existed = record.existed;
        if let SavedText::Now(kept) = saved {
            hands(EditStep::KeepText(&self.original, kept))?;
        }
        hands(EditStep::KeepRecord(&self.original, record))?;
        self.write(&edit, hands)?;
        edit.backup = existed.then(|| self.original.before.clone());
        Ok(edit)
    }

    /// Removes the content. A part stays in the record until the file is without it: after a kill, removing it again finishes.
    pub(crate) fn uninstall(&self, hands: StepRunner<'_>) -> Result<InstallEdit, Problem> {
        let _own = self.original.lock()?;
        let known = self.original.load()?;
        let made = known.as_ref().map(|known| known.made.clone());
        let made = made.unwrap_or_default();
        // In a folder that does not exist there is nothing to lock.
        let lock = self.file.missing_folders().is_empty();
        let _lock = lock.then(|| self.file.lock()).transpose()?;
        self.file.sweep();
        let EditPlan {
            edit,
            record,
            saved,
        } = self.without()?;
        let later = record.as_ref().or(known.as_ref());
        let later = later.map(|record| record.clone().without(&self.content.role().part));
        if let SavedText::Now(text) = saved {
            hands(EditStep::KeepText(&self.original, text))?;
        }
        if let Some(record) = record {
            hands(EditStep::KeepRecord(&self.original, record))?;
        }
        match (&edit.before, &edit.after) {
            (before, after) if before == after && before.is_some() => {}
            (_, Some(_)) => self.write(&edit, hands)?,
            (before, None) => {
                if let Some(before) = before {
                    hands(EditStep::Remove(&self.file, before))?;
                }
                hands(EditStep::RemoveFolders(&made))?;
            }
        }
        let name = self.content.role().part;
        let is_known = known.is_some_and(|known| known.parts.contains_key(&name));
        match later {
            Some(later) if edit.after.is_some() && !later.parts.is_empty() => {
                if is_known || edit.changes() {
                    hands(EditStep::KeepRecord(&self.original, later))?;
                }
            }
            Some(_) => hands(EditStep::Forget(&self.original))?,
            None => {}
        }
        Ok(edit)
    }

    fn write(&self, edit: &InstallEdit, hands: StepRunner<'_>) -> Result<(), Problem> {
        let draft = self.file.draft_path()?;
        let text = edit.after.as_deref().unwrap_or_default();
        hands(EditStep::Draft(&self.file, &draft, text))?;
        hands(EditStep::Rename(&self.file, &draft, edit.before.as_deref()))
    }

    /// Plans what an install does to the file, and what it records, which is nothing if nothing changes.
    fn plan(&self, put: InsertFn<'_>) -> Result<EditPlan, Problem> {
        let before = self.file.read()?;
        let text = before.clone().unwrap_or_default();
        let refuse = |wrong| self.refuse(&text, wrong);
        let after = put(&text).map_err(refuse)?;
        let mut edit = self.unchanged_edit(before);
        edit.after = Some(after);
        if !edit.changes() {
            return Ok(EditPlan {
                edit,
                record: None,
                saved: SavedText::AsItIs,
            });
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
        let after = edit.after.as_deref().unwrap_or_default();
        let name = self.content.role().part;
        let known = self.original.load()?;
        let old = known.as_ref().and_then(|known| known.parts.get(&name));
        let is_ours = entry.as_ref().is_some_and(|entry| entry.is_ours);
        let mut made = self.content.missing(&text);
        made.extend(old.into_iter().flat_map(|old| old.made.clone()));
        let part = InstalledPart {
            is_saved: false,
            made,
            reverse: self.reverse(&edit, old, is_ours),
            replaced: match entry.filter(|entry| !entry.is_ours) {
                Some(entry) => Some(entry.text),
                None => old.and_then(|old| old.replaced.clone()),
            },
        };
        let saved = self.original.text()?;
        let current = known
            .as_ref()
            .filter(|known| known.is_written_by_haft(&text));
        let (mut record, saved) = match current.filter(|known| known.fits(saved.as_deref())) {
            Some(known) => {
                let record = known.clone().having_written(&[&text, after]);
                let is_in_saved = is_ours && old.is_none_or(|old| old.is_saved);
                let saved = saved.filter(|_| known.existed && is_in_saved);
                let without = saved.map(|saved| self.content.without(&saved, old));
                match without.transpose()?.flatten() {
                    Some(without) => (
                        record.restoring(Some(&without)),
                        SavedText::Now(Some(without)),
                    ),
                    None => (record, SavedText::AsItIs),
                }
            }
            // The file was changed since, or haft was not in it: restoring means this text without haft.
            None => {
                let kept = match is_ours {
                    true => {
                        let without = self.content.without(&text, old)?;
                        Some(without.unwrap_or_else(|| text.clone()))
                    }
                    false => edit.before.clone(),
                };
                let kept = kept.filter(|kept| !is_ours || !self.is_spent(kept, known.as_ref()));
                let record = known.unwrap_or_else(|| InstallRecord::of_folders(&[]));
                let mut record = record.having_written(&[after]);
                for part in record.parts.values_mut() {
                    part.is_saved = true;
                }
                (record.restoring(kept.as_deref()), SavedText::Now(kept))
            }
        };
        record.parts.insert(name, part);
        Ok(EditPlan {
            edit,
            record: Some(record),
            saved,
        })
    }

    /// Returns what undoes an install, and the ones of the same content before it.
    fn reverse(
        &self,
        edit: &InstallEdit,
        old: Option<&InstalledPart>,
        is_ours: bool,
    ) -> Option<ReverseEdit> {
        let text = edit.before.as_deref().unwrap_or_default();
        let below = match old {
            Some(old) => old.reverse.as_ref()?.undo(text)?,
            None if is_ours => return None,
            None => text.to_owned(),
        };
        ReverseEdit::of(&below, edit.after.as_deref()?)
    }

    /// Whether a file with this text is of no use: it is haft's, or haft made it and nothing is left of what it put there.
    fn is_spent(&self, text: &str, known: Option<&InstallRecord>) -> bool {
        let is_made = known.is_some_and(|known| !known.existed && !known.written.is_empty());
        let is_blank = || text.chars().all(|c| c.is_whitespace() || "{}".contains(c));
        self.content.is_spent(text) || is_made && is_blank()
    }

    fn removal(&self) -> Result<EditPlan, Problem> {
        let mut plan = EditPlan {
            edit: self.unchanged_edit(self.file.read()?),
            record: None,
            saved: SavedText::AsItIs,
        };
        let Some(text) = plan.edit.before.clone() else {
            return Ok(plan);
        };
        let known = self.original.load()?;
        let saved = self.original.text()?;
        let name = self.content.role().part;
        let part = known.as_ref().and_then(|known| known.parts.get(&name));
        let refuse = |wrong| self.refuse(&text, wrong);
        let current = known
            .as_ref()
            .filter(|known| known.is_written_by_haft(&text));
        let Some(current) = current.filter(|known| known.fits(saved.as_deref())) else {
            let without = self.content.without(&text, part).map_err(refuse)?;
            if without.is_some() {
                plan.edit.after = without.filter(|rest| !self.is_spent(rest, known.as_ref()));
            }
            return Ok(plan);
        };
        let mut saved = saved.filter(|_| current.existed);
        if part.is_none_or(|part| part.is_saved)
            && let Some(text) = &saved
            && let Some(without) = self.content.without(text, part).map_err(refuse)?
        {
            saved = Some(without);
            plan.saved = SavedText::Now(saved.clone());
        }
        plan.edit.after = if current.is_last(&name) {
            saved.clone()
        } else if let Some(below) = part.and_then(|part| part.reverse.as_ref()?.undo(&text)) {
            Some(below)
        } else {
            let without = self.content.without(&text, part).map_err(refuse)?;
            Some(without.unwrap_or_else(|| text.clone()))
        };
        let is_alone = current.parts.keys().all(|other| *other == name);
        if !is_alone && (part.is_some() || plan.edit.changes()) {
            let after = plan.edit.after.as_deref().unwrap_or_default();
            let record = current.clone().having_written(&[&text, after]);
            plan.record = Some(record.restoring(saved.as_deref()));
        } else {
            plan.saved = SavedText::AsItIs;
        }
        Ok(plan)
    }

    /// Plans what the file becomes without haft, if it can be written.
    fn without(&self) -> Result<EditPlan, Problem> {
        let plan = self.removal()?;
        if plan.edit.changes() && plan.edit.after.is_some() {
            self.file.check_replaceable()?;
        }
        Ok(plan)
    }

    fn unchanged_edit(&self, text: Option<String>) -> InstallEdit {
        InstallEdit {
            file: self.file.path.clone(),
            before: text.clone(),
            after: text,
            backup: None,
            replaces: false,
        }
    }

    fn refuse(&self, text: &str, wrong: EditError) -> Problem {
        let ContentRole { owner, by_hand, .. } = self.content.role();
        let failed = format!("cannot edit the settings of {owner}");
        let problem = wrong.problem(&failed, &self.file.path, text);
        problem.advise(by_hand)
    }
}
