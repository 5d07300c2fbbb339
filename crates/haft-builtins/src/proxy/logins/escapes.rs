//! The ways in which one character stands in an answer: as it is, or escaped for URLs, JSON, JavaScript or HTML, also one within another.

/// Maximum length of one character as it is written, in bytes: `%26amp%3B%23x2F%3B`, and some zeros.
const WIDEST: usize = 32;
/// Maximum number of ways in which one place is read: bytes that are all backslashes have many.
const MOST_READINGS: usize = 12;
/// Maximum number of digits of a character's number in HTML and JavaScript, with zeros before it.
const MOST_DIGITS: usize = 8;

/// Characters with a name in HTML that is longer than themselves, as far as they are in credentials (HTML, 13.5 Named character references).
const NAMES: [(&str, u8); 36] = [
    ("amp", b'&'),
    ("AMP", b'&'),
    ("apos", b'\''),
    ("ast", b'*'),
    ("bsol", b'\\'),
    ("colon", b':'),
    ("comma", b','),
    ("commat", b'@'),
    ("dollar", b'$'),
    ("equals", b'='),
    ("excl", b'!'),
    ("grave", b'`'),
    ("gt", b'>'),
    ("GT", b'>'),
    ("Hat", b'^'),
    ("lbrace", b'{'),
    ("lbrack", b'['),
    ("lcub", b'{'),
    ("lowbar", b'_'),
    ("lpar", b'('),
    ("lsqb", b'['),
    ("lt", b'<'),
    ("LT", b'<'),
    ("num", b'#'),
    ("percnt", b'%'),
    ("period", b'.'),
    ("plus", b'+'),
    ("quest", b'?'),
    ("quot", b'"'),
    ("QUOT", b'"'),
    ("rcub", b'}'),
    ("rpar", b')'),
    ("rsqb", b']'),
    ("semi", b';'),
    ("sol", b'/'),
    ("vert", b'|'),
];

/// A character as it may be read at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    utf8: [u8; 4],
    length: u8,
    /// Where the next one begins.
    pub(super) end: usize,
}

impl Reading {
    fn byte(byte: u8, end: usize) -> Self {
        Self {
            utf8: [byte, 0, 0, 0],
            length: 1,
            end,
        }
    }

    fn number(number: u32, end: usize) -> Option<Self> {
        let mut utf8 = [0; 4];
        let length = char::from_u32(number)?.encode_utf8(&mut utf8).len();
        u8::try_from(length)
            .ok()
            .map(|length| Self { utf8, length, end })
    }

    /// Returns the bytes of the character.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.utf8[..usize::from(self.length)]
    }

    /// Returns the reading with the sign that must follow it.
    fn closed_by(self, text: &[u8], sign: u8) -> Option<Self> {
        end_of(text, self.end, sign).map(|end| Self { end, ..self })
    }

    fn is(&self, byte: u8) -> bool {
        self.bytes() == [byte]
    }
}

/// Whether more than this byte alone may be read where it stands.
pub(super) fn begins_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// Puts all ways to read the place into the list, and nothing else.
pub(super) fn read_all(text: &[u8], at: usize, into: &mut Vec<Reading>) {
    let end = text.len().min(at + WIDEST);
    let text = &text[..end];
    into.clear();
    into.extend(text.get(at).map(|byte| Reading::byte(*byte, at + 1)));
    // Each reading may be the first character of a further escape.
    let mut next = 0;
    while let Some(first) = into.get(next).copied() {
        next += 1;
        let mut add = |reading: Option<Reading>| {
            if let Some(reading) = reading
                && into.len() < MOST_READINGS
                && !into.contains(&reading)
            {
                into.push(reading);
            }
        };
        match first.utf8[0] {
            b'%' => {
                add(hex_byte(text, first.end));
                let is_wide = text.get(first.end) == Some(&b'u');
                // As JavaScript's `escape` writes it.
                add(hex_number(text, first.end + 1, 4, 4).filter(|_| is_wide));
            }
            b'\\' => backslash(text, first.end, &mut add),
            b'&' => entity(text, first.end, &mut add),
            _ => {}
        }
    }
}

/// Adds what a backslash and the characters at this place stand for.
fn backslash(text: &[u8], at: usize, add: &mut impl FnMut(Option<Reading>)) {
    let Some(first) = text.get(at) else { return };
    match first {
        b'u' => {
            add(hex_number(text, at + 1, 4, 4));
            if let Some(open) = end_of(text, at + 1, b'{') {
                let number = hex_number(text, open, 1, MOST_DIGITS);
                add(number.and_then(|number| number.closed_by(text, b'}')));
            }
        }
        b'x' => {
            add(hex_byte(text, at + 1));
            add(hex_number(text, at + 1, 2, 2));
        }
        b'n' => add(Some(Reading::byte(b'\n', at + 1))),
        b'r' => add(Some(Reading::byte(b'\r', at + 1))),
        b'0'..=b'3' => {
            let digits = text.get(at..at + 3).unwrap_or_default();
            let is_octal = digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
            if digits.len() == 3 && is_octal {
                let byte = digits
                    .iter()
                    .fold(0, |sum, digit| sum << 3 | (digit - b'0'));
                add(Some(Reading::byte(byte, at + 3)));
            }
        }
        b'%' => {
            add(Some(Reading::byte(b'%', at + 1)));
            let escaped =
                percent(text, at).filter(|escaped| escaped.utf8[0].is_ascii_punctuation());
            add(escaped);
        }
        byte if byte.is_ascii_punctuation() => add(Some(Reading::byte(*byte, at + 1))),
        _ => {}
    }
}

/// Adds what `&` and the characters at this place stand for in HTML.
fn entity(text: &[u8], at: usize, add: &mut impl FnMut(Option<Reading>)) {
    if let Some(after) = end_of(text, at, b'#') {
        let number = match text.get(after) {
            Some(b'x' | b'X') => hex_number(text, after + 1, 1, MOST_DIGITS),
            _ => number(text, after, 10, 1..=MOST_DIGITS),
        };
        add(number.and_then(|number| number.closed_by(text, b';')));
    }
    let rest = text.get(at..).unwrap_or_default();
    let is_letter = |byte: &&u8| byte.is_ascii_alphabetic();
    let length = rest.iter().take_while(is_letter).count();
    let known = NAMES
        .iter()
        .find(|(name, _)| name.as_bytes() == &rest[..length]);
    add(known.and_then(|(_, byte)| Reading::byte(*byte, at + length).closed_by(text, b';')));
}

/// Returns where a sign of an escape ends if it stands here, as it is or itself escaped for a URL.
fn end_of(text: &[u8], at: usize, sign: u8) -> Option<usize> {
    if text.get(at) == Some(&sign) {
        return Some(at + 1);
    }
    percent(text, at)
        .filter(|escaped| escaped.is(sign))
        .map(|escaped| escaped.end)
}

/// Reads `%2F`, `%252F`, and so on.
fn percent(text: &[u8], at: usize) -> Option<Reading> {
    let mut reading = Reading::byte(*text.get(at)?, at + 1);
    if !reading.is(b'%') {
        return None;
    }
    while reading.is(b'%') {
        reading = hex_byte(text, reading.end)?;
    }
    Some(reading)
}

fn hex_byte(text: &[u8], at: usize) -> Option<Reading> {
    let (number, end) = digits(text, at, 16, 2..=2)?;
    u8::try_from(number)
        .ok()
        .map(|byte| Reading::byte(byte, end))
}

fn hex_number(text: &[u8], at: usize, least: usize, most: usize) -> Option<Reading> {
    number(text, at, 16, least..=most)
}

fn number(
    text: &[u8],
    at: usize,
    radix: u32,
    lengths: std::ops::RangeInclusive<usize>,
) -> Option<Reading> {
    let (number, end) = digits(text, at, radix, lengths)?;
    Reading::number(number, end)
}

/// Returns the number that the digits here make, as many as there are up to the maximum, and where they end.
fn digits(
    text: &[u8],
    at: usize,
    radix: u32,
    lengths: std::ops::RangeInclusive<usize>,
) -> Option<(u32, usize)> {
    let digit = |byte: &u8| char::from(*byte).to_digit(radix);
    let all = text.get(at..)?.iter().map_while(digit);
    let (mut number, mut count) = (0_u32, 0);
    for digit in all.take(*lengths.end()) {
        number = number.checked_mul(radix)?.checked_add(digit)?;
        count += 1;
    }
    (count >= *lengths.start()).then_some((number, at + count))
}

#[cfg(test)]
mod tests {
    use super::{WIDEST, read_all};

    /// Characters, and ways in which they are written.
    #[rustfmt::skip]
    const WRITTEN: &[(char, &[&str])] = &[
        ('/', &[
            "/", "%2F", "%2f", "%252F", "%25252f", "%u002F", "\\/", "\\u002F", "\\u002f", "\\u{2f}",
            "\\u{00002f}", "\\x2f", "\\057", "\\\\/", "\\\\u002f", "\\\\\\/", "%5Cu002F", "%5C/", "%5C%2F",
            "&#47;", "&#047;", "&#0000047;", "&#x2F;", "&#X2f;", "&#x0002F;", "&sol;", "&amp;#x2F;",
            "&amp;amp;#47;", "%26%23x2F%3B", "%26sol%3B", "\\u0026#x2F;", "\\u0026sol;"
        ]),
        ('"', &["\"", "\\\"", "\\\\\\\"", "&quot;", "&amp;quot;"]),
        ('\\', &["\\\\", "\\\\\\\\", "%5C%5C"]),
        ('\n', &["\\n", "%0A", "\\\\n"]),
        ('a', &["a", "%61", "\\u0061", "&#97;"]),
        ('é', &["\\u00e9", "&#233;"]),
    ];

    /// Returns whether the whole text may be one character.
    fn reads_as(text: &str, character: char) -> bool {
        let (mut list, mut utf8) = (Vec::new(), [0; 4]);
        read_all(text.as_bytes(), 0, &mut list);
        let expect = character.encode_utf8(&mut utf8).as_bytes();
        list.iter()
            .any(|reading| reading.end == text.len() && reading.bytes() == expect)
    }

    #[test]
    fn a_character_is_read_however_it_is_escaped() {
        for (character, texts) in WRITTEN {
            for text in *texts {
                assert!(reads_as(text, *character), "{text}");
            }
        }
        for (text, character) in [
            ("%2", '/'),
            ("%2G", '/'),
            ("&#x2F", '/'),
            ("&#99999999;", '/'),
            ("&#x000000000000000000000000002F;", '/'),
            ("\\a", 'a'),
            ("&nosuch;", '/'),
            ("%", '/'),
            ("\\", '/'),
            ("&", '/'),
        ] {
            assert!(!reads_as(text, character), "{text}");
        }
    }

    #[test]
    fn any_bytes_have_few_and_short_readings() {
        let mut list = Vec::new();
        for pattern in [
            "\\",
            "%",
            "&",
            "%25",
            "\\u005c",
            "&amp;",
            "%5C",
            "\\\\u0026",
        ] {
            let text = pattern.repeat(100);
            for at in 0..text.len() {
                read_all(text.as_bytes(), at, &mut list);
                let wide = list.iter().any(|reading| reading.end > at + WIDEST);
                assert!(
                    !list.is_empty() && list.len() <= 12 && !wide,
                    "{pattern} {at}"
                );
            }
        }
    }
}
