//! Git's objects: unpacked within limits.

use std::io::{self, Read as _};

use flate2::bufread::ZlibDecoder;
use sha1::{Digest as _, Sha1};

use super::id::ObjectId;
use crate::command::meaning::sides::PathContent;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl ObjectKind {
    fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }

    pub(super) fn of_word(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"commit" => Self::Commit,
            b"tree" => Self::Tree,
            b"blob" => Self::Blob,
            b"tag" => Self::Tag,
            _ => return None,
        })
    }
}

/// An object whose content may be too long to be read.
#[derive(Debug, Clone)]
pub(super) struct GitObject {
    pub(super) kind: ObjectKind,
    /// Its size in bytes.
    pub(super) size: u64,
    /// Its content; `None` if it is longer than was asked for.
    pub(super) content: Option<Vec<u8>>,
}

/// Reads a content from an offset on.
pub(super) struct ContentReader<'a> {
    pub(super) content: &'a PathContent,
    pub(super) at: u64,
}

impl io::Read for ContentReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read_at(bytes, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Unpacks a zlib stream that begins at an offset, up to `most` bytes.
pub(super) fn inflate(content: &PathContent, at: u64, most: u64) -> io::Result<Vec<u8>> {
    let from = io::BufReader::with_capacity(8 << 10, ContentReader { content, at });
    let mut bytes = Vec::new();
    ZlibDecoder::new(from).take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Maximum length of the header of an object that is stored alone, with the zero byte that ends it.
pub(super) const MAX_LOOSE_HEADER: usize = 32;

/// Parses the header of an object that is stored alone, such as `blob 12`, as strictly as git does.
pub(super) fn loose_header(header: &[u8]) -> Option<(ObjectKind, u64)> {
    let space = memchr::memchr(b' ', header)?;
    let (word, size) = (&header[..space], &header[space + 1..]);
    let is_number = matches!(size, [b'0'] | [b'1'..=b'9', ..]);
    let is_number = is_number && size.iter().all(u8::is_ascii_digit);
    let size = std::str::from_utf8(size).ok().filter(|_| is_number)?;
    Some((ObjectKind::of_word(word)?, size.parse().ok()?))
}

/// Reads a loose object: a header such as `blob 12`, a zero byte, the content.
pub(super) fn loose(content: &PathContent, most: u64) -> Option<GitObject> {
    let head = inflate(content, 0, MAX_LOOSE_HEADER as u64).ok()?;
    let end = memchr::memchr(0, &head)?;
    let (kind, size) = loose_header(&head[..end])?;
    if size > most {
        let content = None;
        return Some(GitObject {
            kind,
            size,
            content,
        });
    }
    let mut bytes = inflate(content, 0, end as u64 + 1 + size).ok()?;
    bytes.drain(..=end);
    (bytes.len() as u64 == size).then_some(GitObject {
        kind,
        size,
        content: Some(bytes),
    })
}

/// Returns the name of an object with this content.
pub(super) fn id_of(kind: ObjectKind, content: &[u8]) -> ObjectId {
    let mut hash = Sha1::new();
    hash.update(format!("{} {}\0", kind.word(), content.len()));
    hash.update(content);
    ObjectId(hash.finalize().into())
}
