//! Git's objects: unpacked within limits, commits and trees parsed.

use std::io::{self, Read as _};

use flate2::bufread::ZlibDecoder;
use sha1::{Digest as _, Sha1};

use super::id::{ID_BYTES, ObjectId};
use crate::command::meaning::sides::PathContent;

/// Maximum number of parents of a commit.
const MAX_PARENTS: usize = 256;

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

/// Reads a loose object: a header such as `blob 12`, a zero byte, the content.
pub(super) fn loose(content: &PathContent, most: u64) -> Option<GitObject> {
    const MAX_HEADER: u64 = 32;
    let head = inflate(content, 0, MAX_HEADER).ok()?;
    let end = head.iter().position(|byte| *byte == 0)?;
    let (word, size) = std::str::from_utf8(&head[..end]).ok()?.split_once(' ')?;
    let (kind, size) = (
        ObjectKind::of_word(word.as_bytes())?,
        size.parse::<u64>().ok()?,
    );
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

/// A commit.
#[derive(Debug, Clone)]
pub(super) struct Commit {
    pub(super) id: ObjectId,
    pub(super) tree: ObjectId,
    pub(super) parents: Vec<ObjectId>,
    /// The author: name and address.
    pub(super) author: String,
    /// Who made the commit of what the author wrote: name and address.
    pub(super) committer: String,
    /// Seconds since 1970 when it was written. A copy has the time of the original.
    pub(super) written: i64,
    /// Seconds since 1970 when it was made.
    pub(super) time: i64,
    pub(super) message: String,
}

impl Commit {
    /// Parses a commit's content.
    pub(super) fn parse(id: ObjectId, content: &[u8]) -> Option<Self> {
        let mut commit = Self {
            id,
            tree: id,
            parents: Vec::new(),
            author: String::new(),
            committer: String::new(),
            written: 0,
            time: 0,
            message: String::new(),
        };
        let mut rest = content;
        let mut has_tree = false;
        while let Some((line, after)) = next_line(rest) {
            rest = after;
            if line.is_empty() {
                break;
            }
            if let Some(hex) = line.strip_prefix(b"tree ") {
                commit.tree = ObjectId::from_hex(hex)?;
                has_tree = true;
            } else if let Some(hex) = line.strip_prefix(b"parent ") {
                commit.parents.push(ObjectId::from_hex(hex)?);
                if commit.parents.len() > MAX_PARENTS {
                    return None;
                }
            } else if let Some(who) = line.strip_prefix(b"author ") {
                (commit.author, commit.written) = who_of(who);
            } else if let Some(who) = line.strip_prefix(b"committer ") {
                (commit.committer, commit.time) = who_of(who);
            }
        }
        let message = String::from_utf8_lossy(rest);
        message.trim_end().clone_into(&mut commit.message);
        has_tree.then_some(commit)
    }

    /// Returns the first line of the message.
    pub(super) fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default().trim()
    }
}

/// Returns the name with the address, and the time.
fn who_of(line: &[u8]) -> (String, i64) {
    let text = String::from_utf8_lossy(line);
    let end = text.rfind('>').map_or(text.len(), |at| at + 1);
    let time = text[end..].split_whitespace().next();
    let time = time.and_then(|word| word.parse().ok()).unwrap_or(0);
    (text[..end].to_owned(), time)
}

/// Returns a tag's target, its kind and its message.
pub(super) fn parse_tag(content: &[u8]) -> Option<(ObjectId, ObjectKind, String)> {
    let (mut target, mut kind, mut rest) = (None, None, content);
    while let Some((line, after)) = next_line(rest) {
        rest = after;
        if line.is_empty() {
            break;
        }
        if let Some(hex) = line.strip_prefix(b"object ") {
            target = ObjectId::from_hex(hex);
        } else if let Some(word) = line.strip_prefix(b"type ") {
            kind = ObjectKind::of_word(word);
        }
    }
    let message = String::from_utf8_lossy(rest).trim_end().to_owned();
    Some((target?, kind?, message))
}

fn next_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if bytes.is_empty() {
        return None;
    }
    let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    Some((&bytes[..end], bytes.get(end + 1..).unwrap_or_default()))
}

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeEntry {
    pub(super) name: Vec<u8>,
    pub(super) mode: u32,
    pub(super) id: ObjectId,
}

impl TreeEntry {
    pub(super) fn is_folder(&self) -> bool {
        self.mode == MODE_FOLDER
    }
}

/// The mode of a folder's entry.
pub(super) const MODE_FOLDER: u32 = 0o040_000;
/// The mode of a link.
pub(super) const MODE_LINK: u32 = 0o120_000;
/// The mode of a submodule: its object is a commit of another repository.
pub(super) const MODE_SUBMODULE: u32 = 0o160_000;

/// Parses a tree's content; `None` if it is damaged or has a name that git does not allow.
pub(super) fn parse_tree(content: &[u8]) -> Option<Vec<TreeEntry>> {
    let (mut entries, mut rest) = (Vec::new(), content);
    while !rest.is_empty() {
        let space = memchr::memchr(b' ', rest.get(..8.min(rest.len()))?)?;
        let mode = std::str::from_utf8(&rest[..space]).ok()?;
        let mode = u32::from_str_radix(mode, 8).ok()?;
        rest = &rest[space + 1..];
        let end = memchr::memchr(0, rest)?;
        let (name, after) = (&rest[..end], rest.get(end + 1..)?);
        if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') {
            return None;
        }
        entries.push(TreeEntry {
            name: name.to_vec(),
            mode,
            id: ObjectId::from_bytes(after.get(..ID_BYTES)?)?,
        });
        rest = &after[ID_BYTES..];
    }
    Some(entries)
}
