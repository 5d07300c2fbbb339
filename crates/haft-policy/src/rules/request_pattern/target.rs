//! `RequestTarget`: the path and query of a request in their normal form, and every other way in which a server may read the path.
//!
//! Servers do not agree on `//`, on `;params`, on slashes that are percent-encoded, nor on how often a path is decoded and what is done
//! between. An allow rule must cover each of these readings, a deny rule covers the request by any of them. A path that goes up a folder
//! in some of them only is none that a person can judge: no allow covers it, and every deny.

use thiserror::Error;

/// Maximum length of a path that is judged, in bytes: servers take about as much in a request's first line.
const MAX_PATH: usize = 8 << 10;
/// Maximum number of times that a path is decoded, which a server may do as often as there are programs before it.
const MAX_DECODED: usize = 4;

const CONTROL: UnclearTarget = UnclearTarget("its path has a control character");
const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// The number of times that a path may be decoded: none, or up to the most.
const LEVELS: usize = MAX_DECODED + 1;
/// The ways of reading a path: decoded so many times, without parameters since one of these times or with them, and without empty names
/// or with them.
const READINGS: usize = LEVELS * (LEVELS + 1) * 2;

/// The reason why nobody can say which path a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct UnclearTarget(&'static str);

/// What a request names at its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTarget {
    readings: PathReadings,
    query: Option<String>,
}

/// The readings of a path, the normal form first; alone if all servers read it the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathReadings(Vec<String>);

impl RequestTarget {
    /// Parses the target of a request: a path with or without a query. A fragment is not sent.
    ///
    /// # Errors
    /// [`UnclearTarget`] if the path is not one that all programs on the way read.
    pub fn parse(target: &str) -> Result<Self, UnclearTarget> {
        let target = target.split('#').next().unwrap_or(target);
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        Ok(Self {
            readings: PathReadings::of(normal_path(path)?)?,
            query: query.map(normal_query),
        })
    }

    /// Returns the path in its normal form: dot segments resolved, letters, digits and `-._~` not encoded, all else in upper case.
    pub fn path(&self) -> &str {
        self.readings.nth(0)
    }

    /// Returns the query.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    pub(crate) fn readings(&self) -> &PathReadings {
        &self.readings
    }
}

impl PathReadings {
    /// Returns the readings of a path in its normal form.
    pub(crate) fn of(path: String) -> Result<Self, UnclearTarget> {
        if !path.contains([';', '%']) && !path.contains("//") {
            return Ok(Self(vec![path]));
        }
        let levels = decoded_levels(path)?;
        let mut all = Vec::with_capacity(READINGS);
        for (level, whole) in levels.iter().enumerate() {
            // The normal form comes first.
            let mut texts = vec![whole.clone()];
            for (at, before) in levels.iter().enumerate() {
                let stripped = without_params(before);
                let text = (at..level).try_fold(stripped, |text, _| decode(&text))?;
                texts.push(if at <= level { text } else { whole.clone() });
            }
            all.extend(texts.into_iter().flat_map(|text| {
                let fewer = without_empty(&text);
                [text, fewer]
            }));
        }
        if all.iter().any(|text| has_dots(text)) {
            return Err(UnclearTarget(
                "its path has `.` or `..` beside encoded signs, parameters or empty names, which servers read in different ways",
            ));
        }
        if all.iter().all(|text| *text == all[0]) {
            all.truncate(1);
        }
        Ok(Self(all))
    }

    /// Returns the number of readings.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns a reading; all are the same where there is one.
    pub(crate) fn nth(&self, at: usize) -> &str {
        let found = self.0.get(at).or_else(|| self.0.first());
        found.map_or("/", String::as_str)
    }
}

/// Returns the normal form of a path (RFC 3986 §6.2.2).
fn normal_path(path: &str) -> Result<String, UnclearTarget> {
    if path.len() > MAX_PATH {
        return Err(UnclearTarget("its path is over 8 KiB long"));
    }
    if !path.starts_with('/') {
        return Err(UnclearTarget("it names no path"));
    }
    Ok(resolve_dots(&spell(path)?))
}

/// Returns part of a path as it is spelled in the normal form.
pub(crate) fn spell(part: &str) -> Result<String, UnclearTarget> {
    let mut out = String::with_capacity(part.len());
    let mut bytes = part.bytes();
    while let Some(byte) = bytes.next() {
        let (byte, encoded) = match byte {
            b'%' => (two_digits(&mut bytes)?, true),
            byte => (byte, false),
        };
        if is_control(byte) {
            return Err(CONTROL);
        }
        push(&mut out, byte, encoded);
    }
    Ok(out)
}

/// Reads the digits after a percent sign.
fn two_digits(bytes: &mut impl Iterator<Item = u8>) -> Result<u8, UnclearTarget> {
    let mut digit = || char::from(bytes.next()?).to_digit(16);
    let both = digit().and_then(|high| Some(high << 4 | digit()?));
    let both = both.and_then(|number| u8::try_from(number).ok());
    both.ok_or(UnclearTarget(
        "its path has a percent sign without two digits",
    ))
}

/// Adds a byte of a path, encoded where it must be (RFC 3986 §3.3, `pchar`) or was and may mean another than itself.
fn push(out: &mut String, byte: u8, encoded: bool) {
    let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if plain || !encoded && b"!$&'()*+,;=:@/".contains(&byte) {
        out.push(char::from(byte));
        return;
    }
    out.push('%');
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// Returns a query with letters, digits and `-._~` decoded, and all else as it is.
pub(crate) fn normal_query(query: &str) -> String {
    let mut out = String::with_capacity(query.len());
    let mut rest = query;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        match two_digits(&mut after.bytes()) {
            Ok(byte) if after.is_char_boundary(2) => {
                push(&mut out, byte, true);
                rest = &after[2..];
            }
            _ => {
                out.push('%');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns a path as a server reads it that decodes it never, once, and so on.
fn decoded_levels(path: String) -> Result<[String; LEVELS], UnclearTarget> {
    let mut levels = std::array::from_fn(|_| String::new());
    levels[0] = path;
    for at in 1..LEVELS {
        levels[at] = decode(&levels[at - 1])?;
    }
    if decode(&levels[MAX_DECODED])? != levels[MAX_DECODED] {
        return Err(UnclearTarget("its path is encoded again and again"));
    }
    Ok(levels)
}

/// Returns a path whose names end before their parameters.
fn without_params(path: &str) -> String {
    let names = path.split('/');
    let names = names.map(|name| name.split(';').next().unwrap_or(name));
    names.collect::<Vec<_>>().join("/")
}

/// Whether a path has a name that leads to itself or up.
fn has_dots(path: &str) -> bool {
    path.split('/').any(|name| matches!(name, "." | ".."))
}

/// Decodes once all that is not the end of a path.
fn decode(text: &str) -> Result<String, UnclearTarget> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        match two_digits(&mut after.bytes()) {
            Ok(b'/' | b'\\') => out.push('/'),
            Ok(byte) if is_control(byte) => return Err(CONTROL),
            Ok(byte) if byte.is_ascii_graphic() && !b"?#".contains(&byte) => {
                out.push(char::from(byte));
            }
            _ => {
                out.push('%');
                rest = after;
                continue;
            }
        }
        rest = &after[2..];
    }
    out.push_str(rest);
    Ok(out)
}

fn is_control(byte: u8) -> bool {
    byte < b' ' || byte == 0x7f
}

/// Returns a path without empty names, except for the one at the end.
fn without_empty(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for sign in path.chars() {
        if sign != '/' || !out.ends_with('/') {
            out.push(sign);
        }
    }
    out
}

/// Resolves the names `.` and `..` (RFC 3986 §5.2.4).
fn resolve_dots(path: &str) -> String {
    if !path.contains("/.") {
        return path.to_owned();
    }
    let mut names: Vec<&str> = Vec::new();
    let mut each = path.split('/').skip(1).peekable();
    while let Some(name) = each.next() {
        let is_last = each.peek().is_none();
        match name {
            "." => {}
            ".." => {
                names.pop();
            }
            name => {
                names.push(name);
                continue;
            }
        }
        names.extend(is_last.then_some(""));
    }
    format!("/{}", names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::{READINGS, RequestTarget};

    #[test]
    fn a_path_has_one_normal_form() {
        for (target, path, query) in [
            ("/", "/", None),
            ("/a/b", "/a/b", None),
            ("/a?", "/a", Some("")),
            ("/a?x=%41&y=%2f#z", "/a", Some("x=A&y=%2F")),
            ("/a?x=%4&y=%", "/a", Some("x=%4&y=%")),
            ("/%61%2d%7E", "/a-~", None),
            ("/a%2fb", "/a%2Fb", None),
            ("/a/./b/../c", "/a/c", None),
            ("/a/%2e%2E/b", "/b", None),
            ("/../../a", "/a", None),
            ("/a/..", "/", None),
            ("/a/.", "/a/", None),
            ("/a/...", "/a/...", None),
            ("/a/.b/..c", "/a/.b/..c", None),
            ("//a//b", "//a//b", None),
            ("/stra\u{df}e", "/stra%C3%9Fe", None),
            ("/a|b\\c", "/a%7Cb%5Cc", None),
            ("/a%20b", "/a%20b", None),
            ("/a b", "/a%20b", None),
        ] {
            let read = RequestTarget::parse(target).unwrap();
            assert_eq!((read.path(), read.query()), (path, query), "{target}");
        }
        let long = format!("/{}", "a".repeat(1 << 20));
        for target in [
            "",
            "*",
            "a",
            "?x",
            "http://a/",
            "/%",
            "/%4",
            "/%zz",
            "/%4\u{fc}",
            "/%00",
            "/a%0d%0ab",
            "/\t",
            "/%2500",
            "/%25252525252525252e",
            &long,
        ] {
            assert!(RequestTarget::parse(target).is_err(), "{target:.40}");
        }
    }

    #[test]
    fn every_way_to_read_a_path_is_known() {
        for (target, readings) in [
            ("/a/b", &["/a/b"][..]),
            ("/a%20b/%41", &["/a%20b/A"]),
            ("/a;x/b", &["/a;x/b", "/a/b"]),
            ("/a//b", &["/a//b", "/a/b"]),
            ("/a%2fb", &["/a%2Fb", "/a/b"]),
            ("/a%252fb", &["/a%252fb", "/a%2fb", "/a/b"]),
            ("/a%5Cb", &["/a%5Cb", "/a/b"]),
            ("/a%3Bx/b", &["/a%3Bx/b", "/a;x/b", "/a/b"]),
            ("/a;%2fb", &["/a;%2Fb", "/a;/b", "/a/b", "/a"]),
        ] {
            let read = RequestTarget::parse(target).unwrap();
            let mut all: Vec<&str> = (0..READINGS).map(|at| read.readings().nth(at)).collect();
            assert_eq!(all[0], readings[0], "{target}");
            all.sort_unstable();
            all.dedup();
            let mut expect = readings.to_vec();
            expect.sort_unstable();
            assert_eq!(all, expect, "{target}");
        }
    }

    #[test]
    fn a_path_that_goes_up_in_some_readings_only_is_unclear() {
        for target in [
            "/a/..;/b",
            "/a/.;x/b",
            "/a/..%2fb",
            "/a%2f../b",
            "/a/%252e%252e%252fb",
            "/a%5c..%5cb",
            "/a/x//..%2f..",
            "/pub/a%252fb%252fc%2f..%2f..%2fadmin",
            "/admin%2f%252e%252e%2f..%2fsecret",
            "/pub/a;%2fb%2fc/..%2f..%2fadmin",
            "/pub/..%3b/admin",
            "/pub/..%253bx/admin",
        ] {
            assert!(RequestTarget::parse(target).is_err(), "{target}");
        }
        // As many do: dots that everybody resolves, and dots within names.
        for target in ["/a/../b//c", "/a/..b%2fc", "/a/v1.2;x/b"] {
            assert!(RequestTarget::parse(target).is_ok(), "{target}");
        }
    }
}
