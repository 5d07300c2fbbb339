//! `ReaderBacklog`: the pieces that a reader has not taken yet, batched per stream and limited in size.

use std::collections::VecDeque;

use tokio::time::Instant;

use crate::bounds::Charge;
use crate::progress::{Pace, ProgressEvent, ProgressStream};

/// Maximum size, in bytes, of text held per stream and reader; more is left out until the reader has taken it. At the speed of a
/// pipe that is a few milliseconds: as long as a reader may wait for its turn on a busy system.
pub(super) const MAX_STREAM: usize = 4 << 20;
/// Maximum size, in bytes, of text held per reader.
pub(super) const MAX_HELD: usize = 16 << 20;
/// Maximum number of pieces held per reader, over all streams.
pub(super) const MAX_PIECES: usize = 2048;
/// Minimum size, in bytes, from which a piece absorbs no more: longer pieces are shared by all readers without a copy.
const MAX_MERGED: usize = 16 << 10;

/// The pieces that a reader has not taken yet.
#[derive(Debug)]
pub(super) struct ReaderBacklog {
    /// In the order in which they started to wait; pieces of a stream are in stream order.
    waiting: VecDeque<StreamBatch>,
    /// Parts of a taken piece that are still to be delivered, in order.
    undelivered: VecDeque<ProgressEvent>,
    /// Charge for the bytes in `waiting`, against the budget that all readers share.
    charge: Charge,
    /// The first event of streams for which there was no room at all, and the number of missed bytes.
    missed: Option<(ProgressEvent, u64)>,
}

/// The batched text of one stream.
#[derive(Debug)]
struct StreamBatch {
    /// The first piece, unchanged.
    event: ProgressEvent,
    /// The text after it.
    more: String,
    since: Instant,
    /// Number of bytes left out after the text.
    lost: u64,
    /// The stream's offset after that.
    end: u64,
}

/// What a reader can take.
#[derive(Debug)]
pub(super) enum NextEvent {
    Event(ProgressEvent),
    /// An event, at this time at the latest.
    At(Instant),
    Nothing,
}

impl ReaderBacklog {
    /// Creates an empty buffer with this charge.
    pub(super) fn new(charge: Charge) -> Self {
        Self {
            waiting: VecDeque::new(),
            undelivered: VecDeque::new(),
            charge,
            missed: None,
        }
    }

    /// Adds a piece; returns true if the reader should check.
    pub(super) fn add(&mut self, event: &ProgressEvent, now: Instant, pace: Pace) -> bool {
        let crowded = self.waiting.len() >= MAX_PIECES;
        let keep = self.keep(event);
        let last = self.waiting.iter_mut().rev().find(|held| held.is_of(event));
        let Some(held) = last else {
            if crowded {
                self.note_missed(event);
                return false;
            }
            self.begin(event, now, keep);
            return true;
        };
        if held.lost == 0 && !crowded && held.len() >= pace.bytes.max(MAX_MERGED) {
            self.begin(event, now, keep);
            return true;
        }
        let was_ready = held.is_ready(now, pace);
        // Once bytes are missing, the following ones are left out, too: a text has no gaps.
        let keep = if held.lost > 0 { 0 } else { keep };
        let keep = if self.charge.grow(keep) { keep } else { 0 };
        held.end = event.offset + event.text.len() as u64;
        held.lost += (event.text.len() - keep) as u64;
        held.more.push_str(&event.text[..keep]);
        held.event.closed |= event.closed;
        !was_ready && held.is_ready(now, pace)
    }

    /// Returns how many bytes of this piece can be kept: whole characters within the limits.
    fn keep(&self, event: &ProgressEvent) -> usize {
        let same = self.waiting.iter().filter(|held| held.is_of(event));
        let mine: usize = same.map(StreamBatch::len).sum();
        let room = MAX_STREAM
            .saturating_sub(mine)
            .min(MAX_HELD.saturating_sub(self.charge.held()));
        if room >= event.text.len() && self.charge.room() >= event.text.len() {
            return event.text.len();
        }
        event.text.floor_char_boundary(room.min(self.charge.room()))
    }

    fn begin(&mut self, event: &ProgressEvent, now: Instant, keep: usize) {
        let keep = if self.charge.grow(keep) { keep } else { 0 };
        let mut event = event.clone();
        // These readers only use the text.
        event.bytes = None;
        let end = event.offset + event.text.len() as u64;
        let lost = (event.text.len() - keep) as u64;
        if lost > 0 {
            event.text = event.text[..keep].into();
        }
        self.waiting.push_back(StreamBatch {
            event,
            more: String::new(),
            since: now,
            lost,
            end,
        });
    }

    /// Returns what the reader can take now; with `all`, even if it could be batched for longer.
    pub(super) fn take(&mut self, now: Instant, pace: Pace, all: bool) -> NextEvent {
        if let Some(event) = self.undelivered.pop_front() {
            return NextEvent::Event(event);
        }
        let ready = |held: &StreamBatch| all || held.is_ready(now, pace);
        let first = (0..self.waiting.len())
            .find(|&nth| ready(&self.waiting[nth]) && !self.is_message_end(nth));
        if let Some(gathered) = first.and_then(|nth| self.waiting.remove(nth)) {
            self.charge.shrink(gathered.len());
            return NextEvent::Event(self.deliver(gathered));
        }
        if self.waiting.is_empty()
            && let Some((event, bytes)) = self.missed.take()
        {
            return NextEvent::Event(left_out(&event, "of streams", bytes));
        }
        let timed = (0..self.waiting.len()).filter(|&nth| !self.is_message_end(nth));
        let soonest = timed.map(|nth| self.waiting[nth].since + pace.gather);
        soonest.min().map_or(NextEvent::Nothing, NextEvent::At)
    }

    /// Returns whether this is the end of the messages, which must come after the streams that they may refer to.
    fn is_message_end(&self, nth: usize) -> bool {
        let event = &self.waiting[nth].event;
        event.closed
            && event.stream == ProgressStream::Info
            && self.waiting.iter().any(|held| {
                held.event.call == event.call
                    && held.event.run == event.run
                    && held.event.stream != ProgressStream::Info
            })
    }

    /// Delivers the text, then the note of what was left out, then the end.
    fn deliver(&mut self, gathered: StreamBatch) -> ProgressEvent {
        let (lost, end) = (gathered.lost, gathered.end);
        let mut event = gathered.whole();
        if lost > 0 {
            let of = event.stream.as_str();
            self.undelivered
                .push_back(left_out(&event, &format!("of {of}"), lost));
            if std::mem::take(&mut event.closed) {
                self.undelivered.push_back(ProgressEvent {
                    text: "".into(),
                    offset: end,
                    closed: true,
                    ..event.clone()
                });
            }
        }
        event
    }

    fn note_missed(&mut self, event: &ProgressEvent) {
        let (_, missed) = self.missed.get_or_insert_with(|| {
            // Only its place is reported, not its text.
            let event = ProgressEvent {
                text: "".into(),
                bytes: None,
                ..event.clone()
            };
            (event, 0)
        });
        *missed += event.text.len() as u64;
    }
}

impl StreamBatch {
    fn is_of(&self, event: &ProgressEvent) -> bool {
        let mine = &self.event;
        mine.stream == event.stream && mine.call == event.call && mine.run == event.run
    }

    fn len(&self) -> usize {
        self.event.text.len() + self.more.len()
    }

    fn is_ready(&self, now: Instant, pace: Pace) -> bool {
        self.event.closed
            || self.lost > 0
            || self.len() >= pace.bytes
            || now >= self.since + pace.gather
    }

    /// Merges it into one piece.
    fn whole(self) -> ProgressEvent {
        let mut event = self.event;
        if event.text.is_empty() {
            event.text = self.more.into();
        } else if !self.more.is_empty() {
            event.text = [&event.text, self.more.as_str()].concat().into();
        }
        event
    }
}

fn left_out(event: &ProgressEvent, of: &str, bytes: u64) -> ProgressEvent {
    let text = format!("[… {bytes} bytes {of} left out: the reader was too slow …]\n");
    ProgressEvent {
        text: text.into(),
        stream: ProgressStream::Info,
        // It is beside the stream, not part of it.
        offset: 0,
        closed: false,
        ..event.clone()
    }
}
