//! `Held`: what one reader has not taken yet, gathered a stream at a time and bounded.

use std::collections::VecDeque;

use tokio::time::Instant;

use crate::progress::{Pace, ProgressEvent, Stream};

/// Most text held of one stream for one reader, in bytes; what comes beyond is left out until the reader took it. At a
/// pipe's speed that is a few milliseconds: as long as a busy system lets a reader wait for its turn.
pub(super) const MOST_OF_STREAM: usize = 4 << 20;
/// Most text held for one reader, in bytes.
pub(super) const MOST: usize = 16 << 20;
/// Most pieces held for one reader, of all streams.
pub(super) const MOST_PIECES: usize = 2048;
/// A piece of so many bytes takes no more in, at the least: longer ones are passed on as they are, without a copy.
const FULL: usize = 16 << 10;

/// The pieces one reader has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// In the order in which they began to wait; of one stream, in its own.
    waiting: VecDeque<Gathered>,
    /// Parts of what was taken that are told one after the other.
    told: VecDeque<ProgressEvent>,
    /// Bytes of `waiting`.
    bytes: usize,
    /// Of streams for which there was no place at all: the first of them, and how many bytes.
    missed: Option<(ProgressEvent, u64)>,
}

/// What was gathered of one stream.
#[derive(Debug)]
struct Gathered {
    event: ProgressEvent,
    since: Instant,
    /// Bytes left out after the text.
    lost: u64,
    /// Where the stream stands after that.
    end: u64,
}

/// What there is for a reader.
#[derive(Debug)]
pub(super) enum Next {
    /// This.
    Event(ProgressEvent),
    /// Something, at this time at the latest.
    At(Instant),
    /// Nothing.
    Nothing,
}

impl Held {
    /// Takes a piece in; true when the reader should look.
    pub(super) fn add(&mut self, mut event: ProgressEvent, now: Instant, pace: Pace) -> bool {
        let crowded = self.waiting.len() >= MOST_PIECES;
        let room = self.room(&event);
        let last = self
            .waiting
            .iter_mut()
            .rev()
            .find(|held| held.is_of(&event));
        let Some(held) = last else {
            if crowded {
                self.miss(event);
                return false;
            }
            self.begin(event, now, room);
            return true;
        };
        if held.lost == 0 && !crowded && held.event.text.len() >= pace.bytes.max(FULL) {
            self.begin(event, now, room);
            return true;
        }
        let was_ready = held.is_ready(now, pace);
        held.end = event.offset + event.text.len() as u64;
        // Once something is missing, what follows is missing, too: a text has no holes.
        let room = if held.lost > 0 { 0 } else { room };
        held.lost += cut(&mut event.text, room);
        held.event.text.push_str(&event.text);
        held.event.closed |= event.closed;
        self.bytes += event.text.len();
        !was_ready && held.is_ready(now, pace)
    }

    /// How many bytes more of this stream are held.
    fn room(&self, event: &ProgressEvent) -> usize {
        let same = self.waiting.iter().filter(|held| held.is_of(event));
        let mine: usize = same.map(|held| held.event.text.len()).sum();
        let all = MOST.saturating_sub(self.bytes);
        all.min(MOST_OF_STREAM.saturating_sub(mine))
    }

    fn begin(&mut self, mut event: ProgressEvent, now: Instant, room: usize) {
        let end = event.offset + event.text.len() as u64;
        let lost = cut(&mut event.text, room);
        self.bytes += event.text.len();
        self.waiting.push_back(Gathered {
            event,
            since: now,
            lost,
            end,
        });
    }

    /// What the reader is to have now. `all`: also what would be gathered for longer.
    pub(super) fn take(&mut self, now: Instant, pace: Pace, all: bool) -> Next {
        if let Some(event) = self.told.pop_front() {
            return Next::Event(event);
        }
        let ready = |held: &Gathered| all || held.is_ready(now, pace);
        let first = (0..self.waiting.len())
            .find(|&nth| ready(&self.waiting[nth]) && !self.is_last_word(nth));
        if let Some(gathered) = first.and_then(|nth| self.waiting.remove(nth)) {
            self.bytes -= gathered.event.text.len();
            return Next::Event(self.tell(gathered));
        }
        if self.waiting.is_empty()
            && let Some((event, bytes)) = self.missed.take()
        {
            return Next::Event(left_out(&event, "of streams", bytes));
        }
        let timed = (0..self.waiting.len()).filter(|&nth| !self.is_last_word(nth));
        let soonest = timed.map(|nth| self.waiting[nth].since + pace.gather);
        soonest.min().map_or(Next::Nothing, Next::At)
    }

    /// Words about the work end after the streams that they may have to speak of.
    fn is_last_word(&self, nth: usize) -> bool {
        let event = &self.waiting[nth].event;
        event.closed
            && event.stream == Stream::Info
            && self.waiting.iter().any(|held| {
                held.event.call == event.call
                    && held.event.run == event.run
                    && held.event.stream != Stream::Info
            })
    }

    /// A text, then what was left out, then the end.
    fn tell(&mut self, gathered: Gathered) -> ProgressEvent {
        let Gathered {
            mut event,
            lost,
            end,
            ..
        } = gathered;
        if lost > 0 {
            let of = event.stream.as_str();
            self.told
                .push_back(left_out(&event, &format!("of {of}"), lost));
            if std::mem::take(&mut event.closed) {
                self.told.push_back(ProgressEvent {
                    text: String::new(),
                    offset: end,
                    closed: true,
                    ..event.clone()
                });
            }
        }
        event
    }

    fn miss(&mut self, event: ProgressEvent) {
        let bytes = event.text.len() as u64;
        match &mut self.missed {
            Some((_, missed)) => *missed += bytes,
            None => self.missed = Some((event, bytes)),
        }
    }
}

impl Gathered {
    fn is_of(&self, event: &ProgressEvent) -> bool {
        let mine = &self.event;
        mine.stream == event.stream && mine.call == event.call && mine.run == event.run
    }

    fn is_ready(&self, now: Instant, pace: Pace) -> bool {
        self.event.closed
            || self.lost > 0
            || self.event.text.len() >= pace.bytes
            || now >= self.since + pace.gather
    }
}

/// Cuts a text to so many bytes, between characters; says how many went.
fn cut(text: &mut String, most: usize) -> u64 {
    let keep = text.floor_char_boundary(most);
    let lost = text.len() - keep;
    text.truncate(keep);
    lost as u64
}

fn left_out(event: &ProgressEvent, of: &str, bytes: u64) -> ProgressEvent {
    ProgressEvent {
        text: format!("[… {bytes} bytes {of} left out: the reader was too slow …]\n"),
        stream: Stream::Info,
        // It stands beside the stream, not in it.
        offset: 0,
        closed: false,
        ..event.clone()
    }
}
