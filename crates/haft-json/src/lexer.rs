//! The lexer: tokens of RFC 8259 over the bytes of a text, each strictly validated.
//!
//! All readers of this crate are built on it, so none of them accepts a string or a number that another one refuses.
//!
//! ```
//! use haft_json::lexer::Lexer;
//!
//! let mut lexer = Lexer::new(r#" {"caf\u00e9": 2} "#);
//! assert_eq!(lexer.peek(), b'{');
//! lexer.at += 1;
//! let key = lexer.key()?;
//! assert_eq!(lexer.unescape(key), "café");
//! lexer.peek();
//! assert_eq!(lexer.number()?.small, Some(2));
//! # Ok::<(), haft_json::lexer::LexError>(())
//! ```

use std::ops::Range;

/// Maximum nesting of objects and arrays that any reader of this crate accepts.
pub const MAX_DEPTH: usize = 64;

/// What is wrong with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The text ends inside a value.
    #[error("the text ends too early")]
    Truncated,
    /// A different token is required here.
    #[error("expected {0}")]
    Expected(&'static str),
    /// Not a JSON number, or one with a leading zero or plus.
    #[error("malformed number")]
    Number,
    /// A number out of the range of doubles.
    #[error("number out of range")]
    NumberRange,
    /// A control character inside a string.
    #[error("control character in a string; it must be escaped")]
    Control,
    /// A backslash with an unknown letter or bad hex digits.
    #[error("malformed escape")]
    Escape,
    /// Half a surrogate pair.
    #[error("lone surrogate in an escape")]
    LoneSurrogate,
    /// The same key twice in one object.
    #[error("duplicate key")]
    DuplicateKey,
    /// More than [`MAX_DEPTH`] levels.
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// More text after the value.
    #[error("text after the end of the value")]
    Trailing,
    /// The top level is not an object.
    #[error("expected an object at the top level")]
    NotAnObject,
}

/// A fault and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {at}")]
pub struct LexError {
    /// What is wrong.
    pub fault: Fault,
    /// The byte position where it was found.
    pub at: usize,
}

/// The content of a string literal, without its quotes.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// The position after the opening quote.
    pub start: usize,
    /// The position of the closing quote.
    pub end: usize,
    /// Whether it contains an escape.
    pub escaped: bool,
}

/// A number literal.
#[derive(Debug, Clone, Copy)]
pub struct Number {
    /// The position of its first byte.
    pub start: usize,
    /// The position after its last byte.
    pub end: usize,
    /// Its value, if it is an integer of at most 18 digits other than `-0`.
    pub small: Option<i64>,
    /// Whether it has neither fraction nor exponent.
    pub integer: bool,
}

/// A cursor over a text.
#[derive(Debug)]
pub struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    /// The position where the search for the next token starts.
    pub at: usize,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Marks the bytes of a word that end or interrupt a plain run in a string; the lowest mark is exact.
#[inline]
const fn special(word: u64) -> u64 {
    let quote = word ^ (ONES * 0x22);
    let slash = word ^ (ONES * 0x5c);
    let is_quote = quote.wrapping_sub(ONES) & !quote;
    let is_slash = slash.wrapping_sub(ONES) & !slash;
    let is_control = word.wrapping_sub(ONES * 0x20) & !word;
    (is_quote | is_slash | is_control) & HIGHS
}

impl<'t> Lexer<'t> {
    /// Creates a cursor at the beginning of a text.
    #[inline]
    pub fn new(text: &'t str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
        }
    }

    /// Returns the whole text.
    #[inline]
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the bytes inside a string literal, escapes as written.
    #[inline]
    pub fn raw(&self, span: Span) -> &'t [u8] {
        self.bytes.get(span.start..span.end).unwrap_or_default()
    }

    #[cold]
    pub(crate) fn stop<T>(&self, fault: Fault) -> Result<T, LexError> {
        let fault = match fault {
            Fault::Expected(_) if self.at >= self.bytes.len() => Fault::Truncated,
            other => other,
        };
        Err(LexError { fault, at: self.at })
    }

    /// Skips white space and returns the next byte; 0 at the end of the text (no token starts with 0).
    #[inline]
    pub fn peek(&mut self) -> u8 {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(&byte) => return byte,
                None => return 0,
            }
        }
    }

    /// Consumes a key and its colon.
    ///
    /// # Errors
    ///
    /// If no string literal followed by a colon is next.
    #[inline]
    pub fn key(&mut self) -> Result<Span, LexError> {
        if self.peek() != b'"' {
            return self.stop(Fault::Expected("a key in quotes"));
        }
        let span = self.string()?;
        if self.peek() != b':' {
            return self.stop(Fault::Expected("a colon after the key"));
        }
        self.at += 1;
        Ok(span)
    }

    /// Consumes the string literal whose opening quote is at the cursor.
    ///
    /// # Errors
    ///
    /// If it does not end, or contains a control character, a malformed escape or a lone surrogate.
    #[inline]
    pub fn string(&mut self) -> Result<Span, LexError> {
        let start = self.at + 1;
        let mut escaped = false;
        self.at = start;
        loop {
            while let Some(chunk) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
                let marks = special(u64::from_le_bytes(*chunk));
                if marks != 0 {
                    self.at += (marks.trailing_zeros() / 8) as usize;
                    break;
                }
                self.at += 8;
            }
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    let end = self.at;
                    self.at += 1;
                    return Ok(Span {
                        start,
                        end,
                        escaped,
                    });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(0..=0x1f) => return self.stop(Fault::Control),
                Some(_) => self.at += 1,
                None => return self.stop(Fault::Truncated),
            }
        }
    }

    fn escape(&mut self) -> Result<(), LexError> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => match self.hex4(self.at + 2) {
                Some(0xd800..=0xdbff) => {
                    let pair = self.bytes.get(self.at + 6..self.at + 8) == Some(b"\\u");
                    let low = self.hex4(self.at + 8);
                    if !pair || !matches!(low, Some(0xdc00..=0xdfff)) {
                        return self.stop(Fault::LoneSurrogate);
                    }
                    self.at += 12;
                }
                Some(0xdc00..=0xdfff) => return self.stop(Fault::LoneSurrogate),
                Some(_) => self.at += 6,
                None => return self.stop(Fault::Escape),
            },
            Some(_) => return self.stop(Fault::Escape),
            None => return self.stop(Fault::Truncated),
        }
        Ok(())
    }

    fn hex4(&self, from: usize) -> Option<u32> {
        let digits = self.bytes.get(from..from + 4)?;
        digits.iter().try_fold(0, |sum, &digit| {
            Some(sum * 16 + char::from(digit).to_digit(16)?)
        })
    }

    fn digits(&mut self) -> usize {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.at - from
    }

    /// Consumes the number literal that starts at the cursor.
    ///
    /// # Errors
    ///
    /// If it is not a JSON number, or out of the range of doubles.
    #[inline]
    pub fn number(&mut self) -> Result<Number, LexError> {
        let start = self.at;
        let negative = self.bytes.get(start) == Some(&b'-');
        self.at += usize::from(negative);
        let first = self.at;
        let mut sum = 0_i64;
        while let Some(&digit @ b'0'..=b'9') = self.bytes.get(self.at) {
            sum = sum.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
            self.at += 1;
        }
        let count = self.at - first;
        if count == 0 || (count > 1 && self.bytes.get(first) == Some(&b'0')) {
            self.at = start;
            return self.stop(Fault::Number);
        }
        if !matches!(self.bytes.get(self.at), Some(b'.' | b'e' | b'E')) && count <= 18 {
            let zero = negative && sum == 0;
            return Ok(Number {
                start,
                end: self.at,
                small: (!zero).then_some(if negative { -sum } else { sum }),
                integer: true,
            });
        }
        self.long_number(start, count)
    }

    /// Consumes the rest of a number with a fraction, an exponent or many digits, after `digits` digits.
    fn long_number(&mut self, start: usize, digits: usize) -> Result<Number, LexError> {
        let mut integer = true;
        let mut range_unsure = digits > 300;
        if self.bytes.get(self.at) == Some(&b'.') {
            integer = false;
            self.at += 1;
            if self.digits() == 0 {
                return self.stop(Fault::Number);
            }
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            integer = false;
            range_unsure = true;
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return self.stop(Fault::Number);
            }
        }
        let number = Number {
            start,
            end: self.at,
            small: None,
            integer,
        };
        if range_unsure && self.double(number).is_none() {
            self.at = start;
            return self.stop(Fault::NumberRange);
        }
        Ok(number)
    }

    /// Returns the number as a double, rounded like `serde_json`; `None` if it is out of range.
    pub fn double(&self, number: Number) -> Option<f64> {
        serde_json::from_str(self.text.get(number.start..number.end)?).ok()
    }

    /// Consumes the word that starts at the cursor: `true`, `false` or `null`.
    ///
    /// # Errors
    ///
    /// If a different text is there.
    #[inline]
    pub fn literal(&mut self, word: &'static str) -> Result<(), LexError> {
        let end = self.at + word.len();
        if self.bytes.get(self.at..end) != Some(word.as_bytes()) {
            return self.stop(Fault::Expected("true, false or null"));
        }
        self.at = end;
        Ok(())
    }

    /// Consumes a value of any shape and returns its position. Walks objects and arrays only by brackets and strings, relying on the
    /// strict scan, so it is not a validation.
    ///
    /// ```
    /// use haft_json::lexer::Lexer;
    ///
    /// let text = r#"[{"a": [1, "]"]}, 2]"#;
    /// let mut lexer = Lexer::new(text);
    /// lexer.at += 1;
    /// assert_eq!(&text[lexer.skip()?], r#"{"a": [1, "]"]}"#);
    /// # Ok::<(), haft_json::lexer::LexError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If no value is next, it does not end, or one of its scalars is malformed.
    pub fn skip(&mut self) -> Result<Range<usize>, LexError> {
        let mut open = 0_usize;
        self.peek();
        let start = self.at;
        loop {
            match self.peek() {
                b'{' | b'[' => {
                    open += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' if open > 0 => {
                    open -= 1;
                    self.at += 1;
                }
                b',' | b':' if open > 0 => {
                    self.at += 1;
                    continue;
                }
                _ => self.scalar()?,
            }
            if open == 0 {
                return Ok(start..self.at);
            }
        }
    }

    /// Consumes a string, a number or a word.
    #[inline]
    pub(crate) fn scalar(&mut self) -> Result<(), LexError> {
        match self.peek() {
            b'"' => self.string().map(drop),
            b'-' | b'0'..=b'9' => self.number().map(drop),
            b't' => self.literal("true"),
            b'f' => self.literal("false"),
            b'n' => self.literal("null"),
            _ => self.stop(Fault::Expected("a value")),
        }
    }

    /// Checks that only white space is left.
    ///
    /// # Errors
    ///
    /// If there is more text.
    #[inline]
    pub fn finish(&mut self) -> Result<(), LexError> {
        self.peek();
        if self.at < self.bytes.len() {
            return self.stop(Fault::Trailing);
        }
        Ok(())
    }

    /// Returns the string that a literal's content stands for.
    pub fn unescape(&self, span: Span) -> String {
        let literal = self.text.get(span.start - 1..=span.end).unwrap_or_default();
        serde_json::from_str(literal).unwrap_or_default()
    }
}
