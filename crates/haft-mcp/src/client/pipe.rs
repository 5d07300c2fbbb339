//! The wire of a server that is a process: one message a line, both ways.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};
use haft::future::BoxFuture;
use haft::progress::Progress;
use memchr::memchr;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};

use crate::client::error::ClientError;
use crate::client::speech::{self, Heard};
use crate::client::wire::{Ask, Wire};
use crate::era::Era;

/// The longest message that a server may send, in bytes.
pub const LONGEST: usize = 64 * 1024 * 1024;
/// Messages that wait to be written; whoever has another one waits.
const WAITING: usize = 64;
/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// The process behind a wire.
pub trait Process: Send + Sync {
    /// The end of what it wrote to its standard error.
    fn last_words(&self) -> String;

    /// Ends it: its input has ended already. It is given some time, then asked, then killed.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// The wire to a process.
pub struct PipeWire {
    shared: Arc<Shared>,
    /// Emptied when the wire is closed.
    outgoing: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    process: Box<dyn Process>,
}

impl std::fmt::Debug for PipeWire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PipeWire").finish_non_exhaustive()
    }
}

/// What reader, writer and requests share.
struct Shared {
    pending: Mutex<HashMap<u64, Pending>>,
    open: AtomicBool,
    changes: watch::Sender<u64>,
    longest: usize,
}

struct Pending {
    answer: oneshot::Sender<Result<Bytes, ClientError>>,
    progress: Option<Progress>,
}

impl PipeWire {
    /// The wire over a process's input and output. Must be called inside a tokio runtime.
    pub fn new(
        input: impl AsyncWrite + Send + Unpin + 'static,
        output: impl AsyncRead + Send + Unpin + 'static,
        process: Box<dyn Process>,
        longest: usize,
    ) -> Self {
        let shared = Arc::new(Shared {
            pending: Mutex::default(),
            open: AtomicBool::new(true),
            changes: watch::Sender::new(0),
            longest,
        });
        let (outgoing, lines) = mpsc::channel(WAITING);
        tokio::spawn(write(input, lines));
        // It holds no sender that keeps the writer alive: the writer ends with the wire.
        let answers = outgoing.downgrade();
        tokio::spawn(read(output, Arc::clone(&shared), answers));
        Self {
            shared,
            outgoing: Mutex::new(Some(outgoing)),
            process,
        }
    }

    fn sender(&self) -> Result<mpsc::Sender<Vec<u8>>, ClientError> {
        let sender = self.outgoing.lock().clone();
        sender.ok_or_else(|| self.closed())
    }

    fn closed(&self) -> ClientError {
        ClientError::Closed {
            said: self.process.last_words(),
        }
    }

    async fn send(&self, mut message: Vec<u8>) -> Result<(), ClientError> {
        // A message is one line. Outside of strings, which hold none as they are, line ends are white space like any other.
        for byte in &mut message {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        let sender = self.sender()?;
        sender.send(message).await.map_err(|_| self.closed())
    }
}

/// Takes a request out when nobody waits for it any more, and tells the server.
struct Waiting<'a> {
    wire: &'a PipeWire,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.wire.shared.pending.lock().remove(&self.id).is_none() {
            return;
        }
        if let Ok(sender) = self.wire.sender() {
            // A server that does not read hears nothing of it, either.
            let _full_or_gone = sender.try_send(speech::cancelled(self.id));
        }
    }
}

impl Wire for PipeWire {
    fn ask<'a>(&'a self, ask: Ask<'a>) -> BoxFuture<'a, Result<Bytes, ClientError>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let pending = Pending {
                answer,
                progress: ask.progress,
            };
            self.shared.pending.lock().insert(ask.id, pending);
            let waiting = Waiting {
                wire: self,
                id: ask.id,
            };
            if !self.is_open() {
                return Err(self.closed());
            }
            self.send(ask.message).await?;
            let answer = answered.await;
            drop(waiting);
            match answer {
                Ok(Err(ClientError::Closed { .. })) | Err(_) => Err(self.closed()),
                Ok(answer) => answer,
            }
        })
    }

    fn tell(&self, message: Vec<u8>, _era: Era) -> BoxFuture<'_, Result<(), ClientError>> {
        Box::pin(self.send(message))
    }

    fn is_open(&self) -> bool {
        self.shared.open.load(Ordering::Acquire)
    }

    fn list_changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    fn last_words(&self) -> String {
        self.process.last_words()
    }

    fn may_stay_silent(&self) -> bool {
        true
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        // Its input ends when the writer does.
        drop(self.outgoing.lock().take());
        Box::pin(self.process.end())
    }
}

/// Writes lines until nobody sends any or the stream breaks.
async fn write(mut input: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(mut batch) = lines.recv().await {
        batch.push(b'\n');
        while batch.len() < CHUNK
            && let Ok(line) = lines.try_recv()
        {
            batch.extend_from_slice(&line);
            batch.push(b'\n');
        }
        if input.write_all(&batch).await.is_err() || input.flush().await.is_err() {
            return;
        }
    }
}

/// Reads messages until the stream ends; then everything under way fails.
async fn read(
    output: impl AsyncRead + Unpin,
    shared: Arc<Shared>,
    answers: mpsc::WeakSender<Vec<u8>>,
) {
    let mut lines = Lines::new(output, shared.longest);
    while let Ok(Some(line)) = lines.next().await {
        match line {
            Line::Message(bytes) => hear(&shared, bytes, &answers),
            Line::TooLong(begin) => shared.fail_long(&begin),
        }
    }
    shared.open.store(false, Ordering::Release);
    let pending = std::mem::take(&mut *shared.pending.lock());
    for (_, pending) in pending {
        let said = String::new();
        let _gone = pending.answer.send(Err(ClientError::Closed { said }));
    }
}

fn hear(shared: &Shared, bytes: Bytes, answers: &mpsc::WeakSender<Vec<u8>>) {
    match speech::hear(&bytes) {
        Heard::Answer(id) => {
            // An answer to nothing, or a second one, is nobody's.
            if let Some(pending) = shared.pending.lock().remove(&id) {
                let _gone = pending.answer.send(Ok(bytes));
            }
        }
        Heard::Request(answer) => {
            if let Some(sender) = answers.upgrade() {
                // A server that asks and does not read must not stop its own answers.
                let _full_or_gone = sender.try_send(answer);
            }
        }
        Heard::ListChanged => shared.changes.send_modify(|count| *count += 1),
        Heard::Progress(id, line) => {
            let progress = shared
                .pending
                .lock()
                .get(&id)
                .and_then(|p| p.progress.clone());
            speech::pass_on(progress.as_ref(), line);
        }
        Heard::Nothing => {}
        Heard::Garbage => tracing::debug!(
            bytes = bytes.len(),
            "a server wrote a line that is no message"
        ),
    }
}

impl Shared {
    /// Fails the request that a message over the limit answers, or all of them where it does not say which.
    fn fail_long(&self, begin: &[u8]) {
        let mut pending = self.pending.lock();
        let failed = match id_in(begin).and_then(|id| pending.remove(&id)) {
            Some(one) => vec![one],
            None => pending.drain().map(|(_, pending)| pending).collect(),
        };
        for pending in failed {
            let _gone = pending.answer.send(Err(ClientError::TooLong(self.longest)));
        }
    }
}

/// The number of the request that a message answers, where it stands before what the answer is.
fn id_in(begin: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(begin);
    let head = text.split(['{', '[']).nth(1)?;
    let (_, rest) = head.split_once("\"id\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest[..end].parse().ok()
}

/// A line of a server's output.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Message(Bytes),
    /// Over the limit: its beginning.
    TooLong(Vec<u8>),
}

/// Lines of a stream, bounded.
struct Lines<R> {
    from: R,
    buffer: BytesMut,
    /// How far the buffer has been looked through.
    seen: usize,
    longest: usize,
    /// The beginning of a line that is being passed over.
    skipped: Option<Vec<u8>>,
}

/// How much of a line that is too long is looked at.
const BEGIN: usize = 256;

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(from: R, longest: usize) -> Self {
        Self {
            from,
            buffer: BytesMut::new(),
            seen: 0,
            longest,
            skipped: None,
        }
    }

    /// The next line that is not blank; `None` at the end.
    async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            while let Some(length) = memchr(b'\n', &self.buffer[self.seen..]) {
                let line = self.buffer.split_to(self.seen + length + 1).freeze();
                self.seen = 0;
                if let Some(begin) = self.skipped.take() {
                    return Ok(Some(Line::TooLong(begin)));
                }
                let line = line.slice(..line.len() - 1);
                if line.len() > self.longest {
                    let begin = line[..BEGIN.min(line.len())].to_vec();
                    return Ok(Some(Line::TooLong(begin)));
                }
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(Line::Message(line)));
                }
            }
            self.seen = self.buffer.len();
            if self.seen > self.longest {
                let begin = self.buffer[..BEGIN.min(self.seen)].to_vec();
                self.skipped.get_or_insert(begin);
            }
            if self.skipped.is_some() {
                self.buffer.clear();
                self.seen = 0;
            }
            self.buffer.reserve(CHUNK);
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return Ok(self.last());
            }
        }
    }

    /// What stands at the end without a line end.
    fn last(&mut self) -> Option<Line> {
        let rest = self.buffer.split().freeze();
        self.seen = 0;
        if let Some(begin) = self.skipped.take() {
            return Some(Line::TooLong(begin));
        }
        (!rest.trim_ascii().is_empty()).then_some(Line::Message(rest))
    }
}
