//! The trust store: folders whose own settings may count, and those a person said no to.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::plain_file;
use crate::problem::{Place, Problem};

pub(crate) const FILE: &str = "trust.json";
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// What people said about folders, by their real paths.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    v: u32,
    #[serde(default)]
    trusted: BTreeSet<PathBuf>,
    #[serde(default)]
    declined: BTreeSet<PathBuf>,
}

impl Trust {
    /// Reads the store; an absent one is empty, a damaged one an error: guessing would trust or distrust wrongly.
    ///
    /// # Errors
    /// A [`Problem`] where the file is damaged or cannot be read.
    pub fn load(home: &Home) -> Result<Self, Problem> {
        let path = home.join(FILE);
        let told = |what: String| {
            Problem::settings(format!("read the trust store: {what}"))
                .at(Place::file(&path))
                .advise("move the file away and trust folders anew: haft trust DIR")
        };
        match plain_file::read(&path, MAX_BYTES) {
            Ok(text) => serde_json::from_str(&text).map_err(|e| told(e.to_string())),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(Self::default())
            }
            Err(e) => Err(told(e.to_string())),
        }
    }

    /// Whether a folder is trusted.
    pub fn trusts(&self, folder: &Path) -> bool {
        real(folder).is_some_and(|folder| self.trusted.contains(&folder))
    }

    /// Whether a person was asked and said no.
    pub fn declined(&self, folder: &Path) -> bool {
        real(folder).is_some_and(|folder| self.declined.contains(&folder))
    }

    /// Trusts a folder, or takes that back.
    ///
    /// # Errors
    /// A [`Problem`] where the folder cannot be found or the store cannot be written.
    pub fn set(&mut self, folder: &Path, trusted: bool) -> Result<(), Problem> {
        let folder = folder
            .canonicalize()
            .map_err(|e| Problem::usage(format!("trust a folder: {e}")).at(Place::file(folder)))?;
        let (to, from) = if trusted {
            (&mut self.trusted, &mut self.declined)
        } else {
            (&mut self.declined, &mut self.trusted)
        };
        from.remove(&folder);
        to.insert(folder);
        Ok(())
    }

    /// Forgets a folder; whether it was trusted.
    pub fn forget(&mut self, folder: &Path) -> bool {
        // A folder that is gone is known by the path it had.
        let folder = real(folder).unwrap_or_else(|| folder.to_owned());
        self.declined.remove(&folder);
        self.trusted.remove(&folder)
    }

    /// Writes the store.
    ///
    /// # Errors
    /// A [`Problem`] where the file cannot be written.
    pub fn save(&mut self, home: &Home) -> Result<(), Problem> {
        self.v = 1;
        home.create()?;
        let path = home.join(FILE);
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Problem::failed(format!("write the trust store: {e}")))?;
        plain_file::write_private(&path, &text).map_err(|e| {
            Problem::failed(format!("write the trust store: {e}")).at(Place::file(&path))
        })
    }
}

fn real(folder: &Path) -> Option<PathBuf> {
    folder.canonicalize().ok()
}
