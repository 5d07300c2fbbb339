//! `StoredText`: an existing file's bytes and its text as the tools work on it. What is written keeps the file's character set,
//! byte-order mark and line endings.

use haft::error::ToolError;

use crate::files::charset::{Charset, MARK};
use crate::files::lines::{LineEnding, keep_endings, usual_in};

/// The bytes of a text file, and its text.
#[derive(Debug, Clone)]
pub(crate) struct StoredText {
    /// The file's bytes.
    pub(crate) bytes: Vec<u8>,
    charset: Charset,
    marked: bool,
    /// The text if it is not a part of the bytes.
    decoded: Option<Vec<u8>>,
}

impl StoredText {
    /// Reads the text of a file. What is not text is taken byte for byte.
    ///
    /// # Errors
    /// `failed` if the text could not be written back without loss.
    pub(crate) fn read(path: &str, bytes: Vec<u8>) -> Result<Self, ToolError> {
        let (charset, marked) = Charset::of(&bytes).unwrap_or((Charset::Utf8, false));
        let body = &bytes[if marked { charset.mark().len() } else { 0 }..];
        let decoded = match charset {
            Charset::Utf8 => None,
            _ => Some(
                charset
                    .decode(body)
                    .ok_or_else(|| undecodable(path, charset))?,
            ),
        };
        Ok(Self {
            bytes,
            charset,
            marked,
            decoded,
        })
    }

    /// Reads the text of a file that is replaced as a whole: what cannot be decoded is lost anyway.
    pub(crate) fn read_to_replace(bytes: Vec<u8>) -> Self {
        let (charset, marked) = Charset::of(&bytes).unwrap_or((Charset::Utf8, false));
        let body = &bytes[if marked { charset.mark().len() } else { 0 }..];
        let decoded = (charset != Charset::Utf8).then(|| charset.decode_lossy(body).into_bytes());
        Self {
            bytes,
            charset,
            marked,
            decoded,
        }
    }

    /// A new file in UTF-8.
    pub(crate) fn new(text: Vec<u8>) -> Self {
        Self {
            bytes: text,
            charset: Charset::Utf8,
            marked: false,
            decoded: None,
        }
    }

    /// Returns the text, without the byte-order mark; UTF-8 unless the file is damaged.
    pub(crate) fn text(&self) -> &[u8] {
        match &self.decoded {
            Some(text) => text,
            None if self.marked => &self.bytes[self.charset.mark().len()..],
            None => &self.bytes,
        }
    }

    /// Whether it begins with a byte-order mark.
    pub(crate) fn is_marked(&self) -> bool {
        self.marked
    }

    /// Returns the bytes to parse: the text, or the file's bytes if the formats that are parsed do not allow its character set.
    pub(crate) fn parsed(&self) -> &[u8] {
        match self.charset {
            Charset::Windows1252 => &self.bytes,
            _ => self.text(),
        }
    }

    /// Returns the file with another text.
    ///
    /// # Errors
    /// `failed` if the file's character set lacks one of its characters.
    pub(crate) fn with_text(&self, path: &str, text: Vec<u8>) -> Result<Self, ToolError> {
        if self.charset == Charset::Utf8 && !self.marked {
            return Ok(Self::new(text));
        }
        let mut bytes = if self.marked {
            self.charset.mark().to_vec()
        } else {
            Vec::new()
        };
        self.charset
            .encode(&text, &mut bytes)
            .map_err(|character| unencodable(path, self.charset, &text, character))?;
        Ok(Self {
            bytes,
            charset: self.charset,
            marked: self.marked,
            decoded: (self.charset != Charset::Utf8).then_some(text),
        })
    }

    /// Returns the file with a whole new text, whose lines end as the file's lines do unless it shows CR LF itself. A byte-order mark
    /// in front of it is the file's.
    ///
    /// # Errors
    /// `failed` if the file's character set lacks one of its characters.
    pub(crate) fn replaced(&self, path: &str, text: &str) -> Result<Self, ToolError> {
        let Some(bare) = text.strip_prefix(MARK) else {
            let usual = usual_in(self.text());
            let text = keep_endings(self.text(), text.as_bytes(), usual).into_owned();
            return self.with_text(path, text);
        };
        let marked = Self {
            bytes: self.bytes.clone(),
            charset: self.charset,
            marked: self.charset != Charset::Windows1252,
            decoded: self.decoded.clone().or_else(|| Some(self.text().to_vec())),
        };
        marked.replaced(path, bare)
    }

    /// Returns the file with a text added at its end.
    ///
    /// # Errors
    /// `failed` if the file's character set lacks one of its characters.
    pub(crate) fn extended(&self, path: &str, more: &str) -> Result<Self, ToolError> {
        let usual = usual_in(self.text());
        let more = keep_endings(b"", more.as_bytes(), usual);
        let mut bytes = self.bytes.clone();
        self.charset
            .encode(&more, &mut bytes)
            .map_err(|character| unencodable(path, self.charset, &more, character))?;
        let decoded = self.decoded.as_ref().map(|text| [text, &*more].concat());
        Ok(Self {
            bytes,
            charset: self.charset,
            marked: self.marked,
            decoded,
        })
    }

    /// Says what was kept that is not what a new file would have; `None` if nothing was.
    pub(crate) fn encoding_note(&self) -> Option<String> {
        let mut kept = Vec::new();
        if self.charset != Charset::Utf8 {
            kept.push(self.charset.name());
        }
        if self.marked {
            kept.push("byte-order mark");
        }
        if usual_in(self.text()) == LineEnding::CrLf {
            kept.push("CR LF");
        }
        (!kept.is_empty()).then(|| kept.join(", "))
    }
}

fn undecodable(path: &str, charset: Charset) -> ToolError {
    let name = charset.name();
    ToolError::failed(format!(
        "{path:?} begins as {name}, but some of its bytes are not characters in it"
    ))
    .with_advice("parts of it cannot be changed without loss: replace the whole file with write_file, or change it with a command")
}

/// Returns the error for a character that the file's character set does not have.
fn unencodable(path: &str, charset: Charset, text: &[u8], character: char) -> ToolError {
    let (name, code) = (charset.name(), u32::from(character));
    let mut buffer = [0; 4];
    let needle = character.encode_utf8(&mut buffer).as_bytes();
    let at = memchr::memmem::find(text, needle).unwrap_or(0);
    let line = memchr::memchr_iter(b'\n', &text[..at]).count() + 1;
    let message = format!(
        "{path:?} is {name}, which has no character {character:?} (U+{code:04X}, line {line} of the new text); nothing was written"
    );
    ToolError::failed(message).with_advice(format!(
        "write that character in another way (an escape, or ASCII), or convert the file to UTF-8 first: iconv -f {name} -t UTF-8"
    ))
}
