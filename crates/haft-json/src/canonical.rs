//! The canonical form of JSON text (RFC 8785), and the digest of a call's arguments over it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::hex::hex;

mod number;
#[cfg(test)]
mod tests;

/// Deepest nesting: twice what admission lets through, so that only text that no door accepts is refused here.
const DEPTH: usize = 128;

/// Why a text has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("canonical JSON: {what} at byte {at}")]
pub struct CanonicalError {
    what: &'static str,
    at: usize,
}

/// SHA-256, in hex, of the canonical form of a call's arguments; empty text stands for `{}`.
///
/// Text that is no strict JSON, of a call that was refused for it, is digested as it is.
pub fn args_digest(arguments: &str) -> String {
    let text = if arguments.trim_ascii().is_empty() {
        "{}"
    } else {
        arguments
    };
    match canonical(text) {
        Ok(canonical) => hex(&Sha256::digest(canonical.as_bytes())),
        Err(_) => hex(&Sha256::digest(text.as_bytes())),
    }
}

/// The same digest of the arguments without these members.
pub fn args_digest_without(arguments: &str, names: &[&str]) -> String {
    let members = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(arguments);
    let Ok(mut members) = members else {
        return args_digest(arguments);
    };
    members.retain(|name, _| !names.contains(&name.as_str()));
    args_digest(&serde_json::to_string(&members).unwrap_or_else(|_| arguments.to_owned()))
}

/// The canonical form: no spaces, members sorted by UTF-16 units, numbers as ECMAScript prints them.
///
/// One thing is ours: an integer that a double cannot hold keeps its digits, where RFC 8785 would round it.
/// Duplicate members, lone surrogates and more than 128 levels are errors.
pub fn canonical(text: &str) -> Result<String, CanonicalError> {
    let mut reader = Reader {
        text,
        at: 0,
        out: String::with_capacity(text.len()),
    };
    reader.value(DEPTH)?;
    reader.space();
    if reader.at < text.len() {
        return Err(reader.error("text after the value"));
    }
    Ok(reader.out)
}

/// Reads text and writes its canonical form behind itself.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    out: String,
}

/// A member written at the end of `out`: its name unescaped, and where it stands.
struct Member<'a> {
    name: Cow<'a, str>,
    place: Range<usize>,
}

impl<'a> Reader<'a> {
    fn error(&self, what: &'static str) -> CanonicalError {
        CanonicalError { what, at: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes this byte, after space, if it is next.
    fn take(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), CanonicalError> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.error(what))
        }
    }

    fn value(&mut self, depth: usize) -> Result<(), CanonicalError> {
        self.space();
        match self.peek() {
            Some(b'{' | b'[') if depth == 0 => Err(self.error("nested too deep")),
            Some(b'{') => self.object(depth - 1),
            Some(b'[') => self.array(depth - 1),
            Some(b'"') => {
                let text = self.string()?;
                write_string(&mut self.out, &text);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => Err(self.error("no value")),
        }
    }

    fn word(&mut self, word: &'static str) -> Result<(), CanonicalError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("no value"));
        }
        self.at += word.len();
        self.out.push_str(word);
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<(), CanonicalError> {
        self.at += 1;
        self.out.push('[');
        if !self.take(b']') {
            loop {
                self.value(depth)?;
                if !self.take(b',') {
                    break;
                }
                self.out.push(',');
            }
            self.expect(b']', "no comma or closing bracket")?;
        }
        self.out.push(']');
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), CanonicalError> {
        self.at += 1;
        self.out.push('{');
        let start = self.out.len();
        let mut members: Vec<Member<'a>> = Vec::new();
        if !self.take(b'}') {
            loop {
                self.space();
                if self.peek() != Some(b'"') {
                    return Err(self.error("no member name"));
                }
                members.push(self.member(depth)?);
                if !self.take(b',') {
                    break;
                }
                self.out.push(',');
            }
            self.expect(b'}', "no comma or closing brace")?;
        }
        self.sort(start, members)?;
        self.out.push('}');
        Ok(())
    }

    fn member(&mut self, depth: usize) -> Result<Member<'a>, CanonicalError> {
        let name = self.string()?;
        let start = self.out.len();
        write_string(&mut self.out, &name);
        self.expect(b':', "no colon")?;
        self.out.push(':');
        self.value(depth)?;
        let place = start..self.out.len();
        Ok(Member { name, place })
    }

    /// Puts the members written since `start` into order.
    fn sort(&mut self, start: usize, mut members: Vec<Member<'a>>) -> Result<(), CanonicalError> {
        let less = |a: &str, b: &str| a.encode_utf16().lt(b.encode_utf16());
        if !members.windows(2).all(|w| less(&w[0].name, &w[1].name)) {
            members.sort_by(|a, b| a.name.encode_utf16().cmp(b.name.encode_utf16()));
            if members.windows(2).any(|w| w[0].name == w[1].name) {
                return Err(self.error("a member twice before"));
            }
            let sorted: Vec<&str> = members.iter().map(|m| &self.out[m.place.clone()]).collect();
            let sorted = sorted.join(",");
            self.out.truncate(start);
            self.out.push_str(&sorted);
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), CanonicalError> {
        let rest = &self.text.as_bytes()[self.at..];
        let Some((length, integer)) = number::scan(rest) else {
            return Err(self.error("a malformed number"));
        };
        let literal = &self.text[self.at..self.at + length];
        self.at += length;
        number::write(&mut self.out, literal, integer);
        Ok(())
    }

    /// Reads the string at the cursor, unescaped.
    fn string(&mut self) -> Result<Cow<'a, str>, CanonicalError> {
        self.at += 1;
        let start = self.at;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let plain = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(Cow::Borrowed(plain));
                }
                Some(b'\\') => return self.escaped(start).map(Cow::Owned),
                Some(byte) if byte >= 0x20 => self.at += 1,
                Some(_) => return Err(self.error("a control character in a string")),
                None => return Err(self.error("an open string")),
            }
        }
    }

    /// The rest of a string from its first escape on.
    fn escaped(&mut self, start: usize) -> Result<String, CanonicalError> {
        let mut text = self.text[start..self.at].to_owned();
        loop {
            let from = self.at;
            while self
                .peek()
                .is_some_and(|b| b >= 0x20 && b != b'"' && b != b'\\')
            {
                self.at += 1;
            }
            text.push_str(&self.text[from..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.error("a control character in a string")),
                None => return Err(self.error("an open string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, CanonicalError> {
        self.at += 1;
        let escaped = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.error("an unknown escape")),
        };
        self.at += 1;
        Ok(escaped)
    }

    fn unicode(&mut self) -> Result<char, CanonicalError> {
        let first = self.unit()?;
        let code = match first {
            0xd800..=0xdbff => {
                let rest = &self.text.as_bytes()[self.at..];
                let second = if rest.starts_with(b"\\u") {
                    self.at += 1;
                    self.unit()?
                } else {
                    0
                };
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(self.error("a lone surrogate"));
                }
                0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.error("a lone surrogate"))
    }

    /// Reads `uXXXX`.
    fn unit(&mut self) -> Result<u32, CanonicalError> {
        let digits = self.text.get(self.at + 1..self.at + 5);
        let unit = digits
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|d| u32::from_str_radix(d, 16).ok());
        let unit = unit.ok_or_else(|| self.error("an unknown escape"))?;
        self.at += 5;
        Ok(unit)
    }
}

/// Writes a string with the few escapes of RFC 8785 §3.2.2.2.
fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut done = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            0x09 => "\\t",
            0x0a => "\\n",
            0x0c => "\\f",
            0x0d => "\\r",
            0x00..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[done..at]);
        done = at + 1;
        if escape.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            out.push_str(escape);
        }
    }
    out.push_str(&text[done..]);
    out.push('"');
}
