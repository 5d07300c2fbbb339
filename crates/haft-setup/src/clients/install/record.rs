//! The record of an install in haft's state folder: the original file, and what haft wrote.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft::file_lock::FileLock;
use serde::{Deserialize, Serialize};

use crate::clients::install::digest::digest;
use crate::clients::install::reverse::ReverseEdit;
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};
use crate::site::StateFolder;

/// Maximum size of a record, in bytes; it includes an entry that was replaced, and texts that an edit removed.
const MAX_RECORD: u64 = 16 * 1024 * 1024;

/// Maximum size of a backup, in bytes.
const MAX_BACKUP: u64 = 64 * 1024 * 1024;

/// The folder of the records below the state folder.
const FOLDER: &str = "settings";

/// The record of what haft did to a settings file, whatever it added to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InstallRecord {
    v: u32,
    /// Whether the saved text is one: `false` if there was no file.
    pub(crate) existed: bool,
    /// SHA-256 of the text that is saved, which is to be restored once the last of haft's parts is removed.
    pub(crate) before: Option<String>,
    /// SHA-256 of what haft wrote over it, or was about to write: two if one edit followed another.
    pub(crate) written: Vec<String>,
    /// The folders that haft created for the file, outermost first.
    pub(crate) made: Vec<PathBuf>,
    /// What haft added, by the name of the part.
    pub(crate) parts: BTreeMap<String, InstalledPart>,
}

/// Something that haft added to a settings file: itself as a server, or its hooks.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InstalledPart {
    /// Whether the saved text has it, too: the file was changed after it was added, and then haft added something else.
    pub(crate) is_saved: bool,
    /// The objects and lists that haft created to hold it, by name.
    pub(crate) made: Vec<String>,
    /// The text of the previous entry with haft's name, if it started something else.
    pub(crate) replaced: Option<String>,
    /// What undoes the edit that added it.
    pub(crate) reverse: Option<ReverseEdit>,
}

impl InstalledPart {
    /// Whether haft created the object or list of this name.
    pub(crate) fn has_made(&self, name: &str) -> bool {
        self.made.iter().any(|made| made == name)
    }
}

impl InstallRecord {
    /// Returns the record of an install that has created folders and written nothing.
    pub(crate) fn of_folders(made: &[PathBuf]) -> Self {
        Self {
            v: 3,
            existed: false,
            before: None,
            written: Vec::new(),
            made: made.to_vec(),
            parts: BTreeMap::new(),
        }
    }

    /// Whether haft wrote this text, and the saved text is the one that this record refers to.
    pub(crate) fn is_of(&self, text: &str, saved: Option<&str>) -> bool {
        let fits = !self.existed || self.before == saved.map(digest);
        self.written.contains(&digest(text)) && fits && self.existed == self.before.is_some()
    }

    /// Sets the text to restore; `None` if there was no file.
    pub(crate) fn restoring(mut self, text: Option<&str>) -> Self {
        self.existed = text.is_some();
        self.before = text.map(digest);
        self
    }

    /// Sets the texts that haft writes over the saved one.
    pub(crate) fn having_written(mut self, texts: &[&str]) -> Self {
        self.written = texts.iter().map(|text| digest(text)).collect();
        self
    }

    /// Returns the record without a part.
    pub(crate) fn without(mut self, part: &str) -> Self {
        self.parts.remove(part);
        self
    }

    /// Whether all of haft's parts but this one are in the saved text: then that text is this file without the part.
    pub(crate) fn is_last(&self, part: &str) -> bool {
        let mut others = self.parts.iter().filter(|(name, _)| *name != part);
        others.all(|(_, part)| part.is_saved)
    }
}

/// The backup of a settings file and the record of the install, in the state folder.
#[derive(Debug)]
pub(crate) struct SettingsBackup {
    pub(crate) before: PathBuf,
    record: PathBuf,
    folder: PathBuf,
}

impl SettingsBackup {
    /// Returns the paths for this file. All edits of a file share a record, so that it has its bytes back after the last of them, in
    /// whatever order they are undone.
    pub(crate) fn of(home: StateFolder<'_>, file: &Path) -> Self {
        let name = digest(&file.to_string_lossy());
        let folder = home.join(FOLDER);
        Self {
            before: folder.join(format!("{}.before", &name[..16])),
            record: folder.join(format!("{}.json", &name[..16])),
            folder,
        }
    }

    /// Locks all records until the lock is dropped, and removes what a killed process left of this one.
    pub(crate) fn lock(&self) -> Result<FileLock, Problem> {
        let folder = &self.folder;
        plain_file::private_folder(folder).map_err(|e| failed("make", folder, &e))?;
        let lock = plain_file::lock_folder(folder).map_err(|e| failed("lock", folder, &e))?;
        for file in [&self.before, &self.record] {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            plain_file::sweep_drafts(folder, &name);
        }
        Ok(lock)
    }

    pub(crate) fn load(&self) -> Result<Option<InstallRecord>, Problem> {
        match plain_file::read(&self.record, MAX_RECORD) {
            // A damaged record counts as none: then only haft's entry is removed.
            Ok(text) => Ok(serde_json::from_str(&text).ok()),
            Err(e) if is_missing(&e) => Ok(None),
            Err(e) => Err(failed("read", &self.record, &e)),
        }
    }

    pub(crate) fn text(&self) -> Result<Option<String>, Problem> {
        match plain_file::read(&self.before, MAX_BACKUP) {
            Ok(text) => Ok(Some(text)),
            Err(e) if is_missing(&e) => Ok(None),
            Err(e) => Err(failed("read", &self.before, &e)),
        }
    }

    pub(crate) fn save_text(&self, text: Option<&str>) -> Result<(), Problem> {
        if let Some(text) = text {
            return plain_file::write_private(&self.before, text)
                .map_err(|e| failed("write", &self.before, &e));
        }
        // There may be one of an earlier install.
        let _ = std::fs::remove_file(&self.before);
        Ok(())
    }

    pub(crate) fn save_record(&self, record: &InstallRecord) -> Result<(), Problem> {
        let text = serde_json::to_string(record)
            .map_err(|e| Problem::failed(format!("cannot write the record of an install: {e}")))?;
        let written = if text.len() as u64 > MAX_RECORD {
            // A record that could not be read again would prevent all later edits.
            let what = format!("it has more than {MAX_RECORD} bytes");
            Err(std::io::Error::other(what))
        } else {
            plain_file::write_private(&self.record, &text)
        };
        written.map_err(|e| failed("write", &self.record, &e))
    }

    pub(crate) fn forget(&self) {
        for file in [&self.before, &self.record] {
            if let Err(error) = std::fs::remove_file(file) {
                tracing::debug!(%error, file = %file.display(), "remove a backup");
            }
        }
    }
}

fn is_missing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Problem {
    Problem::failed(format!(
        "cannot {what} haft's backup of a program's settings: {error}"
    ))
    .at(SourceLocation::file(path))
    .advise("nothing was changed; make haft's state folder writable, or name another: --home DIR")
}
