//! `RedactedStream`: known secrets taken out of output that goes on while it comes.

use aho_corasick::Input;

use super::forms::is_base64;
use super::{Known, REDACTED, Redactor, Search};

/// Most bytes held back of what may be one text in base64: a longer one goes on in pieces.
const HELD: usize = 64 << 10;

/// Takes the secret values that a [`Redactor`] knows out of a stream of bytes, and nothing else: what merely looks like a secret
/// passes as it is, for the stream is what a program wrote. Without known values every byte goes on at once; with them, the end of what
/// came waits while it may be the beginning of one.
#[derive(Debug)]
pub struct RedactedStream {
    redactor: Redactor,
    held: Vec<u8>,
}

impl RedactedStream {
    /// A stream from its beginning.
    pub fn new(redactor: &Redactor) -> Self {
        Self {
            redactor: redactor.clone(),
            held: Vec::new(),
        }
    }

    /// What goes on of this and of what was held back.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        self.take(false)
    }

    /// The rest: nothing follows.
    pub fn finish(&mut self) -> Vec<u8> {
        self.take(true)
    }

    fn take(&mut self, ended: bool) -> Vec<u8> {
        let known = self.redactor.0.load();
        if known.all.values.is_empty() {
            return std::mem::take(&mut self.held);
        }
        let Some(search) = known.search() else {
            // What cannot be searched is not shown.
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

impl Known {
    /// How much of the bytes no value can begin in that ends after them.
    fn safe_end(&self, search: &Search, bytes: &[u8]) -> usize {
        let from = bytes.len().saturating_sub(search.longest);
        let is_begun = |at: &usize| {
            let end = &bytes[*at..];
            let mut all = self.all.values.iter().chain(&self.all.cores);
            all.any(|value| value.len() > end.len() && value.as_bytes().starts_with(end))
        };
        let mut end = (from..bytes.len()).find(is_begun).unwrap_or(bytes.len());
        if !self.all.cores.is_empty() {
            // A text in base64 goes whole or not at all.
            let before = bytes[..end].iter().rev().take(HELD);
            let word = before.take_while(|byte| is_base64(**byte)).count();
            end -= if word < HELD { word } else { 0 };
        }
        // Nor is one cut in two that is there whole.
        let found = spans(search, bytes).find(|span| span.start < end && end < span.end);
        found.map_or(end, |span| span.start)
    }
}

fn redacted(search: &Search, bytes: &[u8]) -> Vec<u8> {
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

/// Where known values stand, from left to right.
fn spans<'a>(
    search: &'a Search,
    bytes: &'a [u8],
) -> impl Iterator<Item = std::ops::Range<usize>> + 'a {
    let found = search.values.find_iter(Input::new(bytes));
    found.map(move |found| search.span(bytes, &found, 0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What comes of these pieces, whole.
    fn through(redactor: &Redactor, pieces: &[&[u8]]) -> Vec<u8> {
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
            prop_assert_eq!(String::from_utf8(through(&redactor, &pieces)).unwrap(), expected);
        }
    }
}
