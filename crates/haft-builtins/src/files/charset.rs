//! `Charset`: the character set of a text file, found by its byte-order mark or by all its bytes.

use encoding_rs::{EncoderResult, Encoding, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::files::text::is_binary;

/// The byte-order mark as a character.
pub(crate) const MARK: char = '\u{feff}';

/// A character set that the file tools read and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charset {
    /// Also for a file in which a few bytes are not UTF-8: they stay as they are.
    Utf8,
    Utf16Le,
    Utf16Be,
    /// As browsers read Latin-1, too: every byte is a character, so a file is read and written without loss.
    Windows1252,
}

impl Charset {
    /// Returns the name to show.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Windows1252 => "Windows-1252",
        }
    }

    /// Returns the byte-order mark in this character set.
    pub(crate) fn mark(self) -> &'static [u8] {
        match self {
            Self::Utf8 => b"\xef\xbb\xbf",
            Self::Utf16Le => b"\xff\xfe",
            Self::Utf16Be => b"\xfe\xff",
            Self::Windows1252 => b"",
        }
    }

    /// Returns the character set that the mark at the beginning of a file states. UTF-16 counts only if the beginning is text in it.
    pub(crate) fn by_mark(head: &[u8]) -> Option<Self> {
        if head.starts_with(Self::Utf8.mark()) {
            return Some(Self::Utf8);
        }
        let marked = [Self::Utf16Le, Self::Utf16Be]
            .into_iter()
            .find(|charset| head.starts_with(charset.mark()))?;
        let units = head[2..].chunks_exact(2).map(|pair| marked.unit(pair));
        let mut characters = char::decode_utf16(units).peekable();
        while let Some(character) = characters.next() {
            match character {
                Ok('\0') => return None,
                Ok(_) => {}
                // The beginning may end between the two halves of a character.
                Err(half) => {
                    let cut = (0xd800..0xdc00).contains(&half.unpaired_surrogate());
                    if !cut || characters.peek().is_some() {
                        return None;
                    }
                }
            }
        }
        Some(marked)
    }

    fn unit(self, pair: &[u8]) -> u16 {
        match (self, pair) {
            (Self::Utf16Be, [high, low]) => u16::from_be_bytes([*high, *low]),
            (_, [low, high]) => u16::from_le_bytes([*low, *high]),
            _ => 0,
        }
    }

    /// Returns the character set of a whole file, and whether it begins with a byte-order mark; `None` if it is not text.
    pub(crate) fn of(bytes: &[u8]) -> Option<(Self, bool)> {
        let head = &bytes[..bytes.len().min(crate::files::text::SNIFF)];
        if let Some(marked) = Self::by_mark(head) {
            return Some((marked, true));
        }
        if is_binary(bytes) {
            return None;
        }
        let mut scan = CharsetScan::default();
        scan.push(bytes);
        Some((scan.charset(), false))
    }

    /// Returns the text of bytes without their mark, as UTF-8. `None` if some of them are not characters, unless the file is UTF-8.
    pub(crate) fn decode(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let Some(encoding) = self.encoding() else {
            return Some(bytes.to_vec());
        };
        let text = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
        Some(text.into_owned().into_bytes())
    }

    /// Returns the text of bytes without their mark, with U+FFFD for what is not a character.
    pub(crate) fn decode_lossy(self, bytes: &[u8]) -> String {
        match self.encoding() {
            None => String::from_utf8_lossy(bytes).into_owned(),
            Some(encoding) => encoding.decode_without_bom_handling(bytes).0.into_owned(),
        }
    }

    /// Returns the decoder's encoding; `None` for UTF-8, which is worked on as it is.
    pub(crate) fn encoding(self) -> Option<&'static Encoding> {
        match self {
            Self::Utf8 => None,
            Self::Utf16Le => Some(UTF_16LE),
            Self::Utf16Be => Some(UTF_16BE),
            Self::Windows1252 => Some(WINDOWS_1252),
        }
    }

    /// Appends a text, which is UTF-8 unless the file is damaged UTF-8.
    ///
    /// # Errors
    /// The first character that this character set does not have.
    pub(crate) fn encode(self, text: &[u8], into: &mut Vec<u8>) -> Result<(), char> {
        let characters = |text| std::str::from_utf8(text).map_err(|_| char::REPLACEMENT_CHARACTER);
        match self {
            Self::Utf8 => into.extend_from_slice(text),
            Self::Utf16Le => {
                let units = characters(text)?.encode_utf16();
                into.extend(units.flat_map(u16::to_le_bytes));
            }
            Self::Utf16Be => {
                let units = characters(text)?.encode_utf16();
                into.extend(units.flat_map(u16::to_be_bytes));
            }
            Self::Windows1252 => {
                let text = characters(text)?;
                let mut encoder = WINDOWS_1252.new_encoder();
                // One byte for each character.
                let mut bytes = vec![0; text.len() + 16];
                let (end, _, written) =
                    encoder.encode_from_utf8_without_replacement(text, &mut bytes, true);
                if let EncoderResult::Unmappable(character) = end {
                    return Err(character);
                }
                into.extend_from_slice(&bytes[..written]);
            }
        }
        Ok(())
    }
}

/// Finds the character set of a file without a mark, block by block.
///
/// It is UTF-8 if all bytes are, or if more of its characters beyond ASCII are UTF-8 than bytes are not; otherwise Windows-1252. So a
/// file that is valid in both is UTF-8.
#[derive(Debug, Default)]
pub(crate) struct CharsetScan {
    /// The beginning of a character that the last block ended in.
    cut: Vec<u8>,
    /// Characters beyond ASCII.
    beyond: u64,
    /// Bytes that are not UTF-8.
    stray: u64,
}

impl CharsetScan {
    pub(crate) fn push(&mut self, block: &[u8]) {
        let mut rest = block;
        while !self.cut.is_empty()
            && let [next, after @ ..] = rest
        {
            let mut joined = std::mem::take(&mut self.cut);
            joined.push(*next);
            self.look(&joined);
            rest = after;
        }
        self.look(rest);
    }

    fn look(&mut self, bytes: &[u8]) {
        if bytes.is_ascii() {
            return;
        }
        for chunk in bytes.utf8_chunks() {
            let valid = chunk.valid();
            if !valid.is_ascii() {
                self.beyond += valid.chars().filter(|c| !c.is_ascii()).count() as u64;
            }
            self.stray += chunk.invalid().len() as u64;
        }
        if let Err(error) = std::str::from_utf8(ending(bytes))
            && error.error_len().is_none()
        {
            let cut = &ending(bytes)[error.valid_up_to()..];
            self.stray -= cut.len() as u64;
            self.cut = cut.to_vec();
        }
    }

    /// Returns whether some bytes are not UTF-8.
    pub(crate) fn has_stray(&self) -> bool {
        self.stray > 0 || !self.cut.is_empty()
    }

    /// Returns the character set of what was seen.
    pub(crate) fn charset(&self) -> Charset {
        let stray = self.stray + self.cut.len() as u64;
        if stray == 0 || self.beyond > stray {
            Charset::Utf8
        } else {
            Charset::Windows1252
        }
    }
}

/// Returns the last bytes, from the last one on that begins a character.
fn ending(bytes: &[u8]) -> &[u8] {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let start = tail.iter().rposition(|byte| byte & 0xc0 != 0x80);
    start.map_or(&[][..], |start| &tail[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes → the character set by all of them, and whether it has a mark.
    type CharsetRow = (&'static [u8], Option<(Charset, bool)>);

    #[test]
    fn a_mark_decides_then_utf8_then_windows_1252() {
        let rows: &[CharsetRow] = &[
            (b"", Some((Charset::Utf8, false))),
            (b"abc", Some((Charset::Utf8, false))),
            (b"\xef\xbb\xbfa", Some((Charset::Utf8, true))),
            (b"\xef\xbb\xbfa\xe9", Some((Charset::Utf8, true))),
            (b"\xff\xfea\0", Some((Charset::Utf16Le, true))),
            (b"\xfe\xff\0a", Some((Charset::Utf16Be, true))),
            // UTF-32, and what only begins like UTF-16.
            (b"\xff\xfe\0\0a\0\0\0", None),
            (b"\xff\xfe\0\xdca\0", None),
            (b"a\0b\0", None),
            // Valid in both.
            (b"caf\xc3\xa9", Some((Charset::Utf8, false))),
            (b"caf\xe9", Some((Charset::Windows1252, false))),
            (b"caf\xe9 \x93x\x94", Some((Charset::Windows1252, false))),
            // Damaged.
            ("日本 \u{e9}".as_bytes(), Some((Charset::Utf8, false))),
            (b"\xc3\xa9\xc3\xa9\xe9", Some((Charset::Utf8, false))),
            (b"\xe2\x82", Some((Charset::Windows1252, false))),
        ];
        for (bytes, expect) in rows {
            assert_eq!(Charset::of(bytes), *expect, "{bytes:?}");
        }
    }

    #[test]
    fn blocks_of_any_size_give_the_same_charset() {
        let texts: &[&[u8]] = &[
            "aé日😀z".as_bytes(),
            b"\xc3\xa9\xe9\xe9\xe2\x82a\xf0\x9f\x98",
            b"caf\xe9\xc3\xa9 \xf0\x9f\x98\x80\xff",
            b"\xe2\xe2\x82\xac\xe2\x82\xe2\x82\xac",
        ];
        for text in texts {
            let mut whole = CharsetScan::default();
            whole.push(text);
            for size in 1..text.len() {
                let mut scan = CharsetScan::default();
                text.chunks(size).for_each(|block| scan.push(block));
                let seen = |scan: &CharsetScan| (scan.beyond, scan.stray, scan.cut.clone());
                assert_eq!(seen(&scan), seen(&whole), "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn every_byte_of_windows_1252_comes_back() {
        let all: Vec<u8> = (1..=255).collect();
        let text = Charset::Windows1252.decode(&all).unwrap();
        let mut back = Vec::new();
        Charset::Windows1252.encode(&text, &mut back).unwrap();
        assert_eq!(back, all);
        let missing = Charset::Windows1252.encode("a€ю".as_bytes(), &mut back);
        assert_eq!(missing, Err('ю'));
    }
}
