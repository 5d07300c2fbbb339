//! Masks a credential's value where a server sends it back: a command would read it otherwise.
//!
//! Each byte of it becomes a star, so that lengths hold. Nothing else of what a command gets depends on the value, neither where an answer is
//! cut nor when its pieces come: the last bytes of a body always wait, whatever they are, until enough follow, the body ends, or they have waited
//! for a while.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{HeaderName, HeaderValue};
use tokio::time::{Instant, Sleep, sleep};

use super::LoginSecret;
use super::pattern::SearchLists;
use crate::proxy::ProxyBody;

const MASK: u8 = b'*';
/// After this time bytes are passed on whatever follows: servers send events and words one by one.
const PATIENCE: Duration = Duration::from_millis(100);
/// The same after the command itself made the server wait: it would cut a value in two otherwise, where the way to the server is long.
const PATIENCE_BEHIND: Duration = Duration::from_secs(2);
/// A command that takes nothing for so long makes the server wait.
const BEHIND: Duration = Duration::from_millis(50);
/// What comes within this time is passed on together.
const TOGETHER: Duration = Duration::from_millis(10);

/// Masks the values of headers, and leaves out those whose names hold a value.
pub(super) fn mask_headers(headers: &mut HeaderMap, secret: &LoginSecret) {
    let masked = |bytes: &[u8]| {
        let mut window = SearchWindow::default();
        window.add(bytes, Instant::now());
        let masked = window.give_all(secret);
        (masked != bytes).then_some(masked)
    };
    let has_secret = |name: &&HeaderName| masked(name.as_str().as_bytes()).is_some();
    let named: Vec<HeaderName> = headers.keys().filter(has_secret).cloned().collect();
    for name in named {
        headers.remove(name);
    }
    for value in headers.values_mut() {
        let replaced = masked(value.as_bytes());
        if let Some(masked) = replaced.and_then(|bytes| HeaderValue::from_bytes(&bytes).ok()) {
            *value = masked;
        }
    }
}

/// The end of what has come, in which a value may have begun.
#[derive(Default)]
struct SearchWindow {
    /// As it came: never longer than a value can be, between two pieces.
    read: Vec<u8>,
    /// The end of that, as far as it was not passed on, masked.
    held: BytesMut,
    /// When that came, and how many bytes each time.
    arrivals: VecDeque<(Instant, usize)>,
    lists: SearchLists,
}

impl SearchWindow {
    fn add(&mut self, more: &[u8], now: Instant) {
        self.read.extend_from_slice(more);
        self.held.extend_from_slice(more);
        match self.arrivals.back_mut() {
            Some((since, count)) if now.duration_since(*since) < TOGETHER => *count += more.len(),
            _ => self.arrivals.push_back((now, more.len())),
        }
    }

    /// Returns all but the bytes at the end that may belong to a value.
    fn give_decided(&mut self, secret: &LoginSecret) -> Bytes {
        let longest = secret.patterns().longest();
        let decided = self.read.len().saturating_sub(longest);
        self.mask(decided, secret);
        self.read.drain(..decided);
        self.give(self.held.len().saturating_sub(longest))
    }

    /// Returns what has waited for long enough. What comes next may still end a value that began there.
    fn give_late(&mut self, secret: &LoginSecret, now: Instant, patience: Duration) -> Bytes {
        let late = self.arrivals.iter();
        let late = late.take_while(|(since, _)| now >= *since + TOGETHER + patience);
        let count = late.map(|(_, count)| *count).sum();
        if count > 0 {
            self.mask(self.read.len(), secret);
        }
        self.give(count)
    }

    /// Returns all that was not passed on.
    fn give_all(&mut self, secret: &LoginSecret) -> Bytes {
        self.mask(self.read.len(), secret);
        self.give(self.held.len())
    }

    fn give(&mut self, count: usize) -> Bytes {
        let mut left = count;
        while let Some((_, waiting)) = self.arrivals.front_mut() {
            let taken = left.min(*waiting);
            *waiting -= taken;
            left -= taken;
            if *waiting > 0 {
                break;
            }
            self.arrivals.pop_front();
        }
        self.held.split_to(count).freeze()
    }

    /// Has everything wait from now on.
    fn wait_anew(&mut self, now: Instant) {
        self.arrivals.clear();
        self.arrivals.push_back((now, self.held.len()));
    }

    /// Masks the values that begin in the first bytes.
    fn mask(&mut self, starts: usize, secret: &LoginSecret) {
        let passed = self.read.len() - self.held.len();
        for start in 0..starts {
            let end = secret.patterns().end_of(&self.read, start, &mut self.lists);
            if let Some(end) = end.filter(|end| *end > passed) {
                self.held[start.max(passed) - passed..end - passed].fill(MASK);
            }
        }
    }
}

/// The body of an answer without a credential's value.
pub(super) struct MaskedBody {
    body: ProxyBody,
    secret: Arc<LoginSecret>,
    window: SearchWindow,
    /// A frame without data that follows the bytes that are held.
    next: Option<Frame<Bytes>>,
    ended: bool,
    /// Ends when bytes have waited for long enough.
    timer: Pin<Box<Sleep>>,
    /// Whether the body had nothing when it was looked at last.
    has_paused: bool,
    /// When the last piece was given.
    given: Option<Instant>,
    is_behind: bool,
}

impl MaskedBody {
    pub(super) fn new(body: ProxyBody, secret: Arc<LoginSecret>) -> Self {
        Self {
            body,
            secret,
            window: SearchWindow::default(),
            next: None,
            ended: false,
            timer: Box::pin(sleep(PATIENCE)),
            has_paused: false,
            given: None,
            is_behind: false,
        }
    }

    /// Returns the next bytes to pass on, also none.
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, hyper::Error>> {
        let frame = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Pending => {
                self.has_paused = true;
                return self.poll_late(context).map(Ok);
            }
            Poll::Ready(frame) => frame,
        };
        self.is_behind &= !std::mem::take(&mut self.has_paused);
        let passed = match frame.transpose()?.map(Frame::into_data) {
            Some(Ok(data)) => {
                self.window.add(&data, Instant::now());
                self.window.give_decided(&self.secret)
            }
            Some(Err(other)) => {
                self.next = other.into_trailers().ok().map(|mut trailers| {
                    mask_headers(&mut trailers, &self.secret);
                    Frame::trailers(trailers)
                });
                self.window.give_all(&self.secret)
            }
            None => {
                self.ended = true;
                self.window.give_all(&self.secret)
            }
        };
        Poll::Ready(Ok(passed))
    }

    /// Waits until bytes have waited for long enough, and returns them.
    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        let patience = if self.is_behind {
            PATIENCE_BEHIND
        } else {
            PATIENCE
        };
        while let Some((since, _)) = self.window.arrivals.front() {
            let until = *since + TOGETHER + patience;
            if self.timer.deadline() != until {
                self.timer.as_mut().reset(until);
            }
            ready!(self.timer.as_mut().poll(context));
            let now = Instant::now().max(until);
            let late = self.window.give_late(&self.secret, now, patience);
            if !late.is_empty() {
                return Poll::Ready(late);
            }
        }
        Poll::Pending
    }
}

impl Body for MaskedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = &mut *self;
        let given = this.given.take();
        if given.is_some_and(|given| given.elapsed() > BEHIND) {
            this.is_behind = true;
            this.window.wait_anew(Instant::now());
        }
        loop {
            if let Some(next) = this.next.take() {
                return Poll::Ready(Some(Ok(next)));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            match ready!(this.poll_bytes(context)) {
                Err(error) => return Poll::Ready(Some(Err(error))),
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => {
                    this.given = Some(Instant::now());
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let nothing_waits = self.next.is_none() && self.window.held.is_empty();
        nothing_waits && (self.ended || self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        // Masking changes no length. What is held is not in the body's hint anymore.
        let (body, held) = (self.body.size_hint(), self.window.held.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + held);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + held);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use futures_util::StreamExt;
    use http_body_util::{BodyExt, StreamBody};
    use hyper::HeaderMap;
    use hyper::body::Frame;
    use tokio::time::{Instant, sleep};

    use super::super::{LoginForm, LoginSecret};
    use super::{MaskedBody, mask_headers};

    fn secret() -> Arc<LoginSecret> {
        let form = LoginForm::header("Authorization: Bearer {}").unwrap();
        Arc::new(LoginSecret::read(&form, b"abab-abac").unwrap())
    }

    /// A part of a body, and how long the server waits before it.
    type Part<'a> = (u64, &'a str);

    /// Returns what comes, and when, in milliseconds.
    async fn pieces(parts: &[Part<'_>]) -> Vec<(u128, String)> {
        let parts: Vec<(u64, Bytes)> = parts
            .iter()
            .map(|(wait, text)| (*wait, Bytes::from((*text).to_owned())))
            .collect();
        let frames = futures_util::stream::iter(parts).then(|(wait, text)| async move {
            sleep(Duration::from_millis(wait)).await;
            Ok::<_, hyper::Error>(Frame::data(text))
        });
        let mut body = MaskedBody::new(StreamBody::new(frames).boxed_unsync(), secret());
        let (start, mut all) = (Instant::now(), Vec::new());
        while let Some(frame) = body.frame().await {
            let bytes = frame.unwrap().into_data().unwrap();
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            all.push((start.elapsed().as_millis(), text));
        }
        all
    }

    async fn masked(parts: &[&str]) -> String {
        let parts: Vec<Part<'_>> = parts.iter().map(|part| (0, *part)).collect();
        let pieces = pieces(&parts).await;
        pieces.into_iter().map(|(_, text)| text).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_is_masked_wherever_it_is_cut() {
        for (parts, expect) in [
            (&["token=abab-abac;"][..], "token=*********;"),
            (&["x ab", "ab-", "abac y"], "x ********* y"),
            (&["ababab-abac"], "ab*********"),
            (&["abab-aba"], "abab-aba"),
            (&["abab-", "x"], "abab-x"),
            (&["", "abab-abacabab-abac"], "******************"),
            (
                &["abab%2Dabac abab\\u002dabac"],
                "*********** **************",
            ),
            (&[], ""),
        ] {
            assert_eq!(masked(parts).await, expect, "{parts:?}");
        }
        let filler = "x".repeat(3000);
        for before in ["", filler.as_str()] {
            let whole = format!("{before}1abab-abac2YWJhYi1hYmFj3{before}");
            for at in 0..25 {
                let (one, other) = whole.split_at(before.len() + at);
                let masked = masked(&[one, other]).await;
                let expect = format!("{before}1*********2************3{before}");
                assert_eq!(masked, expect, "{at}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn neither_cuts_nor_times_depend_on_what_a_body_holds() {
        // Each body has the same lengths. The value, its beginnings and its end stand at all places of a piece.
        let length = 5000;
        let fill = |text: &str, at: usize| {
            let mut all = "x".repeat(length);
            all.replace_range(at..at + text.len(), text);
            all
        };
        let mut seen = Vec::new();
        for text in [
            "",
            "a",
            "abab",
            "abab-aba",
            "abab-abac",
            "YWJhYi1hYm",
            "abab%2",
            "%",
            "&#",
        ] {
            for at in [0, 1, 1000, 2500 - text.len(), 2500, length - text.len()] {
                let body = fill(text, at);
                let (one, two) = body.split_at(2500);
                let pieces =
                    pieces(&[(0, one), (30, two), (500, one), (90, "y"), (2000, "z")]).await;
                let shape = pieces.iter().map(|(when, text)| (*when, text.len()));
                seen.push(shape.collect::<Vec<_>>());
            }
        }
        assert!(seen[0].len() > 4, "{:?}", seen[0]);
        for shape in &seen {
            assert_eq!(shape, &seen[0]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_server_sends_word_by_word_comes_soon() {
        for pause in [1, 30, 90, 700] {
            let words: Vec<String> = (0..40).map(|count| format!("data: {count}\n\n")).collect();
            let mut parts: Vec<Part<'_>> =
                words.iter().map(|word| (pause, word.as_str())).collect();
            parts.push((pause, "abab-abac\n"));
            let pieces = pieces(&parts).await;
            let all: String = pieces.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(all, words.concat() + "*********\n");
            let mut came = 0;
            for (when, text) in &pieces {
                for _ in 0..text.matches("data").count() {
                    came += 1;
                    let sent = u128::from(pause) * came;
                    assert!((sent..=sent + 120).contains(when), "{pause}: {came} {when}");
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_rest_of_a_value_is_masked_where_a_server_waits_in_it() {
        let pieces = pieces(&[(0, "x abab-"), (500, "abac y"), (500, "abab-"), (500, "z")]).await;
        let all: String = pieces.into_iter().map(|(_, text)| text).collect();
        assert_eq!(all, "x abab-**** yabab-z");
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_takes_nothing_cuts_no_value() {
        let long = "x".repeat(4000);
        let frames = [(0, long.as_str()), (0, "abab-"), (300, "abac")];
        let frames = frames.map(|(wait, text)| (wait, Bytes::from(text.to_owned())));
        let frames = futures_util::stream::iter(frames).then(|(wait, text)| async move {
            sleep(Duration::from_millis(wait)).await;
            Ok::<_, hyper::Error>(Frame::data(text))
        });
        let mut body = MaskedBody::new(StreamBody::new(frames).boxed_unsync(), secret());
        let mut all = Vec::new();
        while let Some(frame) = body.frame().await {
            all.extend_from_slice(&frame.unwrap().into_data().unwrap());
            sleep(Duration::from_millis(200)).await;
        }
        assert_eq!(String::from_utf8(all).unwrap(), format!("{long}*********"));
    }

    #[tokio::test]
    async fn headers_and_trailers_are_masked() {
        let mut headers = HeaderMap::new();
        headers.insert("x-echo", "Bearer abab-abac".parse().unwrap());
        headers.insert("x-abab-abac", "1".parse().unwrap());
        let frames = [Ok::<_, hyper::Error>(Frame::trailers(headers.clone()))];
        mask_headers(&mut headers, &secret());
        assert_eq!(headers["x-echo"], "Bearer *********");
        assert_eq!(headers.len(), 1);
        let body = StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync();
        let body = MaskedBody::new(body, secret()).collect().await.unwrap();
        assert_eq!(body.trailers(), Some(&headers));
    }
}
