//! `Packed`: a change without its path, as few bytes: small numbers take one byte, a hash takes 32, and a stamp says only how it differs
//! from its state and from the first stamp.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::change::collect::ViewChange;
use crate::change::net::ChangeKind;
use crate::change::{EntryState, FileHash};
use crate::workspace::FileStamp;

/// Bits of the first byte beside the action, if these parts are there.
const BEFORE: u8 = 1 << 3;
const AFTER: u8 = 1 << 4;
const LOWER: u8 = 1 << 5;
const UPPER: u8 = 1 << 6;

/// The kinds of states, in the first byte of each.
const FILE: u8 = 0;
const LINK: u8 = 1;
const FOLDER: u8 = 2;
const OTHER: u8 = 3;
/// Bits of that byte beside the kind, if these parts are there.
const HASH: u8 = 1 << 2;
const MODE: u8 = 1 << 3;

/// Bits of the first number of a stamp, below that of its file system, if these parts are as usual and so not written.
const SIZE_OF_STATE: u64 = 1;
const CHANGED_WHEN_MODIFIED: u64 = 1 << 1;
const ONE_NAME: u64 = 1 << 2;
/// Number of these bits.
const STAMP_BITS: u32 = 3;

/// What several changes share.
#[derive(Debug, Clone, Default)]
pub(super) struct Packed {
    /// The file systems of the files.
    devices: Vec<DeviceStamps>,
}

/// What the stamps of a file system are written relative to: the first of them.
#[derive(Debug, Clone, Copy, Default)]
struct DeviceStamps {
    device: u64,
    inode: u64,
    /// The seconds when it was modified.
    seconds: i64,
}

impl Packed {
    /// Writes a change, without its path and its conflict.
    pub(super) fn write(&mut self, change: &ViewChange<'_>, to: &mut PackedWriter) {
        let (states, stamps) = ([&change.before, &change.after], &change.stamps);
        let stamps = [&stamps.lower, &stamps.upper];
        let parts = [
            (states[0].is_some(), BEFORE),
            (states[1].is_some(), AFTER),
            (stamps[0].is_some(), LOWER),
            (stamps[1].is_some(), UPPER),
        ];
        let parts = parts.iter().filter(|(is_there, _)| *is_there);
        to.byte(parts.fold(code(change.action), |all, (_, bit)| all | bit));
        for state in states.into_iter().flatten() {
            write_state(state, to);
        }
        for (stamp, state) in stamps.into_iter().zip(states) {
            if let Some(stamp) = stamp {
                self.write_stamp(stamp, size(state.as_ref()), to);
            }
        }
    }

    /// Reads what [`write`](Self::write) wrote: the action, the states before and after, and the stamps below and above.
    pub(super) fn read(
        &self,
        from: &mut PackedReader<'_>,
    ) -> (ChangeKind, [Option<EntryState>; 2], [Option<FileStamp>; 2]) {
        let first = from.byte();
        let states = [BEFORE, AFTER].map(|bit| (first & bit != 0).then(|| read_state(from)));
        let [before, after] = &states;
        let stamps = [(LOWER, before), (UPPER, after)].map(|(bit, state)| {
            let read = || self.read_stamp(size(state.as_ref()), from);
            (first & bit != 0).then(read)
        });
        (action(first), states, stamps)
    }

    /// Writes a stamp. `size` is that of its state.
    fn write_stamp(&mut self, stamp: &FileStamp, size: Option<u64>, to: &mut PackedWriter) {
        let known = self
            .devices
            .iter()
            .position(|one| one.device == stamp.device);
        let number = known.unwrap_or_else(|| {
            self.devices.push(DeviceStamps {
                device: stamp.device,
                inode: stamp.inode,
                seconds: stamp.modified.0,
            });
            self.devices.len() - 1
        });
        let shared = self.shared(number as u64);
        let usual = [
            (size == Some(stamp.bytes), SIZE_OF_STATE),
            (stamp.changed == stamp.modified, CHANGED_WHEN_MODIFIED),
            (stamp.links == 1, ONE_NAME),
        ];
        let usual = usual.iter().filter(|(is_usual, _)| *is_usual);
        let usual = usual.fold(0, |all, (_, bit)| all | bit);
        to.number((number as u64) << STAMP_BITS | usual);
        to.number(zigzag(stamp.inode.wrapping_sub(shared.inode).cast_signed()));
        let mut time = |(seconds, nanoseconds): (i64, i64)| {
            to.number(zigzag(seconds.wrapping_sub(shared.seconds)));
            to.number(zigzag(nanoseconds));
        };
        time(stamp.modified);
        if usual & CHANGED_WHEN_MODIFIED == 0 {
            time(stamp.changed);
        }
        if usual & SIZE_OF_STATE == 0 {
            to.number(stamp.bytes);
        }
        if usual & ONE_NAME == 0 {
            to.number(stamp.links);
        }
    }

    /// Reads a stamp. `size` is that of its state.
    fn read_stamp(&self, size: Option<u64>, from: &mut PackedReader<'_>) -> FileStamp {
        let first = from.number();
        let is_usual = |bit: u64| first & bit != 0;
        let shared = self.shared(first >> STAMP_BITS);
        let inode = unzigzag(from.number()).cast_unsigned();
        let time = |from: &mut PackedReader<'_>| {
            let seconds = unzigzag(from.number()).wrapping_add(shared.seconds);
            (seconds, unzigzag(from.number()))
        };
        let modified = time(from);
        let changed = if is_usual(CHANGED_WHEN_MODIFIED) {
            modified
        } else {
            time(from)
        };
        FileStamp {
            device: shared.device,
            inode: shared.inode.wrapping_add(inode),
            modified,
            changed,
            bytes: if is_usual(SIZE_OF_STATE) {
                size.unwrap_or_default()
            } else {
                from.number()
            },
            links: if is_usual(ONE_NAME) { 1 } else { from.number() },
        }
    }

    /// Returns what the stamps of the file system with this number share.
    fn shared(&self, number: u64) -> DeviceStamps {
        let number = usize::try_from(number).ok();
        let shared = number.and_then(|number| self.devices.get(number));
        shared.copied().unwrap_or_default()
    }
}

/// Returns the size of a file.
fn size(state: Option<&EntryState>) -> Option<u64> {
    match state {
        Some(EntryState::File { bytes, .. }) => Some(*bytes),
        _ => None,
    }
}

fn write_state(state: &EntryState, to: &mut PackedWriter) {
    let mode_bit = |mode: &Option<u32>| mode.map_or(0, |_| MODE);
    match state {
        EntryState::File {
            sha256,
            bytes,
            mode,
        } => {
            to.byte(FILE | sha256.map_or(0, |_| HASH) | mode_bit(mode));
            if let Some(sha256) = sha256 {
                to.all(sha256.as_bytes());
            }
            to.number(*bytes);
            to.numbers(*mode);
        }
        EntryState::Link { target } => {
            to.byte(LINK);
            to.bytes(target.as_os_str().as_bytes());
        }
        EntryState::Folder { mode } => {
            to.byte(FOLDER | mode_bit(mode));
            to.numbers(*mode);
        }
        EntryState::Other => to.byte(OTHER),
    }
}

fn read_state(from: &mut PackedReader<'_>) -> EntryState {
    let first = from.byte();
    let has = |bit: u8| first & bit != 0;
    let mode = |from: &mut PackedReader<'_>| {
        has(MODE).then(|| u32::try_from(from.number()).unwrap_or_default())
    };
    match first & 0b11 {
        FILE => EntryState::File {
            sha256: has(HASH).then(|| FileHash::from_bytes(from.hash())),
            bytes: from.number(),
            mode: mode(from),
        },
        LINK => EntryState::Link {
            target: Path::new(OsStr::from_bytes(from.bytes())).into(),
        },
        FOLDER => EntryState::Folder { mode: mode(from) },
        _ => EntryState::Other,
    }
}

fn code(action: ChangeKind) -> u8 {
    match action {
        ChangeKind::Create => 0,
        ChangeKind::Modify => 1,
        ChangeKind::Delete => 2,
        ChangeKind::Move => 3,
        ChangeKind::Replace => 4,
        ChangeKind::Chmod => 5,
    }
}

fn action(first: u8) -> ChangeKind {
    match first & 0b111 {
        0 => ChangeKind::Create,
        1 => ChangeKind::Modify,
        2 => ChangeKind::Delete,
        3 => ChangeKind::Move,
        4 => ChangeKind::Replace,
        _ => ChangeKind::Chmod,
    }
}

/// Makes numbers near zero small, whatever their sign.
fn zigzag(number: i64) -> u64 {
    (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Writes bytes and numbers.
#[derive(Debug, Default)]
pub(super) struct PackedWriter(Vec<u8>);

impl PackedWriter {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn all(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Writes a number, seven bits in each byte, the lowest first.
    fn number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.byte(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.byte(number.to_le_bytes()[0]);
    }

    fn numbers(&mut self, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            self.number(number.into());
        }
    }

    /// Writes bytes after their number.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.all(bytes);
    }
}

/// Reads what a [`PackedWriter`] wrote.
#[derive(Debug)]
pub(super) struct PackedReader<'a>(&'a [u8]);

impl<'a> PackedReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (part, rest) = self.0.split_at_checked(count).unwrap_or_default();
        self.0 = rest;
        part
    }

    fn number(&mut self) -> u64 {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }

    fn hash(&mut self) -> [u8; 32] {
        self.take(32).try_into().unwrap_or_default()
    }

    /// Reads bytes after their number.
    pub(super) fn bytes(&mut self) -> &'a [u8] {
        let count = self.number();
        self.take(usize::try_from(count).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::collect::Stamps;
    use crate::change::collect::list::ChangeList;

    const HASH: FileHash = FileHash::from_bytes([0xa5; 32]);

    fn stamp(device: u64, number: u64, time: i64) -> FileStamp {
        FileStamp {
            device,
            inode: number,
            bytes: number,
            modified: (time, 999_999_999),
            changed: (-time, 0),
            links: number,
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn change_when_packed_and_read_is_the_same() {
        let file = |sha256, bytes, mode| EntryState::File {
            sha256,
            bytes,
            mode,
        };
        let link = |target: &str| EntryState::Link {
            target: Path::new(target).into(),
        };
        let folder = |mode| EntryState::Folder { mode };
        let rows = [
            (
                ChangeKind::Create,
                None,
                Some(file(Some(HASH), 0, Some(0o644))),
            ),
            (
                ChangeKind::Modify,
                Some(file(None, u64::MAX, None)),
                Some(file(Some(HASH), 300, Some(0o7777))),
            ),
            (ChangeKind::Delete, Some(link("")), None),
            (
                ChangeKind::Replace,
                Some(folder(None)),
                Some(link("../é/\u{1}")),
            ),
            (
                ChangeKind::Chmod,
                Some(folder(Some(0))),
                Some(folder(Some(0o755))),
            ),
            (
                ChangeKind::Move,
                Some(EntryState::Other),
                Some(EntryState::Other),
            ),
        ];
        let stamps = [
            (None, None),
            (
                Some(stamp(7, 0, 0)),
                Some(stamp(u64::MAX, u64::MAX, i64::MAX)),
            ),
            (None, Some(stamp(7, 127, -1))),
            (Some(stamp(0, 128, i64::MIN + 1)), None),
        ];
        let (mut list, mut all) = (ChangeList::default(), Vec::new());
        for (at, (action, before, after)) in rows.iter().enumerate() {
            for (nth, (lower, upper)) in stamps.iter().enumerate() {
                // Longer than a number of one byte says.
                let path = format!("{at}/{nth}/{}", "é".repeat(at * 40));
                all.push((path, *action, before.clone(), after.clone(), *lower, *upper));
            }
        }
        let changes = all
            .iter()
            .map(|(path, action, before, after, lower, upper)| ViewChange {
                path: Path::new(path),
                action: *action,
                before: before.clone(),
                after: after.clone(),
                conflict: (path.len() % 3 == 0).then_some("why"),
                stamps: Stamps {
                    lower: *lower,
                    upper: *upper,
                },
            });
        let changes: Vec<_> = changes.collect();
        for change in changes.iter().rev() {
            list.add(change).unwrap();
        }
        list.sort();
        assert!(list.iter().eq(changes.iter().cloned()), "{list:?}");
        for (at, change) in changes.iter().enumerate() {
            assert_eq!(list.position(change.path), Some(at));
        }
        assert_eq!(list.position(Path::new("0")), None);
    }

    /// Returns stamps with all combinations of usual and extreme numbers; `bytes` is one of the sizes.
    fn stamps(bytes: u64) -> Vec<FileStamp> {
        let mut all = Vec::new();
        for (device, inode) in [
            (7, 12),
            (7, u64::MAX),
            (0, 0),
            (u64::MAX, u64::MAX),
            (u64::MAX, 0),
        ] {
            for seconds in [i64::MIN, -1, 0, 1_764_400_000, i64::MAX] {
                for nanoseconds in [i64::MIN, 0, 999_999_999, i64::MAX] {
                    for (bytes, links) in [(bytes, 1), (bytes, 0), (0, 1), (u64::MAX, u64::MAX)] {
                        let modified = (seconds, nanoseconds);
                        let later = (seconds.wrapping_add(1), nanoseconds);
                        for changed in [modified, later, (0, 0)] {
                            all.push(FileStamp {
                                device,
                                inode,
                                bytes,
                                modified,
                                changed,
                                links,
                            });
                        }
                    }
                }
            }
        }
        all
    }

    #[test]
    fn stamps_when_packed_and_read_are_the_same_beside_any_state() {
        const BYTES: u64 = 4_321;
        let file = Some(EntryState::File {
            sha256: Some(HASH),
            bytes: BYTES,
            mode: Some(0o644),
        });
        let states = [None, file, Some(EntryState::Other)];
        let all = stamps(BYTES);
        let each = all.iter().zip(all.iter().rev()).enumerate();
        let all: Vec<_> = each
            .map(|(at, (lower, upper))| {
                let state = |nth: usize| states[nth % states.len()].clone();
                let states = [state(at), state(at / states.len())];
                (format!("{at:04}"), states, [Some(*lower), Some(*upper)])
            })
            .collect();
        let changes = all.iter().map(|(path, [before, after], [lower, upper])| {
            let stamps = Stamps {
                lower: *lower,
                upper: *upper,
            };
            ViewChange {
                path: Path::new(path),
                action: ChangeKind::Modify,
                before: before.clone(),
                after: after.clone(),
                conflict: None,
                stamps,
            }
        });
        let mut list = ChangeList::default();
        for change in changes.clone() {
            list.add(&change).unwrap();
        }
        for (found, change) in list.iter().zip(changes) {
            assert_eq!(found, change);
        }
    }

    #[test]
    fn changed_file_with_usual_stamps_takes_few_bytes_beside_its_hashes() {
        let mut packed = Packed::default();
        for at in 0..1_000_i64 {
            let file = |bytes| {
                Some(EntryState::File {
                    sha256: Some(HASH),
                    bytes,
                    mode: Some(0o644),
                })
            };
            let stamp = |device, bytes| {
                let time = (1_764_400_000 + at / 10, 999_999_999 - at);
                Some(FileStamp {
                    device,
                    inode: u64::MAX / 2 - at.cast_unsigned(),
                    bytes,
                    modified: time,
                    changed: time,
                    links: 1,
                })
            };
            let change = ViewChange {
                path: Path::new("a"),
                action: ChangeKind::Modify,
                before: file(100),
                after: file(10_000),
                conflict: None,
                stamps: Stamps {
                    lower: stamp(u64::MAX, 100),
                    upper: stamp(1 << 40, 10_000),
                },
            };
            let mut bytes = PackedWriter::default();
            packed.write(&change, &mut bytes);
            let beside = bytes.into_bytes().len() - 2 * HASH.as_bytes().len();
            assert!(beside <= 31, "{beside} bytes");
        }
    }

    #[test]
    fn a_list_of_more_than_one_piece_keeps_its_order() {
        let mut list = ChangeList::default();
        let paths: Vec<String> = (0..2_000)
            .map(|nth| format!("{nth:04}{}", "x".repeat(2_000)))
            .collect();
        for path in paths.iter().rev() {
            let change = ViewChange {
                path: Path::new(path),
                action: ChangeKind::Create,
                before: None,
                after: Some(EntryState::Folder { mode: None }),
                conflict: None,
                stamps: Stamps::default(),
            };
            list.add(&change).unwrap();
        }
        list.sort();
        assert!(list.paths().eq(paths.iter().map(Path::new)));
    }
}
