//! `Source`: a file's text as the matcher gets it: never more in one go than its pattern may look at.
//!
//! The searcher looks at the line at hand and at what one read adds to it. So the bound is kept on reads, and the
//! searcher's buffer may be larger, to hold the lines around a match. The text is decoded before it is bounded: in UTF-16 a
//! byte of 10 need not end a line.

use std::fs::File;
use std::io::{self, Read};

use encoding_rs_io::{DecodeReaderBytes, DecodeReaderBytesBuilder};

use crate::search::pattern::Pattern;

/// Bytes that are decoded in one go, where a file is UTF-16.
const DECODED: usize = 8 << 10;

/// Why a file was not searched to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsearched {
    /// It cannot be read.
    Unreadable,
    /// It has a line, or more text in all, than its pattern may look at.
    TooLong,
    /// The lines around a match do not fit into memory.
    Context,
}

/// A file's text as UTF-8, bounded.
pub(super) struct Source<'a> {
    text: DecodeReaderBytes<Stopping<'a>, Vec<u8>>,
    longest: usize,
    /// Matches may span lines: the whole text is looked at in one go.
    spans: bool,
    /// Bytes read since the last end of a line, or in all.
    held: usize,
    failed: Option<Unsearched>,
}

impl<'a> Source<'a> {
    /// The text of a file for a pattern, until `over` says that the search was stopped.
    ///
    /// # Errors
    ///
    /// When the decoder cannot be built.
    pub(super) fn new(
        file: &'a File,
        pattern: &Pattern,
        over: &'a dyn Fn() -> bool,
    ) -> io::Result<Self> {
        let text = DecodeReaderBytesBuilder::new()
            .utf8_passthru(true)
            .strip_bom(true)
            .bom_override(true)
            .build_with_buffer(Stopping { file, over }, vec![0; DECODED])?;
        Ok(Self {
            text,
            longest: pattern.longest(),
            spans: pattern.spans_lines(),
            held: 0,
            failed: None,
        })
    }

    /// Why the searcher failed on this text: what it did not get from here, it had no memory for.
    pub(super) fn why(&self) -> Unsearched {
        self.failed.unwrap_or(Unsearched::Context)
    }

    fn fetch(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.text.read(buffer);
        read.inspect_err(|_| self.failed = Some(Unsearched::Unreadable))
    }
}

impl Read for Source<'_> {
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

/// A file that cannot be read further once the search was stopped.
struct Stopping<'a> {
    file: &'a File,
    over: &'a dyn Fn() -> bool,
}

impl Read for Stopping<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.over)() {
            return Err(io::Error::other("the search was stopped"));
        }
        self.file.read(buffer)
    }
}
