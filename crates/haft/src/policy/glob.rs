//! `Glob`: a text pattern with `*`, compiled to the literals between its stars.

/// One character of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Stands for itself.
    Literal(char),
    /// Stands for any text, also none.
    Star,
}

/// Most pairs of pieces that are compared when two patterns might meet.
const MOST_COMPARED: usize = 1 << 16;

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

impl Glob {
    /// Is there a text that both patterns match? Very long patterns are taken to meet.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        if !self.begins_like(other) {
            return false;
        }
        let (ours, those) = (self.pieces(), other.pieces());
        if ours.len().saturating_mul(those.len()) > MOST_COMPARED {
            return true;
        }
        // `reached[j]`: the pieces read so far can stand for the same text as the first `j` of the other's.
        let mut reached = vec![false; those.len() + 1];
        reached[0] = true;
        close(&mut reached, &those, None);
        for piece in &ours {
            let mut next = vec![false; those.len() + 1];
            for (j, _) in reached.iter().enumerate().filter(|(_, at)| **at) {
                match (piece, those.get(j)) {
                    (Piece::Star, _) | (_, Some(Piece::Star)) => next[j] = true,
                    (Piece::Literal(a), Some(Piece::Literal(b))) if a == b => next[j + 1] = true,
                    (Piece::Literal(_), _) => {}
                }
            }
            close(&mut next, &those, Some(*piece));
            reached = next;
        }
        reached.last() == Some(&true)
    }

    /// Does it match every text that the other matches? A star of the other is only taken for a star, so it may say no too often.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        // No command line, host or name holds it.
        const STAR: &str = "\u{10ffff}";
        let holds = |glob: &Self| glob.literals.iter().any(|literal| literal.contains(STAR));
        !holds(self) && !holds(other) && self.matches(&other.literals.join(STAR))
    }

    /// What both begin with, up to the first star of each, is the same as far as the shorter one goes. Most patterns that do
    /// not meet differ there.
    fn begins_like(&self, other: &Self) -> bool {
        let (ours, those) = (&*self.literals[0], &*other.literals[0]);
        ours.starts_with(those) || those.starts_with(ours)
    }

    /// `.ext`, where it is any name with this ending and nothing else is said of it.
    pub(crate) fn extension(&self) -> Option<&str> {
        let [first, last] = &*self.literals else {
            return None;
        };
        let letters = last.strip_prefix('.')?;
        let plain = !letters.is_empty() && letters.chars().all(|c| c.is_ascii_alphanumeric());
        (first.is_empty() && plain).then_some(&**last)
    }

    /// As a person writes it, escapes aside.
    pub(crate) fn to_text(&self) -> String {
        self.literals.join("*")
    }

    fn pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (at, literal) in self.literals.iter().enumerate() {
            pieces.extend((at > 0).then_some(Piece::Star));
            pieces.extend(literal.chars().map(Piece::Literal));
        }
        pieces
    }
}

/// Adds what is reached without reading on: the other's stars stand for nothing, and a star of ours for whatever comes next.
fn close(reached: &mut [bool], those: &[Piece], read: Option<Piece>) {
    for j in 0..those.len() {
        let skips = those[j] == Piece::Star || read == Some(Piece::Star);
        reached[j + 1] |= reached[j] && skips;
    }
}

/// The text as a pattern that matches it alone.
pub(crate) fn escape(text: &str) -> String {
    text.replace('\\', r"\\").replace('*', r"\*")
}

#[cfg(test)]
mod tests {
    use super::Glob;

    /// Every text of these signs up to a length.
    fn texts(signs: &[char], longest: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..longest {
            let longer = last
                .iter()
                .flat_map(|text| signs.iter().map(move |c| format!("{text}{c}")));
            last = longer.collect();
            all.extend_from_slice(&last);
        }
        all
    }

    #[test]
    fn a_pattern_covers_another_only_where_it_matches_all_its_texts() {
        let all = texts(&['a', 'b'], 6);
        let patterns: Vec<(Glob, Vec<bool>)> = texts(&['a', 'b', '*'], 3)
            .iter()
            .map(|pattern| {
                let glob = Glob::parse(pattern);
                let fits = all.iter().map(|text| glob.matches(text)).collect();
                (glob, fits)
            })
            .collect();
        for (wide, fit_wide) in &patterns {
            for (narrow, fit_narrow) in &patterns {
                let all_fit = fit_narrow.iter().zip(fit_wide).all(|(n, w)| !n || *w);
                assert_eq!(wide.covers(narrow), all_fit, "{wide:?} {narrow:?}");
            }
        }
    }

    #[test]
    fn two_patterns_meet_where_a_text_fits_both() {
        // Two patterns of four pieces that meet do so in a text of at most eight.
        let all = texts(&['a', 'b'], 8);
        let patterns: Vec<(Glob, Vec<bool>)> = texts(&['a', 'b', '*'], 4)
            .iter()
            .map(|pattern| {
                let glob = Glob::parse(pattern);
                let fits = all.iter().map(|text| glob.matches(text)).collect();
                (glob, fits)
            })
            .collect();
        for (one, fit_one) in &patterns {
            for (other, fit_other) in &patterns {
                let expect = fit_one.iter().zip(fit_other).any(|(a, b)| *a && *b);
                assert_eq!(one.meets(other), expect, "{one:?} {other:?}");
            }
        }
    }
}
