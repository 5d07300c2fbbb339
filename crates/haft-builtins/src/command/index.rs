//! Reads git's index to find which files are tracked and whether there are nested repositories.
//!
//! Commands that look at files start git in nested repositories, where it obeys the settings that it finds.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

pub(super) use haft::git_index::IndexFlags;
pub(super) use haft::git_index::MAX_INDEX;
use haft::git_index::{Index, IndexEntry, ObjectHash, SPLIT};
use haft::workspace::Workspace;

/// The name of git's index in the part of a repository that belongs to a work tree.
const INDEX: &str = "index";
/// The kind of an entry that is a nested repository, in the bits of a mode above its permissions.
const REPOSITORY: u32 = 0o16;

/// Returns the part of the workspace's repository that has the index, and the workspace's path within its work tree.
fn own_part(workspace: &Workspace) -> (PathBuf, PathBuf) {
    match workspace.repository() {
        Some(outside) => (outside.own_part(), outside.prefix().to_owned()),
        None => (PathBuf::from(".git"), PathBuf::new()),
    }
}

/// Returns true if the index of the workspace's repository may hold nested repositories, or cannot be read.
pub(crate) fn may_hold_repositories(workspace: &Workspace) -> bool {
    let (own, _) = own_part(workspace);
    let folder = workspace.host_path(&own);
    if folder.join(INDEX).symlink_metadata().is_err() {
        return false;
    }
    let index = own.join(INDEX);
    let holds = || {
        let hash = workspace.object_hash(&index)?;
        holds_repositories(&read(workspace, &index, MAX_INDEX)?, hash)
    };
    is_shared(&folder) || holds().unwrap_or(true)
}

/// Returns the files of the workspace that its repository tracks, or `None` if that cannot be determined.
pub(crate) fn tracked_files(workspace: &Workspace) -> Option<Vec<Vec<u8>>> {
    let (own, prefix) = own_part(workspace);
    let folder = workspace.host_path(&own);
    if is_shared(&folder) {
        return None;
    }
    let index = own.join(INDEX);
    if folder.join(INDEX).symlink_metadata().is_err() {
        return Some(Vec::new());
    }
    let hash = workspace.object_hash(&index)?;
    let mut names = Vec::new();
    let mut whole = true;
    each_entry(&read(workspace, &index, MAX_INDEX)?, hash, &mut |entry| {
        whole &= !entry.is_folder();
        names.extend(below(&prefix, entry.name()).map(<[u8]>::to_vec));
        whole
    })?;
    whole.then_some(names)
}

/// Returns a name in an index as one below a folder of the work tree; `None` if it lies elsewhere.
pub(super) fn below<'n>(folder: &Path, name: &'n [u8]) -> Option<&'n [u8]> {
    let folder = folder.as_os_str().as_encoded_bytes();
    if folder.is_empty() {
        return Some(name);
    }
    name.strip_prefix(folder)?.strip_prefix(b"/")
}

/// The record of a file in an index: its mode and its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexRecord {
    pub(super) mode: u32,
    object: [u8; LONGEST_OBJECT],
    /// The length of the object's name.
    length: u8,
}

/// The length of the longest name of an object, in bytes.
const LONGEST_OBJECT: usize = ObjectHash::Sha256.bytes();

impl IndexRecord {
    fn of(entry: &IndexEntry<'_>) -> Option<Self> {
        let mut object = [0; LONGEST_OBJECT];
        let name = entry.object();
        object.get_mut(..name.len())?.copy_from_slice(name);
        Some(Self {
            mode: entry.mode(),
            object,
            length: u8::try_from(name.len()).ok()?,
        })
    }

    /// Returns the name of its object.
    pub(super) fn object(&self) -> &[u8] {
        let length = usize::from(self.length);
        self.object.get(..length).unwrap_or_default()
    }
}

/// The record of each file in an index, by its path. In a sparse index a path that ends with a slash is a folder, which stands for all
/// of its files.
pub(super) type IndexRecords = BTreeMap<Vec<u8>, IndexRecord>;

/// Returns the record of each file in the index at this path, or `None` if that cannot be determined.
pub(super) fn recorded(folder: &Workspace, path: &Path, hash: ObjectHash) -> Option<IndexRecords> {
    recorded_in(&read(folder, path, MAX_INDEX)?, hash)
}

/// Returns the record of each file in an index, or `None` if that cannot be determined.
pub(super) fn recorded_in(index: &[u8], hash: ObjectHash) -> Option<IndexRecords> {
    let (mut files, mut all) = (IndexRecords::new(), true);
    each_entry(index, hash, &mut |entry| {
        let record = IndexRecord::of(entry);
        all &= record.is_some();
        files.extend(record.map(|record| (entry.name().to_vec(), record)));
        all
    })?;
    all.then_some(files)
}

/// Returns the flags of the files in an index that have any, or `None` if that cannot be determined.
pub(super) fn flags_in(index: &[u8], hash: ObjectHash) -> Option<BTreeMap<Vec<u8>, IndexFlags>> {
    let mut files = BTreeMap::new();
    each_entry(index, hash, &mut |entry| {
        if entry.marks() != IndexFlags::default() {
            files.insert(entry.name().to_vec(), entry.marks());
        }
        true
    })?;
    Some(files)
}

/// Returns the contents of an index's extensions of this name, or `None` if that cannot be determined.
pub(super) fn extensions(bytes: &[u8], hash: ObjectHash, name: [u8; 4]) -> Option<Vec<&[u8]>> {
    let index = Index::of(bytes, hash)?;
    let end = index.each(&mut |_| true)?;
    let all = index.extensions(end)?.into_iter();
    let named = all.filter(|one| *one.name == name);
    Some(named.map(|one| one.content()).collect())
}

/// Returns true if parts of the index are in separate files.
fn is_shared(folder: &Path) -> bool {
    let Ok(entries) = folder.read_dir() else {
        return true;
    };
    let mut names = entries.flatten().map(|entry| entry.file_name());
    names.any(|name| name.as_encoded_bytes().starts_with(b"sharedindex"))
}

fn read(workspace: &Workspace, path: &Path, most: u64) -> Option<Vec<u8>> {
    let open = workspace.open_file(path).ok()?;
    if open.stamp.bytes() > most {
        return None;
    }
    let mut bytes = Vec::new();
    open.file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns true if an entry is a nested repository or a folder that stands for its contents. Returns `None` for an invalid index.
fn holds_repositories(index: &[u8], hash: ObjectHash) -> Option<bool> {
    let mut found = false;
    each_entry(index, hash, &mut |entry| {
        found |= entry.mode() >> 12 == REPOSITORY || entry.is_folder();
        !found
    })?;
    Some(found)
}

/// Calls `look` with each entry until it returns false. Returns `None` for an invalid index, and for one with entries in other files.
pub(super) fn each_entry(
    index: &[u8],
    hash: ObjectHash,
    look: &mut dyn FnMut(&IndexEntry<'_>) -> bool,
) -> Option<()> {
    let index = Index::of(index, hash)?;
    let mut stopped = false;
    let end = index.each(&mut |entry| {
        stopped = !look(entry);
        !stopped
    })?;
    if stopped {
        return Some(());
    }
    let extensions = index.extensions(end)?;
    let is_split = extensions.iter().any(|one| one.name == SPLIT);
    (!is_split).then_some(())
}
