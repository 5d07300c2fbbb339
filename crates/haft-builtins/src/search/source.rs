//! `SearchText`: a file's text for the matcher, never more at once than its pattern may process.
//!
//! The searcher processes the current line together with what one read adds to it. So the limit applies to reads, and the
//! searcher's buffer may be larger, to hold the lines around a match. The text is decoded before it is limited: in UTF-16, a
//! byte of value 10 need not end a line.

use std::fs::File;
use std::io::{self, Read};

use encoding_rs_io::{DecodeReaderBytes, DecodeReaderBytesBuilder};

use crate::search::pattern::SearchPattern;

/// Bytes decoded at once if a file is UTF-16.
const DECODE_BYTES: usize = 8 << 10;

/// The reason why a file was not searched completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsearched {
    /// The file cannot be read.
    Unreadable,
    /// A line, or the text as a whole, is longer than the pattern may process.
    TooLong,
    /// The lines around a match do not fit into memory.
    Context,
}

/// A file's text as UTF-8, with a limit.
pub(super) struct SearchText<'a> {
    text: DecodeReaderBytes<StoppableFile<'a>, Vec<u8>>,
    longest: usize,
    /// True if matches may span lines, so that the whole text is processed at once.
    spans: bool,
    /// Bytes read since the last end of a line, or in total.
    held: usize,
    failed: Option<Unsearched>,
}

impl<'a> SearchText<'a> {
    /// Creates the source of a file's text for a pattern. Reading stops when `is_stopped` returns true.
    ///
    /// # Errors
    ///
    /// If the decoder cannot be built.
    pub(super) fn new(
        file: &'a File,
        pattern: &SearchPattern,
        is_stopped: &'a dyn Fn() -> bool,
    ) -> io::Result<Self> {
        let text = DecodeReaderBytesBuilder::new()
            .utf8_passthru(true)
            .strip_bom(true)
            .bom_override(true)
            .build_with_buffer(StoppableFile { file, is_stopped }, vec![0; DECODE_BYTES])?;
        Ok(Self {
            text,
            longest: pattern.longest(),
            spans: pattern.spans_lines(),
            held: 0,
            failed: None,
        })
    }

    /// Returns why the searcher failed on this text. If the source did not fail, the searcher ran out of memory.
    pub(super) fn why(&self) -> Unsearched {
        self.failed.unwrap_or(Unsearched::Context)
    }

    fn fetch(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.text.read(buffer);
        read.inspect_err(|_| self.failed = Some(Unsearched::Unreadable))
    }
}

impl Read for SearchText<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = self.longest - self.held;
        if room == 0 {
            if self.fetch(&mut [0])? == 0 {
                return Ok(0);
            }
            self.failed = Some(Unsearched::TooLong);
            return Err(io::Error::other("more than the pattern may look at"));
        }
        let most = buffer.len().min(room);
        let read = self.fetch(&mut buffer[..most])?;
        let end = memchr::memrchr(b'\n', &buffer[..read]).filter(|_| !self.spans);
        self.held = end.map_or(self.held + read, |at| read - at - 1);
        Ok(read)
    }
}

/// A file whose reads fail once the search is stopped.
struct StoppableFile<'a> {
    file: &'a File,
    is_stopped: &'a dyn Fn() -> bool,
}

impl Read for StoppableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.is_stopped)() {
            return Err(io::Error::other("the search was stopped"));
        }
        self.file.read(buffer)
    }
}
