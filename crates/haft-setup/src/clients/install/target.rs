//! A settings file that haft adds something to: edited in place so that after a kill at any moment the next edit can continue, and restored
//! byte for byte if nothing else changed it.

use std::fmt;
use std::path::PathBuf;

use crate::clients::install::record::{InstallRecord, SettingsBackup, digest};
use crate::clients::install::step::EditStep;
use crate::clients::settings_file::EditableFile;
use crate::edit::EditError;
use crate::problem::{Problem, SourceLocation};
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
    /// Returns the name of the program that owns the file.
    fn owner(&self) -> &'static str;

    /// Returns what to do if the file cannot be edited.
    fn by_hand(&self) -> String;

    /// Returns the entry in a text: haft's, or another in its place.
    fn entry(&self, text: &str) -> Result<Option<InstalledEntry>, EditError>;

    /// Returns whether a text has the parent that haft creates if it is missing.
    fn has_parent(&self, text: &str) -> bool;

    /// Returns the text without the content, with what it replaced; `None` if the text does not have it.
    fn without(
        &self,
        text: &str,
        record: Option<&InstallRecord>,
    ) -> Result<Option<String>, EditError>;

    /// Returns whether a text without the content is useless, so that the file can be removed.
    fn is_spent(&self, text: &str) -> bool {
        let _ = text;
        false
    }
}

/// An entry in haft's place in the settings.
pub(crate) struct InstalledEntry {
    /// Its text in the record: JSON, or a TOML table.
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

/// What an install changes and records.
struct InstallPlan {
    edit: InstallEdit,
    memory: Option<BackupPlan>,
}

/// What an install records.
struct BackupPlan {
    record: InstallRecord,
    before: RestoreText,
}

/// The text to restore later.
enum RestoreText {
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
            return self.without();
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
        let InstallPlan { mut edit, memory } = self.plan(put)?;
        let Some(BackupPlan { record, before }) = memory else {
            return Ok(edit);
        };
        let existed = record.existed;
        if let RestoreText::Now(kept) = before {
            hands(EditStep::KeepText(&self.original, kept))?;
        }
        hands(EditStep::KeepRecord(&self.original, record))?;
        self.write(&edit, hands)?;
        edit.backup = existed.then(|| self.original.before.clone());
        Ok(edit)
    }

    pub(crate) fn uninstall(&self, hands: StepRunner<'_>) -> Result<InstallEdit, Problem> {
        let _own = self.original.lock()?;
        let record = self.original.load()?;
        let made = record.as_ref().map(|record| record.made.clone());
        let made = made.unwrap_or_default();
        // In a folder that does not exist there is nothing to lock.
        let lock = self.file.missing_folders().is_empty();
        let _lock = lock.then(|| self.file.lock()).transpose()?;
        self.file.sweep();
        let edit = self.without()?;
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
        if record.is_some() {
            hands(EditStep::Forget(&self.original))?;
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
    fn plan(&self, put: InsertFn<'_>) -> Result<InstallPlan, Problem> {
        let before = self.file.read()?;
        let text = before.clone().unwrap_or_default();
        let refuse = |wrong| self.refuse(&text, wrong);
        let after = put(&text).map_err(refuse)?;
        let mut edit = self.unchanged_edit(before);
        edit.after = Some(after);
        if !edit.changes() {
            return Ok(InstallPlan { edit, memory: None });
        }
        let entry = self.content.entry(&text).map_err(refuse)?;
        edit.replaces = entry.as_ref().is_some_and(|entry| !entry.is_ours);
        let memory = self.memory(&edit, entry).map_err(|fault| match fault {
            PrepareError::Wrong(wrong) => refuse(wrong),
            PrepareError::Problem(problem) => problem,
        })?;
        Ok(InstallPlan {
            edit,
            memory: Some(memory),
        })
    }

    fn memory(
        &self,
        edit: &InstallEdit,
        entry: Option<InstalledEntry>,
    ) -> Result<BackupPlan, PrepareError> {
        let text = edit.before.clone().unwrap_or_default();
        let after = digest(edit.after.as_deref().unwrap_or_default());
        let old = self.original.load()?;
        if let Some(old) = old.as_ref().filter(|old| old.is_written_by_haft(&text))
            && old.fits(self.original.text()?.as_deref())
        {
            let record = InstallRecord {
                written: vec![digest(&text), after],
                ..old.clone()
            };
            return Ok(BackupPlan {
                record,
                before: RestoreText::AsItIs,
            });
        }
        let made = old.as_ref().map(|old| old.made.clone());
        let own = old.filter(|_| entry.as_ref().is_some_and(|entry| entry.is_ours));
        // The file was changed since, or haft was not in it: restoring means this text without haft.
        let kept = match &entry {
            Some(entry) if entry.is_ours => {
                let without = self.content.without(&text, own.as_ref())?;
                Some(without.unwrap_or_else(|| text.clone()))
            }
            _ => edit.before.clone(),
        };
        let has_servers = self.content.has_parent(&text);
        let record = InstallRecord {
            existed: kept.is_some(),
            before: kept.as_deref().map(digest),
            written: vec![after],
            made_servers: own.as_ref().map_or(!has_servers, |own| own.made_servers),
            replaced: match own {
                Some(own) => own.replaced,
                None => entry.filter(|entry| !entry.is_ours).map(|entry| entry.text),
            },
            ..InstallRecord::of_folders(&made.unwrap_or_default())
        };
        Ok(BackupPlan {
            record,
            before: RestoreText::Now(kept),
        })
    }

    /// Returns what the file becomes without haft.
    fn without(&self) -> Result<InstallEdit, Problem> {
        let mut edit = self.unchanged_edit(self.file.read()?);
        let Some(text) = edit.before.as_deref() else {
            return Ok(edit);
        };
        let record = self.original.load()?;
        let kept = self.original.text()?;
        let is_own = record
            .as_ref()
            .is_some_and(|record| record.is_written_by_haft(text) && record.fits(kept.as_deref()));
        if is_own {
            edit.after = kept.filter(|_| record.is_some_and(|record| record.existed));
            return Ok(edit);
        }
        let without = self.content.without(text, record.as_ref());
        let without = without.map_err(|wrong| self.refuse(text, wrong))?;
        if without.is_some() {
            edit.after = without.filter(|rest| !self.content.is_spent(rest));
        }
        Ok(edit)
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
        let source = self.file.path.display().to_string();
        let place = if wrong.at.is_empty() {
            SourceLocation::file(&self.file.path)
        } else {
            SourceLocation::in_text(&source, text, wrong.at)
        };
        let owner = self.content.owner();
        Problem::usage(format!(
            "cannot edit the settings of {owner}: {}",
            wrong.what
        ))
        .at(place)
        .advise(self.content.by_hand())
    }
}
