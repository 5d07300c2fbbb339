//! The content of one side of a change, read only as far as it is shown.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use serde::Serialize;

/// Number of bytes by which a file counts as binary or as text.
const SNIFFED: usize = 8 << 10;
/// Number of bytes compared at once.
const CHUNK: usize = 64 << 10;

/// One side of a change.
#[derive(Debug)]
pub enum SideContent<'a> {
    /// Its bytes.
    Bytes(Cow<'a, [u8]>),
    /// A file, with its size in bytes.
    File(File, u64),
}

impl<'a> From<&'a [u8]> for SideContent<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for SideContent<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Cow::Owned(bytes))
    }
}

impl SideContent<'_> {
    /// Returns its size, in bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, bytes) => *bytes,
        }
    }

    /// Returns at most `most` bytes from a place on.
    pub(super) fn read(&self, from: u64, most: usize) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Self::Bytes(bytes) => {
                let from = usize::try_from(from).unwrap_or(usize::MAX).min(bytes.len());
                let to = from.saturating_add(most).min(bytes.len());
                Ok(Cow::Borrowed(&bytes[from..to]))
            }
            Self::File(file, size) => {
                let left = size.saturating_sub(from);
                let most = usize::try_from(left).unwrap_or(usize::MAX).min(most);
                let mut buffer = vec![0; most];
                let mut count = 0;
                while count < buffer.len() {
                    match file.read_at(&mut buffer[count..], from + count as u64) {
                        Ok(0) => break,
                        Ok(more) => count += more,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                buffer.truncate(count);
                Ok(Cow::Owned(buffer))
            }
        }
    }

    /// Whether it is binary: it has NUL bytes, or is mostly not UTF-8.
    pub(super) fn is_binary(&self) -> io::Result<bool> {
        let head = self.read(0, SNIFFED)?;
        let complete = head.len() as u64 == self.len();
        let (mut invalid, mut valid) = (0, 0);
        for chunk in head.utf8_chunks() {
            valid += chunk.valid().chars().count();
            invalid += chunk.invalid().len();
        }
        if !complete {
            // A character may be cut at the end.
            invalid = invalid.saturating_sub(3);
        }
        Ok(head.contains(&0) || invalid > valid)
    }
}

/// Part of one side of a change, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContentPage {
    /// The size of the whole, in bytes.
    pub bytes: u64,
    /// The text; empty for a binary file.
    pub text: String,
    /// Whether it is binary.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
    /// Whether bytes that are not UTF-8 are shown as `\xNN`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub escaped: bool,
    /// Where the next page begins, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

impl SideContent<'_> {
    /// Returns at most `most` bytes from a place on as text, up to the end of a line if there is one.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn page(&self, from: u64, most: usize) -> io::Result<ContentPage> {
        let (bytes, binary) = (self.len(), self.is_binary()?);
        let mut page = ContentPage {
            bytes,
            text: String::new(),
            binary,
            escaped: false,
            next: None,
        };
        if !binary {
            let read = self.read(from, most.saturating_add(1))?;
            let part = cut(&read, most);
            (page.text, page.escaped) = to_text(part);
            page.next = (part.len() < read.len()).then_some(from + part.len() as u64);
        }
        Ok(page)
    }
}

/// Where two contents begin to differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FirstDifference {
    /// Where the first line that differs begins.
    pub(super) line_start: u64,
    /// The number of lines before it.
    pub(super) lines: u64,
}

/// Looks for the first difference within `most` bytes; counts what it read. `None` if there is none.
pub(super) fn first_difference(
    before: &SideContent<'_>,
    after: &SideContent<'_>,
    most: u64,
    read: &mut u64,
) -> io::Result<Option<FirstDifference>> {
    let (mut at, mut line_start, mut lines) = (0, 0, 0);
    while at < most {
        let (was, is) = (before.read(at, CHUNK)?, after.read(at, CHUNK)?);
        *read += (was.len() + is.len()) as u64;
        let same = was
            .iter()
            .zip(&*is)
            .take_while(|(was, is)| was == is)
            .count();
        let common = &was[..same];
        if let Some(last) = common.iter().rposition(|byte| *byte == b'\n') {
            line_start = at + last as u64 + 1;
            lines += memchr::memchr_iter(b'\n', common).count() as u64;
        }
        if same < was.len().max(is.len()) {
            return Ok(Some(FirstDifference { line_start, lines }));
        }
        if was.is_empty() {
            return Ok(None);
        }
        at += was.len() as u64;
    }
    Ok(None)
}

/// Returns bytes as text; those that are not UTF-8 become `\xNN`. Also returns whether there are any.
pub(super) fn to_text(bytes: &[u8]) -> (String, bool) {
    let mut text = String::with_capacity(bytes.len());
    let mut escaped = false;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            escaped = true;
            // Writing to a string does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    (text, escaped)
}

/// Returns the longest start of `bytes` that is at most `most` bytes long and does not end within a character; at the end of a line if
/// there is one in its second half.
pub(super) fn cut(bytes: &[u8], most: usize) -> &[u8] {
    if bytes.len() <= most {
        return bytes;
    }
    let mut end = most;
    // A byte of the form 10xxxxxx continues a character, which has at most four bytes.
    while end > 0 && most - end < 4 && bytes[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    let line = bytes[..end].iter().rposition(|byte| *byte == b'\n');
    match line {
        Some(line) if line + 1 > most / 2 => &bytes[..=line],
        _ => &bytes[..end],
    }
}

#[cfg(test)]
mod tests {
    use super::{FirstDifference, SideContent, cut, first_difference, to_text};

    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        for (bytes, text, escaped) in [
            (&b"plain\n"[..], "plain\n", false),
            (b"caf\xe9\n", "caf\\xe9\n", true),
            (b"\xf0\x9f", "\\xf0\\x9f", true),
            ("ü".as_bytes(), "ü", false),
        ] {
            assert_eq!(to_text(bytes), (text.to_owned(), escaped));
        }
    }

    #[test]
    fn content_is_binary_if_it_has_nul_bytes_or_is_mostly_no_text() {
        let long = [&b"x".repeat((8 << 10) - 1), "ü".as_bytes()].concat();
        for (bytes, expect) in [
            (&b"text"[..], false),
            (b"", false),
            (b"one caf\xe9", false),
            (b"a\0b", true),
            (b"\xff", true),
            (b"\xff\xfe\xfda", true),
            (&long, false),
        ] {
            assert_eq!(
                SideContent::from(bytes).is_binary().unwrap(),
                expect,
                "{bytes:.20?}"
            );
        }
    }

    #[test]
    fn a_cut_ends_between_characters_and_lines() {
        assert_eq!(cut("aü".as_bytes(), 2), b"a");
        assert_eq!(cut(b"aaa\nbbb", 5), b"aaa\n");
        assert_eq!(cut(b"a\nbbbbbb", 6), b"a\nbbbb");
        assert_eq!(cut(b"abc", 3), b"abc");
    }

    #[test]
    fn the_first_difference_is_found_within_the_limit() {
        let same = "line\n".repeat(40_000);
        let (was, is) = (format!("{same}x\n"), format!("{same}y\n"));
        let find = |was: &str, is: &str, most| {
            let (was, is) = (
                SideContent::from(was.as_bytes()),
                SideContent::from(is.as_bytes()),
            );
            first_difference(&was, &is, most, &mut 0).unwrap()
        };
        let expect = FirstDifference {
            line_start: 200_000,
            lines: 40_000,
        };
        assert_eq!(find(&was, &is, 1 << 20), Some(expect));
        assert_eq!(find(&was, &is, 100), None);
        assert_eq!(find(&was, &was, 1 << 20), None);
        assert_eq!(find(&same, &is, 1 << 20), Some(expect));
    }
}
