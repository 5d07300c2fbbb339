//! `RedactedStream`: removes known secrets from output while it streams.

use aho_corasick::Input;

use super::forms::is_base64;
use super::{KnownSecrets, REDACTED, Redactor, SecretAutomata};

/// Maximum number of bytes held back of what may be a single base64 text; a longer one is passed on in pieces.
const MAX_HELD: usize = 64 << 10;

/// Removes the secret values that a [`Redactor`] knows from a stream of bytes, and nothing else: text that only looks like a secret
/// passes unchanged, because the stream is a program's output. Without known values, every byte passes at once; otherwise the end
/// of the input is held back while it may be the start of a value.
#[derive(Debug)]
pub struct RedactedStream {
    redactor: Redactor,
    held: Vec<u8>,
}

impl RedactedStream {
    /// Creates a stream at its start.
    pub fn new(redactor: &Redactor) -> Self {
        Self {
            redactor: redactor.clone(),
            held: Vec::new(),
        }
    }

    /// Adds input and returns the bytes that can be passed on.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        self.take(false)
    }

    /// Returns the rest, at the end of the stream.
    pub fn finish(&mut self) -> Vec<u8> {
        self.take(true)
    }

    fn take(&mut self, ended: bool) -> Vec<u8> {
        let known = self.redactor.0.load();
        if known.all.values.is_empty() {
            return std::mem::take(&mut self.held);
        }
        let Some(search) = known.search() else {
            // Text that cannot be searched is not shown.
            self.held.clear();
            return REDACTED.into();
        };
        let cut = if ended {
            self.held.len()
        } else {
            known.safe_end(search, &self.held)
        };
        let out = redacted(search, &self.held[..cut]);
        self.held.drain(..cut);
        out
    }
}

impl KnownSecrets {
    /// Returns the length of the prefix after which no value can start that ends beyond these bytes.
    fn safe_end(&self, search: &SecretAutomata, bytes: &[u8]) -> usize {
        let from = bytes.len().saturating_sub(search.longest);
        let is_begun = |at: &usize| {
            let end = &bytes[*at..];
            let mut all = self.all.values.iter().chain(&self.all.cores);
            all.any(|value| value.len() > end.len() && value.as_bytes().starts_with(end))
        };
        let mut end = (from..bytes.len()).find(is_begun).unwrap_or(bytes.len());
        if !self.all.cores.is_empty() {
            // A base64 text is passed on whole or not at all.
            let before = bytes[..end].iter().rev().take(MAX_HELD);
            let word = before.take_while(|byte| is_base64(**byte)).count();
            end -= if word < MAX_HELD { word } else { 0 };
        }
        // Do not cut a complete match in two either.
        let found = spans(search, bytes).find(|span| span.start < end && end < span.end);
        found.map_or(end, |span| span.start)
    }
}

fn redacted(search: &SecretAutomata, bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut done) = (Vec::with_capacity(bytes.len()), 0);
    for span in spans(search, bytes) {
        if span.start >= done {
            out.extend_from_slice(&bytes[done..span.start]);
            out.extend_from_slice(REDACTED.as_bytes());
        }
        done = done.max(span.end);
    }
    out.extend_from_slice(&bytes[done..]);
    out
}

/// Returns the positions of known values, from left to right.
fn spans<'a>(
    search: &'a SecretAutomata,
    bytes: &'a [u8],
) -> impl Iterator<Item = std::ops::Range<usize>> + 'a {
    let found = search.values.find_iter(Input::new(bytes));
    found.map(move |found| search.span(bytes, &found, 0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the redacted output of these pieces.
    fn redact_pieces(redactor: &Redactor, pieces: &[&[u8]]) -> Vec<u8> {
        let mut stream = RedactedStream::new(redactor);
        let mut out: Vec<u8> = pieces.iter().flat_map(|piece| stream.push(piece)).collect();
        out.extend(stream.finish());
        out
    }

    #[test]
    fn bytes_pass_as_they_are_and_at_once_where_no_value_is_known() {
        let mut stream = RedactedStream::new(&Redactor::default());
        for piece in [&b"password=hunter2 \xff\xfe"[..], b"\x00", b"half \xC3"] {
            assert_eq!(stream.push(piece), piece);
        }
        assert!(stream.finish().is_empty());
    }

    #[test]
    fn only_what_may_be_the_beginning_of_a_value_waits() {
        let redactor = Redactor::new(["s3cret!value"]);
        let mut stream = RedactedStream::new(&redactor);
        assert_eq!(stream.push(b"progress: 10% "), b"progress: 10% ");
        assert_eq!(stream.push(b"line\nuser@host:s3c"), b"line\nuser@host:");
        assert_eq!(stream.push(b"ond "), b"s3cond ");
        assert_eq!(stream.push(b">s3cret!val"), b">");
        assert_eq!(stream.push(b"ue<"), b"[redacted]<");
        assert!(stream.finish().is_empty());
    }

    proptest! {
        #[test]
        fn a_value_is_found_however_it_is_cut(
            before in ".{0,40}", after in ".{0,40}", cuts in proptest::collection::vec(0..200_usize, 0..8),
        ) {
            let secret = "k9 x\nline two/of+it==";
            let redactor = Redactor::new([secret]);
            let text = format!("{before}|{secret}|{after}|{secret}");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|at| &text.as_bytes()[at[0]..at[1]]).collect();
            let expected = format!("{before}|[redacted]|{after}|[redacted]");
            prop_assert_eq!(String::from_utf8(redact_pieces(&redactor, &pieces)).unwrap(), expected);
        }
    }
}
