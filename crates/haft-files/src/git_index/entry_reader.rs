//! `EntryReader`: the entries of an index, one after another, as git reads them: one that git might read otherwise is damaged.

use super::{EXTENDED, FOLDER, HEADER, Index, IndexEntry, SKIP_WORKTREE, STAGE, STAT, prefix_cut};

/// The bits of an entry's flags with the length of its name; all of them are set if that is longer.
const NAME_LENGTH: u16 = 0x0fff;
/// A file that is to be added later.
const INTENT_TO_ADD: u16 = 0x2000;
/// The modes that git writes.
const MODES: [u32; 5] = [0o100_644, 0o100_755, 0o120_000, 0o160_000, FOLDER];

/// Reads the entries of an index.
pub(super) struct EntryReader<'a> {
    index: Index<'a>,
    /// Where the next entry begins.
    pub(super) at: usize,
    name: Vec<u8>,
    last: Vec<u8>,
    last_stage: Option<u16>,
}

impl<'a> EntryReader<'a> {
    pub(super) fn new(index: &Index<'a>) -> Self {
        Self {
            index: *index,
            at: HEADER,
            name: Vec::new(),
            last: Vec::new(),
            last_stage: None,
        }
    }

    fn flag(&self, at: usize) -> Option<u16> {
        let bytes = self.index.bytes.get(at..at + 2)?;
        Some(u16::from_be_bytes(bytes.try_into().ok()?))
    }

    /// Reads the next entry; `None` if there is none that git reads in the same way.
    pub(super) fn read_next(&mut self) -> Option<IndexEntry<'_>> {
        let (bytes, at) = (self.index.bytes, self.at);
        let fixed = STAT + self.index.hash.bytes();
        let flags = self.flag(at + fixed)?;
        let is_extended = flags & EXTENDED != 0;
        let more = if is_extended {
            self.flag(at + fixed + 2)?
        } else {
            0
        };
        let is_known = more & !(SKIP_WORKTREE | INTENT_TO_ADD) == 0;
        if !is_known || (is_extended && self.index.version == 2) {
            return None;
        }
        self.last.clone_from(&self.name);
        let begin = at + fixed + if is_extended { 4 } else { 2 };
        let mut from = begin;
        if self.index.version == 4 {
            let (cut, length) = prefix_cut(bytes.get(begin..)?)?;
            let kept = self.name.len().checked_sub(cut)?;
            self.name.truncate(kept);
            from += length;
        } else {
            self.name.clear();
        }
        let is_whole = self.name.is_empty();
        let rest = bytes.get(from..)?;
        let length = memchr::memchr(0, rest)?;
        self.name.extend_from_slice(&rest[..length]);
        let end = from + length;
        self.at = self.next_entry(at, end)?;
        let entry = IndexEntry {
            fixed: bytes.get(at..at + fixed)?,
            flags,
            more,
            name: &self.name,
            tail: bytes.get(begin..end)?,
            at,
            is_whole,
        };
        let is_sound = has_stated_length(&entry)
            && has_mode_of_git(&entry)
            && is_after(&entry, &self.last, self.last_stage);
        self.last_stage = Some(flags & STAGE);
        is_sound.then_some(entry)
    }

    /// Returns where the entry after one begins; `None` if something else than zeros is between.
    fn next_entry(&self, at: usize, end: usize) -> Option<usize> {
        if self.index.version == 4 {
            return Some(end + 1);
        }
        let next = at + ((end - at) / 8 + 1) * 8;
        let padding = self.index.bytes.get(end..next)?;
        padding.iter().all(|byte| *byte == 0).then_some(next)
    }
}

/// Whether a name is as long as its entry says: git goes by that, not by where the name ends.
fn has_stated_length(entry: &IndexEntry<'_>) -> bool {
    let (stated, length) = (entry.flags & NAME_LENGTH, entry.name.len());
    !entry.name.is_empty()
        && if stated == NAME_LENGTH {
            length >= usize::from(NAME_LENGTH)
        } else {
            length == usize::from(stated)
        }
}

/// Whether an entry has one of git's modes, and that of a folder if its name is one of a folder.
fn has_mode_of_git(entry: &IndexEntry<'_>) -> bool {
    MODES.contains(&entry.mode()) && entry.is_folder() == entry.name.ends_with(b"/")
}

/// Whether an entry comes after the one before it. Git looks for names by halving.
fn is_after(entry: &IndexEntry<'_>, last: &[u8], last_stage: Option<u16>) -> bool {
    let Some(last_stage) = last_stage else {
        return true;
    };
    match last.cmp(entry.name) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => last_stage < entry.flags & STAGE,
        std::cmp::Ordering::Greater => false,
    }
}
