//! `PipeWire`: the wire to a server process: one message per line, in both directions.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use haft::future::BoxFuture;
use memchr::memchr;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{broadcast, mpsc, watch};

use crate::client::error::ClientError;
use crate::client::pending::AwaitedResponses;
use crate::client::server_change::ServerChange;
use crate::client::speech;
use crate::client::wire::{Wire, WireRequest};
use crate::era::Era;

/// Maximum length of a message from a server, in bytes.
pub const LONGEST: usize = 64 * 1024 * 1024;
/// Maximum number of messages queued for writing; further senders wait.
const MAX_QUEUED: usize = 64;
/// Number of bytes to read at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// The process behind a wire.
pub trait ServerProcess: Send + Sync {
    /// Returns the end of what it wrote to its standard error.
    fn stderr_tail(&self) -> String;

    /// Ends it: its input has already ended. It gets some time, then a termination signal, then is killed.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// The wire to a process.
pub struct PipeWire {
    pending: Arc<AwaitedResponses>,
    /// Emptied when the wire is closed.
    outgoing: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    process: Box<dyn ServerProcess>,
}

impl std::fmt::Debug for PipeWire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PipeWire").finish_non_exhaustive()
    }
}

impl PipeWire {
    /// Creates a wire over a process's input and output. Must be called inside a tokio runtime.
    pub fn new(
        input: impl AsyncWrite + Send + Unpin + 'static,
        output: impl AsyncRead + Send + Unpin + 'static,
        process: Box<dyn ServerProcess>,
        longest: usize,
    ) -> Self {
        let pending = Arc::new(AwaitedResponses::new());
        let (outgoing, lines) = mpsc::channel(MAX_QUEUED);
        tokio::spawn(write(input, lines));
        // Weak, so that the reader does not keep the writer alive: the writer ends with the wire.
        let answers = outgoing.downgrade();
        let lines = OutputLines::new(output, longest);
        tokio::spawn(read(lines, Arc::clone(&pending), answers));
        Self {
            pending,
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
            said: self.process.stderr_tail(),
        }
    }

    async fn send(&self, mut message: Vec<u8>) -> Result<(), ClientError> {
        // A message is one line. Outside of strings, which contain no raw line ends, line ends are ordinary white space.
        for byte in &mut message {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        let sender = self.sender()?;
        sender.send(message).await.map_err(|_| self.closed())
    }
}

/// Removes a request when its caller stops waiting, and tells the server.
struct PipeCancelGuard<'a> {
    wire: &'a PipeWire,
    id: u64,
}

impl Drop for PipeCancelGuard<'_> {
    fn drop(&mut self) {
        if !self.wire.pending.forget(self.id) {
            return;
        }
        if let Ok(sender) = self.wire.sender() {
            // A server that does not read misses the notice as well.
            let _full_or_gone = sender.try_send(speech::cancelled(self.id));
        }
    }
}

impl Wire for PipeWire {
    fn ask<'a>(&'a self, mut ask: WireRequest<'a>) -> BoxFuture<'a, Result<Bytes, ClientError>> {
        Box::pin(async move {
            let answered = self.pending.begin(&mut ask);
            let waiting = PipeCancelGuard {
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

    fn send_notification(
        &self,
        message: Vec<u8>,
        _era: Era,
    ) -> BoxFuture<'_, Result<(), ClientError>> {
        Box::pin(self.send(message))
    }

    fn transport(&self) -> &'static str {
        "stdio"
    }

    fn is_open(&self) -> bool {
        self.pending.is_open()
    }

    fn list_changes(&self) -> watch::Receiver<u64> {
        self.pending.list_changes()
    }

    fn news(&self) -> broadcast::Receiver<ServerChange> {
        self.pending.news()
    }

    fn stderr_tail(&self) -> String {
        self.process.stderr_tail()
    }

    fn may_ignore_discover(&self) -> bool {
        true
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        // Its input ends when the writer does.
        drop(self.outgoing.lock().take());
        Box::pin(self.process.end())
    }
}

/// Writes lines until all senders are dropped or the stream breaks.
async fn write(mut input: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(mut batch) = lines.recv().await {
        batch.push(b'\n');
        while batch.len() < CHUNK_BYTES
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

/// Reads messages until the stream ends, then fails all requests in progress.
async fn read<R: AsyncRead + Unpin>(
    mut lines: OutputLines<R>,
    pending: Arc<AwaitedResponses>,
    answers: mpsc::WeakSender<Vec<u8>>,
) {
    while let Ok(Some(line)) = lines.next().await {
        match line {
            OutputLine::Message(bytes) => {
                let Some((inquiry, ask)) = pending.hear(bytes) else {
                    continue;
                };
                let answers = answers.clone();
                inquiry.answer(ask, async move |answer| {
                    if let Some(sender) = answers.upgrade() {
                        // A server that asks but does not read must not hold up its own answers.
                        let _full_or_gone = sender.try_send(answer);
                    }
                });
            }
            OutputLine::TooLong(begin) => pending.fail_overlong(&begin, lines.longest),
        }
    }
    pending.end();
}

/// A line of a server's output.
#[derive(Debug, PartialEq, Eq)]
enum OutputLine {
    Message(Bytes),
    /// An overlong line: its beginning.
    TooLong(Vec<u8>),
}

/// Lines of a stream, limited in length.
struct OutputLines<R> {
    from: R,
    buffer: BytesMut,
    /// How far the buffer has been searched.
    seen: usize,
    longest: usize,
    /// The beginning of a line that is being skipped.
    skipped: Option<Vec<u8>>,
}

/// Number of bytes of an overlong line to examine.
const EXAMINED_BYTES: usize = 256;

impl<R: AsyncRead + Unpin> OutputLines<R> {
    fn new(from: R, longest: usize) -> Self {
        Self {
            from,
            buffer: BytesMut::new(),
            seen: 0,
            longest,
            skipped: None,
        }
    }

    /// Returns the next line that is not blank; `None` at the end.
    async fn next(&mut self) -> io::Result<Option<OutputLine>> {
        loop {
            while let Some(length) = memchr(b'\n', &self.buffer[self.seen..]) {
                let line = self.buffer.split_to(self.seen + length + 1).freeze();
                self.seen = 0;
                if let Some(begin) = self.skipped.take() {
                    return Ok(Some(OutputLine::TooLong(begin)));
                }
                let line = line.slice(..line.len() - 1);
                if line.len() > self.longest {
                    let begin = line[..EXAMINED_BYTES.min(line.len())].to_vec();
                    return Ok(Some(OutputLine::TooLong(begin)));
                }
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(OutputLine::Message(line)));
                }
            }
            self.seen = self.buffer.len();
            if self.seen > self.longest {
                let begin = self.buffer[..EXAMINED_BYTES.min(self.seen)].to_vec();
                self.skipped.get_or_insert(begin);
            }
            if self.skipped.is_some() {
                self.buffer.clear();
                self.seen = 0;
            }
            self.buffer.reserve(CHUNK_BYTES);
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return Ok(self.last());
            }
        }
    }

    /// Returns the remainder at the end, without a line end.
    fn last(&mut self) -> Option<OutputLine> {
        let rest = self.buffer.split().freeze();
        self.seen = 0;
        if let Some(begin) = self.skipped.take() {
            return Some(OutputLine::TooLong(begin));
        }
        (!rest.trim_ascii().is_empty()).then_some(OutputLine::Message(rest))
    }
}
