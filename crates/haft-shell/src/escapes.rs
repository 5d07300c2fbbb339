//! Texts with their own backslash escapes: `$'…'` and backticks.

use std::iter::Peekable;
use std::str::Chars;

use crate::error::ParseError;

/// Returns the commands between backticks, without the backslashes before `$`, a backtick or a backslash.
pub(crate) fn unescaped(body: &str) -> String {
    let mut text = String::with_capacity(body.len());
    let mut chars = body.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = (c == '\\')
            .then(|| chars.next_if(|n| matches!(n, '$' | '`' | '\\')))
            .flatten();
        text.push(escaped.unwrap_or(c));
    }
    text
}

/// Decodes the inside of `$'…'`. Rejects non-UTF-8 bytes, NUL and rare escapes unless `tolerant`.
pub(crate) fn ansi_c(body: &str, tolerant: bool) -> Result<String, ParseError> {
    let refuse = |why| {
        if tolerant {
            return Ok(());
        }
        Err(ParseError::Syntax(why))
    };
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\\' {
            push(&mut bytes, c);
            continue;
        }
        let Some(kind) = rest.next() else { break };
        match escape(kind, &mut rest) {
            // Bash ends the text at a NUL and ignores the rest.
            Some(Escape::Byte(0) | Escape::Letter('\0')) => {
                refuse("an escape of $'…' that is not known")?;
                break;
            }
            Some(Escape::Byte(byte)) => bytes.push(byte),
            Some(Escape::Letter(letter)) => push(&mut bytes, letter),
            // `\c`, and escapes that bash leaves as they are: rare enough to ask about.
            None => {
                refuse("an escape of $'…' that is not known")?;
                bytes.push(b'\\');
                push(&mut bytes, kind);
            }
        }
    }
    String::from_utf8(bytes).or_else(|error| {
        refuse("$'…' holds bytes that are not text")?;
        Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
    })
}

/// What an escape stands for: a byte as it is (`\n`, `\x41`, `\101`), or a character, written in UTF-8 (`\u00e9`).
enum Escape {
    Byte(u8),
    Letter(char),
}

/// Reads the escape that begins with `kind`, after the backslash. Returns `None` for an unknown escape.
fn escape(kind: char, rest: &mut Peekable<Chars<'_>>) -> Option<Escape> {
    let mut number = |first: &str, most: usize, radix: u32| {
        let mut digits = first.to_owned();
        for _ in 0..most {
            digits.extend(rest.next_if(|c| c.is_digit(radix)));
        }
        u32::from_str_radix(&digits, radix).ok()
    };
    let byte = match kind {
        'n' => b'\n',
        't' => b'\t',
        'r' => b'\r',
        'a' => 7,
        'b' => 8,
        'e' | 'E' => 27,
        'f' => 12,
        'v' => 11,
        '\\' | '\'' | '"' | '?' => return Some(Escape::Letter(kind)),
        'x' => u8::try_from(number("", 2, 16)?).ok()?,
        '0'..='7' => u8::try_from(number(kind.encode_utf8(&mut [0; 4]), 2, 8)?).ok()?,
        'u' => return char::from_u32(number("", 4, 16)?).map(Escape::Letter),
        'U' => return char::from_u32(number("", 8, 16)?).map(Escape::Letter),
        _ => return None,
    };
    Some(Escape::Byte(byte))
}

fn push(bytes: &mut Vec<u8>, c: char) {
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}
