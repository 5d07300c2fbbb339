//! The trust store: folders whose own settings take effect, and those that the user declined to trust.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use haft_shell::join_words;
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::plain_file;
use crate::problem::{Problem, SourceLocation};

pub(crate) const FILE: &str = "trust.json";
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The user's answers about folders, by their canonical paths.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustStore {
    v: u32,
    #[serde(default)]
    trusted: BTreeSet<PathBuf>,
    #[serde(default)]
    declined: BTreeSet<PathBuf>,
}

/// The user's answer about a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustChoice {
    /// Its own settings and skills take effect.
    Trust,
    /// They do not, and the user is not asked again.
    Decline,
    /// As if the user had never been asked.
    Forget,
}

/// Returns the command line that trusts a folder, as it can be typed in any folder; `home` is the state folder if it is not the usual one.
pub fn trust_command(folder: &Path, home: Option<&Path>) -> String {
    let mut words = vec!["haft".into(), "trust".into(), folder.to_string_lossy()];
    if let Some(home) = home {
        words.extend(["--home".into(), home.to_string_lossy()]);
    }
    join_words(&words)
}

impl TrustStore {
    /// Reads the store. An absent one is empty; a damaged one is an error, as guessing would trust or distrust wrongly.
    ///
    /// # Errors
    /// A [`Problem`] if the file is damaged or cannot be read.
    pub fn load(home: &Home) -> Result<Self, Problem> {
        let path = home.join(FILE);
        let to_problem = |what: String| {
            Problem::settings(format!("cannot read the trust store: {what}"))
                .at(SourceLocation::file(&path))
        };
        let damaged = "move the file away and trust the folders again: haft trust DIR";
        let unreadable = "make the file readable, or name another state folder: --home DIR";
        match plain_file::read(&path, MAX_BYTES) {
            Ok(text) => {
                serde_json::from_str(&text).map_err(|e| to_problem(e.to_string()).advise(damaged))
            }
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(Self::default())
            }
            Err(e) => Err(to_problem(e.to_string()).advise(unreadable)),
        }
    }

    /// Returns whether a folder is trusted.
    pub fn trusts(&self, folder: &Path) -> bool {
        real(folder).is_some_and(|folder| self.trusted.contains(&folder))
    }

    /// Returns whether the user declined to trust a folder.
    pub fn declined(&self, folder: &Path) -> bool {
        real(folder).is_some_and(|folder| self.declined.contains(&folder))
    }

    /// Stores the user's answer about a folder, and returns whether the folder was trusted before. The store is read and written under a
    /// lock, so that no change is lost if two processes make one at the same time.
    ///
    /// # Errors
    /// A [`Problem`] if the folder cannot be found or stored, or the store cannot be read or written.
    pub fn change(home: &Home, folder: &Path, answer: TrustChoice) -> Result<bool, Problem> {
        let folder = match answer {
            // A folder that no longer exists is known by the path that it had.
            TrustChoice::Forget => real(folder).unwrap_or_else(|| folder.to_owned()),
            TrustChoice::Trust | TrustChoice::Decline => Self::check(folder)?,
        };
        home.create()?;
        let _lock = plain_file::lock_folder(home.path()).map_err(|e| {
            Problem::failed(format!("cannot lock the trust store: {e}"))
                .at(SourceLocation::file(home.path()))
        })?;
        let mut store = Self::load(home)?;
        store.declined.remove(&folder);
        let was = store.trusted.remove(&folder);
        match answer {
            TrustChoice::Trust => store.trusted.insert(folder),
            TrustChoice::Decline => store.declined.insert(folder),
            TrustChoice::Forget => false,
        };
        store.save(home)?;
        Ok(was)
    }

    /// Returns the canonical path of a folder that can be trusted.
    ///
    /// # Errors
    /// A [`Problem`] if the folder cannot be found, or its path is not UTF-8, which the store cannot hold.
    pub fn check(folder: &Path) -> Result<PathBuf, Problem> {
        let real = folder.canonicalize().map_err(|e| {
            let why = plain_file::name_loop(e);
            Problem::usage(format!("cannot trust a folder: {why}"))
                .at(SourceLocation::file(folder))
                .advise("name an existing folder")
        })?;
        if real.to_str().is_none() {
            return Err(Problem::usage(
                "trust a folder: its path is not UTF-8, and the trust store cannot hold it",
            )
            .at(SourceLocation::file(&real))
            .advise("rename the folder, or trust it for one run: --trust"));
        }
        Ok(real)
    }

    fn save(&mut self, home: &Home) -> Result<(), Problem> {
        self.v = 1;
        let path = home.join(FILE);
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| Problem::failed(format!("cannot write the trust store: {e}")))?;
        plain_file::write_private(&path, &text).map_err(|e| {
            Problem::failed(format!("cannot write the trust store: {e}"))
                .at(SourceLocation::file(&path))
        })
    }
}

fn real(folder: &Path) -> Option<PathBuf> {
    folder.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::thread;

    use super::{TrustChoice, TrustStore};
    use crate::environment::Environment;
    use crate::home::Home;

    fn home_at(root: &tempfile::TempDir) -> Home {
        Home::locate(Some(&root.path().join("home")), &Environment::default()).unwrap()
    }

    #[test]
    fn answers_given_at_once_are_all_kept() {
        let root = tempfile::tempdir().unwrap();
        let home = home_at(&root);
        let folder = |nth: usize| root.path().join(format!("f{nth}"));
        for nth in 0..40 {
            std::fs::create_dir(folder(nth)).unwrap();
        }
        TrustStore::change(&home, &folder(0), TrustChoice::Trust).unwrap();
        thread::scope(|scope| {
            for nth in 0..40 {
                let (home, folder) = (&home, folder(nth));
                let answer = if nth == 0 {
                    TrustChoice::Forget
                } else {
                    TrustChoice::Trust
                };
                scope.spawn(move || TrustStore::change(home, &folder, answer).unwrap());
            }
        });
        let store = TrustStore::load(&home).unwrap();
        let trusted: Vec<usize> = (0..40).filter(|nth| store.trusts(&folder(*nth))).collect();
        assert_eq!(trusted, (1..40).collect::<Vec<_>>());
    }

    #[test]
    fn a_folder_that_the_store_cannot_hold_is_refused_by_its_path() {
        let root = tempfile::tempdir().unwrap();
        let home = home_at(&root);
        let folder = root.path().join(OsStr::from_bytes(b"caf\xe9"));
        std::fs::create_dir(&folder).unwrap();
        let refused = TrustStore::change(&home, &folder, TrustChoice::Trust).unwrap_err();
        assert!(refused.to_string().contains("not UTF-8"), "{refused}");
        assert!(!home.join(super::FILE).exists());
    }
}
