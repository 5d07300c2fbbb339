//! Reads git's index to find which files are tracked and whether there are nested repositories.
//!
//! Commands that look at files start git in nested repositories, where it obeys the settings that it finds.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use haft::git_index;
use haft::workspace::Workspace;

/// Maximum size of an index, in bytes: about half a million files.
pub(super) const MAX_INDEX: u64 = 64 * 1024 * 1024;

/// Fixed offsets of the mode and the object in an index entry.
const MODE_OFFSET: usize = 24;
const OBJECT_OFFSET: usize = 40;
/// Length of an object name in bytes. haft does not read an index whose settings choose longer names.
const OBJECT_BYTES: usize = 20;
const EXTENDED_FLAG: u16 = 0x4000;

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
    if folder.join("index").symlink_metadata().is_err() {
        return false;
    }
    is_shared(&folder)
        || read(workspace, Path::new(".git/config"), MAX_INDEX).is_none_or(|text| {
            let text = String::from_utf8_lossy(&text).to_ascii_lowercase();
            text.contains("objectformat")
        })
        || read(workspace, &own.join("index"), MAX_INDEX)
            .and_then(|index| holds_repositories(&index))
            .unwrap_or(true)
}

/// Returns the files of the workspace that its repository tracks, or `None` if that cannot be determined.
pub(crate) fn tracked_files(workspace: &Workspace) -> Option<Vec<Vec<u8>>> {
    let (own, prefix) = own_part(workspace);
    let folder = workspace.host_path(&own);
    let config = read(workspace, Path::new(".git/config"), MAX_INDEX)?;
    let config = String::from_utf8_lossy(&config).to_ascii_lowercase();
    if config.contains("objectformat") || is_shared(&folder) {
        return None;
    }
    if folder.join("index").symlink_metadata().is_err() {
        return Some(Vec::new());
    }
    let mut names = Vec::new();
    let mut whole = true;
    each_entry(
        &read(workspace, &own.join("index"), MAX_INDEX)?,
        &mut |mode, _, name, _| {
            // A folder entry stands for all of its contents.
            whole &= mode >> 12 != 0o4;
            names.extend(below(&prefix, name).map(<[u8]>::to_vec));
            whole
        },
    )?;
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
pub(super) type IndexRecord = (u32, [u8; OBJECT_BYTES]);

/// What an index says of a file besides its record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct IndexFlags {
    /// Git does not look whether the file changes.
    pub(super) assume_unchanged: bool,
    /// Git leaves the file alone, whether it is there or not.
    pub(super) skip_worktree: bool,
    /// A merge left several records of it.
    pub(super) in_conflict: bool,
}

impl IndexFlags {
    const ASSUME_UNCHANGED: u16 = 0x8000;
    const STAGE: u16 = 0x3000;
    const SKIP_WORKTREE: u16 = 0x4000;

    fn new(flags: u16, more: u16) -> Self {
        Self {
            assume_unchanged: flags & Self::ASSUME_UNCHANGED != 0,
            skip_worktree: more & Self::SKIP_WORKTREE != 0,
            in_conflict: flags & Self::STAGE != 0,
        }
    }
}

/// Returns the record of each file in the index at this path, or `None` if that cannot be determined.
pub(crate) fn recorded(folder: &Workspace, path: &Path) -> Option<BTreeMap<Vec<u8>, IndexRecord>> {
    recorded_in(&read(folder, path, MAX_INDEX)?)
}

/// Returns the record of each file in an index, or `None` if that cannot be determined.
pub(super) fn recorded_in(index: &[u8]) -> Option<BTreeMap<Vec<u8>, IndexRecord>> {
    let (mut files, mut all) = (BTreeMap::new(), true);
    each_entry(index, &mut |mode, object, name, _| {
        // A folder entry stands for all of its contents.
        all &= mode >> 12 != 0o4;
        all &= object.try_into().is_ok_and(|object| {
            files.insert(name.to_vec(), (mode, object));
            true
        });
        all
    })?;
    all.then_some(files)
}

/// Returns the flags of the files in an index that have any, or `None` if that cannot be determined.
pub(super) fn flags_in(index: &[u8]) -> Option<BTreeMap<Vec<u8>, IndexFlags>> {
    let mut files = BTreeMap::new();
    each_entry(index, &mut |_, _, name, flags| {
        if flags != IndexFlags::default() {
            files.insert(name.to_vec(), flags);
        }
        true
    })?;
    Some(files)
}

/// Returns the contents of an index's extensions of this name, or `None` if that cannot be determined.
pub(super) fn extensions<'i>(index: &'i [u8], name: &[u8]) -> Option<Vec<&'i [u8]>> {
    let mut rest = each_entry(index, &mut |_, _, _, _| true)?;
    let mut found = Vec::new();
    while rest.len() > OBJECT_BYTES {
        let (header, after) = rest.split_at_checked(8)?;
        let (own, length) = header.split_at_checked(4)?;
        let length = usize::try_from(u32::from_be_bytes(length.try_into().ok()?)).ok()?;
        let (content, after) = after.split_at_checked(length)?;
        rest = after;
        if own == name {
            found.push(content);
        }
    }
    Some(found)
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
fn holds_repositories(index: &[u8]) -> Option<bool> {
    let mut found = false;
    each_entry(index, &mut |mode, _, _, _| {
        // 016 is a nested repository, 004 a folder.
        found |= matches!(mode >> 12, 0o16 | 0o4);
        !found
    })?;
    Some(found)
}

/// Receives the mode, the object, the name and the flags of an entry and returns whether to continue.
type IndexVisitor<'a> = dyn FnMut(u32, &[u8], &[u8], IndexFlags) -> bool + 'a;

/// Calls `look` with the mode, the object, the name and the flags of each entry until it returns false. Returns what follows the entries, or
/// `None` for an invalid index, and for one with longer object names or with parts in other files.
fn each_entry<'i>(index: &'i [u8], look: &mut IndexVisitor<'_>) -> Option<&'i [u8]> {
    let word = |at: usize| {
        let bytes = index.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    let version = word(4).filter(|_| index.starts_with(b"DIRC"))?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut name) = (12, Vec::new());
    for _ in 0..word(8)? {
        let flags = at + OBJECT_OFFSET + OBJECT_BYTES;
        let (mode, object) = (
            word(at + MODE_OFFSET)?,
            index.get(at + OBJECT_OFFSET..flags)?,
        );
        let flag = |at: usize| {
            let bytes = index.get(at..at + 2)?;
            Some(u16::from_be_bytes(bytes.try_into().ok()?))
        };
        let word_of_flags = flag(flags)?;
        let extended = word_of_flags & EXTENDED_FLAG != 0;
        let more = if extended { flag(flags + 2)? } else { 0 };
        let mut begin = flags + if extended { 4 } else { 2 };
        if version == 4 {
            let (cut, bytes) = git_index::prefix_cut(index.get(begin..)?)?;
            name.truncate(name.len().checked_sub(cut)?);
            begin += bytes;
        } else {
            name.clear();
        }
        let rest = index.get(begin..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(rest.get(..length)?);
        if !look(mode, object, &name, IndexFlags::new(word_of_flags, more)) {
            return Some(&[]);
        }
        let end = begin + length;
        at = if version == 4 {
            end + 1
        } else {
            at + ((end - at) / 8 + 1) * 8
        };
    }
    let rest = index.get(at..)?;
    ends(rest)?;
    Some(rest)
}

/// Returns `Some` if the entries are followed only by index extensions and, last, the index's hash.
fn ends(mut rest: &[u8]) -> Option<()> {
    while rest.len() > OBJECT_BYTES {
        let (name, length) = (rest.get(..4)?, rest.get(4..8)?);
        let length = usize::try_from(u32::from_be_bytes(length.try_into().ok()?)).ok()?;
        // The entries are in another file.
        let split = name == b"link";
        if split || !name.iter().all(u8::is_ascii_alphabetic) {
            return None;
        }
        rest = rest.get(8 + length..)?;
    }
    (rest.len() == OBJECT_BYTES).then_some(())
}
