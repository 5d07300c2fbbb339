//! `Home`: haft's own state folder, accessible only to its owner.

mod owner;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::text::hex;
use sha2::{Digest, Sha256};

use crate::environment::Environment;
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};
use haft_setup::site::StateFolder;

/// The folder of saved rules in the state folder.
const RULES: &str = "rules";

/// The state folder. Clones refer to the same one.
#[derive(Debug, Clone)]
pub struct Home {
    path: PathBuf,
    /// Removes the folder with the last clone, if it is temporary.
    temporary: Option<Arc<TemporaryFolder>>,
}

/// A folder that is removed when this value is dropped.
#[derive(Debug)]
struct TemporaryFolder(PathBuf);

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, folder = %self.0.display(), "remove a temporary state folder");
        }
    }
}

/// Returns the path of the file with a workspace's rules, in the state folder `home`.
pub fn rule_file(home: &Path, workspace: &str) -> PathBuf {
    let digest = Sha256::digest(workspace.as_bytes());
    let name = hex(digest.get(..8).unwrap_or_default());
    home.join(RULES).join(format!("{name}.toml"))
}

impl Home {
    /// Locates the folder: `--home`, `$HAFT_HOME`, `$XDG_STATE_HOME/haft` or `~/.local/state/haft`. Does not create it.
    ///
    /// # Errors
    /// A [`Problem`] if neither the option nor the environment names a folder, or if another user could change what is in it: rules,
    /// tokens and decisions of that user would count.
    pub fn locate(option: Option<&Path>, environment: &Environment) -> Result<Self, Problem> {
        let given = option
            .map(Path::to_owned)
            .or_else(|| {
                Some(PathBuf::from(
                    environment.get("HAFT_HOME").filter(|v| !v.is_empty())?,
                ))
            })
            .or_else(|| Some(environment.folder("XDG_STATE_HOME")?.join("haft")))
            .or_else(|| Some(environment.folder("HOME")?.join(".local/state/haft")));
        let path = given.ok_or_else(|| {
            Problem::settings(
                "there is no folder for haft's state: neither HAFT_HOME nor HOME is set",
            )
            .advise("choose one: --home DIR")
        })?;
        let absolute = std::path::absolute(&path).map_err(|e| {
            Problem::settings(format!("cannot find the state folder: {e}"))
                .at(SourceLocation::file(&path))
        })?;
        owner::check(&absolute)?;
        Ok(Self {
            path: absolute,
            temporary: None,
        })
    }

    /// Creates a folder in the system's temporary folder, which is removed with the last clone.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn temporary() -> Result<Self, Problem> {
        let made = plain_file::random_hex(16).and_then(|name| {
            let path = std::env::temp_dir().join(format!("haft-{name}"));
            plain_file::private_folder(&path)?;
            path.canonicalize()
        });
        let path = made.map_err(|e| {
            Problem::failed(format!("cannot create a temporary state folder: {e}"))
                .at(SourceLocation::file(&std::env::temp_dir()))
                .advise("name a permanent state folder, or set TMPDIR to a writable folder")
        })?;
        Ok(Self {
            temporary: Some(Arc::new(TemporaryFolder(path.clone()))),
            path,
        })
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the folder is removed when the application ends.
    pub(crate) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// Returns the path of an entry of the folder.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the folder for output that is too long for memory; its files have no names.
    pub fn spool(&self) -> PathBuf {
        self.join("spool")
    }

    /// Creates the folder if it is missing.
    ///
    /// # Errors
    /// A [`Problem`] if the folder cannot be created.
    pub fn create(&self) -> Result<(), Problem> {
        StateFolder(&self.path).create()
    }

    /// Returns the last three digits of the mode if anyone besides the owner has access.
    pub fn open_mode(&self) -> Option<u32> {
        let mode = std::fs::metadata(&self.path).ok()?.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then_some(mode)
    }
}
