//! `PathShape`: which paths a word of the shell can be, as far as is known before it runs.

use haft_shell::{AsWord, Expansions, Word};

use crate::word::Bindings;

/// Maximum number of shapes of one word; one with more can be any path.
const MAX_SHAPES: usize = 64;
/// Maximum nesting of braces.
const MAX_BRACES: usize = 8;

/// One part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShapePart {
    /// A character.
    Char(char),
    /// Any text without a slash: what a pattern such as `*` matches.
    Name,
    /// Any text.
    Any,
}

/// A set of paths that a word can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathShape {
    /// Its parts, in order.
    pub parts: Vec<ShapePart>,
}

impl PathShape {
    /// Creates the shape of one path.
    pub fn known(path: &str) -> Self {
        Self {
            parts: path.chars().map(ShapePart::Char).collect(),
        }
    }

    fn any() -> Self {
        Self {
            parts: vec![ShapePart::Any],
        }
    }

    /// Returns the shapes of a word, which together hold every path that it can be.
    ///
    /// A word does not tell which of its characters are quoted: each is taken for what the shell could make of it.
    pub fn of<W: AsWord>(word: &W, bindings: &Bindings<'_>) -> Vec<Self> {
        let open = word.expansions();
        if open.is_empty() {
            return vec![Self::known(word.text())];
        }
        if open.intersects(Expansions::OUTPUT | Expansions::TILDE) {
            return vec![Self::any()];
        }
        let texts = if open.intersects(Expansions::BRACE) {
            braces(word.text(), 0)
        } else {
            Some(vec![word.text().to_owned()])
        };
        let Some(texts) = texts else {
            return vec![Self::any()];
        };
        let mut found = Vec::new();
        for text in texts {
            found.extend(of_text(&text, open, bindings));
            if found.len() > MAX_SHAPES {
                return vec![Self::any()];
            }
        }
        found
    }

    /// Whether the text is one of these paths.
    pub fn matches(&self, text: &str) -> bool {
        matches(&self.parts, text)
    }
}

/// Whether the text is one that these parts stand for.
pub fn matches(parts: &[ShapePart], text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    // Which beginnings of the text the parts before this one stand for.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for part in parts {
        let mut next = vec![false; text.len() + 1];
        for at in 0..=text.len() {
            match part {
                ShapePart::Char(c) => next[at] = at > 0 && reached[at - 1] && text[at - 1] == *c,
                ShapePart::Name => {
                    next[at] = reached[at] || (at > 0 && next[at - 1] && text[at - 1] != '/');
                }
                ShapePart::Any => next[at] = reached[at] || (at > 0 && next[at - 1]),
            }
        }
        reached = next;
    }
    reached[text.len()]
}

/// Returns the shapes of a text without braces that the shell expands.
fn of_text(text: &str, open: Expansions, bindings: &Bindings<'_>) -> Vec<PathShape> {
    let mut found = vec![PathShape { parts: Vec::new() }];
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (length, pieces) = match c {
            '$' if open.intersects(Expansions::VALUE) => {
                let (length, pieces) = variable(rest, open, bindings);
                let behind = &rest[length..];
                let is_folder =
                    rest.len() == text.len() && (behind.is_empty() || behind.starts_with('/'));
                // The working directory is known by its place alone: nothing may stand beside it.
                if matches!(&rest[..length], "$PWD" | "${PWD}") && !is_folder {
                    (length, one(ShapePart::Any))
                } else {
                    (length, pieces)
                }
            }
            '*' | '?' if open.intersects(Expansions::GLOB | Expansions::BRACE) => {
                (1, one(ShapePart::Name))
            }
            '[' if open.intersects(Expansions::GLOB) => match bracket(rest) {
                Some(length) => (length, one(ShapePart::Name)),
                None => (1, one(ShapePart::Char(c))),
            },
            c => (c.len_utf8(), one(ShapePart::Char(c))),
        };
        rest = &rest[length..];
        if found.len() * pieces.len() > MAX_SHAPES {
            return vec![PathShape::any()];
        }
        let mut next = Vec::with_capacity(found.len() * pieces.len());
        for piece in &pieces {
            for before in &found {
                let parts = [before.parts.as_slice(), piece].concat();
                next.push(PathShape { parts });
            }
        }
        found = next;
    }
    found
}

fn one(part: ShapePart) -> Vec<Vec<ShapePart>> {
    vec![vec![part]]
}

/// Returns the length of the expansion that the text begins with, and what it can be.
fn variable(text: &str, open: Expansions, bindings: &Bindings<'_>) -> (usize, Vec<Vec<ShapePart>>) {
    let after = &text[1..];
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    if let Some(braced) = after.strip_prefix('{') {
        // The text within is shown without quotes, so a bracket in it may be one that ends nothing.
        let end = braced.find('}').map_or(text.len(), |at| at + 3);
        let name = &text[2..end.saturating_sub(1).max(2)];
        let is_whole = !name.is_empty() && name.chars().all(is_part);
        if !is_whole {
            let more = braced.matches('{').count();
            return if more == 0 {
                (end, one(ShapePart::Any))
            } else {
                (text.len(), one(ShapePart::Any))
            };
        }
        return (end, values(name, open, bindings));
    }
    let length = after.find(|c| !is_part(c)).unwrap_or(after.len());
    let first = after.chars().next();
    match first {
        Some(c) if c == '_' || c.is_ascii_alphabetic() => {
            (1 + length, values(&after[..length], open, bindings))
        }
        // `$1` and the like.
        Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => (2, one(ShapePart::Any)),
        // Arithmetic.
        Some('(') => (
            after.find(')').map_or(text.len(), |at| at + 2),
            one(ShapePart::Any),
        ),
        _ => (1, one(ShapePart::Char('$'))),
    }
}

/// Returns what a variable can hold.
fn values(name: &str, open: Expansions, bindings: &Bindings<'_>) -> Vec<Vec<ShapePart>> {
    let splits = open.intersects(Expansions::SPLIT);
    let unknown = || one(ShapePart::Any);
    let looped = bindings.values(name);
    let looped = looped.map(|words| words.into_iter().cloned().collect());
    let Some(words): Option<Vec<Word>> = looped.or_else(|| bindings.assigned(name)) else {
        return match bindings.fixed(name) {
            Some(path) => vec![PathShape::known(path).parts],
            None => unknown(),
        };
    };
    let mut found = Vec::new();
    for word in words {
        // Its own variables may have had other values where the loop began, and what splits is several words.
        if word.expansions.intersects(Expansions::VALUE)
            || (splits && word.text.contains(char::is_whitespace))
        {
            return unknown();
        }
        let again = Word {
            // Without quotes, the value is a pattern, too.
            expansions: if splits && word.text.contains(['*', '?', '[']) {
                word.expansions | Expansions::GLOB
            } else {
                word.expansions
            },
            text: word.text,
        };
        found.extend(PathShape::of(&again, &Bindings::NONE));
        if found.len() > MAX_SHAPES {
            return unknown();
        }
    }
    if found.is_empty() {
        return unknown();
    }
    found.into_iter().map(|shape| shape.parts).collect()
}

/// Returns the length of the bracket expression that the text begins with: `[a-z]`, `[!]x]`, `[[:alpha:]]`.
fn bracket(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    if matches!(bytes.get(at), Some(b'!' | b'^')) {
        at += 1;
    }
    // The first one is a character of the set.
    if bytes.get(at) == Some(&b']') {
        at += 1;
    }
    loop {
        match bytes.get(at)? {
            b']' => return Some(at + 1),
            b'/' => return None,
            b'[' if matches!(bytes.get(at + 1), Some(b':' | b'.' | b'=')) => {
                let kind = char::from(bytes[at + 1]);
                let end = format!("{kind}]");
                at = text[at + 2..].find(&end).map_or(at + 1, |len| at + 4 + len);
            }
            _ => at += 1,
        }
    }
}

/// Returns the texts that the braces of a text make; `None` if there are too many.
fn braces(text: &str, depth: usize) -> Option<Vec<String>> {
    let Some((before, inner, after)) = first_braces(text) else {
        return Some(vec![text.to_owned()]);
    };
    if depth >= MAX_BRACES {
        return None;
    }
    let parts = split_commas(inner);
    let middles: Vec<String> = if parts.len() > 1 {
        let mut middles = Vec::new();
        for part in parts {
            middles.extend(braces(part, depth + 1)?);
        }
        middles
    } else {
        // A sequence: one name without a slash.
        vec!["*".to_owned()]
    };
    let ends = braces(after, depth + 1)?;
    if middles.len() * ends.len() > MAX_SHAPES {
        return None;
    }
    let each = middles.iter();
    let each = each.flat_map(|middle| ends.iter().map(move |end| format!("{before}{middle}{end}")));
    Some(each.collect())
}

/// Returns what is before, in and behind the first braces that make several words.
fn first_braces(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(found) = text[from..].find('{') {
        let start = from + found;
        from = start + 1;
        // `${…}`.
        if text[..start].ends_with('$') {
            continue;
        }
        let mut depth = 0_usize;
        let end = text[start..].char_indices().find_map(|(at, c)| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(start + at)
        });
        let Some(end) = end else {
            continue;
        };
        let inner = &text[start + 1..end];
        if split_commas(inner).len() > 1 || inner.contains("..") {
            return Some((&text[..start], inner, &text[end + 1..]));
        }
    }
    None
}

/// Splits a text at the commas that are in no braces.
fn split_commas(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0_usize, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[from..]);
    found
}

#[cfg(test)]
mod tests {
    use haft_shell::parse;

    use super::{PathShape, ShapePart};
    use crate::word::Bindings;

    /// Returns the shapes of the last word of a line's command `x`, with `*` for a name and `%` for any text.
    fn shapes(line: &str) -> Vec<String> {
        let read = parse(line).unwrap();
        let mut parts = read.commands.iter();
        let part = parts.find(|part| part.text.starts_with('x')).unwrap();
        let bindings = Bindings::of(&read, part)
            .with_home(Some("/home/u"))
            .in_fresh_shell();
        let shown = |shape: &PathShape| {
            let each = shape.parts.iter().map(|part| match part {
                ShapePart::Char(c) => *c,
                ShapePart::Name => '*',
                ShapePart::Any => '%',
            });
            each.collect()
        };
        let word = part.words.last().unwrap();
        PathShape::of(word, &bindings).iter().map(shown).collect()
    }

    /// Lines, and the shapes of the last word of their command `x`.
    const WORDS: &[(&str, &[&str])] = &[
        ("x a/b", &["a/b"]),
        ("x a*", &["a*"]),
        ("x [[:alpha:]]?", &["**"]),
        ("x []a]b", &["*b"]),
        ("x [!]]b", &["*b"]),
        ("x a[b", &["a[b"]),
        ("x $y", &["%"]),
        ("x \"${y%/}\"/c", &["%/c"]),
        ("x ${y:-/}", &["%"]),
        ("x ${y:-\"/\"}", &["%"]),
        ("x ${y:+$z}a", &["%a"]),
        ("x \"$1\"", &["%"]),
        ("x $(y)", &["%"]),
        ("x ~/a", &["%"]),
        ("x $HOME/a", &["/home/u/a"]),
        ("x \"$PWD\"/a", &["./a"]),
        ("x \"${PWD}x\"", &["%x"]),
        ("x ../..$PWD/a", &["../..%/a"]),
        ("HOME=/; x $HOME/a", &["%/a"]),
        ("x {a,b{c,d}}/e", &["a/e", "bc/e", "bd/e"]),
        ("x {,.}./a", &["./a", "../a"]),
        ("x a{1..3}", &["a*"]),
        ("x {a,b}{c,d}", &["ac", "ad", "bc", "bd"]),
        ("for f in a 'b c'; do x \"$f/d\"; done", &["a/d", "b c/d"]),
        ("for f in a 'b c'; do x $f; done", &["%"]),
        ("for f in a '*'; do x $f; done", &["a", "*"]),
        ("for f in *.c; do x \"${f}\"; done", &["*.c"]),
        ("for f in *.c; do x \"${f%.c}.o\"; done", &["%.o"]),
        ("for f in / ~; do x \"$f\"; done", &["/", "%"]),
        ("for f in $(y); do x \"$f\"; done", &["%"]),
        ("for f in a; do x \"$(x \"$f\")\"; done", &["%"]),
        ("for f in a; do y $(x \"$f\"); done", &["a"]),
        (
            "for f in a; do for g in b c; do x \"$f/$g\"; done; done",
            &["a/b", "a/c"],
        ),
        ("for f in a; do for g in $f; do x $g; done; done", &["%"]),
        // It may hold more than the words of its loop.
        ("for f in a; do y; done; x $f", &["%"]),
        (
            "for f in a; do x $f; done; for f in b; do y; done",
            &["a", "b"],
        ),
        ("for f in a; do f=/; x $f; done", &["%"]),
        ("for f in a; do read f; x $f; done", &["%"]),
        ("for f in a; do x $f; done; for f; do y; done", &["%"]),
        ("for f; do x $f; done", &["%"]),
        ("for f in a; do z() { x $f; }; done", &["%"]),
        ("for f in a; do x ${f:+\"/\"}; done", &["%"]),
        ("f=a; x $f", &["a", ""]),
        ("f=a; x \"$f\"/b", &["a/b", "/b"]),
        ("[ x ] && f=a || f='b c'; x \"$f\"", &["a", "b c", ""]),
        ("f=a; f+=b; x $f", &["%"]),
        ("f=$y; x $f", &["%"]),
        ("f=$(y); x $f", &["%", ""]),
        ("F=a; x $F", &["%"]),
        ("f=a; read f; x $f", &["%"]),
        ("f=a; for f in b; do y; done; x $f", &["%"]),
        ("f=$(mktemp -d); x \"$f\"", &["/tmp/tmp.*", ""]),
        (
            "f=\"$(mktemp -d -t y.XXX)\"; x \"$f/a\"",
            &["/tmp/tmp.*/a", "/a"],
        ),
        ("f=$(mktemp -u); x $f", &["%", ""]),
        ("f=$(mktemp --dry-run); x $f", &["%", ""]),
        ("f=$(mktemp; y); x $f", &["%", ""]),
        ("f=$(mktemp)/..; x $f", &["%", ""]),
        ("mktemp() { y; }; f=$(mktemp); x $f", &["%"]),
        ("PATH=y; f=$(mktemp); x $f", &["%"]),
    ];

    #[test]
    fn a_word_is_every_path_that_the_shell_can_make_of_it() {
        for (line, expect) in WORDS {
            assert_eq!(shapes(line), *expect, "{line}");
        }
    }

    #[test]
    fn a_shape_matches_the_texts_that_it_stands_for() {
        let shape = |text: &str| PathShape {
            parts: text
                .chars()
                .map(|c| match c {
                    '*' => ShapePart::Name,
                    '%' => ShapePart::Any,
                    c => ShapePart::Char(c),
                })
                .collect(),
        };
        for (text, path, expect) in [
            ("/a", "/a", true),
            ("/a", "/ab", false),
            ("/a*", "/ab", true),
            ("/a*", "/a/b", false),
            ("%/b", "/a/b", true),
            ("%/b", "/ab", false),
            ("*/*", "a/b", true),
            ("", "", true),
            ("%", "", true),
        ] {
            assert_eq!(shape(text).matches(path), expect, "{text} {path}");
        }
        let _ = Bindings::NONE;
    }
}
