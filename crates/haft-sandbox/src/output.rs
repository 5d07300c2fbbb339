//! A bounded log of one output stream, read by absolute byte offset.
//!
//! A log keeps the beginning of a command's output without a gap, and the newest bytes if there is more than that: after a
//! flood, both the first and the last output are available. Long output goes to a file, so that a log takes little
//! memory however much output there is. An offset counts every byte ever written, so a reader that continues at
//! [`Chunk::next`] sees each byte exactly once, or learns how many it missed.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

mod follower;
mod front;
mod spool;

use follower::FollowerPosition;
use front::Front;

pub use follower::Follower;
pub use spool::{DEFAULT_SPOOL, Spool};

/// The default limit of a log that is kept in memory: 8 MiB, some 100,000 lines.
pub const DEFAULT_LOG_CAP: usize = 8 << 20;

/// The number of bytes of a stream kept without a gap when it goes to a spool: 256 MiB.
pub const SPOOLED: u64 = 256 << 20;

/// The number of newest bytes kept in addition: 1 MiB.
const NEWEST: usize = 1 << 20;

/// The size of the pieces in which the tail is kept; pieces are dropped from the front one at a time.
const PIECE: usize = 64 << 10;

/// Bytes of a log from an offset on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The offset of `bytes`; higher than the requested offset if bytes were lost.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The number of bytes between the requested offset and `offset` that are no longer kept.
    pub lost: u64,
    /// The offset at which to continue.
    pub next: u64,
    /// Whether the stream has ended at `next`.
    pub ended: bool,
}

/// Text of a log from an offset on; a character is never split over two chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextChunk {
    /// The offset of `text` in bytes.
    pub offset: u64,
    /// The text; U+FFFD replaces bytes that are not UTF-8.
    pub text: String,
    /// The original bytes, if the text does not represent them exactly.
    pub bytes: Option<Vec<u8>>,
    /// The number of bytes between the requested offset and `offset` that are no longer kept.
    pub lost: u64,
    /// The offset at which to continue.
    pub next: u64,
    /// Whether the stream has ended at `next`.
    pub ended: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct StreamEnd {
    total: u64,
    ended: bool,
}

#[derive(Debug)]
struct Window {
    front: Front,
    tail: VecDeque<Vec<u8>>,
    tail_len: usize,
}

impl Window {
    fn tail_start(&self, total: u64) -> u64 {
        total - self.tail_len as u64
    }
}

/// The output of one stream: bounded, readable by offset; readers can wait for more.
#[derive(Debug)]
pub struct Log {
    tail_cap: usize,
    kept: Mutex<Window>,
    end: watch::Sender<StreamEnd>,
    /// How far the follower has read.
    follower: FollowerPosition,
}

impl Log {
    /// Creates an empty log that keeps at most `cap` bytes (at least 4 KiB), all in memory.
    pub fn new(cap: usize) -> Self {
        let cap = cap.max(4096);
        let tail = (cap / 4).min(NEWEST);
        Self::of(Front::new((cap - tail) as u64, None), tail)
    }

    /// Creates an empty log that keeps at most [`SPOOLED`] bytes without a gap, in a file of this spool if they are too many for memory.
    pub fn spooled(spool: Arc<Spool>) -> Self {
        Self::of(Front::new(SPOOLED, Some(spool)), NEWEST)
    }

    fn of(front: Front, tail_cap: usize) -> Self {
        Self {
            tail_cap,
            kept: Mutex::new(Window {
                front,
                tail: VecDeque::new(),
                tail_len: 0,
            }),
            end: watch::Sender::new(StreamEnd::default()),
            follower: FollowerPosition::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        self.kept.lock()
    }

    /// Returns the number of bytes written so far, kept or not.
    pub fn total(&self) -> u64 {
        self.end.borrow().total
    }

    /// Returns whether the stream has ended.
    pub fn ended(&self) -> bool {
        self.end.borrow().ended
    }

    /// Returns the number of bytes in the middle that are no longer kept.
    pub fn lost(&self) -> u64 {
        let kept = self.lock();
        self.total() - kept.front.length() - kept.tail_len as u64
    }

    /// Returns why the log keeps less than it could, if something went wrong.
    pub fn trouble(&self) -> Option<String> {
        self.lock().front.trouble().map(str::to_owned)
    }

    /// Returns the range of bytes from `offset` on that is kept without a gap; it starts later if bytes were lost at `offset`.
    pub fn unbroken(&self, offset: u64) -> Range<u64> {
        let kept = self.lock();
        let total = self.end.borrow().total;
        let (front, tail) = (kept.front.length(), kept.tail_start(total));
        match offset.min(total) {
            from if from < front && front < tail => from..front,
            from => from.max(if from < front { from } else { tail })..total,
        }
    }

    /// Returns whether bytes in the middle are no longer kept.
    pub fn truncated(&self) -> bool {
        self.lost() > 0
    }

    /// Adds bytes; never waits for a reader.
    pub fn append(&self, mut bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let added = bytes.len() as u64;
        let mut kept = self.lock();
        if kept.tail.is_empty() {
            let taken = kept.front.take(bytes);
            bytes = &bytes[taken..];
        }
        let piece_cap = PIECE.min(self.tail_cap / 4);
        while !bytes.is_empty() {
            let spare = kept.tail.back().map_or(0, |piece| piece_cap - piece.len());
            if spare == 0 {
                let full = kept.tail_len + piece_cap > self.tail_cap;
                let mut piece = if full { kept.tail.pop_front() } else { None }.unwrap_or_default();
                kept.tail_len -= piece.len();
                piece.clear();
                piece.reserve_exact(piece_cap.min(if full { piece_cap } else { bytes.len() }));
                kept.tail.push_back(piece);
                continue;
            }
            let (now, rest) = bytes.split_at(spare.min(bytes.len()));
            if let Some(piece) = kept.tail.back_mut() {
                piece.extend_from_slice(now);
            }
            kept.tail_len += now.len();
            bytes = rest;
        }
        // Under the lock, so that no reader sees bytes that the total does not count.
        self.end.send_modify(|end| end.total += added);
    }

    /// Marks the end of the stream and wakes all waiters.
    pub fn finish(&self) {
        self.end.send_modify(|end| end.ended = true);
    }

    /// Returns at most `max` bytes from `offset` on, in one piece; empty if there is nothing there yet.
    pub fn read(&self, offset: u64, max: usize) -> Chunk {
        let kept = self.lock();
        let StreamEnd { total, ended } = *self.end.borrow();
        let (front, tail_start) = (kept.front.length(), kept.tail_start(total));
        let from = match offset {
            offset if offset >= total => total.min(offset),
            offset if offset >= front && offset < tail_start => tail_start,
            offset => offset,
        };
        let mut bytes = Vec::new();
        if from < front {
            // If the disk cannot give the bytes back, the chunk lacks them; the reader tries again.
            bytes = kept.front.read(from, max).unwrap_or_default();
        }
        if from + bytes.len() as u64 >= tail_start {
            let mut at = tail_start;
            for piece in &kept.tail {
                let (here, end) = (from + bytes.len() as u64, at + piece.len() as u64);
                if here < end && bytes.len() < max {
                    let part = &piece[place(here.saturating_sub(at))..];
                    bytes.extend_from_slice(&part[..part.len().min(max - bytes.len())]);
                }
                at = end;
            }
        }
        let next = from + bytes.len() as u64;
        Chunk {
            offset: from,
            bytes,
            lost: from - offset,
            next,
            ended: ended && next >= total,
        }
    }

    /// Returns where the text received so far ends: before an incomplete character, as long as the stream has not ended.
    pub fn text_end(&self) -> u64 {
        let StreamEnd { total, ended } = *self.end.borrow();
        if ended {
            return total;
        }
        let last = self.read(total.saturating_sub(3), 3);
        let most = place(total - last.offset).min(last.bytes.len());
        total - half_character(&last.bytes[..most]) as u64
    }

    /// Fills a buffer from `offset` on; returns the number of bytes written to it.
    ///
    /// # Errors
    /// If the bytes there are no longer kept, or cannot be read back.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let chunk = self.read(offset, buffer.len());
        if chunk.lost > 0 {
            return Err(io::Error::other(
                "this part of the output is no longer kept",
            ));
        }
        if chunk.bytes.is_empty() && !buffer.is_empty() && offset < self.total() {
            self.lock().front.read(offset, 1)?;
        }
        buffer[..chunk.bytes.len()].copy_from_slice(&chunk.bytes);
        Ok(chunk.bytes.len())
    }

    /// Returns at most `max` bytes (at least 4) from `offset` on as text. An incomplete character is left
    /// for the next call; in the tail of a log that lost bytes, incomplete characters are skipped.
    pub fn text(&self, offset: u64, max: usize) -> TextChunk {
        let Chunk {
            mut offset,
            mut bytes,
            mut lost,
            mut next,
            ended,
        } = self.read(offset, max.max(4));
        if lost > 0 {
            let half = bytes
                .iter()
                .take(3)
                .take_while(|byte| **byte & 0xC0 == 0x80)
                .count();
            bytes.drain(..half);
            offset += half as u64;
            lost += half as u64;
        }
        // The bytes after a gap do not complete the character before it.
        let before_gap = self.read(next, 1).lost > 0;
        if !ended && !before_gap {
            let half = half_character(&bytes);
            bytes.truncate(bytes.len() - half);
            next -= half as u64;
        }
        let (text, bytes) = match String::from_utf8(bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let bytes = error.into_bytes();
                (String::from_utf8_lossy(&bytes).into_owned(), Some(bytes))
            }
        };
        TextChunk {
            offset,
            text,
            bytes,
            lost,
            next,
            ended,
        }
    }

    /// Waits until there are bytes after `seen`, or the stream has ended.
    pub async fn changed(&self, seen: u64) {
        let mut end = self.end.subscribe();
        // The sender lives in `self`, so this cannot fail.
        let _ = end.wait_for(|end| end.ended || end.total > seen).await;
    }
}

/// Converts an offset inside the kept bytes, which fits memory.
fn place(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// Returns the number of bytes at the end that start a character whose rest is missing.
fn half_character(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        if byte & 0xC0 == 0x80 {
            continue;
        }
        let long = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 1,
        };
        return if long > back { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Front, Log, Spool, half_character};

    fn all(log: &Log, step: usize) -> (Vec<u8>, u64) {
        let (mut at, mut bytes, mut lost) = (0, Vec::new(), 0);
        loop {
            let chunk = log.read(at, step);
            assert_eq!(chunk.offset, at + chunk.lost);
            assert_eq!(chunk.next, chunk.offset + chunk.bytes.len() as u64);
            lost += chunk.lost;
            bytes.extend(chunk.bytes);
            at = chunk.next;
            if chunk.ended {
                return (bytes, lost);
            }
        }
    }

    #[test]
    fn every_byte_is_kept_up_to_the_cap_and_counted_beyond_it() {
        for (cap, write, count) in [
            (4096, 1, 4096),
            (4096, 7, 3000),
            (8192, 700, 1000),
            (1 << 20, 4000, 2000),
        ] {
            let log = Log::new(cap);
            let mut expect = Vec::new();
            for round in 0..count {
                let bytes: Vec<u8> = (0..write)
                    .map(|i| ((round * 31 + i * 7) % 251).try_into().unwrap())
                    .collect();
                log.append(&bytes);
                expect.extend(bytes);
            }
            log.finish();
            for step in [1, 13, 5000, usize::MAX] {
                if step == 1 && cap > 8192 {
                    continue;
                }
                let (bytes, lost) = all(&log, step);
                assert_eq!(bytes.len() as u64 + lost, expect.len() as u64);
                assert_eq!(lost, log.lost());
                assert!(bytes.len() <= cap, "{} kept of {cap}", bytes.len());
                if lost == 0 {
                    assert_eq!(bytes, expect);
                    assert_eq!(log.unbroken(7), 7..expect.len() as u64);
                } else {
                    assert!(bytes.len() >= cap / 4 * 3, "{} kept of {cap}", bytes.len());
                    let head = cap - cap / 4;
                    assert_eq!(log.unbroken(7), 7..head as u64);
                    assert_eq!(bytes[..head], expect[..head]);
                    let tail = bytes.len() - head;
                    assert_eq!(bytes[head..], expect[expect.len() - tail..]);
                }
            }
        }
    }

    #[test]
    fn f3_long_output_goes_to_a_file_and_is_read_back_whole() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Arc::new(Spool::new(folder.path().join("spool")).with_bound(3 << 20));
        let bytes: Vec<u8> = (0..2_u32 << 20).map(|n| (n % 251) as u8).collect();
        let log = Log::spooled(Arc::clone(&spool));
        for piece in bytes.chunks(70_001) {
            log.append(piece);
        }
        assert_eq!((log.lost(), log.unbroken(5)), (0, 5..2 << 20));
        assert_eq!(log.read(0, usize::MAX).bytes, bytes);
        assert_eq!(log.read(1_000_000, 3).bytes, bytes[1_000_000..1_000_003]);
        let mut buffer = [0; 10];
        assert_eq!(log.read_at((2 << 20) - 4, &mut buffer).unwrap(), 4);
        // The files have no names.
        let named = std::fs::read_dir(folder.path().join("spool")).unwrap();
        assert_eq!(named.count(), 0);
        // A second log shares what is left of the spool, and reports what it lost.
        let second = Log::spooled(Arc::clone(&spool));
        for piece in bytes.chunks(70_001) {
            second.append(piece);
        }
        assert!(second.trouble().unwrap().contains("is used up"));
        let kept = second.unbroken(0).end;
        assert!(kept < 1 << 20, "{kept}");
        assert_eq!(
            second.lost(),
            (2 << 20) - kept - second.lock().tail_len as u64
        );
        assert!(second.read(0, usize::MAX).bytes[..100] == bytes[..100]);
        assert!(second.read_at(kept, &mut buffer).is_err());
        // Dropped logs return their space.
        drop((log, second));
        let third = Log::spooled(spool);
        bytes.chunks(70_001).for_each(|piece| third.append(piece));
        assert_eq!((third.lost(), third.trouble()), (0, None));
    }

    #[test]
    fn f3_a_flood_keeps_its_beginning_in_the_file_and_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Arc::new(Spool::new(folder.path()));
        let log = Log::of(Front::new(1 << 20, Some(spool)), 4096);
        let bytes: Vec<u8> = (0..3_u32 << 20).map(|n| (n % 251) as u8).collect();
        bytes.chunks(70_001).for_each(|piece| log.append(piece));
        log.finish();
        assert_eq!(log.unbroken(0), 0..1 << 20);
        let (kept, lost) = all(&log, 60_000);
        assert_eq!(kept.len() as u64 + lost, 3 << 20);
        assert_eq!(kept[..1 << 20], bytes[..1 << 20]);
        let end = kept.len() - (1 << 20);
        assert!((3072..=4096).contains(&end), "{end}");
        assert_eq!(kept[1 << 20..], bytes[bytes.len() - end..]);
        assert_eq!(log.lock().front.read(0, 1).unwrap(), [0]);
    }

    #[test]
    fn text_never_splits_a_character_and_replaces_what_is_none() {
        let whole = "aé漢🦀é漢🦀z".repeat(5);
        for cut in 1..whole.len() {
            let log = Log::new(1 << 20);
            log.append(&whole.as_bytes()[..cut]);
            let first = log.text(0, usize::MAX);
            log.append(&whole.as_bytes()[cut..]);
            log.finish();
            let second = log.text(first.next, usize::MAX);
            assert_eq!(first.text.clone() + &second.text, whole, "cut at {cut}");
            let (mut at, mut small) = (0, String::new());
            loop {
                let chunk = log.text(at, 5);
                small += &chunk.text;
                at = chunk.next;
                if chunk.ended {
                    break;
                }
            }
            assert_eq!(small, whole);
        }
        let log = Log::new(4096);
        log.append(b"a\xFFb\xE6\xBC");
        assert_eq!(log.text(0, 100).text, "a\u{FFFD}b");
        log.finish();
        assert_eq!(log.text(0, 100).text, "a\u{FFFD}b\u{FFFD}");
    }

    #[test]
    fn a_text_ends_before_a_half_character_until_the_stream_does() {
        let log = Log::new(1 << 20);
        for (bytes, end) in [
            (&b"ab"[..], 2),
            (b"\xE6\xBC", 2),
            (b"\xA2", 5),
            (b"\xC3", 5),
        ] {
            log.append(bytes);
            assert_eq!(log.text_end(), end);
        }
        log.finish();
        assert_eq!(log.text_end(), 6);
    }

    #[test]
    fn the_edges_of_a_gap_stay_characters() {
        for shift in 0..4 {
            let log = Log::new(4096);
            log.append(&vec![b'x'; shift]);
            for _ in 0..4000 {
                log.append("🦀".as_bytes());
            }
            log.finish();
            let (mut at, mut end) = (0, String::new());
            loop {
                let chunk = log.text(at, 1000);
                at = chunk.next;
                if chunk.lost > 0 {
                    end.clear();
                }
                end += &chunk.text;
                if chunk.ended {
                    break;
                }
            }
            assert!(
                end.chars().all(|c| c == '🦀'),
                "{shift}: {:?}",
                end.chars().next()
            );
            assert!(end.len() > 700);
        }
    }

    #[test]
    fn a_half_character_is_known_by_its_first_byte() {
        for (bytes, expect) in [
            (&b""[..], 0),
            (b"a", 0),
            (b"\xC3", 1),
            (b"\xC3\xA9", 0),
            (b"\xE6\xBC", 2),
            (b"\xF0\x9F\xA6", 3),
            (b"\xF0\x9F\xA6\x80", 0),
            (b"\x80\x80\x80\x80", 0),
            (b"\xFF", 0),
        ] {
            assert_eq!(half_character(bytes), expect, "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn a_waiter_wakes_for_output_and_for_the_end() {
        let log = std::sync::Arc::new(Log::new(4096));
        let waiter = tokio::spawn({
            let log = log.clone();
            async move {
                log.changed(0).await;
                let seen = log.total();
                log.changed(seen).await;
                (seen, log.ended())
            }
        });
        tokio::task::yield_now().await;
        log.append(b"abc");
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        log.finish();
        assert_eq!(waiter.await.unwrap(), (3, true));
    }
}
