//! Files below the system's folders that are not the system's.
//!
//! Examples are a service's home in `/usr/local` or a workspace in `/usr/src/app`: every jail shows the folder
//! above, so they have to be excluded.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Places, is_system};

/// Where programs that no package brought keep the settings of the machine.
const LOCAL_SETTINGS: &str = "/usr/local/etc";

impl Places {
    /// Returns the host's own files, this user's homes and the folders that tools may change, if they exist and
    /// lie below the system's folders, and the machine's own settings there, if it has any.
    pub(crate) fn foreign(&self) -> Vec<PathBuf> {
        let homes = self.homes.iter().filter(|home| belongs_to_user(home));
        let all = self.own.iter().chain(&self.writable).chain(homes);
        let mut found: Vec<_> = all
            .filter(|path| is_system(path) && path.exists())
            .cloned()
            .collect();
        // No package ships these, so all of them are an administrator's: npm's, for one, with its tokens.
        let has_settings = fs::read_dir(LOCAL_SETTINGS).is_ok_and(|mut list| list.next().is_some());
        found.extend(has_settings.then(|| LOCAL_SETTINGS.into()));
        found.sort();
        // A path inside another one is hidden with it.
        found.dedup_by(|next, kept| next.starts_with(kept));
        found
    }

    /// Returns whether every jail shows this path.
    pub(crate) fn is_shown(&self, path: &Path) -> bool {
        is_system(path) && !self.foreign().iter().any(|one| path.starts_with(one))
    }

    /// Returns the largest parts of a folder that contain nothing foreign; symbolic links are not parts.
    pub(crate) fn parts_shown(&self, folder: &Path) -> Vec<PathBuf> {
        let mut parts = Vec::new();
        add_parts(folder, &self.foreign(), &mut parts);
        parts
    }
}

/// The users of system services have homes such as `/usr/sbin`, which do not count.
fn belongs_to_user(home: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    fs::metadata(home).is_ok_and(|meta| meta.uid() == user)
}

fn add_parts(at: &Path, foreign: &[PathBuf], parts: &mut Vec<PathBuf>) {
    if foreign.iter().any(|one| at.starts_with(one)) {
        return;
    }
    if !foreign.iter().any(|one| one.starts_with(at)) {
        parts.push(at.to_owned());
        return;
    }
    for entry in fs::read_dir(at).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            add_parts(&entry.path(), foreign, parts);
        }
    }
}
