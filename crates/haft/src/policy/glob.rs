//! `Glob`: a text pattern with `*`, compiled to the literals between its stars.

/// One character of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Stands for itself.
    Literal(char),
    /// Stands for any text, also none.
    Star,
}

/// A compiled pattern. Matching never goes back, so its cost is bounded by text times literals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    literals: Box<[Box<str>]>,
}

impl Glob {
    /// `*` stands for any text, `\*` for a star, `\\` for a backslash.
    pub(crate) fn parse(pattern: &str) -> Self {
        let mut chars = pattern.chars().peekable();
        let mut pieces = Vec::new();
        while let Some(c) = chars.next() {
            pieces.push(match c {
                '*' => Piece::Star,
                '\\' => Piece::Literal(chars.next_if(|n| matches!(n, '*' | '\\')).unwrap_or(c)),
                c => Piece::Literal(c),
            });
        }
        Self::from_pieces(pieces)
    }

    /// A pattern whose escapes are already read.
    pub(crate) fn from_pieces(pieces: impl IntoIterator<Item = Piece>) -> Self {
        let mut literals = vec![String::new()];
        for piece in pieces {
            match (piece, literals.last_mut()) {
                (Piece::Literal(c), Some(last)) => last.push(c),
                _ => literals.push(String::new()),
            }
        }
        Self {
            literals: literals.into_iter().map(Into::into).collect(),
        }
    }

    /// Holds no star.
    pub(crate) fn is_exact(&self) -> bool {
        self.literals.len() == 1
    }

    /// Does the whole text fit?
    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.literals.split_first() else {
            return text.is_empty();
        };
        let Some((last, middle)) = rest.split_last() else {
            return text == &**first;
        };
        let Some(mut text) = text.strip_prefix(&**first) else {
            return false;
        };
        for literal in middle {
            match text.find(&**literal) {
                Some(at) => text = &text[at + literal.len()..],
                None => return false,
            }
        }
        text.ends_with(&**last)
    }
}

/// The text as a pattern that matches it alone.
pub(crate) fn escape(text: &str) -> String {
    text.replace('\\', r"\\").replace('*', r"\*")
}
