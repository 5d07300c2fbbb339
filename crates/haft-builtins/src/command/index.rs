//! Git's index, as far as it says which files are tracked and whether there are repositories within the repository.
//!
//! Where there are repositories, commands that look at files start git in them, and it obeys the settings that it finds there.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use haft::workspace::Workspace;

/// The largest index that is looked through, in bytes: about half a million files.
const LARGEST: u64 = 64 * 1024 * 1024;

/// An entry of the index: its mode, its object and its flags stand at fixed places.
const MODE: usize = 24;
const OBJECT: usize = 40;
/// Bytes of an object's name; where settings choose longer ones, the index is not looked through.
const OBJECT_BYTES: usize = 20;
const EXTENDED: u16 = 0x4000;

/// May the index of the workspace's repository hold other repositories? One that cannot be read may.
pub(crate) fn may_hold_repositories(workspace: &Workspace) -> bool {
    let folder = workspace.root().join(".git");
    if folder.join("index").symlink_metadata().is_err() {
        return false;
    }
    is_shared(&folder)
        || read(workspace, ".git/config", LARGEST).is_none_or(|text| {
            let text = String::from_utf8_lossy(&text).to_ascii_lowercase();
            text.contains("objectformat")
        })
        || read(workspace, ".git/index", LARGEST)
            .and_then(|index| holds_repositories(&index))
            .unwrap_or(true)
}

/// The files that the workspace's repository tracks; none where that cannot be told.
pub(crate) fn tracked(workspace: &Workspace) -> Option<Vec<Vec<u8>>> {
    let folder = workspace.root().join(".git");
    let config =
        String::from_utf8_lossy(&read(workspace, ".git/config", LARGEST)?).to_ascii_lowercase();
    if config.contains("objectformat") || is_shared(&folder) {
        return None;
    }
    if folder.join("index").symlink_metadata().is_err() {
        return Some(Vec::new());
    }
    let mut names = Vec::new();
    let mut whole = true;
    each_entry(
        &read(workspace, ".git/index", LARGEST)?,
        &mut |mode, _, name| {
            // A folder that stands for all that is in it.
            whole &= mode >> 12 != 0o4;
            names.push(name.to_vec());
            whole
        },
    )?;
    whole.then_some(names)
}

/// What an index records of a file: its mode and its object.
pub(super) type Recorded = (u32, [u8; OBJECT_BYTES]);

/// What the index at this path records of each file; none where that cannot be told.
pub(crate) fn recorded(folder: &Workspace, path: &Path) -> Option<BTreeMap<Vec<u8>, Recorded>> {
    let index = read(folder, path.to_str()?, LARGEST)?;
    let (mut files, mut all) = (BTreeMap::new(), true);
    each_entry(&index, &mut |mode, object, name| {
        // A folder that stands for all that is in it.
        all &= mode >> 12 != 0o4;
        all &= object.try_into().is_ok_and(|object| {
            files.insert(name.to_vec(), (mode, object));
            true
        });
        all
    })?;
    all.then_some(files)
}

/// Do parts of the index lie in files of their own?
fn is_shared(folder: &Path) -> bool {
    let Ok(entries) = folder.read_dir() else {
        return true;
    };
    let mut names = entries.flatten().map(|entry| entry.file_name());
    names.any(|name| name.as_encoded_bytes().starts_with(b"sharedindex"))
}

fn read(workspace: &Workspace, path: &str, most: u64) -> Option<Vec<u8>> {
    let open = workspace.open_file(Path::new(path)).ok()?;
    if open.stamp.bytes() > most {
        return None;
    }
    let mut bytes = Vec::new();
    open.file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Is an entry another repository, or a folder that stands for what is in it? `None` for what is no index.
fn holds_repositories(index: &[u8]) -> Option<bool> {
    let mut found = false;
    each_entry(index, &mut |mode, _, _| {
        // 016 is another repository, 004 a folder.
        found |= matches!(mode >> 12, 0o16 | 0o4);
        !found
    })?;
    Some(found)
}

/// Looks at the mode, the object and the name of an entry, and says whether to go on.
type Look<'a> = dyn FnMut(u32, &[u8], &[u8]) -> bool + 'a;

/// Calls `look` for the mode, the object and the name of each entry until it says false. `None` for what is no index, or one
/// with longer names of objects or parts in other files.
fn each_entry(index: &[u8], look: &mut Look<'_>) -> Option<()> {
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
        let flags = at + OBJECT + OBJECT_BYTES;
        let (mode, object) = (word(at + MODE)?, index.get(at + OBJECT..flags)?);
        let bytes = index.get(flags..flags + 2)?;
        let extended = u16::from_be_bytes(bytes.try_into().ok()?) & EXTENDED != 0;
        let mut begin = flags + if extended { 4 } else { 2 };
        if version == 4 {
            let (cut, bytes) = cut(index.get(begin..)?)?;
            name.truncate(name.len().checked_sub(cut)?);
            begin += bytes;
        } else {
            name.clear();
        }
        let rest = index.get(begin..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(rest.get(..length)?);
        if !look(mode, object, &name) {
            return Some(());
        }
        let end = begin + length;
        at = if version == 4 {
            end + 1
        } else {
            at + ((end - at) / 8 + 1) * 8
        };
    }
    ends(index.get(at..)?)
}

/// Whether what follows the entries are parts of an index, and its own hash last.
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

/// How many bytes of the name before are not kept, and how many bytes say so (the variable width numbers of git's packs).
fn cut(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().take(8).enumerate() {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}
