//! `ScriptOutput`: what a script prints: kept as a whole in a log, and shown live.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use haft::artifact::source::ByteSource;
use haft::progress::{Progress, ProgressStream};
use haft::shape::long::LongText;
use haft_sandbox::{DEFAULT_LOG_CAP, Log, Spool};

/// Number of newest bytes shown of an output that was not kept completely.
const NEWEST: usize = 64 << 10;

/// Both streams of a script, in order of arrival.
pub(crate) struct ScriptOutput {
    log: Arc<PrintedLog>,
    progress: Progress,
    /// Output of one stream that was not shown yet.
    gathered: Vec<u8>,
    stream: ProgressStream,
    shown: Option<Instant>,
    used: [bool; 2],
}

/// The printed output, to be stored as an artifact.
struct PrintedLog(Log);

impl ByteSource for PrintedLog {
    fn size(&self) -> u64 {
        self.0.unbroken(0).end
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        let most = left.min(buffer.len());
        self.0.read_at(offset, &mut buffer[..most])
    }
}

impl ScriptOutput {
    pub(crate) fn new(progress: Progress, spool: Option<&Arc<Spool>>) -> Self {
        let log = match spool {
            Some(spool) => Log::spooled(Arc::clone(spool)),
            None => Log::new(DEFAULT_LOG_CAP),
        };
        Self {
            log: Arc::new(PrintedLog(log)),
            progress,
            gathered: Vec::new(),
            stream: ProgressStream::Stdout,
            shown: None,
            used: [false; 2],
        }
    }

    /// Takes a piece of output.
    pub(super) fn take(&mut self, err: bool, bytes: &[u8]) {
        self.log.0.append(bytes);
        if self.progress.is_watched() {
            self.show(err, bytes);
        }
    }

    fn show(&mut self, err: bool, bytes: &[u8]) {
        let stream = if err {
            ProgressStream::Stderr
        } else {
            ProgressStream::Stdout
        };
        if stream != self.stream {
            self.flush_all();
            self.stream = stream;
        }
        self.used[usize::from(err)] = true;
        self.gathered.extend_from_slice(bytes);
        let pace = self.progress.pace();
        let early = self.shown.is_some_and(|at| at.elapsed() < pace.gather);
        if !early || self.gathered.len() >= pace.bytes {
            self.flush();
        }
    }

    /// Returns when the gathered output must be shown; `None` if there is none.
    pub(super) fn due(&self) -> Option<Instant> {
        let shown = self.shown.filter(|_| !self.gathered.is_empty())?;
        Some(shown + self.progress.pace().gather)
    }

    /// Shows the gathered output, except for an incomplete character at its end.
    pub(super) fn flush(&mut self) {
        let whole = match std::str::from_utf8(&self.gathered) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.gathered.len(),
        };
        let rest = self.gathered.split_off(whole);
        self.flush_all();
        self.gathered = rest;
    }

    fn flush_all(&mut self) {
        let most = self.progress.pace().bytes.max(4);
        let text = String::from_utf8_lossy(&self.gathered);
        let mut rest = &*text;
        while !rest.is_empty() {
            let (piece, left) = rest.split_at(rest.floor_char_boundary(most));
            self.progress.send(self.stream, piece);
            rest = left;
        }
        self.gathered.clear();
        self.shown = Some(Instant::now());
    }

    /// Closes the streams that were used.
    pub(super) fn close(&mut self) {
        self.flush_all();
        for (used, stream) in self
            .used
            .iter()
            .zip([ProgressStream::Stdout, ProgressStream::Stderr])
        {
            if *used {
                self.progress.close(stream);
            }
        }
    }

    /// Returns the number of bytes printed.
    pub(super) fn total(&self) -> u64 {
        self.log.0.total()
    }

    /// Returns everything that was printed.
    pub(super) fn long(&self) -> LongText {
        let (total, kept) = (self.total(), self.log.size());
        let newest = total.saturating_sub(NEWEST as u64).max(kept);
        LongText {
            total,
            source: Arc::clone(&self.log) as Arc<dyn ByteSource>,
            end: if kept < total {
                self.log.0.read(newest, NEWEST).bytes
            } else {
                Vec::new()
            },
        }
    }
}
