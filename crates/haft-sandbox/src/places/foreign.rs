//! Files below the system's folders that are not the system's.
//!
//! Examples are a service's home in `/usr/local` or a workspace in `/usr/src/app`: every jail shows the folder
//! above, so they have to be excluded.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Places, is_system};

/// Where programs are installed that keep the settings of the machine beside themselves.
const PREFIXES: [&str; 2] = ["/usr", "/usr/local"];
/// Such settings: npm's, for one, with its tokens, and those of pip's site.
const LOCAL_SETTINGS: [&str; 2] = ["etc", "pip.conf"];

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
        let settings = PREFIXES
            .iter()
            .flat_map(|prefix| settings_in(prefix.as_ref()));
        found.extend(settings.filter(|path| is_system(path)));
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

/// Returns the settings of the machine in a folder of programs, if there are any. No package system says of them what is as it was shipped, so
/// all of them count as an administrator's.
fn settings_in(prefix: &Path) -> impl Iterator<Item = PathBuf> {
    let all = LOCAL_SETTINGS.map(|name| prefix.join(name)).into_iter();
    // A link in its place leads to what jails do not show, or to a folder that is hidden itself.
    all.filter_map(|path| path.canonicalize().ok())
        .filter(|path| fs::read_dir(path).map_or(true, |mut list| list.next().is_some()))
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::settings_in;

    #[test]
    fn settings_of_the_machine_beside_its_programs_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let found = || settings_in(&root).collect::<Vec<_>>();
        assert_eq!(found().len(), 0);
        fs::create_dir(root.join("etc")).unwrap();
        assert_eq!(found().len(), 0);
        fs::write(root.join("etc/npmrc"), "").unwrap();
        fs::write(root.join("pip.conf"), "").unwrap();
        assert_eq!(found(), [root.join("etc"), root.join("pip.conf")]);
        fs::rename(root.join("etc"), root.join("real")).unwrap();
        symlink("real", root.join("etc")).unwrap();
        assert_eq!(found(), [root.join("real"), root.join("pip.conf")]);
    }
}
