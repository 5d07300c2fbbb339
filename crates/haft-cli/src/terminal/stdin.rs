//! `StdinRouter`: the one thread that reads standard input, as lines for prompts, or byte by byte for a command's terminal.

use std::io::{self, Read as _};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// Maximum number of lines that the user may have typed ahead. More are dropped: left in the terminal, they would be read once the next
/// request is on the screen, and answer it.
const TYPED_AHEAD: usize = 64;
/// Pieces of input that may wait for a command; what is typed then waits in the terminal.
const PIECES: usize = 4;
/// Maximum bytes read at once.
const PIECE: usize = 4096;
/// Maximum bytes of a line; a longer one is dropped.
const LONGEST_LINE: usize = 1 << 20;

/// Sends what is typed to whoever reads it. The thread starts with the first reader and ends with the process: a read cannot be cancelled.
#[derive(Debug, Default)]
pub(crate) struct StdinRouter(Mutex<InputReaders>);

#[derive(Debug, Default)]
struct InputReaders {
    is_started: bool,
    lines: Option<mpsc::Sender<String>>,
    /// The beginning of a line.
    line: Vec<u8>,
    /// While this is set, nothing is read as a line.
    bytes: Option<mpsc::Sender<Vec<u8>>>,
}

impl StdinRouter {
    /// Returns the lines that are typed from now on.
    pub(crate) fn lines(self: &Arc<Self>) -> mpsc::Receiver<String> {
        let (send, receive) = mpsc::channel(TYPED_AHEAD);
        self.0.lock().lines = Some(send);
        self.start();
        receive
    }

    /// Returns what is typed from now on, until [`end_bytes`](Self::end_bytes): then it is read as lines again.
    pub(crate) fn bytes(self: &Arc<Self>) -> mpsc::Receiver<Vec<u8>> {
        let (send, receive) = mpsc::channel(PIECES);
        self.0.lock().bytes = Some(send);
        self.start();
        receive
    }

    /// Ends reading byte by byte.
    pub(crate) fn end_bytes(&self) {
        self.0.lock().bytes = None;
    }

    /// Returns whether input is read byte by byte, so that no line arrives.
    pub(crate) fn is_by_bytes(&self) -> bool {
        self.0.lock().bytes.is_some()
    }

    fn start(self: &Arc<Self>) {
        if std::mem::replace(&mut self.0.lock().is_started, true) {
            return;
        }
        let router = Arc::clone(self);
        let reader = thread::Builder::new().name("haft-prompt".into());
        let started = reader.spawn(move || {
            router.read();
            let mut readers = router.0.lock();
            (readers.lines, readers.bytes) = (None, None);
        });
        if started.is_err() {
            tracing::error!("start the prompt's thread");
        }
    }

    fn read(&self) {
        let mut piece = [0; PIECE];
        loop {
            let count = match io::stdin().lock().read(&mut piece) {
                Ok(0) => return,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            let bytes = self.0.lock().bytes.clone();
            let rest = match bytes {
                // Waits for the command, unless its reader goes away.
                Some(bytes) => match bytes.blocking_send(piece[..count].to_vec()) {
                    Ok(()) => continue,
                    Err(unsent) => unsent.0,
                },
                None => piece[..count].to_vec(),
            };
            if !self.0.lock().take_lines(&rest) {
                return;
            }
        }
    }
}

impl InputReaders {
    /// Passes on the lines that these bytes complete; returns false if no one reads lines any more.
    fn take_lines(&mut self, bytes: &[u8]) -> bool {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + piece.len() > LONGEST_LINE {
                self.line.clear();
                continue;
            }
            self.line.extend_from_slice(piece);
            let Some(line) = self.line.strip_suffix(b"\n") else {
                continue;
            };
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let line = String::from_utf8_lossy(line).into_owned();
            self.line.clear();
            let Some(lines) = &self.lines else { continue };
            if let Err(TrySendError::Closed(_)) = lines.try_send(line) {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::InputReaders;

    #[test]
    fn lines_are_passed_on_whole_whatever_pieces_they_come_in() {
        let (send, mut receive) = mpsc::channel(8);
        let mut readers = InputReaders {
            lines: Some(send),
            ..InputReaders::default()
        };
        for piece in ["a\nb", "c\r\n", "\n", "zw", "ölf\nrest"] {
            assert!(readers.take_lines(piece.as_bytes()));
        }
        let mut got = Vec::new();
        while let Ok(line) = receive.try_recv() {
            got.push(line);
        }
        assert_eq!(got, ["a", "bc", "", "zwölf"]);
        drop(receive);
        assert!(!readers.take_lines(b"\n"));
    }
}
