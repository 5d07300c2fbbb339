//! Git's index, as far as it says whether there are repositories within the repository.
//!
//! Where there are, commands that look at files start git in them, and it obeys the settings that it finds there.

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
pub(super) fn may_hold_repositories(workspace: &Workspace) -> bool {
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
    let word = |at: usize| {
        let bytes = index.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    let version = word(4).filter(|_| index.starts_with(b"DIRC"))?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    for _ in 0..word(8)? {
        // 016 is another repository, 004 a folder.
        if matches!(word(at + MODE)? >> 12, 0o16 | 0o4) {
            return Some(true);
        }
        let flags = at + OBJECT + OBJECT_BYTES;
        let bytes = index.get(flags..flags + 2)?;
        let extended = u16::from_be_bytes(bytes.try_into().ok()?) & EXTENDED != 0;
        let mut name = flags + if extended { 4 } else { 2 };
        if version == 4 {
            // How much of the name before is kept.
            name += 1 + index
                .get(name..)?
                .iter()
                .position(|byte| byte & 0x80 == 0)?;
        }
        let end = name + index.get(name..)?.iter().position(|byte| *byte == 0)?;
        at = if version == 4 {
            end + 1
        } else {
            at + ((end - at) / 8 + 1) * 8
        };
    }
    Some(false)
}
