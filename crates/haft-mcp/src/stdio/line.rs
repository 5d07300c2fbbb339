//! Two threads between blocking streams and the server: one reads lines, one writes them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use memchr::memchr;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot};

use super::backlog::{Backlog, InputLine};

/// Number of bytes to read or write at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// Starts the thread that reads lines; it ends at the end of the stream or when no more lines are taken.
///
/// # Errors
/// The thread cannot be started.
pub fn reader(
    input: impl Read + Send + 'static,
    longest: usize,
    lines: Arc<Backlog>,
) -> io::Result<()> {
    let work = move || {
        let mut input = BufReader::with_capacity(CHUNK_BYTES, input);
        loop {
            let line = match next_line(&mut input, longest) {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => InputLine::Broken(error),
            };
            let last = matches!(line, InputLine::Broken(_));
            if !lines.push(line) || last {
                break;
            }
        }
        lines.end();
    };
    thread::Builder::new()
        .name("haft-stdin".into())
        .spawn(work)
        .map(drop)
}

/// Returns the next line that is not blank; `None` at the end.
fn next_line(input: &mut impl BufRead, longest: usize) -> io::Result<Option<InputLine>> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let newline = memchr(b'\n', chunk);
        let length = newline.unwrap_or(chunk.len());
        let ended = chunk.is_empty();
        if line.len() + length > longest {
            too_long = true;
            line = Vec::new();
        }
        if !too_long {
            line.extend_from_slice(&chunk[..length]);
        }
        input.consume(length + usize::from(newline.is_some()));
        if newline.is_none() && !ended {
            continue;
        }
        if too_long {
            return Ok(Some(InputLine::TooLong));
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(InputLine::Message(line)));
        }
        if ended {
            return Ok(None);
        }
        line.clear();
    }
}

/// The start of the write in progress, if any.
#[derive(Debug, Default)]
pub struct PendingWrite(Mutex<Option<Instant>>);

impl PendingWrite {
    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock()
    }

    /// Returns how long the client has not read what is being written.
    pub fn stands_for(&self) -> Duration {
        let since = *self.lock();
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// Starts the thread that writes lines; it ends when all senders are dropped or the stream breaks, and signals the receiver.
///
/// # Errors
/// The thread cannot be started.
pub fn writer(
    mut output: impl Write + Send + 'static,
    mut lines: mpsc::Receiver<Vec<u8>>,
    writing: Arc<PendingWrite>,
) -> io::Result<oneshot::Receiver<()>> {
    let (ended, done) = oneshot::channel();
    let work = move || {
        while let Some(line) = lines.blocking_recv() {
            if write_lines(&mut output, line, &mut lines, &writing).is_err() {
                break;
            }
        }
        drop(lines);
        let _nobody_waits = ended.send(());
    };
    thread::Builder::new()
        .name("haft-stdout".into())
        .spawn(work)?;
    Ok(done)
}

/// Ends the line that begins at `from`. A newline within a message would end the line early; in JSON, it can only be layout.
fn close(batch: &mut Vec<u8>, from: usize) {
    let line = &mut batch[from..];
    while let Some(at) = memchr::memchr2(b'\n', b'\r', line) {
        line[at] = b' ';
    }
    batch.push(b'\n');
}

/// Writes a line and those queued behind it, up to a chunk, in one go.
fn write_lines(
    output: &mut impl Write,
    mut batch: Vec<u8>,
    lines: &mut mpsc::Receiver<Vec<u8>>,
    writing: &PendingWrite,
) -> io::Result<()> {
    close(&mut batch, 0);
    while batch.len() < CHUNK_BYTES
        && let Ok(line) = lines.try_recv()
    {
        let from = batch.len();
        batch.extend_from_slice(&line);
        close(&mut batch, from);
    }
    let mut written = Ok(());
    for chunk in batch.chunks(CHUNK_BYTES) {
        *writing.lock() = Some(Instant::now());
        written = output.write_all(chunk).and_then(|()| output.flush());
        if written.is_err() {
            break;
        }
    }
    *writing.lock() = None;
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(input: &[u8], longest: usize) -> Vec<String> {
        // A tiny buffer, so that lines span reads.
        let mut input = BufReader::with_capacity(3, input);
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input, longest).unwrap() {
            lines.push(match line {
                InputLine::Message(bytes) => String::from_utf8(bytes).unwrap(),
                InputLine::TooLong => "TOO LONG".into(),
                InputLine::Broken(error) => panic!("{error}"),
            });
        }
        lines
    }

    #[test]
    fn lines_are_cut_blank_ones_passed_over_and_long_ones_skipped_to_their_end() {
        for (input, expect) in [
            ("a\nbc\n", vec!["a", "bc"]),
            ("\n\r\n  \na\n", vec!["a"]),
            ("unfinished", vec!["unfinished"]),
            (
                "0123456789\n0123456789x\nok\n",
                vec!["0123456789", "TOO LONG", "ok"],
            ),
            ("0123456789x", vec!["TOO LONG"]),
            ("", vec![]),
        ] {
            assert_eq!(read_all(input.as_bytes(), 10), expect, "{input:?}");
        }
    }
}
