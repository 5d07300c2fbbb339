//! The wire of a server that is a process: one message a line, both ways.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use haft::future::BoxFuture;
use memchr::memchr;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{broadcast, mpsc, watch};

use crate::client::error::ClientError;
use crate::client::news::News;
use crate::client::pending::Pending;
use crate::client::speech;
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
    pending: Arc<Pending>,
    /// Emptied when the wire is closed.
    outgoing: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    process: Box<dyn Process>,
}

impl std::fmt::Debug for PipeWire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PipeWire").finish_non_exhaustive()
    }
}

impl PipeWire {
    /// The wire over a process's input and output. Must be called inside a tokio runtime.
    pub fn new(
        input: impl AsyncWrite + Send + Unpin + 'static,
        output: impl AsyncRead + Send + Unpin + 'static,
        process: Box<dyn Process>,
        longest: usize,
    ) -> Self {
        let pending = Arc::new(Pending::new());
        let (outgoing, lines) = mpsc::channel(WAITING);
        tokio::spawn(write(input, lines));
        // It holds no sender that keeps the writer alive: the writer ends with the wire.
        let answers = outgoing.downgrade();
        let lines = Lines::new(output, longest);
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
        if !self.wire.pending.forget(self.id) {
            return;
        }
        if let Ok(sender) = self.wire.sender() {
            // A server that does not read hears nothing of it, either.
            let _full_or_gone = sender.try_send(speech::cancelled(self.id));
        }
    }
}

impl Wire for PipeWire {
    fn ask<'a>(&'a self, mut ask: Ask<'a>) -> BoxFuture<'a, Result<Bytes, ClientError>> {
        Box::pin(async move {
            let answered = self.pending.begin(&mut ask);
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

    fn transport(&self) -> &'static str {
        "stdio"
    }

    fn is_open(&self) -> bool {
        self.pending.is_open()
    }

    fn list_changes(&self) -> watch::Receiver<u64> {
        self.pending.list_changes()
    }

    fn news(&self) -> broadcast::Receiver<News> {
        self.pending.news()
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
async fn read<R: AsyncRead + Unpin>(
    mut lines: Lines<R>,
    pending: Arc<Pending>,
    answers: mpsc::WeakSender<Vec<u8>>,
) {
    while let Ok(Some(line)) = lines.next().await {
        match line {
            Line::Message(bytes) => {
                let Some((inquiry, ask)) = pending.hear(bytes) else {
                    continue;
                };
                let answers = answers.clone();
                inquiry.answer(ask, async move |answer| {
                    if let Some(sender) = answers.upgrade() {
                        // A server that asks and does not read must not stop its own answers.
                        let _full_or_gone = sender.try_send(answer);
                    }
                });
            }
            Line::TooLong(begin) => pending.fail_long(&begin, lines.longest),
        }
    }
    pending.end();
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
