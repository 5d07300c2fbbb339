//! `Pack`: a pack file with its index: objects stored whole or as differences from others.

use super::id::{ID_BYTES, ObjectId};
use super::object::{GitObject, ObjectKind, inflate};
use crate::command::meaning::sides::PathContent;

/// The beginning of an index of version 2.
const INDEX_V2: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
/// The offset of the table with the number of objects up to each first byte.
const FANOUT: u64 = 8;
/// The offset of the names.
const NAMES: u64 = FANOUT + 256 * 4;
/// Maximum number of differences between an object and the whole one it is made from. Git makes at most 4095.
const MAX_CHAIN: usize = 4_096;
/// Maximum size of an object's header, in bytes.
const MAX_ENTRY_HEADER: usize = 32 + ID_BYTES;
/// Maximum number of bytes that the differences of one object have.
const MAX_DELTAS: u64 = 64 << 20;

/// A pack file with its index.
#[derive(Debug)]
pub(super) struct Pack {
    index: PathContent,
    entries: PathContent,
    count: u64,
    /// Whether it is there after the changes.
    pub(super) lasts: bool,
}

/// How the content of an entry is stored.
enum EntryStorage {
    Whole(ObjectKind),
    /// As a difference from the entry at this offset.
    FromOffset(u64),
    /// As a difference from this object.
    FromId(ObjectId),
}

struct PackEntry {
    stored: EntryStorage,
    size: u64,
    /// Where its packed bytes begin.
    data: u64,
}

impl Pack {
    /// Opens a pack; `None` if its index is none that haft understands.
    pub(super) fn open(index: PathContent, pack: PathContent, lasts: bool) -> Option<Self> {
        if index.exact_at(0, 8).ok()? != INDEX_V2 || pack.exact_at(0, 4).ok()? != b"PACK" {
            return None;
        }
        let mut opened = Self {
            index,
            entries: pack,
            count: 0,
            lasts,
        };
        opened.count = opened.fanout(255)?;
        (NAMES + opened.count * 28 <= opened.index.len()).then_some(opened)
    }

    fn word(&self, at: u64) -> Option<u64> {
        let bytes = self.index.exact_at(at, 4).ok()?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?).into())
    }

    fn fanout(&self, byte: u8) -> Option<u64> {
        self.word(FANOUT + u64::from(byte) * 4)
    }

    /// Returns the names of its objects; `None` if there are too many, or if they are not in the order in which git looks for them: it
    /// might find another one of two.
    pub(super) fn ids(&self) -> Option<Vec<ObjectId>> {
        const MAX_IDS: u64 = 200_000;
        let count = usize::try_from(self.count).ok()?;
        let fits = self.count <= MAX_IDS;
        let names = fits.then(|| self.index.exact_at(NAMES, count * ID_BYTES));
        let names = names?.ok()?;
        let ids: Option<Vec<ObjectId>> = names
            .chunks_exact(ID_BYTES)
            .map(ObjectId::from_bytes)
            .collect();
        let ids = ids?;
        let is_sorted = ids.is_sorted_by(|a, b| a < b);
        let is_counted = |byte: u8| {
            let upto = ids.partition_point(|id| id.0[0] <= byte);
            self.fanout(byte) == Some(upto as u64)
        };
        (is_sorted && (0..=u8::MAX).all(is_counted)).then_some(ids)
    }

    /// Returns the offset of an object in the pack.
    pub(super) fn find(&self, id: &ObjectId) -> Option<u64> {
        let first = id.0[0];
        let mut low = if first == 0 {
            0
        } else {
            self.fanout(first - 1)?
        };
        let mut high = self.fanout(first)?.min(self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let name = self.index.exact_at(NAMES + middle * 20, ID_BYTES).ok()?;
            match name.as_slice().cmp(&id.0[..]) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.offset(middle),
            }
        }
        None
    }

    fn offset(&self, place: u64) -> Option<u64> {
        const LONG: u64 = 0x8000_0000;
        let offsets = NAMES + self.count * 24;
        let offset = self.word(offsets + place * 4)?;
        if offset < LONG {
            return Some(offset);
        }
        let at = offsets + self.count * 4 + (offset - LONG) * 8;
        let bytes = self.index.exact_at(at, 8).ok()?;
        Some(u64::from_be_bytes(bytes.try_into().ok()?))
    }

    fn entry(&self, at: u64) -> Option<PackEntry> {
        let mut bytes = [0; MAX_ENTRY_HEADER];
        let read = self.entries.read_at(&mut bytes, at).ok()?;
        let bytes = &bytes[..read];
        let (mut used, first) = (1, *bytes.first()?);
        let (mut size, mut shift, mut more) = (u64::from(first & 0x0f), 4, first & 0x80 != 0);
        while more {
            let byte = *bytes.get(used)?;
            size |= u64::from(byte & 0x7f).checked_shl(shift)?;
            (used, shift, more) = (used + 1, shift + 7, byte & 0x80 != 0);
        }
        let stored = match (first >> 4) & 7 {
            1 => EntryStorage::Whole(ObjectKind::Commit),
            2 => EntryStorage::Whole(ObjectKind::Tree),
            3 => EntryStorage::Whole(ObjectKind::Blob),
            4 => EntryStorage::Whole(ObjectKind::Tag),
            6 => {
                let (back, length) = read_offset(bytes.get(used..)?)?;
                used += length;
                // An object is stored after the one it is made from.
                EntryStorage::FromOffset(at.checked_sub(back).filter(|base| *base < at)?)
            }
            7 => {
                let id = ObjectId::from_bytes(bytes.get(used..used + ID_BYTES)?)?;
                used += ID_BYTES;
                EntryStorage::FromId(id)
            }
            _ => return None,
        };
        Some(PackEntry {
            stored,
            size,
            data: at + used as u64,
        })
    }

    /// Reads the object at an offset; its content only if it has at most `most` bytes.
    pub(super) fn read(&self, at: u64, most: u64) -> Option<GitObject> {
        let (mut deltas, mut delta_bytes, mut at) = (Vec::new(), 0_u64, at);
        let (kind, mut bytes, size) = loop {
            let entry = self.entry(at)?;
            match entry.stored {
                EntryStorage::Whole(kind) => {
                    let wanted = entry.size <= most || !deltas.is_empty();
                    if !wanted || entry.size > most.saturating_mul(4).max(1 << 20) {
                        break (kind, None, entry.size);
                    }
                    let bytes = inflate(&self.entries, entry.data, entry.size).ok()?;
                    if bytes.len() as u64 != entry.size {
                        return None;
                    }
                    break (kind, Some(bytes), entry.size);
                }
                EntryStorage::FromOffset(base) => at = base,
                EntryStorage::FromId(base) => at = self.find(&base)?,
            }
            delta_bytes = delta_bytes.saturating_add(entry.size);
            if deltas.len() >= MAX_CHAIN || delta_bytes > MAX_DELTAS {
                return None;
            }
            deltas.push(inflate(&self.entries, entry.data, entry.size).ok()?);
        };
        let mut size = size;
        if let Some(first) = deltas.first() {
            size = read_sizes(first)?.1;
        }
        if size > most {
            bytes = None;
        }
        while let (Some(delta), Some(base)) = (deltas.pop(), bytes.as_ref()) {
            bytes = Some(apply(base, &delta)?);
        }
        Some(GitObject {
            kind,
            size,
            content: bytes,
        })
    }
}

/// Reads how far back the entry is that another one is made from, and the length of that number.
fn read_offset(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().take(9).enumerate() {
        value = (value << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

/// Reads a number of seven bits per byte, the lowest first, and returns the rest.
fn read_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().take(9).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

/// Returns the sizes before and after a difference, and its instructions.
fn read_sizes(delta: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (before, rest) = read_number(delta)?;
    let (after, rest) = read_number(rest)?;
    Some((before, after, rest))
}

/// Maximum size of an object that is made from another one, in bytes.
const MAX_RESULT: u64 = 128 << 20;

/// Makes an object from another one.
fn apply(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let (before, after, mut rest) = read_sizes(delta)?;
    if before != base.len() as u64 || after > MAX_RESULT {
        return None;
    }
    let after = usize::try_from(after).ok()?;
    let mut made = Vec::new();
    while let Some((op, more)) = rest.split_first() {
        rest = more;
        let piece = if op & 0x80 == 0 {
            let (piece, more) = rest
                .split_at_checked(usize::from(*op))
                .filter(|_| *op > 0)?;
            rest = more;
            piece
        } else {
            let mut take = |bits: std::ops::Range<u8>| {
                let (mut value, from) = (0_usize, bits.start);
                for bit in bits {
                    if op & (1 << bit) != 0 {
                        let (byte, more) = rest.split_first()?;
                        value |= usize::from(*byte) << (8 * (bit - from));
                        rest = more;
                    }
                }
                Some(value)
            };
            let (offset, size) = (take(0..4)?, take(4..7)?);
            let size = if size == 0 { 0x1_0000 } else { size };
            base.get(offset..offset.checked_add(size)?)?
        };
        if made.len() + piece.len() > after {
            return None;
        }
        made.extend_from_slice(piece);
    }
    (made.len() == after).then_some(made)
}

#[cfg(test)]
mod tests {
    use super::apply;

    #[test]
    fn a_difference_is_applied_only_within_its_sizes() {
        let base = b"hello world";
        // Copy 5 bytes from 0, insert "!".
        let good = [11, 6, 0x90, 5, 1, b'!'];
        assert_eq!(apply(base, &good), Some(b"hello!".to_vec()));
        for wrong in [
            &[10, 6, 0x90, 5, 1, b'!'][..],
            &[11, 5, 0x90, 5, 1, b'!'],
            &[11, 7, 0x90, 5, 1, b'!'],
            &[11, 6, 0x90, 12],
            &[11, 6, 0x91, 9, 5],
            &[11, 6, 0],
            &[11, 6, 9, b'x'],
            &[0xff; 20],
            &[],
        ] {
            assert_eq!(apply(base, wrong), None, "{wrong:?}");
        }
    }
}
