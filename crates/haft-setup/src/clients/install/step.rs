//! The steps of an edit as values: the process may be killed between any two of them.

use std::path::{Path, PathBuf};

use crate::clients::install::record::{InstallRecord, SettingsBackup};
use crate::clients::settings_file::EditableFile;
use crate::problem::Problem;

/// A step of an edit.
#[derive(Debug)]
pub(crate) enum EditStep<'a> {
    /// Records what is about to be done.
    KeepRecord(&'a SettingsBackup, InstallRecord),
    MakeFolders(&'a EditableFile),
    /// Saves the previous text, to restore it; `None` if there was no file.
    KeepText(&'a SettingsBackup, Option<String>),
    /// Writes the new text next to the file.
    Draft(&'a EditableFile, &'a Path, &'a str),
    /// Replaces the file with the draft if the file still has the text that was read.
    Rename(&'a EditableFile, &'a Path, Option<&'a str>),
    /// Removes the file if it still has the text that was read.
    Remove(&'a EditableFile, &'a str),
    /// Removes the folders that are empty.
    RemoveFolders(&'a [PathBuf]),
    Forget(&'a SettingsBackup),
}

impl EditStep<'_> {
    /// Performs a step.
    pub(crate) fn take(step: EditStep<'_>) -> Result<(), Problem> {
        match step {
            EditStep::KeepRecord(original, record) => original.save_record(&record),
            EditStep::MakeFolders(file) => file.make_folders(),
            EditStep::KeepText(original, text) => original.save_text(text.as_deref()),
            EditStep::Draft(file, draft, text) => file.write_draft(draft, text),
            EditStep::Rename(file, draft, before) => file.replace_with(draft, before),
            EditStep::Remove(file, before) => file.remove(before),
            EditStep::RemoveFolders(folders) => {
                for folder in folders.iter().rev() {
                    // A folder that is no longer empty stays.
                    let _ = std::fs::remove_dir(folder);
                }
                Ok(())
            }
            EditStep::Forget(original) => {
                original.forget();
                Ok(())
            }
        }
    }
}
