//! The keys of the open objects: finds duplicate keys however they are escaped.

use crate::lexer::{Fault, LexError, Lexer, Span};

/// Up to this many keys of an object are compared immediately; more are sorted at the end of the object.
const MAX_LINEAR: usize = 16;

/// The keys of every open object, innermost last.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    open: Vec<Span>,
}

impl Keys {
    /// Returns the position where the keys of a newly opened object start.
    #[inline]
    pub(crate) fn base(&self) -> usize {
        self.open.len()
    }

    /// Adds a key to the object that started at `base`.
    #[inline]
    pub(crate) fn add(
        &mut self,
        lexer: &Lexer<'_>,
        base: usize,
        key: Span,
    ) -> Result<(), LexError> {
        let others = self.open.get(base..).unwrap_or_default();
        if others.len() < MAX_LINEAR && others.iter().any(|&other| keys_equal(lexer, other, key)) {
            return Err(duplicate(key));
        }
        if self.open.capacity() == 0 {
            self.open.reserve(MAX_LINEAR);
        }
        self.open.push(key);
        Ok(())
    }

    /// Ends the object that started at `base`.
    #[inline]
    pub(crate) fn close(&mut self, lexer: &Lexer<'_>, base: usize) -> Result<(), LexError> {
        if self.open.len() - base > MAX_LINEAR {
            self.sort(lexer, base)?;
        }
        self.open.truncate(base);
        Ok(())
    }

    fn sort(&mut self, lexer: &Lexer<'_>, base: usize) -> Result<(), LexError> {
        let keys = self.open.get_mut(base..).unwrap_or_default();
        let found = if keys.iter().any(|key| key.escaped) {
            let mut named: Vec<(String, Span)> =
                keys.iter().map(|&k| (lexer.unescape(k), k)).collect();
            named.sort_unstable_by(|a, b| (&a.0, a.1.start).cmp(&(&b.0, b.1.start)));
            let twins = named.windows(2).filter_map(|pair| match pair {
                [a, b] if a.0 == b.0 => Some(b.1),
                _ => None,
            });
            twins.min_by_key(|key| key.start)
        } else {
            keys.sort_unstable_by(|&a, &b| (lexer.raw(a), a.start).cmp(&(lexer.raw(b), b.start)));
            let twins = keys.windows(2).filter_map(|pair| match pair {
                &[a, b] if lexer.raw(a) == lexer.raw(b) => Some(b),
                _ => None,
            });
            twins.min_by_key(|key| key.start)
        };
        found.map_or(Ok(()), |key| Err(duplicate(key)))
    }
}

#[inline]
fn keys_equal(lexer: &Lexer<'_>, a: Span, b: Span) -> bool {
    if a.escaped || b.escaped {
        return lexer.unescape(a) == lexer.unescape(b);
    }
    a.end - a.start == b.end - b.start && lexer.raw(a) == lexer.raw(b)
}

#[cold]
pub(crate) fn duplicate(key: Span) -> LexError {
    LexError {
        fault: Fault::DuplicateKey,
        at: key.start - 1,
    }
}
