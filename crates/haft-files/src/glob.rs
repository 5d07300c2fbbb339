//! `Glob`: a text pattern with `*`, compiled to the literals between its stars.

/// One character of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GlobToken {
    /// Matches itself.
    Literal(char),
    /// Matches any text, including none.
    Star,
}

/// Maximum number of pairs of pieces compared to find out whether two patterns overlap: the longest command that haft reads (10,000
/// characters) with a pattern of 1,600.
const MAX_COMPARISONS: usize = 1 << 24;

/// A compiled pattern. Matching never backtracks, so its cost is bounded by text times literals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    literals: Box<[Box<str>]>,
}

impl Glob {
    /// Parses a pattern: `*` matches any text, `\*` a star, `\\` a backslash.
    pub fn parse(pattern: &str) -> Self {
        let mut chars = pattern.chars().peekable();
        let mut pieces = Vec::new();
        while let Some(c) = chars.next() {
            pieces.push(match c {
                '*' => GlobToken::Star,
                '\\' => GlobToken::Literal(chars.next_if(|n| matches!(n, '*' | '\\')).unwrap_or(c)),
                c => GlobToken::Literal(c),
            });
        }
        Self::from_pieces(pieces)
    }

    /// Creates a pattern from pieces whose escapes are already resolved.
    pub fn from_pieces(pieces: impl IntoIterator<Item = GlobToken>) -> Self {
        let mut literals = vec![String::new()];
        for piece in pieces {
            match (piece, literals.last_mut()) {
                (GlobToken::Literal(c), Some(last)) => last.push(c),
                _ => literals.push(String::new()),
            }
        }
        Self {
            literals: literals.into_iter().map(Into::into).collect(),
        }
    }

    /// Whether the pattern has no star.
    pub fn is_exact(&self) -> bool {
        self.literals.len() == 1
    }

    /// Whether it matches whatever follows a text that it matches.
    pub fn ends_with_star(&self) -> bool {
        self.literals.len() > 1 && self.literals.last().is_some_and(|last| last.is_empty())
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
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
    /// Whether some text matches both patterns. Very long patterns are assumed to overlap.
    pub fn overlaps(&self, other: &Self) -> bool {
        if !self.begins_like(other) {
            return false;
        }
        let (ours, those) = (self.pieces(), other.pieces());
        if ours.len().saturating_mul(those.len()) > MAX_COMPARISONS {
            return true;
        }
        // `reached[j]`: the pieces read so far can match the same text as the first `j` pieces of the other pattern.
        let mut reached = vec![false; those.len() + 1];
        reached[0] = true;
        close(&mut reached, &those, None);
        for piece in &ours {
            let mut next = vec![false; those.len() + 1];
            for (j, _) in reached.iter().enumerate().filter(|(_, at)| **at) {
                match (piece, those.get(j)) {
                    (GlobToken::Star, _) | (_, Some(GlobToken::Star)) => next[j] = true,
                    (GlobToken::Literal(a), Some(GlobToken::Literal(b))) if a == b => {
                        next[j + 1] = true;
                    }
                    (GlobToken::Literal(_), _) => {}
                }
            }
            close(&mut next, &those, Some(*piece));
            reached = next;
        }
        reached.last() == Some(&true)
    }

    /// Whether it matches every text that the other matches. Only a star matches the other's star, so some `false` answers are wrong.
    pub fn covers(&self, other: &Self) -> bool {
        // No command line, host or name contains it.
        const STAR: &str = "\u{10ffff}";
        let holds = |glob: &Self| glob.literals.iter().any(|literal| literal.contains(STAR));
        !holds(self) && !holds(other) && self.matches(&other.literals.join(STAR))
    }

    /// Whether the literal starts of both patterns agree up to the end of the shorter one. Most patterns that do not
    /// overlap differ there.
    fn begins_like(&self, other: &Self) -> bool {
        let (ours, those) = (&*self.literals[0], &*other.literals[0]);
        ours.starts_with(those) || those.starts_with(ours)
    }

    /// Returns `.ext` if the pattern matches exactly the names with this extension.
    pub(crate) fn extension(&self) -> Option<&str> {
        let [first, last] = &*self.literals else {
            return None;
        };
        let letters = last.strip_prefix('.')?;
        let plain = !letters.is_empty() && letters.chars().all(|c| c.is_ascii_alphanumeric());
        (first.is_empty() && plain).then_some(&**last)
    }

    /// Returns the pattern as the user writes it, without escapes.
    pub fn to_text(&self) -> String {
        self.literals.join("*")
    }

    /// Returns its literals, character by character, and the stars between them.
    pub fn pieces(&self) -> Vec<GlobToken> {
        let mut pieces = Vec::new();
        for (at, literal) in self.literals.iter().enumerate() {
            pieces.extend((at > 0).then_some(GlobToken::Star));
            pieces.extend(literal.chars().map(GlobToken::Literal));
        }
        pieces
    }
}

/// Marks the positions reached without consuming text: the other's stars match nothing, and a star of ours matches any next piece.
fn close(reached: &mut [bool], those: &[GlobToken], read: Option<GlobToken>) {
    for j in 0..those.len() {
        let skips = those[j] == GlobToken::Star || read == Some(GlobToken::Star);
        reached[j + 1] |= reached[j] && skips;
    }
}

/// Escapes the text to a pattern that matches only it.
pub fn escape(text: &str) -> String {
    text.replace('\\', r"\\").replace('*', r"\*")
}

#[cfg(test)]
mod tests {
    use super::Glob;

    /// Returns every text over these characters up to a length.
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
        // Two patterns of four pieces that overlap share a text of at most eight characters.
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
                assert_eq!(one.overlaps(other), expect, "{one:?} {other:?}");
            }
        }
    }
}
