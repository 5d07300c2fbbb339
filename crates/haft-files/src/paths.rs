//! Paths as rules see them: cleaned text, and gitignore-style patterns compiled to segments.

mod shape;

use std::borrow::Cow;
use std::cell::OnceCell;

use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::glob::{Glob, GlobToken};

pub use haft_shell::clean;
pub use shape::{NameToken, PathShape, PathStart, PathStep};

/// Returns the segments of a cleaned path; empty for `.` and `/`.
pub fn segments(path: &str) -> Vec<&str> {
    path.split('/')
        .filter(|s| !s.is_empty() && *s != ".")
        .collect()
}

/// Returns a text in composed form (Unicode NFC), in which patterns and paths are compared: `é` is one name, however it is stored.
pub fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfc().collect())
    }
}

/// Maximum number of segments of a pattern that [`PathPattern::progress`] distinguishes.
const MAX_PROGRESS: usize = 100;

/// The place where a pattern starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    /// The workspace's root.
    Workspace,
    /// The root of the file system.
    Root,
    /// Any folder below the workspace.
    AnyDepth,
}

/// One segment of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// `**`: any number of folders.
    Deep,
    /// A name without wildcards.
    Name(Box<str>),
    /// A name with `*`, `?` or `[…]`.
    Wild(Box<[WildcardToken]>),
}

/// One element of a name with wildcards.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WildcardToken {
    Char(char),
    One,
    Many,
    Class {
        not: bool,
        ranges: Box<[(char, char)]>,
    },
}

/// A compiled gitignore-style pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    anchor: Anchor,
    segments: Box<[Segment]>,
    /// Whether it ends in `/**`: an allow then covers what is below the folder, but not the folder itself.
    inside: bool,
}

/// Why a path pattern cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathProblem {
    /// `!pattern`.
    Negated,
    /// It leads out of the workspace.
    Escapes,
    /// `~/…` without a known home folder.
    NoHome,
}

impl PathPattern {
    /// Parses a pattern. With `strict` (deny and ask), a single `dir/**` matches at any depth; otherwise only at the workspace's root.
    ///
    /// # Errors
    /// The text is not a valid pattern, or leads out of the workspace: see [`PathProblem`].
    pub fn parse(text: &str, home: Option<&str>, strict: bool) -> Result<Self, PathProblem> {
        if text.starts_with('!') {
            return Err(PathProblem::Negated);
        }
        let text = &*composed(text);
        let home_path;
        let (anchor, rest) = if let Some(rest) = text.strip_prefix("//") {
            (Some(Anchor::Root), rest)
        } else if let Some(rest) = text
            .strip_prefix("~/")
            .or(text.strip_prefix('~').filter(|r| r.is_empty()))
        {
            home_path = format!("{}/{rest}", home.ok_or(PathProblem::NoHome)?);
            (Some(Anchor::Root), home_path.as_str())
        } else if let Some(rest) = text.strip_prefix('/').or(text.strip_prefix("./")) {
            (Some(Anchor::Workspace), rest)
        } else {
            (None, text)
        };
        let folder = rest.ends_with('/') && !rest.trim_end_matches('/').is_empty();
        let mut parts: Vec<&str> = rest
            .split('/')
            .filter(|s| !s.is_empty() && *s != ".")
            .collect();
        if parts.contains(&"..") {
            return Err(PathProblem::Escapes);
        }
        let mut inside = folder;
        while parts.last() == Some(&"**") {
            parts.pop();
            inside = true;
        }
        let anchor = anchor.unwrap_or(match parts.len() {
            1 if strict || !inside => Anchor::AnyDepth,
            _ => Anchor::Workspace,
        });
        Ok(Self {
            anchor,
            segments: parts.into_iter().map(Segment::parse).collect(),
            inside,
        })
    }

    /// Whether an allow rule with this pattern covers the path.
    pub fn allows(&self, path: &PathView<'_>) -> bool {
        let Some(parts) = self.start(path, false) else {
            return false;
        };
        let wild = matches!(self.segments.last(), Some(Segment::Wild(_)));
        let whole = self.fits(parts);
        if self.inside {
            return (0..parts.len()).any(|len| self.fits(&parts[..len]));
        }
        // A name covers what lies below it; a name with wildcards is meant for files.
        whole || (!wild && (0..parts.len()).any(|len| self.fits(&parts[..len])))
    }

    /// Whether a deny or ask rule with this pattern covers the path: also the folder of `dir/**` and everything below what it names.
    pub fn forbids(&self, path: &PathView<'_>) -> bool {
        let Some(parts) = self.start(path, true) else {
            return false;
        };
        if self.segments.contains(&Segment::Deep) {
            return (0..=parts.len()).any(|len| self.fits(&parts[..len]));
        }
        let length = self.segments.len();
        match self.anchor {
            _ if length == 0 => true,
            Anchor::AnyDepth => parts
                .windows(length)
                .any(|window| fit(&self.segments, window)),
            Anchor::Workspace | Anchor::Root => parts
                .get(..length)
                .is_some_and(|start| fit(&self.segments, start)),
        }
    }

    /// Whether this pattern as deny or ask covers every path that the other covers as allow. True only where plain names prove it.
    pub fn covers(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        let is_name = |segment: &Segment| matches!(segment, Segment::Name(_));
        let length = self.segments.len();
        if !self.segments.iter().all(is_name) {
            return false;
        }
        match self.anchor {
            Anchor::AnyDepth => {
                let mut windows = other.segments.windows(length.max(1));
                other.anchor != Anchor::Root && windows.any(|window| *window == *self.segments)
            }
            Anchor::Workspace if length == 0 => other.anchor != Anchor::Root,
            Anchor::Workspace | Anchor::Root => {
                other.anchor == self.anchor && other.segments.starts_with(&self.segments)
            }
        }
    }

    /// Whether the segments match every name.
    pub fn is_any(&self) -> bool {
        self.segments.iter().all(|segment| match segment {
            Segment::Deep => true,
            Segment::Name(_) => false,
            Segment::Wild(tokens) => !tokens
                .iter()
                .any(|token| matches!(token, WildcardToken::Char(_))),
        })
    }

    /// Whether it starts at the root of the file system.
    pub fn is_absolute(&self) -> bool {
        self.anchor == Anchor::Root
    }

    /// Whether it matches a name in any folder.
    pub fn is_any_depth(&self) -> bool {
        self.anchor == Anchor::AnyDepth
    }

    /// Returns paths that it matches, from its last `**` on: once with each star empty, once with a letter for it.
    pub fn samples(&self) -> [String; 2] {
        let deep = self.segments.iter().rposition(|s| *s == Segment::Deep);
        let named = self.segments.get(deep.map_or(0, |at| at + 1)..);
        ["", "x"].map(|filler| {
            let each = named.unwrap_or_default().iter();
            let each: Vec<String> = each.map(|segment| segment.sample(filler)).collect();
            each.join("/")
        })
    }

    /// Returns paths that it matches, from its first segment on: each `**` stands for no folder.
    pub fn whole_samples(&self) -> [String; 2] {
        ["", "x"].map(|filler| {
            let named = self.segments.iter().filter(|s| **s != Segment::Deep);
            let each: Vec<String> = named.map(|segment| segment.sample(filler)).collect();
            each.join("/")
        })
    }

    /// Whether its first segment is a name without wildcards.
    pub fn begins_with_name(&self) -> bool {
        matches!(self.segments.first(), Some(Segment::Name(_)))
    }

    /// Returns the literal paths between its wildcards: `src/a` and `b` for `src/a/*/b`.
    pub fn literal_runs(&self) -> Vec<String> {
        let runs = self
            .segments
            .split(|segment| !matches!(segment, Segment::Name(_)));
        let text = |run: &[Segment]| run.iter().map(|name| name.sample("")).collect::<Vec<_>>();
        runs.filter(|run| !run.is_empty())
            .map(|run| text(run).join("/"))
            .collect()
    }

    /// Returns its names with wildcards, in lower case, except those that match every name. A wildcard for one character
    /// becomes a star here.
    pub fn wild_names(&self) -> Vec<Glob> {
        let names = self.segments.iter().filter_map(|segment| match segment {
            Segment::Wild(tokens) if **tokens != [WildcardToken::Many] => Some(tokens),
            _ => None,
        });
        let pieces = |token: &WildcardToken| match token {
            WildcardToken::Char(c) => c.to_lowercase().map(GlobToken::Literal).collect(),
            WildcardToken::One | WildcardToken::Many | WildcardToken::Class { .. } => {
                vec![GlobToken::Star]
            }
        };
        names
            .map(|tokens| Glob::from_pieces(tokens.iter().flat_map(pieces)))
            .collect()
    }

    /// Whether a path that the pattern matches may lie in this folder, or be the folder.
    pub fn may_lie_below(&self, path: &PathView<'_>) -> bool {
        if self.anchor == Anchor::AnyDepth {
            return true;
        }
        // A folder outside of the workspace may contain it.
        let Some(parts) = self.start(path, true) else {
            return true;
        };
        let met = self.segments.iter().take_while(|s| **s != Segment::Deep);
        met.zip(parts).all(|(segment, part)| segment.matches(part))
    }

    /// Whether removing or replacing this folder would remove what the pattern names.
    pub fn lies_below(&self, path: &PathView<'_>) -> bool {
        if self.anchor == Anchor::AnyDepth {
            return false;
        }
        self.start(path, true).is_some_and(|parts| {
            parts.len() < self.segments.len()
                && parts
                    .iter()
                    .zip(&self.segments)
                    .all(|(part, segment)| match segment {
                        Segment::Name(_) => segment.matches(part),
                        _ => false,
                    })
        })
    }

    /// Returns its names without wildcards.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Name(name) => Some(&**name),
            Segment::Deep | Segment::Wild(_) => None,
        })
    }

    /// Whether it has a name with wildcards.
    pub fn has_wild(&self) -> bool {
        let mut segments = self.segments.iter();
        segments.any(|segment| matches!(segment, Segment::Wild(_)))
    }

    /// Whether a path may match more of the pattern because of a part with this name.
    pub fn concerns(&self, part: &str) -> bool {
        let mut named = self.segments.iter();
        named.any(|segment| *segment != Segment::Deep && segment.matches(part))
    }

    /// Returns how far this path matches the pattern as deny or ask: a bit for each segment that may come next, and one for a match.
    /// Whatever follows, a path matches at most what another matches whose bits include its own.
    pub fn progress(&self, path: &PathView<'_>) -> u128 {
        let Some(parts) = self.start(path, true) else {
            return 0;
        };
        // A pattern of absurd length counts as matched after as many segments as there are bits.
        let segments = &self.segments[..self.segments.len().min(MAX_PROGRESS)];
        let deep = |at: usize| segments.get(at) == Some(&Segment::Deep);
        let close = |mut bits: u128| {
            for at in 0..segments.len() {
                if bits & (1 << at) != 0 && deep(at) {
                    bits |= 1 << (at + 1);
                }
            }
            bits
        };
        let matched = 1 << segments.len();
        let mut bits = close(1);
        for part in parts {
            let mut next = bits & matched;
            for (at, segment) in segments.iter().enumerate() {
                if bits & (1 << at) == 0 {
                    continue;
                }
                if *segment == Segment::Deep || (at == 0 && self.anchor == Anchor::AnyDepth) {
                    next |= 1 << at;
                }
                if *segment != Segment::Deep && segment.matches(part) {
                    next |= 1 << (at + 1);
                }
            }
            bits = close(next);
        }
        bits
    }

    fn start<'p>(&self, path: &'p PathView<'_>, strict: bool) -> Option<&'p [&'p str]> {
        match self.anchor {
            Anchor::Root => path.absolute(),
            Anchor::AnyDepth if strict => path.relative.as_deref().or_else(|| path.absolute()),
            Anchor::Workspace | Anchor::AnyDepth => path.relative.as_deref(),
        }
    }

    fn fits(&self, parts: &[&str]) -> bool {
        if self.anchor == Anchor::AnyDepth {
            return (0..=parts.len()).any(|from| fit(&self.segments, &parts[from..]));
        }
        fit(&self.segments, parts)
    }
}

/// A path, split once, in every form that a pattern may start at.
#[derive(Debug)]
pub struct PathView<'a> {
    relative: Option<Vec<&'a str>>,
    absolute: OnceCell<Option<Vec<&'a str>>>,
    workspace: Option<&'a str>,
}

impl<'a> PathView<'a> {
    /// Creates a view of a cleaned path: relative to the workspace, or absolute.
    pub fn new(path: &'a str, workspace: Option<&'a str>) -> Self {
        let parts = segments(path);
        if path.starts_with('/') {
            let root = workspace.map(segments);
            let relative = root.and_then(|root| parts.strip_prefix(&*root).map(<[_]>::to_vec));
            return Self {
                relative,
                absolute: OnceCell::from(Some(parts)),
                workspace,
            };
        }
        Self {
            relative: Some(parts),
            absolute: OnceCell::new(),
            workspace,
        }
    }

    fn absolute(&self) -> Option<&[&'a str]> {
        let join = || {
            let root = segments(self.workspace?);
            Some([root.as_slice(), self.relative.as_deref()?].concat())
        };
        self.absolute.get_or_init(join).as_deref()
    }
}

/// Matches segments; `**` matches any number of them. Backtracks only to the last `**`.
fn fit(pattern: &[Segment], parts: &[&str]) -> bool {
    let (mut p, mut s) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while s < parts.len() {
        match pattern.get(p) {
            Some(Segment::Deep) => {
                back = Some((p + 1, s));
                p += 1;
            }
            Some(segment) if segment.matches(parts[s]) => {
                p += 1;
                s += 1;
            }
            _ => match back {
                Some((to, from)) => {
                    back = Some((to, from + 1));
                    p = to;
                    s = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|segment| *segment == Segment::Deep)
}

impl Segment {
    fn parse(text: &str) -> Self {
        if text == "**" {
            return Self::Deep;
        }
        let tokens = tokens(text);
        let plain: Option<String> = tokens
            .iter()
            .map(|token| match token {
                WildcardToken::Char(c) => Some(*c),
                _ => None,
            })
            .collect();
        match plain {
            Some(name) => Self::Name(name.into()),
            None => Self::Wild(tokens.into()),
        }
    }

    /// Returns a name that it matches, with this text for each star.
    fn sample(&self, filler: &str) -> String {
        let tokens = match self {
            Self::Deep => return String::new(),
            Self::Name(name) => return name.to_string(),
            Self::Wild(tokens) => tokens,
        };
        let mut name = String::new();
        for token in tokens {
            match token {
                WildcardToken::Char(c) => name.push(*c),
                WildcardToken::One | WildcardToken::Class { not: true, .. } => name.push('x'),
                WildcardToken::Many => name.push_str(filler),
                WildcardToken::Class { ranges, .. } => {
                    name.extend(ranges.first().map(|(low, _)| *low));
                }
            }
        }
        name
    }

    fn matches(&self, part: &str) -> bool {
        match self {
            Self::Deep => true,
            Self::Name(name) if part.is_ascii() => **name == *part,
            Self::Name(name) => **name == *composed(part),
            Self::Wild(tokens) => match_wildcards(tokens, &composed(part)),
        }
    }
}

fn tokens(text: &str) -> Vec<WildcardToken> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        at += 1;
        tokens.push(match c {
            '*' if tokens.last() == Some(&WildcardToken::Many) => continue,
            '*' => WildcardToken::Many,
            '?' => WildcardToken::One,
            '[' => match class(&chars[at..]) {
                Some((token, used)) => {
                    at += used;
                    token
                }
                None => WildcardToken::Char('['),
            },
            '\\' if at < chars.len() => {
                at += 1;
                WildcardToken::Char(chars[at - 1])
            }
            c => WildcardToken::Char(c),
        });
    }
    tokens
}

/// Parses `…]` after `[`; `None` if it is never closed.
fn class(chars: &[char]) -> Option<(WildcardToken, usize)> {
    let not = matches!(chars.first(), Some('!' | '^'));
    let mut at = usize::from(not);
    let first = at;
    let mut ranges = Vec::new();
    loop {
        let low = *chars.get(at)?;
        if low == ']' && at > first {
            return Some((
                WildcardToken::Class {
                    not,
                    ranges: ranges.into(),
                },
                at + 1,
            ));
        }
        match (chars.get(at + 1), chars.get(at + 2)) {
            (Some('-'), Some(&high)) if high != ']' => {
                ranges.push((low, high));
                at += 3;
            }
            _ => {
                ranges.push((low, low));
                at += 1;
            }
        }
    }
}

/// Matches one name. Backtracks only to the last `*`.
fn match_wildcards(tokens: &[WildcardToken], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut t, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while n < name.len() {
        let one = match tokens.get(t) {
            Some(WildcardToken::Many) => {
                back = Some((t + 1, n));
                t += 1;
                continue;
            }
            Some(WildcardToken::One) => true,
            Some(WildcardToken::Char(c)) => *c == name[n],
            Some(WildcardToken::Class { not, ranges }) => {
                *not != ranges
                    .iter()
                    .any(|(low, high)| (low..=high).contains(&&name[n]))
            }
            None => false,
        };
        if one {
            t += 1;
            n += 1;
        } else if let Some((to, from)) = back {
            back = Some((to, from + 1));
            t = to;
            n = from + 1;
        } else {
            return false;
        }
    }
    tokens[t..]
        .iter()
        .all(|token| *token == WildcardToken::Many)
}

/// Escapes the path to a pattern that matches only it, anchored at the workspace or the root.
pub fn escape_path(path: &str) -> String {
    let mut pattern = String::from("/");
    for c in path.trim_start_matches("./").chars() {
        if matches!(c, '*' | '?' | '[' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}
