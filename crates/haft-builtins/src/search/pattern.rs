//! `SearchPattern`: a regular expression with bounded cost, so that a search ends soon after its call.
//!
//! A search can stop between two reads of a file, but not while the matcher processes a read. In the worst case this time grows with
//! the size of the compiled expression and with the text processed at once: a nested repetition takes a third of a second per KiB.
//! So the larger the expression, the less text it gets.

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use haft::error::ToolError;

/// Maximum sizes of compiled expressions in bytes, the smallest first, each with the text processed at once: the longest line, or
/// the largest file if matches may span lines. Each takes seconds at worst.
const SIZE_CLASSES: [(usize, usize); 4] = [
    (16 << 10, 4 << 20),
    (128 << 10, 512 << 10),
    (512 << 10, 32 << 10),
    (2 << 20, 8 << 10),
];
/// The same for an expression without special characters, whose cost does not depend on its size.
const LITERAL_SIZES: (usize, usize) = (2 << 20, 64 << 20);
/// Memory for the states of one thread, in bytes.
const STATE_MEMORY: usize = 8 << 20;

/// A compiled expression and the amount of text that it may process.
#[derive(Debug)]
pub(super) struct SearchPattern {
    matcher: RegexMatcher,
    longest: usize,
    spans_lines: bool,
}

impl SearchPattern {
    /// Compiles an expression.
    pub(super) fn new(text: &str, ignore_case: bool, multiline: bool) -> Result<Self, ToolError> {
        let literal = !ignore_case && !text.chars().any(|c| r"\.+*?()|[]{}^$#&-~".contains(c));
        let classes = if literal {
            &[LITERAL_SIZES][..]
        } else {
            &SIZE_CLASSES
        };
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(ignore_case)
            .multi_line(true)
            .dfa_size_limit(STATE_MEMORY);
        if !multiline {
            builder.line_terminator(Some(b'\n'));
        }
        let mut refused = None;
        for &(size, longest) in classes {
            match builder.size_limit(size).build(text) {
                Ok(matcher) => {
                    let never = matcher.non_matching_bytes();
                    let spans_lines = multiline && !never.is_some_and(|set| set.contains(b'\n'));
                    return Ok(Self {
                        matcher,
                        longest,
                        spans_lines,
                    });
                }
                Err(error) => refused = Some(error),
            }
        }
        let why = refused.map_or_else(String::new, |error| error.to_string());
        let advice = if why.contains("size limit") {
            "repeat less often: {1,20} in place of {1,1000}, [A-Za-z0-9_] in place of \\w"
        } else if multiline {
            "escape ( ) [ ] { } . * + ? | ^ $ \\ to search for them literally"
        } else {
            "escape special letters with \\ to search for them; multiline=true allows \\n"
        };
        Err(ToolError::invalid_arguments(format!("pattern: {why}")).with_advice(advice))
    }

    pub(super) fn matcher(&self) -> &RegexMatcher {
        &self.matcher
    }

    /// Returns the maximum length of a line, or of a file if matches may span lines, in bytes.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Returns true if a match may contain the end of a line.
    pub(super) fn spans_lines(&self) -> bool {
        self.spans_lines
    }

    /// Describes the limit of this pattern and how to avoid it.
    pub(super) fn bound(&self) -> String {
        let most = match self.longest {
            mebi if mebi >= 1 << 20 => format!("{} MiB", mebi >> 20),
            kibi => format!("{} KiB", kibi >> 10),
        };
        let (what, instead) = match (self.spans_lines, self.longest == LITERAL_SIZES.1) {
            (true, _) => ("files", "; use a simpler one, or leave out multiline"),
            (false, true) => ("lines", ""),
            (false, false) => ("lines", "; use a simpler one, or search for a plain text"),
        };
        format!("this pattern looks at {what} of at most {most}{instead}")
    }
}

#[cfg(test)]
mod tests {
    use super::{SIZE_CLASSES, SearchPattern};

    #[test]
    fn p11_what_may_take_long_gets_little_text_or_none() {
        let rows = [
            ("fn main", 64 << 20),
            ("fn \\w+\\(", 512 << 10),
            (r"[\w.]+@[a-z0-9.-]+\.[a-z]{2,}", 512 << 10),
            ("TODO|FIXME", 4 << 20),
            (r"\b[A-Z]\w{2,30}Error\b", 8 << 10),
            ("(?:a{1,100}){1,100}b", 8 << 10),
        ];
        for (pattern, longest) in rows {
            let compiled = SearchPattern::new(pattern, false, false).unwrap();
            assert_eq!(compiled.longest(), longest, "{pattern}");
        }
        for pattern in ["(?:a{1,1000}){1,100}b", r"(?:\w{1,100}){1,100}"] {
            let refused = SearchPattern::new(pattern, false, false).unwrap_err();
            assert!(refused.to_string().contains("size limit"), "{refused}");
            assert!(refused.advice().unwrap_or_default().contains("repeat less"));
        }
        assert!(SIZE_CLASSES.is_sorted_by(|a, b| a.0 < b.0 && a.1 > b.1));
    }
}
