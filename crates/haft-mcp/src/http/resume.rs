//! `ResumableStreams`: streams that a handshake-era client may lose and resume (2025-11-25): each event has an id, the last ones are kept,
//! and what is sent while the client is away waits for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

/// Maximum number of streams kept per session; one more drops the oldest.
const MAX_STREAMS: usize = 16;
/// Maximum number of events, and of their bytes, that a stream keeps before the answer.
const MAX_EVENTS: usize = 32;
const MAX_BYTES: usize = 32 << 10;
/// How long an answer is kept for a client that is away.
const AWAY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long an answer is kept after it was sent.
const SENT_RETENTION: Duration = Duration::from_secs(10);
/// Time after which a client that lost its stream should reconnect, in milliseconds.
const RETRY_MS: u32 = 500;

/// The streams of one session.
#[derive(Debug, Default)]
pub(crate) struct ResumableStreams(Mutex<StreamsState>);

#[derive(Debug, Default)]
struct StreamsState {
    last: u64,
    kept: VecDeque<Arc<ResumableStream>>,
}

/// A stream that can be resumed.
#[derive(Debug)]
pub(crate) struct ResumableStream {
    number: u64,
    events: Mutex<EventBuffer>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct EventBuffer {
    last: u64,
    kept: VecDeque<(u64, Bytes)>,
    bytes: usize,
    ended: bool,
}

impl ResumableStreams {
    pub(crate) fn begin(&self) -> Arc<ResumableStream> {
        let mut streams = self.0.lock();
        streams.last += 1;
        let stream = Arc::new(ResumableStream {
            number: streams.last,
            events: Mutex::default(),
            changed: Notify::new(),
        });
        if streams.kept.len() >= MAX_STREAMS {
            streams.kept.pop_front();
        }
        streams.kept.push_back(Arc::clone(&stream));
        stream
    }

    /// Returns the stream of an event id, and the event's number in it.
    pub(crate) fn find(&self, id: &str) -> Option<(Arc<ResumableStream>, u64)> {
        let (number, event) = id.split_once('-')?;
        let (number, event) = (number.parse::<u64>().ok()?, event.parse().ok()?);
        let streams = self.0.lock();
        let stream = streams.kept.iter().find(|stream| stream.number == number);
        stream.map(|stream| (Arc::clone(stream), event))
    }

    pub(crate) fn forget(&self, stream: &Arc<ResumableStream>) {
        self.0.lock().kept.retain(|kept| !Arc::ptr_eq(kept, stream));
    }

    /// Removes an ended stream once its client has had time to reconnect. A sent answer may have been lost on its way, so a short
    /// one is kept for a moment as well.
    pub(crate) fn forget_later(self: &Arc<Self>, stream: Arc<ResumableStream>, sent: bool) {
        if sent && !stream.is_short() {
            return self.forget(&stream);
        }
        let (streams, time) = (
            Arc::downgrade(self),
            if sent { SENT_RETENTION } else { AWAY_TIMEOUT },
        );
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            if let Some(streams) = streams.upgrade() {
                streams.forget(&stream);
            }
        });
    }
}

impl ResumableStream {
    /// Returns the first event, which only has the id for reconnecting and the delay before it.
    pub(crate) fn first_event(&self) -> Bytes {
        format!("id: {}-0\nretry: {RETRY_MS}\ndata: \n\n", self.number).into()
    }

    /// Returns the number of the next event, and the line with its id.
    pub(crate) fn next_id(&self) -> (u64, String) {
        let mut events = self.events.lock();
        events.last += 1;
        let number = events.last;
        (number, format!("id: {}-{number}\n", self.number))
    }

    /// Keeps an event for a client that loses it. The answer is kept whatever its size: its bytes are charged to its class.
    pub(crate) fn keep(&self, number: u64, event: &Bytes, is_answer: bool) {
        let mut events = self.events.lock();
        events.bytes += event.len();
        events.kept.push_back((number, event.clone()));
        while !is_answer && (events.kept.len() > MAX_EVENTS || events.bytes > MAX_BYTES) {
            let Some((_, dropped)) = events.kept.pop_front() else {
                break;
            };
            events.bytes -= dropped.len();
        }
        events.ended |= is_answer;
        drop(events);
        self.changed.notify_waiters();
    }

    /// Returns whether the kept events are short.
    fn is_short(&self) -> bool {
        self.events.lock().bytes <= MAX_BYTES
    }

    /// Returns the events after this one, and whether the stream has ended.
    fn after(&self, event: u64) -> (Vec<(u64, Bytes)>, bool) {
        let events = self.events.lock();
        let later = events.kept.iter().filter(|(number, _)| *number > event);
        (later.cloned().collect(), events.ended)
    }

    /// Sends a client that reconnected the events it missed, up to the answer; returns true if the answer was sent.
    pub(crate) async fn follow(
        &self,
        mut from: u64,
        frames: &mpsc::Sender<Bytes>,
        keep_alive: Duration,
    ) -> bool {
        loop {
            let changed = self.changed.notified();
            let (events, ended) = self.after(from);
            for (number, event) in events {
                if frames.send(event).await.is_err() {
                    return false;
                }
                from = number;
            }
            if ended {
                return true;
            }
            tokio::select! {
                () = frames.closed() => return false,
                () = changed => {}
                () = tokio::time::sleep(keep_alive) => {
                    let _full = frames.try_send(Bytes::from_static(b": ping\n\n"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(stream: &ResumableStream, word: &str, is_answer: bool) -> String {
        let (number, id) = stream.next_id();
        let event = id + word;
        stream.keep(number, &event.clone().into(), is_answer);
        event
    }

    #[tokio::test]
    async fn a_client_that_comes_back_gets_what_it_has_not_had() {
        let streams = Arc::new(ResumableStreams::default());
        let stream = streams.begin();
        assert_eq!(stream.first_event(), "id: 1-0\nretry: 500\ndata: \n\n");
        assert_eq!(say(&stream, "data: a\n\n", false), "id: 1-1\ndata: a\n\n");
        say(&stream, "data: b\n\n", false);
        let (found, event) = streams.find("1-1").unwrap();
        let (frames, mut body) = mpsc::channel(16);
        let following =
            tokio::spawn(async move { found.follow(event, &frames, AWAY_TIMEOUT).await });
        let mut got = String::new();
        while !got.contains("data: b") {
            got += std::str::from_utf8(&body.recv().await.unwrap()).unwrap();
        }
        say(&stream, "data: c\n\n", true);
        while let Some(frame) = body.recv().await {
            got += std::str::from_utf8(&frame).unwrap();
        }
        assert_eq!(got, "id: 1-2\ndata: b\n\nid: 1-3\ndata: c\n\n");
        assert!(following.await.unwrap());
        streams.forget(&stream);
        for unknown in ["1-1", "2-1", "1", "x-1", "1-x", ""] {
            assert!(streams.find(unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_answer_is_kept_in_any_case() {
        let streams = ResumableStreams::default();
        let first = streams.begin();
        for _ in 0..MAX_STREAMS {
            streams.begin();
        }
        assert!(streams.find("1-0").is_none());
        for _ in 0..100 {
            say(&first, &"x".repeat(900), false);
        }
        assert_eq!(first.after(0).0.len(), MAX_EVENTS);
        say(&first, &"y".repeat(MAX_BYTES * 2), true);
        let (events, ended) = first.after(0);
        assert!(
            ended
                && events
                    .last()
                    .is_some_and(|(_, last)| last.len() > MAX_BYTES)
        );
    }
}
