//! Previews of structured data: all keys, clipped strings, the first and last items of arrays.

use std::collections::VecDeque;
use std::fmt::Write;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::json::lexer::Lexer;
use crate::json::scan;
use crate::tokens::Tokenizer;

/// How much of each kind of value is shown.
#[derive(Debug, Clone, Copy)]
struct Detail {
    /// Maximum number of bytes of a string or number.
    scalar: usize,
    /// Maximum number of items of an array.
    items: usize,
    /// Maximum number of keys of an object.
    keys: usize,
    /// Maximum number of nested levels.
    depth: usize,
}

/// From most to least detail; the first that fits is used. Each shows about half of the one before.
const DETAILS: [Detail; 14] = [
    detail(16_384, 512, usize::MAX, 64),
    detail(8_192, 256, usize::MAX, 64),
    detail(4_096, 128, usize::MAX, 64),
    detail(2_048, 64, usize::MAX, 64),
    detail(1_024, 32, usize::MAX, 64),
    detail(512, 16, usize::MAX, 64),
    detail(256, 8, usize::MAX, 32),
    detail(128, 4, usize::MAX, 16),
    detail(64, 3, usize::MAX, 8),
    detail(32, 2, usize::MAX, 4),
    detail(24, 1, 256, 3),
    detail(16, 1, 64, 2),
    detail(8, 0, 16, 1),
    detail(0, 0, 2, 1),
];

const fn detail(scalar: usize, items: usize, keys: usize, depth: usize) -> Detail {
    Detail {
        scalar,
        items,
        keys,
        depth,
    }
}

/// Number of bytes of a string below which only its beginning is shown.
const MIN_FOR_TAIL: usize = 64;
/// Maximum length, in bytes, of a key that is shown whole.
const MAX_KEY: usize = 128;
/// Maximum average number of bytes per token of JSON, above which a preview is rejected as too long without counting.
const BYTES_PER_TOKEN: usize = 12;

/// Returns at most `limit` tokens that show what an object contains, as an object; `None` if not even `{}` fits.
///
/// A schema describes `typed` data: omissions then leave no marks, which would be of another type.
pub(super) fn preview(
    text: &str,
    tokenizer: &dyn Tokenizer,
    limit: usize,
    typed: bool,
) -> Option<Box<RawValue>> {
    if scan::scan_object(text).is_ok() {
        for detail in DETAILS {
            let mut shown = DataPreview {
                lexer: Lexer::new(text),
                detail,
                typed,
                out: String::new(),
                most: limit.saturating_mul(BYTES_PER_TOKEN),
            };
            if shown.value(0).is_some()
                && (shown.out.len() <= limit || tokenizer.fits(&shown.out, limit).is_some())
                && let Ok(raw) = RawValue::from_string(shown.out)
            {
                return Some(raw);
            }
        }
    }
    tokenizer.fits("{}", limit)?;
    RawValue::from_string("{}".to_owned()).ok()
}

struct DataPreview<'t> {
    lexer: Lexer<'t>,
    detail: Detail,
    typed: bool,
    out: String,
    most: usize,
}

/// `None` if the preview has become too long (or the text did not pass the scan).
type PreviewResult = Option<()>;

impl<'t> DataPreview<'t> {
    /// Adds one value, at this depth.
    fn value(&mut self, depth: usize) -> PreviewResult {
        if self.out.len() > self.most {
            return None;
        }
        match self.lexer.peek() {
            b'{' if depth < self.detail.depth => self.object(depth),
            b'[' if depth < self.detail.depth => self.array(depth),
            b'{' | b'[' => {
                let range = self.skip()?;
                if self.typed {
                    let object = self.text(range).starts_with('{');
                    self.out.push_str(if object { "{}" } else { "[]" });
                    return Some(());
                }
                let count = self.count(range)?;
                write!(self.out, "\"… {count} left out\"").ok()
            }
            b'"' => {
                let span = self.lexer.string().ok()?;
                let raw = self.text(span.start..span.end);
                self.string(raw, self.detail.scalar);
                Some(())
            }
            _ => {
                let range = self.skip()?;
                let raw = self.text(range);
                if raw.len() > self.detail.scalar.max(24) && !self.typed {
                    self.string(raw, self.detail.scalar);
                } else {
                    self.out.push_str(raw);
                }
                Some(())
            }
        }
    }

    fn text(&self, range: Range<usize>) -> &'t str {
        self.lexer.text().get(range).unwrap_or_default()
    }

    /// Skips a value without showing it.
    fn skip(&mut self) -> Option<Range<usize>> {
        self.lexer.skip().ok()
    }

    /// Counts what an object or array contains, as text.
    fn count(&mut self, range: Range<usize>) -> Option<String> {
        let mut lexer = Lexer::new(self.text(range));
        let object = lexer.peek() == b'{';
        lexer.at += 1;
        let mut count = 0_usize;
        while !matches!(lexer.peek(), b'}' | b']') {
            if object {
                lexer.key().ok()?;
            }
            lexer.skip().ok()?;
            count += 1;
            if lexer.peek() == b',' {
                lexer.at += 1;
            }
        }
        Some(format!("{count} {}", if object { "keys" } else { "items" }))
    }

    /// Adds the inside of a string literal (or a number as one), clipped between escapes: its beginning and, if there is room for both,
    /// its end.
    fn string(&mut self, raw: &str, most: usize) {
        self.out.push('"');
        if raw.len() <= most + 24 {
            self.out.push_str(raw);
        } else {
            let tail = if most < MIN_FOR_TAIL { 0 } else { most / 4 };
            let end = cut(raw, most - tail);
            let from = cut(raw, raw.len() - tail).max(end);
            let left = from - end;
            let (head, tail) = (raw.get(..end), raw.get(from..));
            self.out.push_str(head.unwrap_or_default());
            // Writing to a string cannot fail.
            let _ = write!(self.out, "… {left} bytes left out");
            if let Some(tail) = tail.filter(|tail| !tail.is_empty()) {
                self.out.push_str(" …");
                self.out.push_str(tail);
            }
        }
        self.out.push('"');
    }

    fn object(&mut self, depth: usize) -> PreviewResult {
        self.lexer.at += 1;
        self.out.push('{');
        let mut count = 0;
        let mut left_out = 0_usize;
        while self.lexer.peek() != b'}' {
            let key = self.lexer.key().ok()?;
            if count < self.detail.keys {
                if count > 0 {
                    self.out.push(',');
                }
                let raw = self.text(key.start..key.end);
                if raw.len() <= MAX_KEY {
                    write!(self.out, "\"{raw}\":").ok()?;
                } else {
                    // The number distinguishes two long keys.
                    let head = raw.get(..cut(raw, MAX_KEY / 2)).unwrap_or_default();
                    write!(self.out, "\"{head}… {} bytes, key {count}\":", raw.len()).ok()?;
                }
                self.value(depth + 1)?;
                count += 1;
            } else {
                self.skip()?;
                left_out += 1;
            }
            if self.lexer.peek() == b',' {
                self.lexer.at += 1;
            }
        }
        self.lexer.at += 1;
        if left_out > 0 && !self.typed {
            let comma = if count > 0 { "," } else { "" };
            write!(self.out, "{comma}\"…\":\"{left_out} keys left out\"").ok()?;
        }
        self.out.push('}');
        Some(())
    }

    fn array(&mut self, depth: usize) -> PreviewResult {
        let last = self.detail.items / 3;
        let first = self.detail.items - last;
        self.lexer.at += 1;
        self.out.push('[');
        let mut count = 0;
        let mut late: VecDeque<Range<usize>> = VecDeque::new();
        let mut left_out = 0_usize;
        while self.lexer.peek() != b']' {
            if count < first {
                if count > 0 {
                    self.out.push(',');
                }
                self.value(depth + 1)?;
                count += 1;
            } else {
                late.push_back(self.skip()?);
                if late.len() > last {
                    late.pop_front();
                    left_out += 1;
                }
            }
            if self.lexer.peek() == b',' {
                self.lexer.at += 1;
            }
        }
        let end = self.lexer.at + 1;
        if left_out > 0 && !self.typed {
            let comma = if count > 0 { "," } else { "" };
            write!(self.out, "{comma}\"… {left_out} items left out\"").ok()?;
        }
        for range in late {
            if !self.out.ends_with('[') {
                self.out.push(',');
            }
            self.lexer.at = range.start;
            self.value(depth + 1)?;
        }
        self.lexer.at = end;
        self.out.push(']');
        Some(())
    }
}

/// Returns where to cut the inside of a string literal without splitting a character or escape.
fn cut(raw: &str, most: usize) -> usize {
    let bytes = raw.as_bytes();
    let mut at = 0;
    loop {
        let unit = match (bytes.get(at), bytes.get(at + 1)) {
            (None, _) => 0,
            (Some(b'\\'), Some(b'u')) => {
                let digits = raw.get(at + 2..at + 6).unwrap_or_default();
                let high = matches!(u16::from_str_radix(digits, 16), Ok(0xd800..=0xdbff));
                if high { 12 } else { 6 }
            }
            (Some(b'\\'), _) => 2,
            (Some(_), _) => 1,
        };
        if unit == 0 || at + unit > most {
            return raw.floor_char_boundary(at);
        }
        at += unit;
    }
}
