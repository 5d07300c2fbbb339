//! The canonical form of JSON text (RFC 8785), and the digest of a call's arguments over it.
//!
//! ```
//! use haft_json::canonical::{args_digest, canonical};
//!
//! assert_eq!(canonical(r#"{"b": 1.0, "a": "\u0041"}"#)?, r#"{"a":"A","b":1}"#);
//! assert_eq!(args_digest(r#"{"b": 1.0}"#), args_digest(r#" {"b":1} "#));
//! # Ok::<(), haft_json::scan::ScanError>(())
//! ```

use std::borrow::Cow;
use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::escape;
use crate::hex::hex;
use crate::keys;
use crate::lexer::{Fault, LexError, Lexer, MAX_DEPTH, Span};
use crate::scan::{self, ScanError};

mod number;
#[cfg(test)]
mod tests;

/// Returns the SHA-256, in hex, of the canonical form of a call's arguments; empty text counts as `{}`.
///
/// Text that the strict scan refuses has no canonical form and is digested as it is.
pub fn args_digest(arguments: &str) -> String {
    let text = if arguments.trim_ascii().is_empty() {
        "{}"
    } else {
        arguments
    };
    match write(text, &[]) {
        Ok(canonical) => hex(&Sha256::digest(canonical)),
        Err(_) => hex(&Sha256::digest(text)),
    }
}

/// Returns the same digest without the members with these names.
pub fn args_digest_without(arguments: &str, names: &[&str]) -> String {
    // Omitted members must be valid and unique too: the scan checks what is not written.
    if scan::scan_object(arguments).is_err() {
        return args_digest(arguments);
    }
    match write(arguments, names) {
        Ok(canonical) => hex(&Sha256::digest(canonical)),
        Err(_) => args_digest(arguments),
    }
}

/// Returns the canonical form: no white space, members sorted by UTF-16 units, numbers as ECMAScript prints them.
///
/// It differs from RFC 8785 in one point: an integer that a double cannot represent keeps its digits instead of being rounded.
///
/// # Errors
///
/// Those of [`scan`](scan::scan): exactly the texts that the strict scan accepts have a canonical form.
pub fn canonical(text: &str) -> Result<String, ScanError> {
    let canonical = write(text, &[])?;
    // Only pieces of a `str` and ASCII were written.
    Ok(String::from_utf8(canonical).unwrap_or_default())
}

/// Returns the canonical form as bytes, without top-level members of these names.
fn write(text: &str, without: &[&str]) -> Result<Vec<u8>, ScanError> {
    let mut writer = CanonicalWriter {
        lexer: Lexer::new(text),
        out: Vec::with_capacity(text.len()),
        without,
    };
    let written = writer.value(0).and_then(|()| writer.lexer.finish());
    match written {
        Ok(()) => Ok(writer.out),
        // The scan finds the first fault; this walk finds a duplicate key only at the end of its object.
        Err(error) => Err(scan::scan(text)
            .err()
            .unwrap_or_else(|| ScanError::new(text, error))),
    }
}

/// Reads a text and writes its canonical form.
struct CanonicalWriter<'t, 'n> {
    lexer: Lexer<'t>,
    out: Vec<u8>,
    without: &'n [&'n str],
}

/// A member written to `out`: its unescaped name, and its position in the text and in `out`.
struct CanonicalMember<'t> {
    name: Cow<'t, str>,
    key: Span,
    place: Range<usize>,
}

impl<'t> CanonicalWriter<'t, '_> {
    /// Writes one value at `depth` open levels. Its recursion is bounded by [`MAX_DEPTH`].
    fn value(&mut self, depth: usize) -> Result<(), LexError> {
        match self.lexer.peek() {
            b'{' | b'[' if depth == MAX_DEPTH => self.lexer.stop(Fault::TooDeep),
            b'{' => self.object(depth + 1),
            b'[' => self.array(depth + 1),
            b'"' => {
                let span = self.lexer.string()?;
                self.string(span);
                Ok(())
            }
            b'-' | b'0'..=b'9' => {
                let number = self.lexer.number()?;
                let literal = self.lexer.text().get(number.start..number.end);
                number::write(&mut self.out, literal.unwrap_or_default(), number);
                Ok(())
            }
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.lexer.stop(Fault::Expected("a value")),
        }
    }

    fn word(&mut self, word: &'static str) -> Result<(), LexError> {
        self.lexer.literal(word)?;
        self.out.extend_from_slice(word.as_bytes());
        Ok(())
    }

    /// Writes a string with the few escapes of RFC 8785 §3.2.2.2, and returns it unescaped.
    fn string(&mut self, span: Span) -> Cow<'t, str> {
        if span.escaped {
            let text = self.lexer.unescape(span);
            escape::string(&mut self.out, &text);
            return Cow::Owned(text);
        }
        // The lexer accepts no unescaped character that the canonical form escapes.
        self.out.push(b'"');
        self.out.extend_from_slice(self.lexer.raw(span));
        self.out.push(b'"');
        let text = self.lexer.text().get(span.start..span.end);
        Cow::Borrowed(text.unwrap_or_default())
    }

    fn array(&mut self, depth: usize) -> Result<(), LexError> {
        self.lexer.at += 1;
        self.out.push(b'[');
        if self.lexer.peek() == b']' {
            self.lexer.at += 1;
        } else {
            self.value(depth)?;
            while self.next_or_end(b']', "a comma or ]")? {
                self.out.push(b',');
                self.value(depth)?;
            }
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), LexError> {
        self.lexer.at += 1;
        self.out.push(b'{');
        let start = self.out.len();
        let mut members = Vec::new();
        if self.lexer.peek() == b'}' {
            self.lexer.at += 1;
        } else {
            self.member(depth, &mut members)?;
            while self.next_or_end(b'}', "a comma or }")? {
                self.member(depth, &mut members)?;
            }
        }
        self.sort(start, members)?;
        self.out.push(b'}');
        Ok(())
    }

    /// Takes a comma, after which another value follows, or the byte that ends an object or array.
    fn next_or_end(&mut self, end: u8, expected: &'static str) -> Result<bool, LexError> {
        let byte = self.lexer.peek();
        if byte != b',' && byte != end {
            return self.lexer.stop(Fault::Expected(expected));
        }
        self.lexer.at += 1;
        Ok(byte == b',')
    }

    fn member(
        &mut self,
        depth: usize,
        members: &mut Vec<CanonicalMember<'t>>,
    ) -> Result<(), LexError> {
        let before = self.out.len();
        if !members.is_empty() {
            self.out.push(b',');
        }
        let key = self.lexer.key()?;
        let start = self.out.len();
        let name = self.string(key);
        self.out.push(b':');
        self.value(depth)?;
        if depth == 1 && self.without.contains(&&*name) {
            self.out.truncate(before);
            return Ok(());
        }
        let place = start..self.out.len();
        members.push(CanonicalMember { name, key, place });
        Ok(())
    }

    /// Sorts the members written since `start`.
    fn sort(
        &mut self,
        start: usize,
        mut members: Vec<CanonicalMember<'t>>,
    ) -> Result<(), LexError> {
        let is_sorted = |pair: &[CanonicalMember<'_>]| match pair {
            [a, b] => order(&a.name, &b.name).is_lt(),
            _ => true,
        };
        if members.windows(2).all(is_sorted) {
            return Ok(());
        }
        members.sort_by(|a, b| order(&a.name, &b.name));
        let twin = members.windows(2).find_map(|pair| match pair {
            [a, b] if a.name == b.name => Some(b.key),
            _ => None,
        });
        if let Some(key) = twin {
            return Err(keys::duplicate(key));
        }
        let mut sorted = Vec::with_capacity(self.out.len() - start);
        for member in members {
            if !sorted.is_empty() {
                sorted.push(b',');
            }
            sorted.extend_from_slice(self.out.get(member.place).unwrap_or_default());
        }
        self.out.truncate(start);
        self.out.append(&mut sorted);
        Ok(())
    }
}

/// Compares two names by their UTF-16 units, which for characters below U+E000 is the order of their bytes.
fn order(a: &str, b: &str) -> std::cmp::Ordering {
    if a.is_ascii() && b.is_ascii() {
        return a.cmp(b);
    }
    a.encode_utf16().cmp(b.encode_utf16())
}
