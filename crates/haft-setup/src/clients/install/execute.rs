//! Carries out an edit of a settings file, so that after a kill at any moment the next edit can continue, and the file is restored byte for
//! byte if nothing but haft changed it.

use crate::clients::install::plan::{EditPlan, SavedText};
use crate::clients::install::record::InstallRecord;
use crate::clients::install::step::EditStep;
use crate::clients::install::target::{InsertFn, InstallEdit, InstallTarget};
use crate::problem::Problem;
use crate::site::StateFolder;

/// Performs the steps of an edit, one after the other. A test stops where a process could be killed.
pub(crate) type StepRunner<'a> = &'a mut dyn FnMut(EditStep<'_>) -> Result<(), Problem>;

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
        let has_others = |later: &InstallRecord| edit.after.is_some() && !later.parts.is_empty();
        match later {
            Some(later) if !has_others(&later) => hands(EditStep::Forget(&self.original))?,
            Some(later) if is_known || edit.changes() => {
                hands(EditStep::KeepRecord(&self.original, later))?;
            }
            _ => {}
        }
        Ok(edit)
    }

    fn write(&self, edit: &InstallEdit, hands: StepRunner<'_>) -> Result<(), Problem> {
        let draft = self.file.draft_path()?;
        let text = edit.after.as_deref().unwrap_or_default();
        hands(EditStep::Draft(&self.file, &draft, text))?;
        hands(EditStep::Rename(&self.file, &draft, edit.before.as_deref()))
    }
}
