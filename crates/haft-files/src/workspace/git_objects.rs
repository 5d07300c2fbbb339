//! How a repository names its objects, by its own settings. Git takes this from no other file.

use std::io::Read as _;
use std::path::Path;

use super::Workspace;
use super::git_file::parse;
use super::git_settings::MAX_SETTINGS;
use crate::git_index::ObjectHash;

/// Returns the hash that a repository's settings choose; `None` if git would refuse them, or if haft does not know it.
pub fn object_hash_in(settings: &str) -> Option<ObjectHash> {
    let mut found = parse(settings)?
        .into_iter()
        .filter(|one| (&*one.section, &*one.key) == ("extensions", "objectformat"))
        .filter(|one| one.name.is_none());
    match found.next_back() {
        None => Some(ObjectHash::Sha1),
        Some(one) => match &*one.value {
            "sha1" => Some(ObjectHash::Sha1),
            "sha256" => Some(ObjectHash::Sha256),
            _ => None,
        },
    }
}

/// Returns the repository's folder that a file in it belongs to: a worktree's part has another, which `commondir` names. `has` says
/// whether there is a file.
pub fn repository_above(path: &Path, has: impl Fn(&Path) -> bool) -> Option<&Path> {
    let mut folders = path.ancestors().skip(1);
    folders.find(|folder| has(&folder.join("HEAD")) && !has(&folder.join("commondir")))
}

impl Workspace {
    /// Returns the hash that names the objects of the repository around a path; `None` if that cannot be determined.
    pub fn object_hash(&self, path: &Path) -> Option<ObjectHash> {
        let folder = repository_above(path, |path| self.look(path).is_some())?;
        let config = folder.join("config");
        if self.look(&config).is_none() {
            return Some(ObjectHash::Sha1);
        }
        let open = self.open_file(&config).ok()?;
        let mut text = String::new();
        let file = (open.stamp.bytes() <= MAX_SETTINGS).then_some(open.file)?;
        file.take(MAX_SETTINGS).read_to_string(&mut text).ok()?;
        object_hash_in(&text)
    }
}
