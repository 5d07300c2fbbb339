//! The steps of an edit as values: the process may be killed between any two of them.

use std::path::{Path, PathBuf};

use crate::clients::install::record::{Original, Record};
use crate::clients::settings_file::SettingsFile;
use crate::problem::Problem;

/// A step of an edit.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// Records what is about to be done.
    KeepRecord(&'a Original, Record),
    MakeFolders(&'a SettingsFile),
    /// Saves the previous text, to restore it; `None` if there was no file.
    KeepText(&'a Original, Option<String>),
    /// Writes the new text next to the file.
    Draft(&'a SettingsFile, &'a Path, &'a str),
    /// Replaces the file with the draft if the file still has the text that was read.
    Rename(&'a SettingsFile, &'a Path, Option<&'a str>),
    /// Removes the file if it still has the text that was read.
    Remove(&'a SettingsFile, &'a str),
    /// Removes the folders that are empty.
    RemoveFolders(&'a [PathBuf]),
    Forget(&'a Original),
}

impl Step<'_> {
    /// Performs a step.
    pub(crate) fn take(step: Step<'_>) -> Result<(), Problem> {
        match step {
            Step::KeepRecord(original, record) => original.save_record(&record),
            Step::MakeFolders(file) => file.make_folders(),
            Step::KeepText(original, text) => original.save_text(text.as_deref()),
            Step::Draft(file, draft, text) => file.write_draft(draft, text),
            Step::Rename(file, draft, before) => file.replace_with(draft, before),
            Step::Remove(file, before) => file.remove(before),
            Step::RemoveFolders(folders) => {
                for folder in folders.iter().rev() {
                    // A folder that is no longer empty stays.
                    let _ = std::fs::remove_dir(folder);
                }
                Ok(())
            }
            Step::Forget(original) => {
                original.forget();
                Ok(())
            }
        }
    }
}
