//! `git_index`: the one reader of git's index: its entries and its extensions. Format: gitformat-index(5).

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

mod entry_reader;
mod extensions;
mod package;

use entry_reader::EntryReader;
pub use extensions::IndexExtension;
pub use package::{with_others, without_others};

/// Maximum size of an index that is read, in bytes: about half a million files.
pub const MAX_INDEX: u64 = 64 * 1024 * 1024;

/// The size of an entry's times, identity and mode before its object.
const STAT: usize = 40;
/// The size of the header.
const HEADER: usize = 12;
const MODE: usize = 24;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const SKIP_WORKTREE: u16 = 0x4000;
const ASSUME_UNCHANGED: u16 = 0x8000;
/// The mode of an entry that stands for all files of a folder.
const FOLDER: u32 = 0o040_000;
/// The extension that says that some of the entries are in another file.
pub const SPLIT: &[u8; 4] = b"link";

/// The hash by which a repository names its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectHash {
    /// The default.
    Sha1,
    /// `extensions.objectFormat = sha256`.
    Sha256,
}

impl ObjectHash {
    /// Returns the length of an object's name, in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    fn of(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => Sha1::digest(bytes).to_vec(),
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
        }
    }
}

/// What an index says of a file besides its mode and its object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexFlags {
    /// Git does not look whether the file changes.
    pub assume_unchanged: bool,
    /// Git leaves the file alone, whether it is there or not.
    pub skip_worktree: bool,
    /// A merge left several records of it.
    pub in_conflict: bool,
}

/// An entry of an index.
#[derive(Debug)]
pub struct IndexEntry<'a> {
    /// Times, identity, mode and object.
    fixed: &'a [u8],
    flags: u16,
    more: u16,
    name: &'a [u8],
    /// In version 4: how many bytes of the previous name go, as written, and what follows.
    tail: &'a [u8],
    /// Where it begins in the index.
    at: usize,
    /// Whether it is there with its whole name, without a part of the previous one.
    is_whole: bool,
}

impl IndexEntry<'_> {
    fn word(&self, at: usize) -> u32 {
        let bytes = self.fixed.get(at..at + 4).unwrap_or_default();
        bytes.try_into().map_or(0, u32::from_be_bytes)
    }

    /// Returns the file's path in the work tree. That of a folder ends with a slash.
    pub fn name(&self) -> &[u8] {
        self.name
    }

    /// Returns the file's mode.
    pub fn mode(&self) -> u32 {
        self.word(MODE)
    }

    /// Returns the name of the object with the file's content.
    pub fn object(&self) -> &[u8] {
        self.fixed.get(STAT..).unwrap_or_default()
    }

    /// Returns true if the entry stands for all files of a folder, in a sparse index.
    pub fn is_folder(&self) -> bool {
        self.mode() == FOLDER
    }

    /// Returns what is marked besides.
    pub fn marks(&self) -> IndexFlags {
        IndexFlags {
            assume_unchanged: self.flags & ASSUME_UNCHANGED != 0,
            skip_worktree: self.more & SKIP_WORKTREE != 0,
            in_conflict: self.flags & STAGE != 0,
        }
    }

    /// Returns the time of the last change of the file's content: seconds and nanoseconds.
    pub(crate) fn modified(&self) -> (u32, u32) {
        (self.word(8), self.word(12))
    }

    /// Returns the lower half of the file's inode.
    pub(crate) fn inode(&self) -> u32 {
        self.word(20)
    }

    /// Returns the lower half of the file's size in bytes.
    pub(crate) fn size(&self) -> u32 {
        self.word(36)
    }

    fn record(&self) -> (u32, u16, &[u8]) {
        (self.mode(), self.flags & STAGE, self.object())
    }
}

/// An index, checked for its form only as far as its entries go.
#[derive(Debug, Clone, Copy)]
pub struct Index<'a> {
    bytes: &'a [u8],
    version: u32,
    count: u32,
    hash: ObjectHash,
}

impl<'a> Index<'a> {
    /// Reads the header; `None` if this is no index.
    pub fn of(bytes: &'a [u8], hash: ObjectHash) -> Option<Self> {
        let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let version = word(4)?;
        let is_index = bytes.starts_with(b"DIRC") && (2..=4).contains(&version);
        is_index.then_some(())?;
        Some(Self {
            bytes,
            version,
            count: word(8)?,
            hash,
        })
    }

    /// Calls `look` with each entry until it returns false. Returns where the entries end; `None` if the index is damaged, or if git might
    /// read other entries in it.
    pub fn each(&self, look: &mut dyn FnMut(&IndexEntry<'_>) -> bool) -> Option<usize> {
        let mut reader = EntryReader::new(self);
        for _ in 0..self.count {
            let entry = reader.read_next()?;
            if !look(&entry) {
                return Some(entry.at);
            }
        }
        Some(reader.at)
    }

    /// Returns the SHA-256 of what the index records: its entries without times, and which other file holds more of them. A `git status`
    /// that renews the times leaves it as it is. `None` if the index is damaged.
    pub fn recorded(&self) -> Option<[u8; 32]> {
        let mut hasher = Sha256::new();
        let end = self.each(&mut |entry| {
            hasher.update((entry.name.len() as u64).to_le_bytes());
            hasher.update(entry.name);
            hasher.update(entry.mode().to_le_bytes());
            hasher.update((entry.flags & (STAGE | ASSUME_UNCHANGED)).to_le_bytes());
            hasher.update(entry.more.to_le_bytes());
            hasher.update(entry.object());
            true
        })?;
        for one in self.extensions(end)? {
            if one.name == SPLIT {
                hasher.update(one.whole);
            }
        }
        Some(hasher.finalize().into())
    }
}

/// Returns how many bytes to remove from the previous name, and the length of that number in git's variable-width encoding.
pub fn prefix_cut(bytes: &[u8]) -> Option<(usize, usize)> {
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

#[cfg(test)]
mod tests;
