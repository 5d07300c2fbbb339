//! `Links`: the symbolic links of a workspace, and where each leads.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

mod cache;
mod listing;
#[cfg(test)]
mod tests;
mod way;

pub(super) use cache::LinkCache;
pub use way::{OutsideLinks, TooManyLinks};

/// Maximum number of links to follow.
const MAX_LINKS: usize = 200_000;
/// Maximum number of `.git` files and `commondir` files.
const MAX_POINTERS: usize = 20_000;
/// Maximum length of a path in a message, in bytes.
const MAX_SHOWN: usize = 120;

/// The links of a workspace. All paths are relative to its root, and lead over no link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links {
    root: PathBuf,
    /// The texts of each link: the one in the workspace, and those that a call leaves.
    texts: BTreeMap<PathBuf, Vec<PathBuf>>,
    /// Links of a call at paths that were files or folders before.
    replacing: HashSet<PathBuf>,
    /// A folder whose links work although they cannot be listed.
    unlisted: Option<PathBuf>,
    /// A folder in which links have paths that are too long to be read.
    too_long: Option<PathBuf>,
    /// The `.git` files and `commondir` files.
    pointers: BTreeSet<PathBuf>,
    /// The folders that git treats as repositories.
    repositories: BTreeSet<PathBuf>,
    /// Whether there are more entries or links than the limits.
    too_many: bool,
}

impl Links {
    /// Creates the list of a workspace without links.
    fn none(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a link that a call leaves, such as a command on its copy; `replaces` is true if it leaves it where something other than a link was, which may stay.
    pub fn add_change(&mut self, path: &Path, text: &Path, replaces: bool) {
        if replaces {
            self.replacing.insert(path.to_owned());
        }
        self.add(path.to_owned(), text.to_owned());
    }

    fn add(&mut self, path: PathBuf, text: PathBuf) {
        if self.texts.len() >= MAX_LINKS && !self.texts.contains_key(&path) {
            self.too_many = true;
            return;
        }
        let texts = self.texts.entry(path).or_default();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }

    fn add_pointer(&mut self, path: PathBuf) {
        if self.pointers.len() >= MAX_POINTERS {
            self.too_many = true;
            return;
        }
        self.pointers.insert(path);
    }

    fn add_repository(&mut self, path: PathBuf) {
        if self.repositories.len() >= MAX_POINTERS {
            self.too_many = true;
            return;
        }
        self.repositories.insert(path);
    }

    /// Returns the folders that git treats as repositories.
    pub(crate) fn repositories(&self) -> impl Iterator<Item = &PathBuf> {
        self.repositories.iter()
    }

    /// Returns the `.git` files and `commondir` files, by which git finds repositories elsewhere.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = &PathBuf> {
        self.pointers.iter()
    }

    /// Returns why some links may be missing, as a clause; `None` if all are known.
    pub fn missing(&self) -> Option<String> {
        if self.too_many {
            return Some(format!(
                "the workspace has more than {} entries, {MAX_LINKS} links or {MAX_POINTERS} files named .git or commondir",
                cache::MAX_ENTRIES
            ));
        }
        if let Some(folder) = &self.too_long {
            return Some(format!(
                "paths in the folder {} are longer than 4,095 bytes: shorten or remove them",
                beginning(folder)
            ));
        }
        let folder = self.unlisted.as_ref()?.display();
        Some(format!(
            "haft may enter the folder {folder} but not list it"
        ))
    }

    /// Whether nothing reaches a file by another name.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.missing().is_none()
    }

    /// Returns the links, sorted by path.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.texts.keys()
    }

    /// Returns the links below a path.
    pub fn below(&self, path: &Path) -> Vec<&PathBuf> {
        self.texts_below(path).map(|(link, _)| link).collect()
    }

    /// Returns the links at or below a path, with their texts.
    pub fn texts_below<'a, 'p>(
        &'a self,
        path: &'p Path,
    ) -> impl Iterator<Item = (&'a PathBuf, &'a Vec<PathBuf>)> + use<'a, 'p> {
        let from = self.texts.range(path.to_owned()..);
        from.take_while(move |(link, _)| link.starts_with(path))
    }
}

/// Returns the beginning of a long path, for messages.
fn beginning(path: &Path) -> String {
    let text = path.to_string_lossy();
    let end = text.floor_char_boundary(MAX_SHOWN);
    if end == text.len() {
        text.into_owned()
    } else {
        format!("{}…", &text[..end])
    }
}
