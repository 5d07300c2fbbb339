//! `git_index`: entries of a git index as bytes, and the form of it in which files outside of a folder count as left alone.
//!
//! A command in a package of a larger repository sees no file outside of the package. Git would take them for deleted, and a commit would
//! delete them. Git's own mark for such entries is `skip-worktree`: it is set on the command's view, and taken away before anything is
//! applied. Format: gitformat-index(5).

use std::collections::BTreeMap;
use std::path::Path;

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

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
/// Extensions that state offsets, or what lies in folders: git makes them again.
const DROPPED: [&[u8; 4]; 4] = [b"EOIE", b"IEOT", b"UNTR", b"FSMN"];

/// The hash by which a repository names its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectHash {
    /// The default.
    Sha1,
    /// `extensions.objectFormat = sha256`.
    Sha256,
}

impl ObjectHash {
    fn bytes(self) -> usize {
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

/// An entry of an index.
#[derive(Debug)]
pub(crate) struct IndexEntry<'a> {
    /// Times, identity, mode and object.
    fixed: &'a [u8],
    flags: u16,
    more: u16,
    pub(crate) name: &'a [u8],
    /// In version 4: how many bytes of the previous name go, as written, and what follows.
    tail: &'a [u8],
}

impl IndexEntry<'_> {
    fn word(&self, at: usize) -> u32 {
        let bytes = self.fixed.get(at..at + 4).unwrap_or_default();
        bytes.try_into().map_or(0, u32::from_be_bytes)
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
        let object = self.fixed.get(STAT..).unwrap_or_default();
        (self.word(MODE), self.flags & STAGE, object)
    }
}

/// An index, checked for its form only as far as its entries go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Index<'a> {
    bytes: &'a [u8],
    version: u32,
    count: u32,
    hash: ObjectHash,
}

impl<'a> Index<'a> {
    /// Reads the header; `None` if this is no index.
    pub(crate) fn of(bytes: &'a [u8], hash: ObjectHash) -> Option<Self> {
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
    pub(crate) fn each(&self, look: &mut dyn FnMut(&IndexEntry<'_>) -> bool) -> Option<usize> {
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

    /// Returns the index with other extended flags: `flags` returns those of an entry.
    fn with_flags(&self, flags: &dyn Fn(&IndexEntry<'_>) -> u16) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(self.bytes.len() + 8 * self.count as usize);
        out.extend_from_slice(self.bytes.get(..HEADER)?);
        let mut any = false;
        let end = self.each(&mut |entry| {
            let begin = out.len();
            let more = flags(entry);
            any |= more != 0;
            let extended = if more == 0 { 0 } else { EXTENDED };
            out.extend_from_slice(entry.fixed);
            out.extend_from_slice(&(entry.flags & !EXTENDED | extended).to_be_bytes());
            if more != 0 {
                out.extend_from_slice(&more.to_be_bytes());
            }
            out.extend_from_slice(entry.tail);
            let padding = if self.version == 4 {
                1
            } else {
                8 - (out.len() - begin) % 8
            };
            out.resize(out.len() + padding, 0);
            true
        })?;
        let version: u32 = match (self.version, any) {
            (4, _) => 4,
            (_, true) => 3,
            (_, false) => 2,
        };
        out.get_mut(4..8)?.copy_from_slice(&version.to_be_bytes());
        self.add_extensions(self.bytes.get(end..)?, &mut out)?;
        let trailer = self.bytes.len().checked_sub(self.hash.bytes())?;
        // Git writes zeros with `index.skipHash`.
        let skips = self.bytes.get(trailer..)?.iter().all(|byte| *byte == 0);
        let hash = if skips {
            vec![0; self.hash.bytes()]
        } else {
            self.hash.of(&out)
        };
        out.extend(hash);
        Some(out)
    }

    /// Copies the extensions that hold for other flags too; `None` if entries lie in another file, or something follows.
    fn add_extensions(&self, mut rest: &[u8], out: &mut Vec<u8>) -> Option<()> {
        while rest.len() > self.hash.bytes() {
            let (name, length) = (rest.get(..4)?, rest.get(4..8)?);
            let length = usize::try_from(u32::from_be_bytes(length.try_into().ok()?)).ok()?;
            let whole = rest.get(..length.checked_add(8)?)?;
            let split = name == b"link";
            if split || !name.iter().all(u8::is_ascii_alphabetic) {
                return None;
            }
            if !DROPPED.iter().any(|dropped| name == *dropped) {
                out.extend_from_slice(whole);
            }
            rest = rest.get(whole.len()..)?;
        }
        (rest.len() == self.hash.bytes()).then_some(())
    }
}

/// Returns the index in which git leaves alone what lies outside of a folder. Returns `None` for an index in several files, and a damaged
/// one.
pub fn without_others(index: &[u8], hash: ObjectHash, folder: &Path) -> Option<Vec<u8>> {
    let inside = folder.as_os_str().as_encoded_bytes();
    Index::of(index, hash)?.with_flags(&|entry| {
        if is_below(entry.name, inside) || entry.flags & STAGE != 0 {
            entry.more
        } else {
            entry.more | SKIP_WORKTREE
        }
    })
}

/// Returns the index that a command left, with the marks of [`without_others`] taken away. `before` is the index without them, empty if
/// there was none.
///
/// # Errors
/// Why the index cannot be applied: it records another state of a file outside of the folder, or cannot be read.
pub fn with_others(
    left: &[u8],
    before: &[u8],
    hash: ObjectHash,
    folder: &Path,
) -> Result<Vec<u8>, String> {
    let unread = || "the index that git left cannot be read".to_owned();
    let inside = folder.as_os_str().as_encoded_bytes();
    let records = |bytes: &[u8]| {
        let mut all = BTreeMap::new();
        Index::of(bytes, hash)?.each(&mut |entry| {
            if !is_below(entry.name, inside) {
                let (mode, stage, object) = entry.record();
                all.insert(
                    (entry.name.to_vec(), stage),
                    (mode, object.to_vec(), entry.more),
                );
            }
            true
        })?;
        Some(all)
    };
    let was = if before.is_empty() {
        BTreeMap::new()
    } else {
        records(before).ok_or_else(unread)?
    };
    let is = records(left).ok_or_else(unread)?;
    let record =
        |found: Option<&(u32, Vec<u8>, u16)>| found.map(|(mode, id, _)| (*mode, id.clone()));
    let mut names = was.keys().chain(is.keys());
    if let Some((name, _)) = names.find(|name| record(was.get(*name)) != record(is.get(*name))) {
        return Err(format!(
            "git changes {}, which lies outside of the workspace",
            haft_types::text::visible::path_of_bytes(name)
        ));
    }
    let restored = Index::of(left, hash).and_then(|index| {
        index.with_flags(&|entry| {
            let (_, stage, _) = entry.record();
            match was.get(&(entry.name.to_vec(), stage)) {
                Some((_, _, more)) if !is_below(entry.name, inside) => {
                    entry.more & !SKIP_WORKTREE | more & SKIP_WORKTREE
                }
                _ => entry.more,
            }
        })
    });
    restored.ok_or_else(unread)
}

/// Whether a name in an index lies below a folder.
fn is_below(name: &[u8], folder: &[u8]) -> bool {
    let rest = name.strip_prefix(folder);
    folder.is_empty() || rest.is_some_and(|rest| rest.starts_with(b"/"))
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
mod tests {
    use std::path::Path;

    use sha1::{Digest as _, Sha1};

    use super::{Index, MODE, ObjectHash, STAT, with_others, without_others};

    /// Makes an index of these names, each with the number of its object and its flags.
    fn index(version: u32, entries: &[(&str, u8, u16)]) -> Vec<u8> {
        let mut out = b"DIRC".to_vec();
        out.extend(version.to_be_bytes());
        out.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
        let mut last = "";
        for (name, object, more) in entries {
            let begin = out.len();
            let mut fixed = vec![0; STAT];
            fixed[MODE..MODE + 4].copy_from_slice(&0o100_644_u32.to_be_bytes());
            out.extend(fixed);
            out.extend([*object; 20]);
            let extended: u16 = if *more == 0 { 0 } else { 0x4000 };
            out.extend((extended | u16::try_from(name.len()).unwrap()).to_be_bytes());
            if *more != 0 {
                out.extend(more.to_be_bytes());
            }
            if version == 4 {
                let same = last
                    .bytes()
                    .zip(name.bytes())
                    .take_while(|(a, b)| a == b)
                    .count();
                out.push(u8::try_from(last.len() - same).unwrap());
                out.extend(name.as_bytes().iter().skip(same));
                out.push(0);
                last = name;
            } else {
                out.extend(name.as_bytes());
                let padding = 8 - (out.len() - begin) % 8;
                out.resize(out.len() + padding, 0);
            }
        }
        out.extend(*b"TREE\0\0\0\x02ab");
        out.extend(*b"EOIE\0\0\0\x01x");
        let hash = Sha1::digest(&out);
        out.extend(hash);
        out
    }

    fn flags(bytes: &[u8]) -> Vec<(String, u16)> {
        let mut found = Vec::new();
        Index::of(bytes, ObjectHash::Sha1)
            .unwrap()
            .each(&mut |entry| {
                found.push((String::from_utf8_lossy(entry.name).into_owned(), entry.more));
                true
            })
            .unwrap();
        found
    }

    #[test]
    fn marks_of_others_are_set_and_taken_away() {
        let before = [
            ("a/f", 1, 0),
            ("ab", 2, 0),
            ("b/f", 3, 0x2000),
            ("c", 4, 0x4000),
        ];
        let folder = Path::new("a");
        for version in [2, 3, 4] {
            let whole = index(version, &before);
            let seen = without_others(&whole, ObjectHash::Sha1, folder).unwrap();
            let own = |name: &str, more| (name.to_owned(), more);
            let expect = [
                own("a/f", 0),
                own("ab", 0x4000),
                own("b/f", 0x6000),
                own("c", 0x4000),
            ];
            assert_eq!(flags(&seen), expect, "{version}");
            let (content, hash) = seen.split_at(seen.len() - 20);
            assert_eq!(&*Sha1::digest(content), hash, "{version}");
            assert!(!seen.windows(4).any(|name| name == b"EOIE"), "{version}");
            assert!(seen.windows(4).any(|name| name == b"TREE"), "{version}");
            let back = with_others(&seen, &whole, ObjectHash::Sha1, folder).unwrap();
            assert_eq!(flags(&back), flags(&whole), "{version}");
        }
    }

    #[test]
    fn another_state_of_what_lies_outside_is_refused() {
        let before = index(2, &[("a/f", 1, 0), ("b/f", 3, 0)]);
        let folder = Path::new("a");
        for (left, expect) in [
            (
                index(3, &[("a/f", 9, 0), ("a/g", 9, 0), ("b/f", 3, 0x4000)]),
                None,
            ),
            (index(2, &[("b/f", 3, 0)]), None),
            (index(2, &[("a/f", 1, 0)]), Some("git changes b/f")),
            (
                index(2, &[("a/f", 1, 0), ("b/f", 4, 0)]),
                Some("git changes b/f"),
            ),
            (
                index(2, &[("a/f", 1, 0), ("aa", 4, 0), ("b/f", 3, 0)]),
                Some("git changes aa"),
            ),
            (b"DIRC".to_vec(), Some("cannot be read")),
        ] {
            let found = with_others(&left, &before, ObjectHash::Sha1, folder);
            match expect {
                None => assert!(found.is_ok(), "{found:?}"),
                Some(why) => assert!(found.unwrap_err().contains(why), "{why}"),
            }
        }
        let mut split = before.clone();
        split.splice(split.len() - 20.., *b"link\0\0\0\0aaaaaaaaaaaaaaaaaaaa");
        assert_eq!(without_others(&split, ObjectHash::Sha1, folder), None);
        assert_eq!(
            without_others(&before[..40], ObjectHash::Sha1, folder),
            None
        );
    }
}
