//! `git_index`: the one reader of git's index: its entries and its extensions. Format: gitformat-index(5).

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

mod package;

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
/// The kind of an entry that stands for all files of a folder, in the bits of a mode above its permissions.
const FOLDER: u32 = 0o4;
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
        self.mode() >> 12 == FOLDER
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

    /// Calls `look` with each entry until it returns false. Returns where the entries end; `None` if the index is damaged.
    pub fn each(&self, look: &mut dyn FnMut(&IndexEntry<'_>) -> bool) -> Option<usize> {
        let (mut at, mut name) = (HEADER, Vec::new());
        let fixed = STAT + self.hash.bytes();
        let flag = |at: usize| {
            let bytes = self.bytes.get(at..at + 2)?;
            Some(u16::from_be_bytes(bytes.try_into().ok()?))
        };
        for _ in 0..self.count {
            let flags = flag(at + fixed)?;
            let extended = flags & EXTENDED != 0;
            let more = if extended { flag(at + fixed + 2)? } else { 0 };
            let begin = at + fixed + if extended { 4 } else { 2 };
            let mut from = begin;
            if self.version == 4 {
                let (cut, bytes) = prefix_cut(self.bytes.get(begin..)?)?;
                name.truncate(name.len().checked_sub(cut)?);
                from += bytes;
            } else {
                name.clear();
            }
            let rest = self.bytes.get(from..)?;
            let length = rest.iter().position(|byte| *byte == 0)?;
            name.extend_from_slice(rest.get(..length)?);
            let end = from + length;
            let entry = IndexEntry {
                fixed: self.bytes.get(at..at + fixed)?,
                flags,
                more,
                name: &name,
                tail: self.bytes.get(begin..end)?,
            };
            if !look(&entry) {
                return Some(at);
            }
            at = if self.version == 4 {
                end + 1
            } else {
                at + ((end - at) / 8 + 1) * 8
            };
        }
        Some(at)
    }

    /// Returns the extensions that follow the entries; `None` if something else follows. `end` is where the entries end.
    pub fn extensions(&self, end: usize) -> Option<Vec<IndexExtension<'a>>> {
        let (mut rest, mut found) = (self.bytes.get(end..)?, Vec::new());
        while rest.len() > self.hash.bytes() {
            let name: &[u8; 4] = rest.get(..4)?.try_into().ok()?;
            let length = u32::from_be_bytes(rest.get(4..8)?.try_into().ok()?);
            let length = usize::try_from(length).ok()?;
            let whole = rest.get(..length.checked_add(8)?)?;
            if !name.iter().all(u8::is_ascii_alphabetic) {
                return None;
            }
            found.push(IndexExtension { name, whole });
            rest = rest.get(whole.len()..)?;
        }
        (rest.len() == self.hash.bytes()).then_some(found)
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

/// An extension of an index.
#[derive(Debug, Clone, Copy)]
pub struct IndexExtension<'a> {
    /// Its name.
    pub name: &'a [u8; 4],
    /// Its name, its length and its content.
    whole: &'a [u8],
}

impl<'a> IndexExtension<'a> {
    /// Returns its content.
    pub fn content(&self) -> &'a [u8] {
        self.whole.get(8..).unwrap_or_default()
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
