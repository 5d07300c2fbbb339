//! Texts in which backslashes mean something of their own: `$'…'` and backticks.

use crate::error::ParseError;

/// The commands between backticks: a backslash before `$`, a backtick or a backslash is taken away.
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

/// The inside of `$'…'`. What it says in bytes that are no UTF-8 is not taken apart.
pub(crate) fn ansi_c(body: &str) -> Result<String, ParseError> {
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body.chars().peekable();
    let push = |bytes: &mut Vec<u8>, c: char| {
        bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    };
    while let Some(c) = rest.next() {
        if c != '\\' {
            push(&mut bytes, c);
            continue;
        }
        let Some(kind) = rest.next() else { break };
        let mut number = |first: &str, most: usize, radix: u32| {
            let mut digits = first.to_owned();
            for _ in 0..most {
                digits.extend(rest.next_if(|c| c.is_digit(radix)));
            }
            u32::from_str_radix(&digits, radix).ok()
        };
        match kind {
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            'r' => bytes.push(b'\r'),
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'e' | 'E' => bytes.push(27),
            'f' => bytes.push(12),
            'v' => bytes.push(11),
            '\\' | '\'' | '"' | '?' => push(&mut bytes, kind),
            'x' => bytes.push(byte(number("", 2, 16))?),
            '0'..='7' => bytes.push(byte(number(kind.encode_utf8(&mut [0; 4]), 2, 8))?),
            'u' | 'U' => {
                let most = if kind == 'u' { 4 } else { 8 };
                let letter = number("", most, 16).and_then(char::from_u32);
                let letter = letter
                    .filter(|c| *c != '\0')
                    .ok_or(ParseError::Syntax("$'…'"))?;
                push(&mut bytes, letter);
            }
            // `\c` and what bash keeps as it is: rare enough to be asked about.
            _ => return Err(ParseError::Syntax("an escape of $'…' that is not known")),
        }
    }
    String::from_utf8(bytes).map_err(|_| ParseError::Syntax("$'…' holds bytes that are no text"))
}

/// A NUL ends the text for bash; what comes after it is not seen.
fn byte(number: Option<u32>) -> Result<u8, ParseError> {
    number
        .and_then(|n| u8::try_from(n).ok())
        .filter(|n| *n != 0)
        .ok_or(ParseError::Syntax("an escape of $'…' that is not known"))
}
