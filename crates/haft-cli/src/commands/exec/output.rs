//! `OutputWriter`: passes on a command's output as it comes, every byte in order. The command waits for a slow reader.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haft::audit::redact::{RedactedStream, Redactor};
use haft::future::BoxFuture;
use haft::progress::{ProgressEvent, ProgressSink, ProgressStream};
use haft_app::problem::Problem;
use haft_sandbox::ScreenFilter;
use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

use crate::commands::exec::terminal::AttendedTerminal;
use crate::screen::stdout;

/// Maximum number of bytes waiting to be written. The command waits while there are more.
const MOST: usize = 256 << 10;

/// How long the end of a terminal's output is held back because it may be the beginning of a secret.
const HELD_BACK: Duration = Duration::from_millis(50);

/// Why no more output is passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OutputEnd {
    /// The reader went away.
    Closed,
    /// Writing failed.
    Failed(String),
}

/// Writes a command's output to this process's own. A thread does it, so that haft still reacts to signals while a reader is slow.
#[derive(Debug)]
pub(super) struct OutputWriter {
    queue: Mutex<OutputQueue>,
    /// Wakes the thread.
    more: Condvar,
    state: watch::Sender<OutputState>,
    /// The user's terminal, if the command runs on it.
    attended: Option<Arc<AttendedTerminal>>,
}

#[derive(Debug)]
struct OutputQueue {
    pieces: VecDeque<(ProgressStream, Vec<u8>)>,
    streams: [RedactedStream; 2],
    /// For each stream that is a terminal: what of it may reach one. `AttendedTerminal` has its own.
    screens: [Option<ScreenFilter>; 2],
    /// Whether any output of the command came.
    begun: bool,
    /// Whether a stream has ended: both do when the command has ended.
    ended: bool,
    /// Whether nothing is added any more: the thread ends once the queue is empty.
    finished: bool,
}

#[derive(Debug, Default)]
struct OutputState {
    bytes: usize,
    end: Option<OutputEnd>,
    /// Whether the thread has ended.
    over: bool,
}

impl OutputWriter {
    /// Starts passing output on, without known secrets.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(
        redactor: &Redactor,
        attended: Option<Arc<AttendedTerminal>>,
    ) -> Result<Arc<Self>, Problem> {
        let stream = || RedactedStream::new(redactor);
        let screen =
            |is_terminal: bool| (is_terminal && attended.is_none()).then(ScreenFilter::default);
        let screens = [
            screen(io::stdout().is_terminal()),
            screen(io::stderr().is_terminal()),
        ];
        let output = Arc::new(Self {
            queue: Mutex::new(OutputQueue {
                pieces: VecDeque::new(),
                streams: [stream(), stream()],
                screens,
                begun: false,
                ended: false,
                finished: false,
            }),
            more: Condvar::new(),
            state: watch::Sender::default(),
            attended,
        });
        let writer = Arc::clone(&output);
        let started = thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || writer.write_all());
        started
            .map_err(|e| Problem::failed(format!("cannot pass on the command's output: {e}")))?;
        Ok(output)
    }

    /// Whether any of the command's output came here.
    pub(super) fn has_begun(&self) -> bool {
        self.queue.lock().begun
    }

    /// Whether the command has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.queue.lock().ended
    }

    /// Passes on output that does not come as progress.
    pub(super) fn add(&self, stream: ProgressStream, bytes: &[u8]) {
        let mut queue = self.queue.lock();
        let bytes = queue.stream(stream).push(bytes);
        self.push(&mut queue, stream, bytes);
    }

    /// Completes when no more output is passed on, with the reason.
    pub(super) async fn end_reason(&self) -> OutputEnd {
        let mut state = self.state.subscribe();
        let ended = state.wait_for(|state| state.end.is_some()).await;
        // The sender lives in `self`, so this cannot fail.
        ended
            .ok()
            .and_then(|state| state.end.clone())
            .unwrap_or(OutputEnd::Closed)
    }

    /// Says that nothing follows. Completes when everything is written, or returns why the rest was not.
    pub(super) async fn finish(&self) -> Option<OutputEnd> {
        {
            let mut queue = self.queue.lock();
            for stream in [ProgressStream::Stdout, ProgressStream::Stderr] {
                let rest = queue.stream(stream).finish();
                self.push(&mut queue, stream, rest);
                let reset = queue.screen(stream).map(ScreenFilter::finish);
                self.enqueue(&mut queue, stream, reset.unwrap_or_default());
            }
            queue.finished = true;
        }
        self.more.notify_one();
        let mut state = self.state.subscribe();
        let over = state.wait_for(|state| state.over).await;
        over.ok().and_then(|state| state.end.clone())
    }

    /// Gives the user's terminal back, behind the command's output.
    pub(super) fn leave_terminal(&self) {
        if let Some(terminal) = &self.attended {
            let reset = terminal.leave();
            self.enqueue(&mut self.queue.lock(), ProgressStream::Stdout, reset);
        }
    }

    fn push(&self, queue: &mut OutputQueue, stream: ProgressStream, bytes: Vec<u8>) {
        let bytes = match (&self.attended, queue.screen(stream)) {
            (Some(terminal), _) => terminal.passed(&bytes),
            (None, Some(screen)) => screen.push(&bytes),
            (None, None) => bytes,
        };
        self.enqueue(queue, stream, bytes);
    }

    fn enqueue(&self, queue: &mut OutputQueue, stream: ProgressStream, bytes: Vec<u8>) {
        if bytes.is_empty() || self.state.borrow().end.is_some() {
            return;
        }
        self.state.send_modify(|state| state.bytes += bytes.len());
        queue.pieces.push_back((stream, bytes));
        self.more.notify_one();
    }

    /// Writes the queue until nothing follows or writing fails. The thread runs it.
    fn write_all(&self) {
        while let Some((stream, bytes)) = self.next() {
            let written = match stream {
                ProgressStream::Stdout => {
                    stdout::open().and_then(|mut stdout| write_whole(&mut stdout, &bytes))
                }
                // If stderr went away, there is no place left to say so.
                _ => write_whole(&mut io::stderr(), &bytes).or(Ok(())),
            };
            let end = written.err().map(|error| match error.kind() {
                ErrorKind::BrokenPipe => OutputEnd::Closed,
                _ => OutputEnd::Failed(error.to_string()),
            });
            let has_failed = end.is_some();
            self.state.send_modify(|state| {
                state.bytes -= bytes.len();
                state.end = end;
            });
            if has_failed {
                break;
            }
        }
        self.state.send_modify(|state| state.over = true);
    }

    fn next(&self) -> Option<(ProgressStream, Vec<u8>)> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(piece) = queue.pieces.pop_front() {
                return Some(piece);
            }
            if queue.finished {
                return None;
            }
            if self.attended.is_none() {
                self.more.wait(&mut queue);
                continue;
            }
            // What a user types must be seen, even if it may be the beginning of a secret.
            if self.more.wait_for(&mut queue, HELD_BACK).timed_out() {
                let rest = queue.stream(ProgressStream::Stdout).finish();
                self.push(&mut queue, ProgressStream::Stdout, rest);
            }
        }
    }
}

fn write_whole(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes).and_then(|()| to.flush())
}

impl OutputQueue {
    fn stream(&mut self, stream: ProgressStream) -> &mut RedactedStream {
        &mut self.streams[usize::from(stream != ProgressStream::Stdout)]
    }

    fn screen(&mut self, stream: ProgressStream) -> Option<&mut ScreenFilter> {
        self.screens[usize::from(stream != ProgressStream::Stdout)].as_mut()
    }
}

impl ProgressSink for OutputWriter {
    fn progress(&self, event: ProgressEvent) {
        if event.stream == ProgressStream::Info {
            return;
        }
        let mut queue = self.queue.lock();
        queue.begun = true;
        queue.ended |= event.closed;
        let mut bytes = queue.stream(event.stream).push(event.as_bytes());
        if event.closed {
            bytes.extend(queue.stream(event.stream).finish());
        }
        self.push(&mut queue, event.stream, bytes);
        drop(queue);
        if event.closed {
            // What follows is haft's own: questions about changes.
            self.leave_terminal();
        }
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn room(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let mut state = self.state.subscribe();
            let has_room = |state: &OutputState| state.bytes < MOST || state.end.is_some();
            // The sender lives in `self`, so this cannot fail.
            let _ = state.wait_for(has_room).await;
        })
    }
}
