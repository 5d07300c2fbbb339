//! `Redactor`: removes secrets from text before it is written: known values, and text that looks like a key.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, BuildError, Input, Match, MatchKind};
use arc_swap::ArcSwap;

mod forms;
mod shapes;
mod stream;
#[cfg(test)]
mod tests;

use shapes::SecretShape;
pub use stream::RedactedStream;

/// The replacement for a secret.
pub const REDACTED: &str = "[redacted]";

/// Minimum length of a secret value that is searched for: shorter ones (`1`, `yes`) would redact ordinary text everywhere.
const MIN_SECRET: usize = 4;

/// Removes secrets from text, plain or JSON, in time linear in its length.
///
/// It knows values (of `${env:…}` and `${file:…}` settings; also as JSON escapes them, percent-encoded, and within base64) and
/// shapes: bearer tokens, authorization headers, private keys, passwords in URLs, `password=` pairs, the keys of well-known
/// services. Clones share the values: what one learns, all know.
#[derive(Clone, Default)]
pub struct Redactor(Arc<ArcSwap<KnownSecrets>>);

/// The known values, and the search for them.
#[derive(Default)]
struct KnownSecrets {
    /// Permanent values.
    lasting: Needles,
    /// Replaceable values, by their purpose.
    passing: BTreeMap<String, Needles>,
    /// All values together.
    all: Needles,
    /// Built on first use: most short runs of the program never write a line. `None` if it cannot be built.
    search: OnceLock<Option<SecretAutomata>>,
}

/// The texts that are searched for.
#[derive(Default, Clone, PartialEq, Eq)]
struct Needles {
    /// Texts that are searched for as they are.
    values: Vec<String>,
    /// Base64 fragments of them; the whole base64 text around a match is redacted.
    cores: Vec<String>,
}

/// The two automata: known values, and the words that shapes start with.
struct SecretAutomata {
    values: AhoCorasick,
    markers: AhoCorasick,
    /// Length of the longest known value.
    longest: usize,
    /// Number of patterns that are searched for as they are; the others are searched within base64.
    plain: usize,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("values", &self.0.load().all.values.len())
            .finish_non_exhaustive()
    }
}

impl Redactor {
    /// Creates a redactor for these secret values and the shapes; surrounding whitespace is ignored, as are values under four bytes.
    pub fn new(secrets: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let redactor = Self::default();
        redactor.learn(secrets);
        redactor
    }

    /// Adds these secret values; all clones know them from now on.
    pub fn learn(&self, secrets: impl IntoIterator<Item = impl AsRef<str>>) {
        let new = Needles::of(secrets);
        self.change(|lasting, _| *lasting = lasting.with(&new));
    }

    /// Like [`learn`](Self::learn), for values that change, such as tokens: these replace the ones learnt for this purpose before.
    pub fn learn_for(&self, purpose: &str, secrets: impl IntoIterator<Item = impl AsRef<str>>) {
        let new = Needles::of(secrets);
        self.change(|_, passing| drop(passing.insert(purpose.to_owned(), new.clone())));
    }

    fn change(&self, change: impl Fn(&mut Needles, &mut BTreeMap<String, Needles>)) {
        self.0.rcu(|known| {
            let (mut lasting, mut passing) = (known.lasting.clone(), known.passing.clone());
            change(&mut lasting, &mut passing);
            if lasting == known.lasting && passing == known.passing {
                return Arc::clone(known);
            }
            let all = passing
                .values()
                .fold(lasting.clone(), |all, more| all.with(more));
            Arc::new(KnownSecrets {
                lasting,
                passing,
                all,
                search: OnceLock::new(),
            })
        });
    }

    /// Returns the text without secrets.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact_within(text, usize::MAX)
    }

    /// Returns the text without secrets for somebody who decides whether it may be run or written: hides known values, and of what looks
    /// like a secret only what cannot be code.
    pub fn redact_exactly<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact_as(text, usize::MAX, SecretShape::confirm_exactly)
    }

    /// Returns about `limit` bytes of the text without secrets; if cut, it ends with an ellipsis.
    ///
    /// Reads little further than necessary, but recognises a secret that starts before the cut as a whole.
    pub fn redact_within<'t>(&self, text: &'t str, limit: usize) -> Cow<'t, str> {
        self.redact_as(text, limit, SecretShape::confirm)
    }

    fn redact_as<'t>(&self, text: &'t str, limit: usize, confirm: Confirm) -> Cow<'t, str> {
        let known = self.0.load();
        let Some(search) = known.search() else {
            // Text that cannot be searched is not shown.
            return Cow::Borrowed(REDACTED);
        };
        let mut spans = Spans::new(search, text, confirm);
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

impl KnownSecrets {
    /// Returns the search for the values; `None` if it cannot be built.
    fn search(&self) -> Option<&SecretAutomata> {
        let build = || SecretAutomata::new(&self.all.values, &self.all.cores).ok();
        self.search.get_or_init(build).as_ref()
    }
}

impl Needles {
    /// Computes the search texts of these secrets.
    fn of(secrets: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut new = Self::default();
        for secret in secrets {
            let secret = secret.as_ref().trim();
            if secret.len() >= MIN_SECRET {
                for meaning in forms::meanings(secret) {
                    new.values.extend(forms::written(&meaning));
                    new.cores.extend(forms::cores(&meaning));
                }
            }
        }
        Self::default().with(&new)
    }

    /// Returns the union of both.
    fn with(&self, more: &Self) -> Self {
        Self {
            values: joined(&self.values, &more.values),
            cores: joined(&self.cores, &more.cores),
        }
    }
}

impl SecretAutomata {
    fn new(values: &[String], cores: &[String]) -> Result<Self, BuildError> {
        let markers = shapes::MARKERS.iter().map(|(marker, _)| marker);
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::LeftmostLongest);
        Ok(Self {
            values: builder.build(values.iter().chain(cores))?,
            markers: builder.ascii_case_insensitive(true).build(markers)?,
            longest: values
                .iter()
                .chain(cores)
                .map(String::len)
                .max()
                .unwrap_or(0),
            plain: values.len(),
        })
    }

    /// Returns the range to redact where a value was found, never before `clear`.
    fn span(&self, bytes: &[u8], found: &Match, clear: usize) -> Range<usize> {
        if found.pattern().as_usize() < self.plain {
            return found.range();
        }
        // Redacts the whole base64 text: its neighbours hold bits of the secret, and other parts of what it belongs to.
        let (before, after) = (&bytes[clear..found.start()], &bytes[found.end()..]);
        let is_base64 = |byte: &&u8| forms::is_base64(**byte);
        let start = before.iter().rev().take_while(is_base64).count();
        let end = after.iter().take_while(is_base64).count();
        found.start() - start..found.end() + end
    }
}

/// Returns both lists merged, sorted and without duplicates.
fn joined(known: &[String], new: &[String]) -> Vec<String> {
    let mut all = [known, new].concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the secret of a shape after its marker, if it is one.
type Confirm = fn(SecretShape, &str, Range<usize>) -> Option<Range<usize>>;

/// The secrets of a text from left to right, with overlapping ones merged.
struct Spans<'s, 't> {
    search: &'s SecretAutomata,
    text: &'t str,
    confirm: Confirm,
    values: MatchCursor,
    shapes: MatchCursor,
}

/// The progress of one of the two searches.
#[derive(Default)]
struct MatchCursor {
    /// No secret starts between the last match and this position.
    clear: usize,
    /// The next match.
    found: Option<Range<usize>>,
}

impl<'s, 't> Spans<'s, 't> {
    fn new(search: &'s SecretAutomata, text: &'t str, confirm: Confirm) -> Self {
        Self {
            search,
            text,
            confirm,
            values: MatchCursor::default(),
            shapes: MatchCursor::default(),
        }
    }

    /// Returns the next secret that starts before `horizon`.
    fn next(&mut self, horizon: usize) -> Option<Range<usize>> {
        let mut span = self.take(horizon)?;
        while let Some(more) = self.take(span.end) {
            span.end = span.end.max(more.end);
        }
        Some(span)
    }

    /// Takes the earlier of the two searches' next matches, if it starts before `horizon`.
    fn take(&mut self, horizon: usize) -> Option<Range<usize>> {
        self.find_value(horizon);
        self.find_shape(horizon);
        let start = |cursor: &MatchCursor| cursor.found.as_ref().map_or(usize::MAX, |f| f.start);
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

    fn find_value(&mut self, horizon: usize) {
        let cursor = &mut self.values;
        let known = self.search.longest > 0;
        if !known || cursor.found.is_some() || cursor.clear >= horizon {
            return;
        }
        let end = horizon.saturating_add(self.search.longest);
        let input = Input::new(self.text).range(cursor.clear..end.min(self.text.len()));
        let found = self.search.values.find(input);
        let bytes = self.text.as_bytes();
        cursor.found = found.map(|found| self.search.span(bytes, &found, cursor.clear));
        cursor.clear = horizon;
    }

    fn find_shape(&mut self, horizon: usize) {
        let cursor = &mut self.shapes;
        if cursor.found.is_some() || cursor.clear >= horizon {
            return;
        }
        let end = horizon.saturating_add(shapes::MAX_MARKER);
        let mut from = cursor.clear;
        while let Some(marker) = {
            let input = Input::new(self.text).range(from..end.min(self.text.len()));
            self.search.markers.find(input)
        } {
            let (_, shape) = shapes::MARKERS[marker.pattern().as_usize()];
            cursor.found = (self.confirm)(shape, self.text, marker.range());
            if cursor.found.is_some() {
                return;
            }
            from = marker.start() + 1;
        }
        cursor.clear = horizon.max(from);
    }
}
