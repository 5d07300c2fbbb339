//! A client's settings file: read, locked against a second haft, written all or not at all.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::clients::{Client, Level};
use crate::plain_file;
use crate::problem::{Place, Problem};
use crate::site::Site;

/// Larger than any settings file: Claude Code keeps much beside its settings.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// How long another haft may hold the file.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often to look whether it has let go.
const LOOK: Duration = Duration::from_millis(20);

/// The file, by its real path.
#[derive(Debug)]
pub(super) struct SettingsFile {
    pub(super) path: PathBuf,
    client: &'static str,
}

impl SettingsFile {
    /// Finds the file. Links are followed, as the client does; a project's file must lie in the project.
    pub(super) fn locate(
        client: &'static Client,
        level: Level,
        site: &Site,
    ) -> Result<Self, Problem> {
        let named = client.file(level, site)?;
        let path = resolved(&named).map_err(|e| {
            Problem::failed(format!("find the settings of {}: {e}", client.name))
                .at(Place::file(&named))
        })?;
        if level == Level::Project && !path.starts_with(&site.workspace) {
            return Err(Problem::usage(format!(
                "the settings of {} lead out of the project, to {}",
                client.name,
                path.display()
            ))
            .at(Place::file(&named))
            .advise("replace the link with a file, or install with --user"));
        }
        Ok(Self {
            path,
            client: client.name,
        })
    }

    /// Reads it; `None` where it does not exist.
    pub(super) fn read(&self) -> Result<Option<String>, Problem> {
        match plain_file::read(&self.path, MAX_BYTES) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.failed("read", &e)),
        }
    }

    /// Holds the file's folder until the lock is dropped: of two installs at once the second edits what the first wrote.
    pub(super) fn lock(&self) -> Result<File, Problem> {
        let folder = self.folder();
        std::fs::create_dir_all(folder).map_err(|e| self.failed("make the folder of", &e))?;
        let lock = File::open(folder).map_err(|e| self.failed("open the folder of", &e))?;
        let begun = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(LOOK);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(Problem::failed(format!(
                        "another process holds the settings of {}",
                        self.client
                    ))
                    .at(Place::file(folder))
                    .advise("try again when it has ended"));
                }
                Err(TryLockError::Error(e)) => return Err(self.failed("lock", &e)),
            }
        }
    }

    /// Replaces the text; mode and owner stay.
    pub(super) fn write(&self, text: &str) -> Result<(), Problem> {
        let written = self.replace(text);
        written.map_err(|e| self.failed("write", &e))
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let old = match OpenOptions::new().write(true).open(&self.path) {
            Ok(file) => Some(file.metadata()?),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let draft = self
            .folder()
            .join(format!(".{name}.{}", plain_file::random_hex(8)?));
        let written = || {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            if old.is_some() {
                options.mode(0o600);
            }
            let mut file = options.open(&draft)?;
            file.write_all(text.as_bytes())?;
            if let Some(old) = &old {
                if fchown(&file, Some(old.uid()), Some(old.gid())).is_err() {
                    tracing::debug!(file = %self.path.display(), "keep the owner of a settings file");
                }
                file.set_permissions(std::fs::Permissions::from_mode(old.mode() & 0o7777))?;
            }
            file.sync_all()?;
            std::fs::rename(&draft, &self.path)
        };
        let written = written();
        if written.is_err() {
            // The draft may not exist; the write's own error is the one to report.
            let _ = std::fs::remove_file(&draft);
        }
        written
    }

    /// Removes it.
    pub(super) fn remove(&self) -> Result<(), Problem> {
        std::fs::remove_file(&self.path).map_err(|e| self.failed("remove", &e))
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    fn failed(&self, what: &str, error: &io::Error) -> Problem {
        let what = format!("{what} the settings of {}: {error}", self.client);
        Problem::failed(what)
            .at(Place::file(&self.path))
            .advise(format!(
                "paste the settings yourself: haft mcp snippet {}",
                self.client
            ))
    }
}

/// The real path of a file that may not exist yet.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let is_there = std::fs::symlink_metadata(path).is_ok();
    if is_there {
        return path.canonicalize();
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(path.to_owned());
    };
    Ok(resolved(folder)?.join(name))
}
