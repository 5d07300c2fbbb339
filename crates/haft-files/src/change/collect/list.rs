//! `ChangeList`: the changes of a command, each as a few bytes: there may be 200,000 of them, and they are in memory while a person decides.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::change::EntryState;
use crate::change::collect::packed::{Packed, PackedReader, PackedWriter};
use crate::change::collect::{CollectError, Stamps, ViewChange};

/// Maximum size of a piece of memory that holds changes, in bytes. One piece for all would be copied whenever it grows.
const PIECE_BYTES: usize = 1 << PIECE_BITS;
/// Number of bits of a place that say where in its piece it is.
const PIECE_BITS: u32 = 20;
/// Maximum number of pieces.
const MAX_PIECES: usize = 1 << (u32::BITS - PIECE_BITS);

/// The changes of a command, sorted by path.
#[derive(Clone, Default)]
pub struct ChangeList {
    entries: Vec<ChangePlace>,
    /// The changes as bytes, in the order in which they were found.
    pieces: Vec<Vec<u8>>,
    packed: Packed,
    /// The reasons of all conflicts.
    reasons: Vec<&'static str>,
}

/// Where a change is in the pieces, and its reason among the reasons, counted from 1; 0 for none.
#[derive(Clone, Copy)]
struct ChangePlace {
    place: u32,
    reason: u8,
}

impl ChangeList {
    /// Returns the number of changes.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns all changes, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = ViewChange<'_>> + ExactSizeIterator {
        self.entries.iter().map(|entry| self.change(*entry))
    }

    /// Returns the change with this number.
    pub fn get(&self, at: usize) -> Option<ViewChange<'_>> {
        self.entries.get(at).map(|entry| self.change(*entry))
    }

    /// Returns the path of the change with this number; empty if there is none.
    pub fn path(&self, at: usize) -> &Path {
        let entry = self.entries.get(at);
        entry.map_or(Path::new(""), |entry| self.path_of(*entry))
    }

    /// Returns all paths, in order.
    pub fn paths(&self) -> impl DoubleEndedIterator<Item = &Path> + ExactSizeIterator {
        self.entries.iter().map(|entry| self.path_of(*entry))
    }

    /// Returns the number of the change at a path.
    pub fn position(&self, path: &Path) -> Option<usize> {
        let found = self
            .entries
            .binary_search_by(|entry| self.path_of(*entry).cmp(path));
        found.ok()
    }

    /// Returns the number of the first change that is not before a path.
    pub fn first_from(&self, path: &Path) -> usize {
        self.entries
            .partition_point(|entry| self.path_of(*entry) < path)
    }

    /// Returns whether a change lies below a folder.
    pub(super) fn holds_below(&self, folder: &Path) -> bool {
        let paths = |entry: &ChangePlace| self.path_of(*entry) <= folder;
        let next = self.entries.get(self.entries.partition_point(paths));
        next.is_some_and(|next| self.path_of(*next).starts_with(folder))
    }

    /// Adds a change at the end: [`sort`](Self::sort) puts it in its place.
    ///
    /// # Errors
    /// The changes take too much memory.
    pub(super) fn add(&mut self, change: &ViewChange<'_>) -> Result<(), CollectError> {
        let mut bytes = PackedWriter::default();
        bytes.bytes(change.path.as_os_str().as_bytes());
        self.packed.write(change, &mut bytes);
        let bytes = bytes.into_bytes();
        let has_room = |piece: &Vec<u8>| piece.len() + bytes.len() <= PIECE_BYTES;
        if !self.pieces.last().is_some_and(has_room) {
            if self.pieces.len() == MAX_PIECES {
                return Err(CollectError::TooMany);
            }
            self.pieces.push(Vec::new());
        }
        let number = self.pieces.len() - 1;
        if let Some(piece) = self.pieces.last_mut() {
            let place = number << PIECE_BITS | piece.len();
            piece.extend_from_slice(&bytes);
            let reason = self.reason(change.conflict);
            let place = u32::try_from(place).map_err(|_| CollectError::TooMany)?;
            self.entries.push(ChangePlace { place, reason });
        }
        Ok(())
    }

    /// Sorts by path.
    pub(super) fn sort(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by(|a, b| self.path_of(*a).cmp(self.path_of(*b)));
        entries.shrink_to_fit();
        self.entries = entries;
    }

    /// Removes the changes that do not pass.
    pub(super) fn retain(&mut self, passes: impl Fn(&Path) -> bool) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain(|entry| passes(self.path_of(*entry)));
        self.entries = entries;
    }

    /// Returns why the change with this number must not be applied.
    pub(super) fn conflict(&self, at: usize) -> Option<&'static str> {
        let entry = self.entries.get(at)?;
        self.conflict_of(*entry)
    }

    /// Sets why the change with this number must not be applied.
    pub(super) fn set_conflict(&mut self, at: usize, why: &'static str) {
        let reason = self.reason(Some(why));
        if let Some(entry) = self.entries.get_mut(at) {
            entry.reason = reason;
        }
    }

    /// Returns the number of a reason. There are few: each is a text of the program.
    fn reason(&mut self, why: Option<&'static str>) -> u8 {
        let Some(why) = why else { return 0 };
        let known = self.reasons.iter().position(|known| *known == why);
        let at = known.unwrap_or_else(|| {
            self.reasons.push(why);
            self.reasons.len() - 1
        });
        u8::try_from(at + 1).unwrap_or(u8::MAX)
    }

    fn conflict_of(&self, entry: ChangePlace) -> Option<&'static str> {
        let at = usize::from(entry.reason).checked_sub(1)?;
        self.reasons.get(at).copied()
    }

    fn reader(&self, entry: ChangePlace) -> PackedReader<'_> {
        let (piece, at) = (
            entry.place >> PIECE_BITS,
            entry.place as usize & (PIECE_BYTES - 1),
        );
        let piece = self.pieces.get(piece as usize);
        let bytes = piece.and_then(|piece| piece.get(at..));
        PackedReader::new(bytes.unwrap_or_default())
    }

    fn path_of(&self, entry: ChangePlace) -> &Path {
        read_path(&mut self.reader(entry))
    }

    fn change(&self, entry: ChangePlace) -> ViewChange<'_> {
        let mut reader = self.reader(entry);
        let path = read_path(&mut reader);
        let (action, states, stamps) = self.packed.read(&mut reader);
        let [before, after]: [Option<EntryState>; 2] = states;
        let [lower, upper] = stamps;
        ViewChange {
            path,
            action,
            before,
            after,
            conflict: self.conflict_of(entry),
            stamps: Stamps { lower, upper },
        }
    }
}

fn read_path<'a>(reader: &mut PackedReader<'a>) -> &'a Path {
    Path::new(OsStr::from_bytes(reader.bytes()))
}

impl fmt::Debug for ChangeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for ChangeList {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ChangeList {}
