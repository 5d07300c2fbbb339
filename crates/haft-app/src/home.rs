//! `Home`: haft's own state folder, for its owner alone.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::plain_file;
use crate::problem::{Place, Problem};

/// The state folder.
#[derive(Debug, Clone)]
pub struct Home(PathBuf);

impl Home {
    /// `--home`, `$HAFT_HOME`, `$XDG_STATE_HOME/haft` or `~/.local/state/haft`; nothing is made yet.
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
            .advise("say where: --home DIR")
        })?;
        let absolute = std::path::absolute(&path).map_err(|e| {
            Problem::settings(format!("find the state folder: {e}")).at(Place::file(&path))
        })?;
        Ok(Self(absolute))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Something in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The folder for output that is too long for memory; its files have no names.
    pub fn spool(&self) -> PathBuf {
        self.join("spool")
    }

    /// Makes the folder where it is missing.
    pub fn create(&self) -> Result<(), Problem> {
        plain_file::private_folder(&self.0).map_err(|e| {
            Problem::settings(format!("make the state folder: {e}"))
                .at(Place::file(&self.0))
                .advise("choose another: --home DIR or HAFT_HOME")
        })
    }

    /// Who may enter it, where that is more than its owner: the mode's last three digits.
    pub fn open_mode(&self) -> Option<u32> {
        let mode = std::fs::metadata(&self.0).ok()?.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then_some(mode)
    }
}
