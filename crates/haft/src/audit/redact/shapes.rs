//! The shapes of keys, tokens and passwords: the words they start with, and how much of what follows is secret.

use std::ops::Range;

use super::REDACTED;

/// How the text after a marker is checked.
#[derive(Debug, Clone, Copy)]
pub(super) enum SecretShape {
    /// A service's key: this exact marker, then at least this many letters, digits, `_` and `-`.
    Key(usize),
    /// `sk-`: like a key, but not words joined by hyphens.
    SecretKey,
    /// An access key id of AWS: sixteen capital letters and digits.
    AccessKeyId,
    /// A signed token with three parts.
    Jwt,
    /// A private key in PEM.
    Pem,
    /// `Bearer` and its token.
    Bearer,
    /// An `Authorization` header.
    Header,
    /// `password=…` and the like.
    Pair,
    /// Like `Pair`, for words that also precede a colon in prose.
    DoubtfulPair,
    /// A password within a URL.
    Url,
}

/// Length of the longest marker.
pub(super) const MAX_MARKER: usize = 16;

/// The words that shapes start with, matched case-insensitively.
pub(super) const MARKERS: &[(&str, SecretShape)] = &[
    ("sk-", SecretShape::SecretKey),
    ("sk_live_", SecretShape::Key(16)),
    ("sk_test_", SecretShape::Key(16)),
    ("rk_live_", SecretShape::Key(16)),
    ("ghp_", SecretShape::Key(20)),
    ("gho_", SecretShape::Key(20)),
    ("ghu_", SecretShape::Key(20)),
    ("ghs_", SecretShape::Key(20)),
    ("ghr_", SecretShape::Key(20)),
    ("github_pat_", SecretShape::Key(20)),
    ("glpat-", SecretShape::Key(20)),
    ("xoxa-", SecretShape::Key(10)),
    ("xoxb-", SecretShape::Key(10)),
    ("xoxp-", SecretShape::Key(10)),
    ("xoxr-", SecretShape::Key(10)),
    ("xoxs-", SecretShape::Key(10)),
    ("AIza", SecretShape::Key(30)),
    ("hf_", SecretShape::Key(30)),
    ("npm_", SecretShape::Key(36)),
    ("AKIA", SecretShape::AccessKeyId),
    ("ASIA", SecretShape::AccessKeyId),
    ("eyJ", SecretShape::Jwt),
    ("-----BEGIN ", SecretShape::Pem),
    ("bearer", SecretShape::Bearer),
    ("authorization", SecretShape::Header),
    ("password", SecretShape::Pair),
    ("passwd", SecretShape::Pair),
    ("api_key", SecretShape::Pair),
    ("api-key", SecretShape::Pair),
    ("apikey", SecretShape::Pair),
    ("access_key", SecretShape::Pair),
    ("access-key", SecretShape::Pair),
    ("accesskey", SecretShape::Pair),
    ("accountkey", SecretShape::Pair),
    ("private_key", SecretShape::Pair),
    ("secret_key", SecretShape::Pair),
    ("client_secret", SecretShape::Pair),
    ("passphrase", SecretShape::DoubtfulPair),
    ("secret", SecretShape::DoubtfulPair),
    ("token", SecretShape::DoubtfulPair),
    ("://", SecretShape::Url),
];

impl SecretShape {
    /// Does the same as [`confirm`](Self::confirm) for somebody who decides whether the text may be run or written: only what cannot be
    /// code is a secret, and no line of it hides the next one.
    pub(super) fn confirm_exactly(self, text: &str, marker: Range<usize>) -> Option<Range<usize>> {
        if matches!(self, Self::Pem) {
            return key_lines(text, marker);
        }
        let found = self.confirm(text, marker)?;
        let value = text.get(found.clone())?;
        let is_pair = matches!(self, Self::Pair | Self::DoubtfulPair);
        if is_pair && may_run(value) {
            return None;
        }
        let line = value.find('\n').unwrap_or(value.len());
        (line > 0).then(|| found.start..found.start + line)
    }

    /// Returns the secret that follows this marker, if it is one. Linear: text that is read and rejected is short, or is not read
    /// again because no other marker applies within it.
    pub(super) fn confirm(self, text: &str, marker: Range<usize>) -> Option<Range<usize>> {
        let bytes = text.as_bytes();
        let exact = |wanted: &str| text[marker.clone()] == *wanted;
        let own = MARKERS.iter().any(|(word, _)| exact(word));
        match self {
            Self::Key(least) => {
                let end = run(bytes, marker.end, is_key_byte);
                (own && end - marker.end >= least).then_some(marker.start..end)
            }
            Self::SecretKey if own && is_word_boundary(bytes, marker.start) => {
                secret_key(bytes, marker)
            }
            Self::AccessKeyId if own && is_word_boundary(bytes, marker.start) => {
                let end = run(bytes, marker.end, |b| {
                    b.is_ascii_uppercase() || b.is_ascii_digit()
                });
                let more = bytes.get(end).is_some_and(u8::is_ascii_alphanumeric);
                (end - marker.end == 16 && !more).then_some(marker.start..end)
            }
            Self::Jwt if own && is_word_boundary(bytes, marker.start) => jwt(bytes, marker.start),
            Self::SecretKey | Self::AccessKeyId | Self::Jwt => None,
            Self::Pem => pem(text, marker),
            Self::Bearer => bearer(bytes, &marker),
            Self::Header => header(text, marker.end),
            Self::Pair => pair(text, marker.end, false),
            Self::DoubtfulPair => pair(text, marker.end, true),
            Self::Url => url(bytes, marker.end),
        }
    }
}

/// Returns where the run of bytes that `wanted` accepts ends.
fn run(bytes: &[u8], from: usize, wanted: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|b| wanted(**b)).count()
}

fn is_key_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
}

fn is_token_byte(b: u8) -> bool {
    is_key_byte(b) || matches!(b, b'.' | b'~' | b'+' | b'/' | b'=')
}

/// Returns whether no word continues into `at`; the letter of a JSON escape (`\n`) is not a word.
fn is_word_boundary(bytes: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|i| bytes[i]) else {
        return true;
    };
    !is_key_byte(before) || (at >= 2 && bytes[at - 2] == b'\\')
}

fn secret_key(bytes: &[u8], marker: Range<usize>) -> Option<Range<usize>> {
    let end = run(bytes, marker.end, is_key_byte);
    let key = &bytes[marker.end..end];
    let words = key.contains(&b'-') && !key.iter().any(u8::is_ascii_digit);
    (key.len() >= 20 && !words).then_some(marker.start..end)
}

fn jwt(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let header = run(bytes, start, is_key_byte);
    if header - start < 10 || bytes.get(header) != Some(&b'.') {
        return None;
    }
    let claims = run(bytes, header + 1, is_key_byte);
    if claims - header < 5 || bytes.get(claims) != Some(&b'.') {
        return None;
    }
    let end = run(bytes, claims + 1, |b| is_key_byte(b) || b == b'.');
    Some(start..end)
}

fn pem(text: &str, marker: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let label_end = run(bytes, marker.end, |b| {
        b.is_ascii_uppercase() || b.is_ascii_digit() || b == b' '
    });
    text[marker.end..label_end]
        .contains("PRIVATE KEY")
        .then(|| {
            let foot = memchr::memmem::find(&bytes[label_end..], b"-----END ");
            let end = foot.map_or(text.len(), |at| {
                let label = label_end + at + "-----END ".len();
                let dashes = run(bytes, label, |b| b != b'-' && b != b'\n' && b != b'\\');
                run(bytes, dashes, |b| b == b'-')
            });
            // Without its last line the key is cut, and all of the rest belongs to it.
            marker.start..end
        })
}

/// Returns a private key from its first line to its last, or as far as it goes if it is cut. Only lines of base64 belong to it: what
/// else stands there could be run, and somebody decides about that.
fn key_lines(text: &str, marker: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let label_end = run(bytes, marker.end, |b| {
        b.is_ascii_uppercase() || b.is_ascii_digit() || b == b' '
    });
    if !text[marker.end..label_end].contains("PRIVATE KEY") {
        return None;
    }
    let mut end = run(bytes, label_end, |b| b == b'-');
    loop {
        let start = between_lines(bytes, end);
        let rest = bytes.get(start..).unwrap_or_default();
        if rest.starts_with(PEM_FOOT) {
            let label = start + PEM_FOOT.len();
            let dashes = run(bytes, label, |b| b.is_ascii_alphanumeric() || b == b' ');
            end = run(bytes, dashes, |b| b == b'-');
            break;
        }
        let line = pem_line(bytes, start);
        if line == start {
            break;
        }
        end = line;
    }
    Some(marker.start..end)
}

const PEM_FOOT: &[u8] = b"-----END ";

/// Returns where the next line of a key begins: after line breaks, also escaped ones, and what marks or quotes lines elsewhere.
fn between_lines(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        let foot = bytes[at..].starts_with(PEM_FOOT);
        match byte {
            b'\\' if matches!(bytes.get(at + 1), Some(b'n' | b'r' | b't')) => at += 2,
            b'\\' => at += 1,
            b'-' if foot => return at,
            // The mark of an added line, unless base64 begins with it.
            b'+' if bytes.get(at + 1).is_some_and(|b| b" #\"'".contains(b)) => at += 1,
            byte if byte.is_ascii_whitespace() || b"\"',#>|*-".contains(byte) => at += 1,
            _ => return at,
        }
    }
    at
}

/// Returns where a line of a key that begins here ends; `start` if it is none.
fn pem_line(bytes: &[u8], start: usize) -> usize {
    /// Lines of a key are longer, except its last one.
    const LONG: usize = 32;
    const HEADERS: [&[u8]; 2] = [b"Proc-Type: ", b"DEK-Info: "];
    let rest = bytes.get(start..).unwrap_or_default();
    if let Some(header) = HEADERS.iter().find(|header| rest.starts_with(header)) {
        return run(bytes, start + header.len(), |b| {
            b.is_ascii_alphanumeric() || b == b',' || b == b'-'
        });
    }
    let end = run(bytes, start, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')
    });
    let line = &bytes[start..end];
    let is_alone = bytes
        .get(end)
        .is_none_or(|b| b.is_ascii_whitespace() && *b != b' ' || b"\\\"',-".contains(b));
    let is_random = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'=';
    let is_last = || bytes[between_lines(bytes, end)..].starts_with(PEM_FOOT);
    let is_key = line.len() >= LONG || (is_alone || is_last()) && line.iter().any(is_random);
    if is_key { end } else { start }
}

fn bearer(bytes: &[u8], marker: &Range<usize>) -> Option<Range<usize>> {
    let start = run(bytes, marker.end, |b| b == b' ');
    let end = run(bytes, start, is_token_byte);
    let token = &bytes[start..end];
    let alike = token.len() >= 20 || (token.len() >= 8 && token.iter().any(u8::is_ascii_digit));
    (start > marker.end && alike).then_some(start..end)
}

/// The text between a name and its value, and how the value is quoted.
struct Assignment {
    start: usize,
    quote: Quote,
    quoted_name: bool,
    colon: bool,
    spaced: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
    /// `\"`: JSON within a JSON string.
    Escaped,
}

fn quote(bytes: &[u8], at: usize) -> (Quote, usize) {
    match bytes.get(at) {
        Some(b'"') => (Quote::Double, at + 1),
        Some(b'\'') => (Quote::Single, at + 1),
        Some(b'\\') if bytes.get(at + 1) == Some(&b'"') => (Quote::Escaped, at + 2),
        _ => (Quote::None, at),
    }
}

/// Parses `"? *[=:] *"?` after a name.
fn assignment(bytes: &[u8], name_end: usize) -> Option<Assignment> {
    let space = |b: u8| b == b' ' || b == b'\t';
    let (closing, at) = quote(bytes, name_end);
    let sign = run(bytes, at, space);
    let colon = match bytes.get(sign)? {
        b':' => true,
        b'=' => false,
        _ => return None,
    };
    let after = run(bytes, sign + 1, space);
    let (quote, start) = quote(bytes, after);
    Some(Assignment {
        start,
        quote,
        quoted_name: closing != Quote::None,
        colon,
        spaced: after > sign + 1,
    })
}

/// Returns where a value that starts at `start` ends.
fn value_end(bytes: &[u8], start: usize, quote: Quote, plain_end: impl Fn(u8) -> bool) -> usize {
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        match (quote, byte) {
            (Quote::None, byte) if plain_end(byte) => return at,
            (Quote::Single, b'\'' | b'\n') | (Quote::Double, b'"' | b'\n') => return at,
            (Quote::Double, b'\\') => at += 2,
            (Quote::Escaped, b'\\') => match bytes.get(at + 1) {
                // An escape of the inner string: its letter may be an escaped quote.
                Some(b'\\') if bytes.get(at + 2) == Some(&b'\\') => at += 4,
                Some(b'\\') => at += 3,
                _ => return at,
            },
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns whether this is a reference to a secret, or what redaction left of one.
fn is_reference(rest: &[u8]) -> bool {
    rest.starts_with(b"$") || rest.starts_with(REDACTED.as_bytes())
}

fn pair(text: &str, name_end: usize, doubtful: bool) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let found = assignment(bytes, name_end)?;
    if is_reference(&bytes[found.start..]) {
        return None;
    }
    let end = value_end(bytes, found.start, found.quote, |b| {
        b.is_ascii_whitespace() || b"\"'&,;}])\\<|`".contains(&b)
    });
    let value = text.get(found.start..text.ceil_char_boundary(end))?;
    let word = matches!(value, "true" | "false" | "null" | "None" | "undefined");
    if value.is_empty() || word || value.bytes().all(|b| b == b'*') {
        return None;
    }
    let quoted = found.quote != Quote::None;
    let prose = !quoted && found.spaced && !found.quoted_name && (doubtful || !found.colon);
    let alike =
        value.len() >= 16 || (value.len() >= 8 && value.bytes().any(|b| b.is_ascii_digit()));
    let secret = if prose {
        alike
    } else {
        quoted || value.len() >= 4
    };
    secret.then(|| found.start..found.start + value.len())
}

/// Returns whether a value could be code that something runs: hiding it from somebody who approves it is worse than showing a password
/// with such signs.
fn may_run(value: &str) -> bool {
    let signs = ["`", "$(", "<(", ";", "|", "&&"];
    let calls = value.find('(').is_some_and(|at| value[at..].contains(')'));
    calls || value.starts_with('!') || signs.iter().any(|sign| value.contains(sign))
}

fn header(text: &str, name_end: usize) -> Option<Range<usize>> {
    const SCHEMES: [&str; 7] = [
        "bearer",
        "basic",
        "digest",
        "token",
        "apikey",
        "negotiate",
        "aws4-hmac-sha256",
    ];
    let bytes = text.as_bytes();
    let found = assignment(bytes, name_end)?;
    let ends = |b: u8| b"\"'\\\r\n".contains(&b);
    let word_end = run(bytes, found.start, |b| !b.is_ascii_whitespace() && !ends(b));
    let word = text.get(found.start..word_end)?;
    let scheme = SCHEMES.iter().any(|known| word.eq_ignore_ascii_case(known));
    if scheme && bytes.get(word_end) == Some(&b' ') {
        let end = value_end(bytes, word_end, found.quote, ends);
        let credentials = text.get(word_end..text.ceil_char_boundary(end))?;
        let secret = credentials.trim().len() >= 4;
        return secret.then(|| found.start..word_end + credentials.len());
    }
    let least = if found.quote == Quote::None { 16 } else { 8 };
    let secret = word.len() >= least && !is_reference(word.as_bytes());
    secret.then_some(found.start..word_end)
}

/// Finds the password in `user:password@` after `://`.
fn url(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    const MAX_SECRET: usize = 1024;
    let rest = &bytes[start..bytes.len().min(start + MAX_SECRET)];
    let end = rest
        .iter()
        .position(|b| b.is_ascii_whitespace() || b"/?#\"'\\<>@".contains(b))?;
    let colon = rest[..end].iter().position(|b| *b == b':')?;
    let password = start + colon + 1..start + end;
    let shown = is_reference(&bytes[password.start..]);
    (rest[end] == b'@' && !password.is_empty() && !shown).then_some(password)
}
