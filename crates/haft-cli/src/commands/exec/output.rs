//! `Output`: what a command writes, passed on as it comes, every byte in order; the command waits for its reader.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::thread;

use haft::audit::redact::{RedactedStream, Redactor};
use haft::future::BoxFuture;
use haft::progress::{ProgressEvent, ProgressSink, Stream};
use haft_app::problem::Problem;
use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

/// Most bytes that wait to be written: the command waits while there are more.
const MOST: usize = 256 << 10;

/// Why nothing more is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Broken {
    /// The reader is gone.
    Closed,
    /// It could not be written.
    Failed(String),
}

/// Writes a command's output to this process's own, in a thread: a reader may be slow, and signals are heard meanwhile.
#[derive(Debug)]
pub(super) struct Output {
    waiting: Mutex<Waiting>,
    /// Wakes the thread.
    more: Condvar,
    state: watch::Sender<State>,
}

#[derive(Debug)]
struct Waiting {
    pieces: VecDeque<(Stream, Vec<u8>)>,
    streams: [RedactedStream; 2],
    /// Something of the command came.
    begun: bool,
    /// A stream has ended.
    ended: bool,
    /// Nothing follows.
    finished: bool,
}

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    broken: Option<Broken>,
    /// The thread has ended.
    over: bool,
}

impl Output {
    /// Begins to pass on; known secrets are left out.
    ///
    /// # Errors
    /// No thread can be had.
    pub(super) fn start(redactor: &Redactor) -> Result<Arc<Self>, Problem> {
        let stream = || RedactedStream::new(redactor);
        let output = Arc::new(Self {
            waiting: Mutex::new(Waiting {
                pieces: VecDeque::new(),
                streams: [stream(), stream()],
                begun: false,
                ended: false,
                finished: false,
            }),
            more: Condvar::new(),
            state: watch::Sender::default(),
        });
        let writer = Arc::clone(&output);
        let started = thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || writer.write_all());
        started.map_err(|e| Problem::failed(format!("pass on the command's output: {e}")))?;
        Ok(output)
    }

    /// Whether any of the command's output came here.
    pub(super) fn has_begun(&self) -> bool {
        self.waiting.lock().begun
    }

    /// Whether the command has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.waiting.lock().ended
    }

    /// Passes on what does not come by the live channel.
    pub(super) fn add(&self, stream: Stream, bytes: &[u8]) {
        let mut waiting = self.waiting.lock();
        let bytes = waiting.stream(stream).push(bytes);
        self.queue(&mut waiting, stream, bytes);
    }

    /// Completes when nothing more is written, and says why.
    pub(super) async fn broken(&self) -> Broken {
        let mut state = self.state.subscribe();
        let broken = state.wait_for(|state| state.broken.is_some()).await;
        // The sender lives in `self`, so this cannot fail.
        broken
            .ok()
            .and_then(|state| state.broken.clone())
            .unwrap_or(Broken::Closed)
    }

    /// Nothing follows: completes when all of it is written, or none will be.
    pub(super) async fn finish(&self) -> Option<Broken> {
        {
            let mut waiting = self.waiting.lock();
            for stream in [Stream::Stdout, Stream::Stderr] {
                let rest = waiting.stream(stream).finish();
                self.queue(&mut waiting, stream, rest);
            }
            waiting.finished = true;
        }
        self.more.notify_one();
        let mut state = self.state.subscribe();
        let over = state.wait_for(|state| state.over).await;
        over.ok().and_then(|state| state.broken.clone())
    }

    fn queue(&self, waiting: &mut Waiting, stream: Stream, bytes: Vec<u8>) {
        if bytes.is_empty() || self.state.borrow().broken.is_some() {
            return;
        }
        self.state.send_modify(|state| state.bytes += bytes.len());
        waiting.pieces.push_back((stream, bytes));
        self.more.notify_one();
    }

    /// The thread.
    fn write_all(&self) {
        while let Some((stream, bytes)) = self.next() {
            let written = match stream {
                Stream::Stdout => whole(&mut io::stdout(), &bytes),
                // Where it is gone there is no place left to print to.
                _ => whole(&mut io::stderr(), &bytes).or(Ok(())),
            };
            let broken = written.err().map(|error| match error.kind() {
                ErrorKind::BrokenPipe => Broken::Closed,
                _ => Broken::Failed(error.to_string()),
            });
            let is_broken = broken.is_some();
            self.state.send_modify(|state| {
                state.bytes -= bytes.len();
                state.broken = broken;
            });
            if is_broken {
                break;
            }
        }
        self.state.send_modify(|state| state.over = true);
    }

    fn next(&self) -> Option<(Stream, Vec<u8>)> {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(piece) = waiting.pieces.pop_front() {
                return Some(piece);
            }
            if waiting.finished {
                return None;
            }
            self.more.wait(&mut waiting);
        }
    }
}

fn whole(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes).and_then(|()| to.flush())
}

impl Waiting {
    fn stream(&mut self, stream: Stream) -> &mut RedactedStream {
        &mut self.streams[usize::from(stream != Stream::Stdout)]
    }
}

impl ProgressSink for Output {
    fn progress(&self, event: ProgressEvent) {
        if event.stream == Stream::Info {
            return;
        }
        let mut waiting = self.waiting.lock();
        waiting.begun = true;
        waiting.ended |= event.closed;
        let mut bytes = waiting.stream(event.stream).push(event.as_bytes());
        if event.closed {
            bytes.extend(waiting.stream(event.stream).finish());
        }
        self.queue(&mut waiting, event.stream, bytes);
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let mut state = self.state.subscribe();
            let has_room = |state: &State| state.bytes < MOST || state.broken.is_some();
            // The sender lives in `self`, so this cannot fail.
            let _ = state.wait_for(has_room).await;
        })
    }
}
