//! `read_file`: a range of lines of a text file, streamed in bounded memory.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;

use encoding_rs_io::DecodeReaderBytesBuilder;
use haft::error::ToolError;
use haft::result::ToolResult;
use haft::workspace::{FileStamp, ResolvedPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::files::charset::{Charset, CharsetScan};
use crate::files::text::{SNIFF, clip, is_binary, media_type, with_separators};
use crate::files::{FileCaller, Files};
use haft::text::{hex, visible};

/// Maximum length of a line that is shown whole, in bytes.
pub(crate) const MAX_LINE: usize = 16 * 1024;
/// Maximum text that one call holds in memory, in bytes.
const MAX_TEXT: usize = 1 << 20;

/// What `read_file` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFileInput {
    /// The file, relative to the workspace root or absolute below it.
    pub path: String,
    /// First line to return, counted from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    pub start_line: u64,
    /// The most lines to return.
    #[serde(default = "page")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_lines: u64,
}

fn first() -> u64 {
    1
}

fn page() -> u64 {
    400
}

/// What `read_file` gives besides the text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReadFileData {
    /// The file.
    pub path: String,
    /// The first line returned.
    pub start_line: u64,
    /// How many lines were returned.
    pub lines: u64,
    /// How many lines the file has.
    pub total_lines: u64,
    /// The whole file's SHA-256, hex.
    pub sha256: String,
    /// Whether more lines follow or a long line was cut.
    pub truncated: bool,
    /// The media type of a file that is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The size of a file that is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Notes about the returned text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The findings of one pass over a file.
#[derive(Default)]
struct ReadPass {
    total_lines: u64,
    /// True if the bytes so far end inside a line.
    open_line: bool,
    kept: Vec<u8>,
    lines: u64,
    full: bool,
    /// The first line that was too long.
    cut: Option<u64>,
    /// True if the current line is too long, so that the rest of it is dropped.
    cutting: bool,
}

/// A file's bytes on their way to the reader, hashed and looked at as they pass.
struct RawBytes<R> {
    from: R,
    hasher: Sha256,
    scan: CharsetScan,
}

impl<R: Read> Read for RawBytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.scan.push(&buffer[..count]);
        Ok(count)
    }
}

/// How a file's text is stored.
struct StoredAs {
    charset: Charset,
    marked: bool,
    /// Whether some bytes are not characters.
    damaged: bool,
}

/// Reads a range of lines; calls `stop` between blocks.
///
/// # Errors
/// `not_found` if nothing is there, `failed` if it is not a regular file or cannot be read, `cancelled` if `stop` says so.
pub fn read_file(
    files: &Files,
    input: &ReadFileInput,
    caller: &FileCaller,
    stop: &dyn Fn() -> bool,
) -> Result<ToolResult, ToolError> {
    let place = caller.reads(caller.view.existing(&input.path)?)?;
    let mut open = files.workspace.read(&place)?;
    let bad = |e: io::Error| ToolError::failed(format!("read {:?}: {e}", place.display()));
    let mut head = Vec::new();
    let mut first = open.file.by_ref().take(SNIFF as u64);
    first.read_to_end(&mut head).map_err(bad)?;
    let marked = Charset::by_mark(&head);
    let binary = (marked.is_none() && is_binary(&head)).then(|| media_type(&head));
    let mut raw = RawBytes {
        from: head.as_slice().chain(open.file),
        hasher: Sha256::new(),
        scan: CharsetScan::default(),
    };
    let mut pass = ReadPass::default();
    let (start, most) = match binary {
        Some(_) => (1, 0),
        None => (input.start_line, input.max_lines),
    };
    pass.run_as(marked, &mut raw, start..start.saturating_add(most), stop)
        .map_err(bad)?;
    if stop() {
        return Err(cancelled());
    }
    let sha256 = hex(&raw.hasher.finalize());
    let (run, seen) = (&caller.run, &files.seen);
    if let Some(media_type) = binary {
        let result = binary_result(&place, &open.stamp, sha256.clone(), media_type)?;
        seen.note_named(run, place.real(), open.stamp, &sha256);
        return Ok(result);
    }
    let stored = StoredAs {
        charset: marked.unwrap_or_else(|| raw.scan.charset()),
        marked: marked.is_some(),
        damaged: raw.scan.has_stray(),
    };
    let result = text_result(&place, input, &stored, pass, &sha256)?;
    // A file whose content was not returned does not count as read.
    seen.note(run, place.real(), open.stamp, &sha256);
    Ok(result)
}

pub(crate) fn cancelled() -> ToolError {
    ToolError::new(haft::error::ErrorKind::Cancelled, "the call was cancelled")
}

impl ReadPass {
    /// Reads a file with this mark, if any. The mark is no part of the first line.
    fn run_as(
        &mut self,
        marked: Option<Charset>,
        raw: &mut impl Read,
        lines: Range<u64>,
        stop: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let Some(marked) = marked else {
            return self.run(raw, lines, stop);
        };
        let mut mark = vec![0; marked.mark().len()];
        raw.read_exact(&mut mark)?;
        match marked.encoding() {
            None => self.run(raw, lines, stop),
            Some(encoding) => {
                let mut decoded = DecodeReaderBytesBuilder::new();
                decoded.encoding(Some(encoding)).bom_sniffing(false);
                self.run(&mut decoded.build(raw), lines, stop)
            }
        }
    }

    /// Counts everything, and keeps the requested lines.
    fn run(
        &mut self,
        from: &mut impl Read,
        lines: Range<u64>,
        stop: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let mut from = BufReader::with_capacity(64 * 1024, from);
        let Range { start, end } = lines;
        loop {
            let block = from.fill_buf()?;
            if block.is_empty() || stop() {
                break;
            }
            let size = block.len();
            let mut rest = block;
            // Line by line while lines are wanted; the rest is only counted.
            while !rest.is_empty() && self.total_lines + 1 < end && !self.full {
                rest = self.take_line(rest, start);
            }
            self.total_lines += memchr::memchr_iter(b'\n', rest).count() as u64;
            if let Some(last) = rest.last() {
                self.open_line = *last != b'\n';
            }
            from.consume(size);
        }
        if self.open_line {
            self.total_lines += 1;
        }
        Ok(())
    }

    /// Takes one line, or the part of it that is in the block.
    fn take_line<'a>(&mut self, block: &'a [u8], start: u64) -> &'a [u8] {
        let newline = memchr::memchr(b'\n', block);
        let (part, rest) = block.split_at(newline.map_or(block.len(), |at| at + 1));
        let number = self.total_lines + 1;
        if number >= start {
            self.keep(part, newline.is_some(), number);
        }
        if newline.is_some() {
            self.total_lines += 1;
        }
        self.open_line = newline.is_none();
        rest
    }

    fn keep(&mut self, part: &[u8], ends: bool, number: u64) {
        if !self.open_line {
            self.lines += 1;
            self.cutting = false;
        }
        let line_start = memchr::memrchr(b'\n', &self.kept).map_or(0, |at| at + 1);
        let so_far = self.kept.len() - line_start;
        let text = if ends { &part[..part.len() - 1] } else { part };
        let room = MAX_LINE.saturating_sub(so_far);
        if text.len() <= room && !self.cutting {
            self.kept.extend_from_slice(text);
        } else if !self.cutting {
            self.cut.get_or_insert(number);
            self.cutting = true;
            self.kept.extend_from_slice(clip(text, room));
        }
        if ends {
            self.kept.push(b'\n');
            self.full = self.kept.len() >= MAX_TEXT;
        }
    }
}

fn binary_result(
    place: &ResolvedPath,
    stamp: &FileStamp,
    sha256: String,
    media_type: &str,
) -> Result<ToolResult, ToolError> {
    let path = place.display();
    let size = with_separators(stamp.bytes());
    let shown = visible::path(&path);
    let text = format!("{shown} is not text: {media_type}, {size} bytes; its bytes are not shown");
    let data = ReadFileData {
        path,
        start_line: 1,
        lines: 0,
        total_lines: 0,
        sha256,
        truncated: false,
        media_type: Some(media_type.to_owned()),
        bytes: Some(stamp.bytes()),
        notes: Vec::new(),
    };
    ToolResult::text(text.clone())
        .with_summary(text)
        .with_data_for_programs(&data)
}

fn text_result(
    place: &ResolvedPath,
    input: &ReadFileInput,
    stored: &StoredAs,
    pass: ReadPass,
    sha256: &str,
) -> Result<ToolResult, ToolError> {
    let (path, total) = (place.display(), pass.total_lines);
    if input.start_line > total.max(1) {
        let message = format!("{path:?} has {} lines, no line {}", total, input.start_line);
        return Err(ToolError::invalid_arguments(message));
    }
    let mut notes = Vec::new();
    notes.extend(stored.note());
    let text = match (stored.charset, String::from_utf8(pass.kept)) {
        (_, Ok(text)) => text,
        (Charset::Windows1252, Err(error)) => Charset::Windows1252.decode_lossy(error.as_bytes()),
        (_, Err(error)) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    if let Some(line) = pass.cut {
        notes.push(format!(
            "line {line} (and perhaps later ones) is longer than {MAX_LINE} bytes and was cut"
        ));
    }
    let next = input.start_line + pass.lines;
    if next <= total {
        notes.push(format!(
            "lines {}-{} of {}; start_line={next} continues",
            input.start_line,
            next - 1,
            with_separators(total)
        ));
    }
    let noun = if total == 1 { "line" } else { "lines" };
    let total_lines = with_separators(total);
    let shown = visible::path(&path);
    let summary = format!("{shown}: {} of {total_lines} {noun}", pass.lines);
    let data = ReadFileData {
        path,
        start_line: input.start_line,
        lines: pass.lines,
        total_lines: total,
        sha256: sha256.to_owned(),
        truncated: next <= total || pass.cut.is_some(),
        media_type: None,
        bytes: None,
        notes: notes.clone(),
    };
    let result = ToolResult {
        notes,
        ..ToolResult::text(text)
    };
    result.with_summary(summary).with_data_for_programs(&data)
}

impl StoredAs {
    /// Says how the text is stored, if not as plain UTF-8.
    fn note(&self) -> Option<String> {
        let name = self.charset.name();
        match (self.charset, self.marked) {
            (Charset::Utf8, _) if self.damaged => Some(
                "some bytes are not UTF-8 and are shown as U+FFFD; the file itself is unchanged"
                    .to_owned(),
            ),
            (Charset::Utf8, false) => None,
            (Charset::Utf8, true) => Some(
                "the file begins with a byte-order mark, which is not shown; changes keep it"
                    .to_owned(),
            ),
            (Charset::Windows1252, _) => Some(format!(
                "the file is not UTF-8 and is shown as {name}; changes keep that"
            )),
            (..) => Some(format!(
                "the file is {name} with a byte-order mark; changes keep that"
            )),
        }
    }
}

/// Reads the beginning of a file, at most so many bytes.
pub(crate) fn beginning(
    files: &Files,
    place: &ResolvedPath,
    most: u64,
) -> Result<Vec<u8>, ToolError> {
    let open = files.workspace.read(place)?;
    let mut bytes = Vec::new();
    open.file.take(most).read_to_end(&mut bytes).map_err(|e| {
        ToolError::failed(format!("read {:?}: {e}", place.display())).with_source(e)
    })?;
    Ok(bytes)
}

/// Reads a whole file for an edit.
pub(crate) fn whole(
    files: &Files,
    place: &ResolvedPath,
    most: u64,
) -> Result<(Vec<u8>, FileStamp), ToolError> {
    let mut open = files.workspace.read(place)?;
    let path = place.display();
    if open.stamp.bytes() > most {
        let message = format!(
            "{path:?} has {} bytes; files of at most {} are edited",
            with_separators(open.stamp.bytes()),
            with_separators(most)
        );
        return Err(ToolError::failed(message));
    }
    let mut bytes = Vec::new();
    open.file
        .by_ref()
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|e| ToolError::failed(format!("read {path:?}: {e}")).with_source(e))?;
    Ok((bytes, open.stamp))
}
