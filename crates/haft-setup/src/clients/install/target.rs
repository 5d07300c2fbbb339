//! `InstallTarget`: a settings file, what haft adds to it, and haft's record of that.

use std::fmt;
use std::path::PathBuf;

use crate::clients::install::record::{InstalledPart, SettingsBackup};
use crate::clients::settings_file::EditableFile;
use crate::edit::EditError;
use crate::problem::Problem;

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

/// A settings file, what haft adds to it, and haft's record of that.
#[derive(Debug)]
pub(crate) struct InstallTarget {
    pub(crate) content: Box<dyn InstallContent>,
    pub(crate) file: EditableFile,
    pub(crate) original: SettingsBackup,
}

impl InstallTarget {
    /// Returns an edit that leaves a text as it is.
    pub(super) fn unchanged_edit(&self, text: Option<String>) -> InstallEdit {
        InstallEdit {
            file: self.file.path.clone(),
            before: text.clone(),
            after: text,
            backup: None,
            replaces: false,
        }
    }

    /// Returns the problem that a text cannot be edited.
    pub(super) fn refuse(&self, text: &str, wrong: EditError) -> Problem {
        let ContentRole { owner, by_hand, .. } = self.content.role();
        let failed = format!("cannot edit the settings of {owner}");
        let problem = wrong.problem(&failed, &self.file.path, text);
        problem.advise(by_hand)
    }
}
