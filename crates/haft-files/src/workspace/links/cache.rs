//! `LinkCache`: lists the links of a workspace; lists again only the folders that have changed since.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::Links;
use super::listing::FolderLinks;

/// Maximum number of workspace entries to search.
pub(super) const MAX_ENTRIES: usize = 1_000_000;

/// The links of a workspace as they were when they were last asked for.
#[derive(Debug, Default)]
pub(in crate::workspace) struct LinkCache(Mutex<CachedLinks>);

#[derive(Debug, Default)]
struct CachedLinks {
    folders: HashMap<PathBuf, FolderLinks>,
    /// Number of entries of these folders.
    entries: usize,
    /// Whether folders are missing because there are too many entries.
    cut: bool,
    links: Option<Arc<Links>>,
}

impl LinkCache {
    /// Returns the links below a root, which is a real path.
    pub(in crate::workspace) fn links(&self, root: &Path) -> Arc<Links> {
        let mut known = self.0.lock();
        let changed = known.refresh(root, MAX_ENTRIES);
        if let Some(links) = &known.links
            && !changed
        {
            return Arc::clone(links);
        }
        let links = Arc::new(known.all(root));
        known.links = Some(Arc::clone(&links));
        links
    }
}

impl CachedLinks {
    /// Lists the folders that are new or have changed. Returns whether the links may be others now.
    fn refresh(&mut self, root: &Path, most: usize) -> bool {
        let each = self.folders.iter();
        let stale = each.filter(|(_, folder)| !folder.is_current());
        let mut todo: Vec<PathBuf> = stale.map(|(path, _)| path.clone()).collect();
        if self.cut && !todo.is_empty() {
            // Folders that were left out may fit in now.
            *self = Self::default();
        }
        if self.folders.is_empty() {
            todo = vec![PathBuf::new()];
        }
        let (mut changed, mut gone) = (false, Vec::new());
        while let Some(path) = todo.pop() {
            let before = self.folders.remove(&path).unwrap_or_default();
            self.entries -= before.entries;
            let left = most - self.entries;
            let Some(found) = FolderLinks::of(root.join(&path), left) else {
                changed |= !before.has_no_links();
                gone.push(path);
                continue;
            };
            changed |= !before.has_same_links(&found);
            if found.entries > left {
                self.cut = true;
                return true;
            }
            let new = found.folders.iter().map(|name| path.join(name));
            todo.extend(new.filter(|new| !self.folders.contains_key(new)));
            let is_left_out = |name: &&OsString| found.folders.binary_search(name).is_err();
            let left_out = before.folders.iter().filter(is_left_out);
            gone.extend(left_out.map(|name| path.join(name)));
            self.entries += found.entries;
            self.folders.insert(path, found);
        }
        changed | self.forget(&gone)
    }

    /// Forgets folders with everything below them. Returns whether there were links.
    fn forget(&mut self, gone: &[PathBuf]) -> bool {
        let mut links = false;
        if gone.is_empty() {
            return links;
        }
        let (folders, entries) = (&mut self.folders, &mut self.entries);
        folders.retain(|path, folder| {
            let is_gone = gone.iter().any(|gone| path.starts_with(gone));
            if is_gone {
                links |= !folder.has_no_links();
                *entries -= folder.entries;
            }
            !is_gone
        });
        links
    }

    fn all(&self, root: &Path) -> Links {
        let mut links = Links::none(root);
        links.too_many = self.cut;
        for (at, folder) in &self.folders {
            if folder.unlisted {
                links.unlisted = links.unlisted.max(Some(at.clone()));
            }
            if folder.too_long {
                links.too_long = links.too_long.max(Some(at.clone()));
            }
            if folder.is_repository {
                links.add_repository(at.clone());
            }
            for name in &folder.pointers {
                links.add_pointer(at.join(name));
            }
            for (name, text) in &folder.links {
                links.add(at.join(name), text.clone());
            }
        }
        links
    }
}
