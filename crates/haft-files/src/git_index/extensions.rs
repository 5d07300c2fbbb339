//! What follows the entries of an index. Extensions that say where entries lie must say it rightly: a git that reads with several threads
//! goes by them.

use super::{Index, SPLIT};

/// The size of an extension's name and length.
const EXTENSION_HEADER: usize = 8;
/// The extension that says where the entries end. Git looks for it at one distance from the end, whatever is around it.
const END_OF_ENTRIES: &[u8; 4] = b"EOIE";
/// The size of its content: an offset and a SHA-1.
const END_OF_ENTRIES_SIZE: usize = 24;
/// The extension with the offsets of some entries.
const OFFSETS: &[u8; 4] = b"IEOT";
/// The extensions that git knows. What another one says, haft cannot tell.
const KNOWN: [&[u8; 4]; 8] = [
    b"TREE",
    b"REUC",
    SPLIT,
    b"UNTR",
    b"FSMN",
    END_OF_ENTRIES,
    OFFSETS,
    SPARSE,
];
/// The extension that says that some entries stand for folders.
const SPARSE: &[u8; 4] = b"sdir";

/// An extension of an index.
#[derive(Debug, Clone, Copy)]
pub struct IndexExtension<'a> {
    /// Its name.
    pub name: &'a [u8; 4],
    /// Its name, its length and its content.
    pub(super) whole: &'a [u8],
}

impl<'a> IndexExtension<'a> {
    /// Returns its content.
    pub fn content(&self) -> &'a [u8] {
        self.whole.get(EXTENSION_HEADER..).unwrap_or_default()
    }
}

impl<'a> Index<'a> {
    /// Returns the extensions that follow the entries; `None` if something else follows, or if git might read other entries because of
    /// them. `end` is where the entries end.
    pub fn extensions(&self, end: usize) -> Option<Vec<IndexExtension<'a>>> {
        let mut rest = self.bytes.get(end..)?;
        let mut found: Vec<IndexExtension<'a>> = Vec::new();
        while rest.len() > self.hash.bytes() {
            let name: &[u8; 4] = rest.get(..4)?.try_into().ok()?;
            let length = usize::try_from(word(rest, 4)?).ok()?;
            let whole = rest.get(..length.checked_add(EXTENSION_HEADER)?)?;
            let is_again = found.iter().any(|one| one.name == name);
            if is_again || !KNOWN.contains(&name) {
                return None;
            }
            found.push(IndexExtension { name, whole });
            rest = rest.get(whole.len()..)?;
        }
        let holds = rest.len() == self.hash.bytes()
            && self.ends_where_it_says(end, &found)?
            && self.has_offsets(&found)?
            && (has(&found, *SPARSE) || !self.has_folders()?);
        holds.then_some(found)
    }

    /// Whether the entries end where an extension says it, and nothing else could be taken for that extension.
    fn ends_where_it_says(&self, end: usize, all: &[IndexExtension<'_>]) -> Option<bool> {
        let before_hash = self.bytes.len().checked_sub(self.hash.bytes())?;
        let at = before_hash.checked_sub(EXTENSION_HEADER + END_OF_ENTRIES_SIZE);
        let tail = at.and_then(|at| self.bytes.get(at..));
        let is_there = tail.is_some_and(|tail| tail.starts_with(END_OF_ENTRIES));
        let is_last = all.last().is_some_and(|one| one.name == END_OF_ENTRIES);
        if !is_last {
            return Some(!is_there && !has(all, *END_OF_ENTRIES));
        }
        let stated = word(all.last()?.content(), 0)?;
        Some(usize::try_from(stated) == Ok(end))
    }

    /// Whether the offsets of entries, if there are any, lead to these entries.
    fn has_offsets(&self, all: &[IndexExtension<'_>]) -> Option<bool> {
        let Some(table) = all.iter().find(|one| one.name == OFFSETS) else {
            return Some(true);
        };
        let content = table.content();
        let mut blocks = content.get(4..)?.chunks_exact(8);
        if word(content, 0)? != 1 || !blocks.remainder().is_empty() {
            return Some(false);
        }
        let (mut left, mut holds) = (0, true);
        let end = self.each(&mut |entry| {
            while holds && left == 0 {
                let block = blocks.next();
                let begins = block.and_then(|block| Some((word(block, 0)?, word(block, 4)?)));
                // A thread reads its part without the name before it.
                holds = begins.is_some_and(|(at, count)| {
                    left = count;
                    entry.is_whole && usize::try_from(at) == Ok(entry.at)
                });
            }
            left = left.saturating_sub(1);
            holds
        });
        end?;
        Some(holds && left == 0 && blocks.next().is_none())
    }

    fn has_folders(&self) -> Option<bool> {
        let mut found = false;
        self.each(&mut |entry| {
            found |= entry.is_folder();
            !found
        })?;
        Some(found)
    }
}

fn has(all: &[IndexExtension<'_>], name: [u8; 4]) -> bool {
    all.iter().any(|one| *one.name == name)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
