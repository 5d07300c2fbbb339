//! `PathShape`: what a path pattern is made of, for code that compares what patterns match.

use super::{Anchor, PathPattern, Segment, WildcardToken};

/// The place where a pattern starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStart {
    /// The workspace's root.
    Workspace,
    /// The root of the file system.
    Root,
    /// Any folder below the workspace; as deny or ask, any folder.
    AnyDepth,
}

/// One element of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameToken<'a> {
    /// This character.
    Char(char),
    /// Any one character.
    One,
    /// Any characters, or none.
    Many,
    /// One character of these ranges, or none of them.
    Class {
        /// Whether the ranges are those that it does not match.
        not: bool,
        /// The ranges, with both ends.
        ranges: &'a [(char, char)],
    },
}

/// One segment of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep<'a> {
    /// `**`: any number of segments.
    Deep,
    /// One name.
    Name(Vec<NameToken<'a>>),
}

impl PathStep<'_> {
    /// Whether it is a name without wildcards.
    pub fn is_plain(&self) -> bool {
        match self {
            Self::Deep => false,
            Self::Name(tokens) => tokens.iter().all(|one| matches!(one, NameToken::Char(_))),
        }
    }

    /// Returns the characters of a name, without its wildcards.
    pub fn to_plain_text(&self) -> String {
        match self {
            Self::Deep => String::new(),
            Self::Name(tokens) => {
                let c = |token: &NameToken<'_>| match token {
                    NameToken::Char(c) => Some(*c),
                    NameToken::One | NameToken::Many | NameToken::Class { .. } => None,
                };
                tokens.iter().filter_map(c).collect()
            }
        }
    }
}

/// What a pattern is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathShape<'a> {
    /// Where it starts.
    pub start: PathStart,
    /// Its segments, without `**` at the end.
    pub steps: Vec<PathStep<'a>>,
    /// Whether it ends in `/**`: an allow then covers what is below the folder, but not the folder itself.
    pub inside: bool,
}

impl PathPattern {
    /// Returns what the pattern is made of.
    pub fn shape(&self) -> PathShape<'_> {
        PathShape {
            start: match self.anchor {
                Anchor::Workspace => PathStart::Workspace,
                Anchor::Root => PathStart::Root,
                Anchor::AnyDepth => PathStart::AnyDepth,
            },
            steps: self.segments.iter().map(step).collect(),
            inside: self.inside,
        }
    }

    /// Returns the path, relative to the workspace, that a pattern without wildcards names there; `None` for any other pattern.
    pub fn exact_path(&self) -> Option<String> {
        let name = |segment: &Segment| match segment {
            Segment::Name(name) => Some(name.to_string()),
            Segment::Deep | Segment::Wild(_) => None,
        };
        let names: Option<Vec<String>> = self.segments.iter().map(name).collect();
        let names = names.filter(|_| self.anchor == Anchor::Workspace)?;
        Some(names.join("/"))
    }

    /// Whether the segment at this position matches a name.
    pub fn step_matches(&self, at: usize, name: &str) -> bool {
        self.segments
            .get(at)
            .is_some_and(|segment| segment.matches(name))
    }
}

fn step(segment: &Segment) -> PathStep<'_> {
    match segment {
        Segment::Deep => PathStep::Deep,
        Segment::Name(name) => PathStep::Name(name.chars().map(NameToken::Char).collect()),
        Segment::Wild(tokens) => PathStep::Name(tokens.iter().map(token).collect()),
    }
}

fn token(token: &WildcardToken) -> NameToken<'_> {
    match token {
        WildcardToken::Char(c) => NameToken::Char(*c),
        WildcardToken::One => NameToken::One,
        WildcardToken::Many => NameToken::Many,
        WildcardToken::Class { not, ranges } => NameToken::Class { not: *not, ranges },
    }
}
