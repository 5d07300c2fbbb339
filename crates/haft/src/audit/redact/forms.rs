//! The forms in which a secret may appear in text: escaped, percent-encoded, and within base64.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::MIN_SECRET;

/// Decodes base64 with or without padding.
const DECODE_CONFIG: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, DECODE_CONFIG);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, DECODE_CONFIG);

/// Minimum number of base64 characters that are searched for: fewer would match in any image.
const MIN_CORE: usize = 6;
/// Characters that an encoder may leave unencoded besides letters, digits and `-_.~`: none, a path's slashes, those that JavaScript
/// leaves, those allowed in a login.
const UNENCODED: [&str; 4] = ["", "/", "!'()*", "!$&'()*+,;="];

/// Returns a secret and what it implies: its percent-decoded form; and if it is a login in base64, that login and its
/// password.
pub(super) fn meanings(secret: &str) -> Vec<String> {
    let mut all = vec![secret.to_owned()];
    all.extend(percent_decoded(secret));
    let read = STANDARD.decode(secret).or_else(|_| URL_SAFE.decode(secret));
    let login = read.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    if let Some(login) = login.filter(|login| !login.contains(char::is_control))
        && let Some((_, password)) = login.split_once(':')
    {
        all.push(password.to_owned());
        all.push(login.clone());
    }
    all.retain(|each| each.len() >= MIN_SECRET);
    all
}

/// Returns the forms that are searched for as they are: JSON, JSON in a JSON string, percent-encoded.
pub(super) fn written(secret: &str) -> Vec<String> {
    let json = json_inner(secret);
    let ascii: String = json.chars().fold(String::new(), |mut out, c| {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
        out
    });
    let slashed = json.replace('/', "\\/");
    let twice = json_inner(&json);
    let mut forms = vec![secret.to_owned(), json, ascii, slashed, twice];
    for left in UNENCODED {
        let upper = percent(secret, left);
        forms.push(upper.replace("%20", "+"));
        forms.push(lowercase_percent(&upper));
        forms.push(upper);
    }
    forms
}

/// Returns the base64 forms of a secret at any offset, without the characters at both ends that hold bits of other data.
pub(super) fn cores(secret: &str) -> Vec<String> {
    let mut cores = Vec::new();
    for before in 0..3_usize {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(secret.as_bytes());
        let text = STANDARD.encode(&bytes);
        let whole = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
        let Some(core) = text.get(whole).filter(|core| core.len() >= MIN_CORE) else {
            continue;
        };
        cores.push(core.replace('+', "-").replace('/', "_"));
        cores.push(core.replace('/', "\\/"));
        let percent = core.replace('+', "%2B").replace('/', "%2F");
        cores.push(percent.replace("%2B", "%2b").replace("%2F", "%2f"));
        cores.push(percent);
        cores.push(core.to_owned());
    }
    cores
}

/// Returns whether a byte may occur within base64, also if that is encoded again.
pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_=%\\".contains(&byte)
}

/// Returns a text as it appears between the quotes of a JSON string.
fn json_inner(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent(text: &str, left: &str) -> String {
    text.bytes().fold(String::new(), |mut out, b| {
        let plain = b.is_ascii_alphanumeric() || b"-_.~".contains(&b);
        if plain || left.as_bytes().contains(&b) {
            out.push(char::from(b));
        } else {
            let _ = write!(out, "%{b:02X}");
        }
        out
    })
}

/// Lowercases the digits after each `%`.
fn lowercase_percent(percent: &str) -> String {
    let mut parts = percent.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(2.min(part.len()));
        out.push('%');
        out.push_str(&digits.to_ascii_lowercase());
        out.push_str(rest);
    }
    out
}

/// Returns the percent-decoded text; `None` if nothing is encoded, or the result is not text.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| first == b'%');
        let byte = digits
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok().filter(|said| said != text)
}
