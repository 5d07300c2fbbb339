//! The steps of an edit as values: between any two of them a process may be killed.

use std::path::{Path, PathBuf};

use crate::clients::install::record::{Original, Record};
use crate::clients::settings_file::SettingsFile;
use crate::problem::Problem;

/// A step.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// What is about to be done is remembered.
    KeepRecord(&'a Original, Record),
    MakeFolders(&'a SettingsFile),
    /// The previous text is saved, to restore it; `None` if there was no file.
    KeepText(&'a Original, Option<String>),
    /// The new text is written beside the file.
    Draft(&'a SettingsFile, &'a Path, &'a str),
    /// The draft takes the place of the file, which holds what was read of it.
    Rename(&'a SettingsFile, &'a Path, Option<&'a str>),
    /// The file goes, which holds what was read of it.
    Remove(&'a SettingsFile, &'a str),
    /// As far as they are empty.
    RemoveFolders(&'a [PathBuf]),
    Forget(&'a Original),
}

impl Step<'_> {
    /// Takes it.
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
                    // One that holds something by now stays.
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
