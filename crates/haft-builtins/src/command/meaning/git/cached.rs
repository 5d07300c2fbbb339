//! The trees that git's index keeps ready: the next commit records them as they are, whatever the index's entries say.

use std::collections::BTreeMap;
use std::path::Path;

use haft::approval::meaning::{Meaning, MeaningKind};

use super::entries::MODE_FOLDER;
use super::id::{ID_BYTES, ID_HASH, ObjectId};
use super::object::{ObjectKind, id_of};
use crate::command::index::{IndexRecords, MAX_INDEX, extensions, recorded_in};
use crate::command::meaning::sides::{ChangeSides, Side};

/// Maximum length of the paths of all folders, in bytes.
const MAX_PATHS: usize = 64 << 20;

/// The number of entries in a folder and below, and the folder's tree.
type CachedTree = (usize, ObjectId);

/// Returns a warning if a changed index, in the folder with a HEAD, keeps trees that do not follow from its entries.
pub(super) fn cached_trees(sides: &ChangeSides<'_>, folder: &Path) -> Option<Meaning> {
    let read = |side| sides.read(side, &folder.join("index"), MAX_INDEX);
    let after = read(Side::After)?;
    if read(Side::Before).is_some_and(|before| before == after) {
        return None;
    }
    let warning = match fits(&after) {
        Some(true) => return None,
        Some(false) => {
            "its cached trees do not fit its entries: the next commit would record something else"
        }
        None => "whether its cached trees fit its entries cannot be told",
    };
    let title = "git's index keeps trees for the next commit";
    let mut meaning = Meaning::new(MeaningKind::Staged, title);
    meaning.warnings.push(warning.to_owned());
    Some(meaning)
}

/// Returns whether all cached trees are those of the entries; `None` if that cannot be determined.
fn fits(index: &[u8]) -> Option<bool> {
    let caches = extensions(index, ID_HASH, *b"TREE")?;
    if caches.is_empty() {
        return Some(true);
    }
    let folders = folders(&recorded_in(index, ID_HASH)?)?;
    for cache in caches {
        for (path, tree) in cached(cache)? {
            if folders.get(&path) != Some(&tree) {
                return Some(false);
            }
        }
    }
    Some(true)
}

/// Reads the cached trees that are valid: git computes the others.
fn cached(cache: &[u8]) -> Option<Vec<(Vec<u8>, CachedTree)>> {
    let mut rest = cache;
    let (mut found, mut room) = (Vec::new(), MAX_PATHS);
    // The folders above, with the number of those in them that are still to come.
    let mut open: Vec<(Vec<u8>, usize)> = Vec::new();
    loop {
        let name = until(&mut rest, 0)?;
        let entries = until(&mut rest, b' ')?;
        let below: usize = number(until(&mut rest, b'\n')?)?;
        let path = match open.last_mut() {
            Some((above, left)) => {
                *left -= 1;
                join(above, name)
            }
            None => name.to_vec(),
        };
        room = room.checked_sub(path.len())?;
        if entries != b"-1" {
            let (id, after) = rest.split_at_checked(ID_BYTES)?;
            rest = after;
            found.push((path.clone(), (number(entries)?, ObjectId::from_bytes(id)?)));
        }
        open.push((path, below));
        while open.last().is_some_and(|(_, left)| *left == 0) {
            open.pop();
        }
        if open.is_empty() {
            return Some(found);
        }
    }
}

/// Takes what is before a byte, and the byte.
fn until<'c>(rest: &mut &'c [u8], end: u8) -> Option<&'c [u8]> {
    let at = rest.iter().position(|byte| *byte == end)?;
    let (taken, after) = rest.split_at(at);
    *rest = after.get(1..)?;
    Some(taken)
}

fn number(digits: &[u8]) -> Option<usize> {
    let is_one = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits)
        .ok()
        .filter(|_| is_one)?
        .parse()
        .ok()
}

fn join(above: &[u8], name: &[u8]) -> Vec<u8> {
    if above.is_empty() {
        name.to_vec()
    } else {
        [above, b"/", name].concat()
    }
}

/// A folder whose entries are being read.
#[derive(Default)]
struct CacheFolder {
    path: Vec<u8>,
    entries: usize,
    content: Vec<u8>,
}

impl CacheFolder {
    /// Returns the part of a path that is inside.
    fn inside<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        if self.path.is_empty() {
            return Some(path);
        }
        path.strip_prefix(&*self.path)?.strip_prefix(b"/")
    }

    fn add(&mut self, mode: u32, name: &[u8], object: &[u8]) {
        self.content.extend(format!("{mode:o} ").into_bytes());
        self.content.extend_from_slice(name);
        self.content.push(0);
        self.content.extend_from_slice(object);
    }
}

/// Computes the trees of all folders; `None` if their paths are too long. The order of an index is that of trees.
fn folders(entries: &IndexRecords) -> Option<BTreeMap<Vec<u8>, CachedTree>> {
    let (mut found, mut room) = (BTreeMap::new(), MAX_PATHS);
    let (mut folder, mut above) = (CacheFolder::default(), Vec::new());
    for (path, record) in entries {
        // A folder of a sparse index counts as one entry.
        let whole = path.strip_suffix(b"/");
        let path = whole.unwrap_or(path);
        let mut name = loop {
            match folder.inside(path) {
                Some(name) => break name,
                None => folder = close(folder, above.pop()?, &mut found),
            }
        };
        while let Some(at) = name.iter().position(|byte| *byte == b'/') {
            let inner = CacheFolder {
                path: join(&folder.path, &name[..at]),
                ..CacheFolder::default()
            };
            room = room.checked_sub(inner.path.len())?;
            name = &name[at + 1..];
            above.push(std::mem::replace(&mut folder, inner));
        }
        folder.add(record.mode, name, record.object());
        folder.entries += 1;
        if whole.is_some() {
            let tree = ObjectId::from_bytes(record.object())?;
            found.insert(path.to_vec(), (1, tree));
        }
    }
    while let Some(outer) = above.pop() {
        folder = close(folder, outer, &mut found);
    }
    let root = (folder.entries, id_of(ObjectKind::Tree, &folder.content));
    found.insert(folder.path, root);
    Some(found)
}

/// Adds the tree of a folder to the one above, which it returns.
fn close(
    folder: CacheFolder,
    mut above: CacheFolder,
    found: &mut BTreeMap<Vec<u8>, CachedTree>,
) -> CacheFolder {
    let id = id_of(ObjectKind::Tree, &folder.content);
    let name = above.inside(&folder.path).unwrap_or_default().to_vec();
    above.add(MODE_FOLDER, &name, &id.0);
    above.entries += folder.entries;
    found.insert(folder.path, (folder.entries, id));
    above
}
