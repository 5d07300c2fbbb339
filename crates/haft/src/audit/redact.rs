//! `Redactor`: takes secrets out of text before it is written: known values, and what looks like a key.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, BuildError, Input, MatchKind};

mod shapes;
#[cfg(test)]
mod tests;

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Shortest secret value that is searched for: shorter ones (`1`, `yes`) would redact ordinary text everywhere.
const SHORTEST: usize = 4;

/// Takes secrets out of text, plain or JSON, in time linear in its length.
///
/// It knows values (of `${env:…}` and `${file:…}` settings; also as JSON writes them) and shapes: bearer tokens,
/// authorization headers, private keys, passwords in URLs, `password=` pairs, the keys of well-known services.
#[derive(Default)]
pub struct Redactor {
    values: Vec<String>,
    /// Built at first use: most short runs of the program never write a line. `None` when it cannot be built.
    search: OnceLock<Option<Search>>,
}

impl Clone for Redactor {
    /// The same values; the search is built again at its first use.
    fn clone(&self) -> Self {
        Self {
            values: self.values.clone(),
            search: OnceLock::new(),
        }
    }
}

/// The two automata: known values, and the words that shapes begin with.
struct Search {
    values: AhoCorasick,
    markers: AhoCorasick,
    /// The longest known value.
    longest: usize,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("values", &self.values.len())
            .finish_non_exhaustive()
    }
}

impl Redactor {
    /// Knows these secret values besides the shapes; spaces around them do not count, nor do values under four bytes.
    pub fn new(secrets: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut values = Vec::new();
        for secret in secrets {
            let secret = secret.as_ref().trim();
            if secret.len() >= SHORTEST {
                values.extend(written_forms(secret));
            }
        }
        values.sort_unstable();
        values.dedup();
        Self {
            values,
            search: OnceLock::new(),
        }
    }

    /// The text without secrets.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact_within(text, usize::MAX)
    }

    /// The text without secrets, and of that about `limit` bytes; where it is cut, an ellipsis ends it.
    ///
    /// Reads little further than it must, yet a secret that begins before the cut is known whole.
    pub fn redact_within<'t>(&self, text: &'t str, limit: usize) -> Cow<'t, str> {
        let search = self
            .search
            .get_or_init(|| Search::new(&self.values).ok())
            .as_ref();
        let Some(search) = search else {
            // What cannot be searched is not shown.
            return Cow::Borrowed(REDACTED);
        };
        let mut spans = Spans::new(search, text);
        let mut out = String::new();
        let mut done = 0_usize;
        loop {
            let room = limit.saturating_sub(out.len());
            let horizon = done.saturating_add(room).min(text.len());
            let span = spans.next(horizon);
            let plain = &text[done..span.as_ref().map_or(text.len(), |s| s.start)];
            if span.is_none() && done == 0 && plain.len() <= limit {
                return Cow::Borrowed(text);
            }
            if plain.len() > room || (span.is_some() && plain.len() == room) {
                out.push_str(&plain[..plain.floor_char_boundary(room)]);
                out.push('…');
                return Cow::Owned(out);
            }
            out.push_str(plain);
            let Some(span) = span else {
                return Cow::Owned(out);
            };
            out.push_str(REDACTED);
            done = span.end;
        }
    }
}

impl Search {
    fn new(values: &[String]) -> Result<Self, BuildError> {
        let markers = shapes::MARKERS.iter().map(|(marker, _)| marker);
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::LeftmostLongest);
        Ok(Self {
            values: builder.build(values)?,
            markers: builder.ascii_case_insensitive(true).build(markers)?,
            longest: values.iter().map(String::len).max().unwrap_or(0),
        })
    }
}

/// The ways a secret may stand in text: as it is, as JSON, as JSON in a JSON string, percent-encoded.
fn written_forms(secret: &str) -> Vec<String> {
    // Writing to a String cannot fail.
    let json = json_inner(secret);
    let ascii: String = json.chars().fold(String::new(), |mut out, c| {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
        out
    });
    let percent = secret.bytes().fold(String::new(), |mut out, b| {
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(b));
        } else {
            let _ = write!(out, "%{b:02X}");
        }
        out
    });
    let slashed = json.replace('/', "\\/");
    let twice = json_inner(&json);
    vec![secret.to_owned(), json, ascii, slashed, twice, percent]
}

/// A text as it stands between the quotes of a JSON string.
fn json_inner(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The secrets of a text from left to right, overlapping ones joined.
struct Spans<'s, 't> {
    search: &'s Search,
    text: &'t str,
    values: Cursor,
    shapes: Cursor,
}

/// How far one of the two searches has come.
#[derive(Default)]
struct Cursor {
    /// Nothing begins between the last find and here.
    clear: usize,
    /// The next find.
    found: Option<Range<usize>>,
}

impl<'s, 't> Spans<'s, 't> {
    fn new(search: &'s Search, text: &'t str) -> Self {
        Self {
            search,
            text,
            values: Cursor::default(),
            shapes: Cursor::default(),
        }
    }

    /// The next secret that begins before `horizon`.
    fn next(&mut self, horizon: usize) -> Option<Range<usize>> {
        let mut span = self.take(horizon)?;
        while let Some(more) = self.take(span.end) {
            span.end = span.end.max(more.end);
        }
        Some(span)
    }

    /// Takes the earlier of the two searches' next finds, if it begins before `horizon`.
    fn take(&mut self, horizon: usize) -> Option<Range<usize>> {
        self.look_for_value(horizon);
        self.look_for_shape(horizon);
        let start = |cursor: &Cursor| cursor.found.as_ref().map_or(usize::MAX, |f| f.start);
        let (value, shape) = (start(&self.values), start(&self.shapes));
        if value.min(shape) >= horizon {
            return None;
        }
        let cursor = if value <= shape {
            &mut self.values
        } else {
            &mut self.shapes
        };
        let found = cursor.found.take()?;
        cursor.clear = found.end;
        Some(found)
    }

    fn look_for_value(&mut self, horizon: usize) {
        let cursor = &mut self.values;
        let known = self.search.longest > 0;
        if !known || cursor.found.is_some() || cursor.clear >= horizon {
            return;
        }
        let end = horizon.saturating_add(self.search.longest);
        let input = Input::new(self.text).range(cursor.clear..end.min(self.text.len()));
        cursor.found = self.search.values.find(input).map(|m| m.range());
        cursor.clear = horizon;
    }

    fn look_for_shape(&mut self, horizon: usize) {
        let cursor = &mut self.shapes;
        if cursor.found.is_some() || cursor.clear >= horizon {
            return;
        }
        let end = horizon.saturating_add(shapes::LONGEST_MARKER);
        let mut from = cursor.clear;
        while let Some(marker) = {
            let input = Input::new(self.text).range(from..end.min(self.text.len()));
            self.search.markers.find(input)
        } {
            let (_, shape) = shapes::MARKERS[marker.pattern().as_usize()];
            cursor.found = shape.confirm(self.text, marker.range());
            if cursor.found.is_some() {
                return;
            }
            from = marker.start() + 1;
        }
        cursor.clear = horizon.max(from);
    }
}
