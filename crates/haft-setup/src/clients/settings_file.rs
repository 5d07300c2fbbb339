//! A settings file, of a client or haft's own: read, locked against other haft processes, written completely or not at all.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use haft::file_lock::FileLock;
use haft_shell::join_words;
use rustix::io::Errno;

use crate::plain_file;
use crate::problem::{Problem, SourceLocation};

mod attributes;

/// Maximum size in bytes, larger than any settings file: Claude Code stores much more in its own than settings.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The file, by its canonical path.
#[derive(Debug)]
pub struct EditableFile {
    /// Its canonical path.
    pub path: PathBuf,
    /// The program that it belongs to.
    client: &'static str,
    /// What to do if it cannot be read or written.
    advice: String,
    /// Its permissions if it is new; `None` for the usual ones.
    mode: Option<u32>,
}

/// The texts of a file, before and after an edit.
#[derive(Debug, Clone)]
pub struct FileTexts {
    /// The previous text; `None` if the file did not exist.
    pub before: Option<String>,
    /// The new text.
    pub after: String,
}

impl EditableFile {
    /// Returns a settings file of haft itself. Links are followed. `mode` is that of a new file; `None` for the usual one.
    ///
    /// # Errors
    /// The path cannot be resolved.
    pub fn own(named: &Path, mode: Option<u32>) -> Result<Self, Problem> {
        let advice = "make the file and its folder readable and writable".to_owned();
        let file = Self::locate(named, "haft", advice, None)?;
        Ok(Self { mode, ..file })
    }

    /// Finds a file of `client`. Links are followed, as the client does; a project's file must be `within` the project.
    pub(crate) fn locate(
        named: &Path,
        client: &'static str,
        advice: String,
        within: Option<&Path>,
    ) -> Result<Self, Problem> {
        let path = resolve_path(named).map_err(|e| {
            let (why, remedy) = not_resolved(named, &e);
            Problem::failed(format!("cannot find the settings of {client}: {why}"))
                .at(SourceLocation::file(named))
                .advise(remedy.unwrap_or_else(|| advice.clone()))
        })?;
        if within.is_some_and(|project| !path.starts_with(project)) {
            return Err(Problem::usage(format!(
                "the settings of {client} lead out of the project, to {}",
                path.display()
            ))
            .at(SourceLocation::file(named))
            .advise("replace the link with a file, or install for the user"));
        }
        Ok(Self {
            path,
            client,
            advice,
            mode: None,
        })
    }

    /// Sets the permissions of a new file.
    pub(crate) fn with_mode(mut self, mode: u32) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Reads the file; returns `None` if it does not exist.
    pub(crate) fn read(&self) -> Result<Option<String>, Problem> {
        match plain_file::read(&self.path, MAX_BYTES) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.failed("read", &e)),
        }
    }

    /// Returns the folders in its path that do not exist, outermost first.
    pub(crate) fn missing_folders(&self) -> Vec<PathBuf> {
        let above = self.folder().ancestors();
        let missing = above.take_while(|folder| std::fs::symlink_metadata(folder).is_err());
        let mut folders: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        folders.reverse();
        folders
    }

    /// Creates the missing folders.
    pub(crate) fn make_folders(&self) -> Result<(), Problem> {
        std::fs::create_dir_all(self.folder()).map_err(|e| self.failed("make the folder of", &e))
    }

    /// Locks the file's folder until the lock is dropped: of two installs at the same time, the second one edits what the first one wrote.
    pub(crate) fn lock(&self) -> Result<FileLock, Problem> {
        plain_file::lock_folder(self.folder()).map_err(|e| self.failed("lock the folder of", &e))
    }

    /// Removes drafts that a killed process left behind.
    pub(crate) fn sweep(&self) {
        plain_file::sweep_drafts(self.folder(), &self.draft_name());
    }

    /// Returns a path for a draft.
    pub(crate) fn draft_path(&self) -> Result<PathBuf, Problem> {
        let random = plain_file::random_hex(8).map_err(|e| self.failed("write", &e))?;
        let name = format!(".{}.{random}", self.draft_name());
        Ok(self.folder().join(name))
    }

    fn draft_name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!("{name}.haft")
    }

    /// Writes the new text next to the file, with its mode and owner.
    pub(crate) fn write_draft(&self, draft: &Path, text: &str) -> Result<(), Problem> {
        let written = self.draft(draft, text);
        self.or_remove_draft(draft, written)
    }

    /// Replaces the file with the draft if the file still has the text that was read: clients also write their settings, and take no lock.
    pub(crate) fn replace_with(&self, draft: &Path, before: Option<&str>) -> Result<(), Problem> {
        if let Err(changed) = self.check_unchanged(before) {
            // Nothing refers to the draft: one that cannot be removed does no harm.
            let _ = std::fs::remove_file(draft);
            return Err(changed);
        }
        self.or_remove_draft(draft, std::fs::rename(draft, &self.path))
    }

    /// Replaces the text with what `edit` makes of it; `dry_run` only returns both. A missing file counts as an empty one.
    ///
    /// # Errors
    /// The file cannot be read, edited or written, or changed at the same time.
    pub fn rewrite(
        &self,
        dry_run: bool,
        edit: impl FnOnce(&str) -> Result<String, Problem>,
    ) -> Result<FileTexts, Problem> {
        let _lock = if dry_run {
            None
        } else {
            self.make_folders()?;
            Some(self.lock()?)
        };
        let before = self.read()?;
        let after = edit(before.as_deref().unwrap_or_default())?;
        if before.as_deref() != Some(&after) {
            self.check_replaceable()?;
        }
        if !dry_run && before.as_deref() != Some(&after) {
            self.sweep();
            let draft = self.draft_path()?;
            self.write_draft(&draft, &after)?;
            self.replace_with(&draft, before.as_deref())?;
        }
        Ok(FileTexts { before, after })
    }

    /// Fails if the file cannot be replaced without a loss: under its other names (hard links), it would keep the old text. Nor is it
    /// written to, since one of its names may be in a snapshot.
    pub(crate) fn check_replaceable(&self) -> Result<(), Problem> {
        let links = std::fs::metadata(&self.path).map_or(0, |file| file.nlink());
        if links < 2 {
            return Ok(());
        }
        let what = format!(
            "cannot write the settings of {}: the file has {links} names (hard links), and only this one would get the new text",
            self.client
        );
        let own = text_of(&self.path);
        let copy = format!("{own}.copy");
        Err(Problem::failed(what)
            .at(SourceLocation::file(&self.path))
            .advise(format!(
                "nothing was changed; make it a file of its own first: cp -p {0} && mv {1}",
                join_words(&[&own, &copy]),
                join_words(&[&copy, &own]),
            )))
    }

    fn check_unchanged(&self, before: Option<&str>) -> Result<(), Problem> {
        if self.read()?.as_deref() == before {
            return Ok(());
        }
        let what = format!("{} changed its settings at the same time", self.client);
        Err(Problem::failed(what)
            .at(SourceLocation::file(&self.path))
            .advise("nothing of it was overwritten; try again"))
    }

    fn or_remove_draft(&self, draft: &Path, done: io::Result<()>) -> Result<(), Problem> {
        done.map_err(|e| {
            // The draft may not exist; the error of the write is the one to report.
            let _ = std::fs::remove_file(draft);
            self.failed("write", &e)
        })
    }

    fn draft(&self, draft: &Path, text: &str) -> io::Result<()> {
        let old = match OpenOptions::new().read(true).write(true).open(&self.path) {
            Ok(file) => Some(file),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if let Some(mode) = old.as_ref().map(|_| 0o600).or(self.mode) {
            options.mode(mode);
        }
        let mut file = options.open(draft)?;
        file.write_all(text.as_bytes())?;
        if let Some(old) = &old {
            attributes::keep(old, &file)?;
        }
        file.sync_all()
    }

    /// Removes the file if it still has the text that was read.
    ///
    /// # Errors
    /// It changed at the same time, or cannot be removed.
    pub fn remove(&self, before: &str) -> Result<(), Problem> {
        self.check_unchanged(Some(before))?;
        std::fs::remove_file(&self.path).map_err(|e| self.failed("remove", &e))
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    fn failed(&self, what: &str, error: &io::Error) -> Problem {
        let what = format!("cannot {what} the settings of {}: {error}", self.client);
        Problem::failed(what)
            .at(SourceLocation::file(&self.path))
            .advise(self.advice.clone())
    }
}

/// Returns why a path leads nowhere, and what to do if a link is to blame.
fn not_resolved(path: &Path, error: &io::Error) -> (String, Option<String>) {
    let mut above: Vec<&Path> = path.ancestors().collect();
    above.reverse();
    let broken = above.into_iter().find(|at| at.canonicalize().is_err());
    let Some(link) = broken.filter(|at| at.is_symlink()) else {
        return (error.to_string(), None);
    };
    let remove = format!("rm {}", join_words(&[text_of(link)]));
    let shown = link.display();
    if Errno::from_io_error(error) == Some(Errno::LOOP) {
        let why = format!("{shown} is a symbolic link that leads back to itself");
        return (why, Some(format!("remove the link: {remove}")));
    }
    let target = std::fs::read_link(link).unwrap_or_default();
    let target = link.parent().unwrap_or(link).join(target);
    let why = format!(
        "{shown} is a symbolic link to {}, which cannot be reached: {error}",
        target.display()
    );
    let advice = format!("create what it leads to, or remove the link: {remove}");
    (why, Some(advice))
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns the canonical path of a file that may not exist yet.
fn resolve_path(path: &Path) -> io::Result<PathBuf> {
    let is_there = std::fs::symlink_metadata(path).is_ok();
    if is_there {
        return path.canonicalize();
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(path.to_owned());
    };
    Ok(resolve_path(folder)?.join(name))
}

#[cfg(test)]
mod tests;
