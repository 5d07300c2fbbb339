//! The paths that a pattern matches, as texts: `I` or `O` (inside or outside of the workspace), then each segment and a `/`.

use super::automaton::{Automaton, StateId, Symbol};
use haft_files::paths::{NameToken, PathPattern, PathShape, PathStart, PathStep, segments};

/// What is asked of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathReading {
    /// `PathPattern::allows`.
    Allows,
    /// `PathPattern::forbids`.
    Forbids,
    /// That, or `PathPattern::lies_below`: what removing or replacing a folder would remove.
    ForbidsAbove,
    /// `PathPattern::may_lie_below`.
    MayLieBelow,
}

/// Begins a path that is relative to the workspace's root.
const INSIDE: char = 'I';
/// Begins an absolute path that is not below the workspace's root.
const OUTSIDE: char = 'O';

/// Returns the path that an encoded one stands for.
pub(super) fn decode(text: &str) -> String {
    let names = text.get(1..).unwrap_or_default().trim_end_matches('/');
    match (text.starts_with(OUTSIDE), names) {
        (true, _) => format!("/{names}"),
        (false, "") => ".".to_owned(),
        (false, _) => names.to_owned(),
    }
}

/// Writes the paths of patterns into an automaton.
pub(super) struct PathWriter<'a> {
    pub(super) automaton: &'a mut Automaton,
    /// The workspace's root.
    pub(super) root: Option<&'a str>,
    /// Whether only texts that encode a path are written; otherwise all that begin like one.
    pub(super) exact: bool,
}

impl PathWriter<'_> {
    /// Writes every path.
    pub(super) fn all(&mut self, from: StateId) {
        for side in [INSIDE, OUTSIDE] {
            let start = self.automaton.step(from, Symbol::Char(side));
            self.any_names(start, start);
            self.automaton.accept(start);
        }
    }

    /// Writes what begins like an absolute path, but lies below the workspace's root: no path is encoded so.
    pub(super) fn impossible(&mut self, from: StateId) {
        let Some(root) = self.root else {
            return;
        };
        let mut at = self.automaton.step(from, Symbol::Char(OUTSIDE));
        for name in segments(root) {
            at = self.automaton.text(at, name);
            at = self.automaton.step(at, Symbol::Char('/'));
        }
        self.automaton.accept_all(at);
    }

    /// Writes the paths that a pattern matches.
    pub(super) fn pattern(&mut self, from: StateId, pattern: &PathPattern, reading: PathReading) {
        let shape = pattern.shape();
        for side in [INSIDE, OUTSIDE] {
            let Some(starts) = self.starts(side, pattern, &shape, reading) else {
                continue;
            };
            let start = self.automaton.step(from, Symbol::Char(side));
            self.side(start, &shape, &starts, reading);
            if reading == PathReading::ForbidsAbove {
                self.above(start, side, &shape);
            }
        }
    }

    /// Writes the folders above what the pattern names, as far as they are written without wildcards.
    fn above(&mut self, start: StateId, side: char, shape: &PathShape<'_>) {
        if shape.start == PathStart::AnyDepth {
            return;
        }
        let plain = shape.steps.iter().take_while(|step| step.is_plain());
        let plain: Vec<String> = plain.map(PathStep::to_plain_text).collect();
        // What the pattern names itself is not above it.
        let longest = plain.len().min(shape.steps.len().saturating_sub(1));
        let root = match (shape.start, side, self.root) {
            (PathStart::Root, INSIDE, Some(root)) => segments(root),
            _ => Vec::new(),
        };
        if root.len() > longest
            || shape.steps.is_empty()
            || !plain.iter().zip(&root).all(|(a, b)| a == b)
        {
            return;
        }
        let mut at = start;
        self.automaton.accept(at);
        for name in &plain[root.len()..longest] {
            at = self.automaton.text(at, name);
            at = self.automaton.step(at, Symbol::Char('/'));
            self.automaton.accept(at);
        }
    }

    /// Returns the positions in the pattern before the first name of a path; `None` if it matches none there.
    fn starts(
        &self,
        side: char,
        pattern: &PathPattern,
        shape: &PathShape<'_>,
        reading: PathReading,
    ) -> Option<Vec<bool>> {
        let walks = reading == PathReading::MayLieBelow;
        let positions = Positions { pattern, shape };
        match (shape.start, side) {
            (PathStart::AnyDepth, _) | (PathStart::Workspace, OUTSIDE) if walks => {
                Some(positions.matched())
            }
            (PathStart::Workspace, OUTSIDE) => None,
            (PathStart::AnyDepth, OUTSIDE) if reading == PathReading::Allows => None,
            (PathStart::Root, INSIDE) => match self.root {
                None => walks.then(|| positions.matched()),
                Some(root) if walks => Some(positions.walked(&segments(root))),
                Some(root) => Some(positions.after(&segments(root))),
            },
            _ => Some(positions.start()),
        }
    }

    fn side(
        &mut self,
        start: StateId,
        shape: &PathShape<'_>,
        starts: &[bool],
        reading: PathReading,
    ) {
        let length = shape.steps.len();
        let states: Vec<StateId> = starts.iter().map(|_| self.automaton.add()).collect();
        let (matched, beyond) = (states[length], states[length + 1]);
        for (at, _) in starts.iter().enumerate().filter(|(_, is)| **is) {
            self.automaton.skip(start, states[at]);
        }
        for (at, step) in shape.steps.iter().enumerate() {
            let (from, to) = (states[at], states[at + 1]);
            match step {
                PathStep::Deep => {
                    self.any_names(from, from);
                    self.automaton.skip(from, to);
                }
                PathStep::Name(tokens) => self.name(from, tokens, to),
            }
        }
        if shape.start == PathStart::AnyDepth {
            self.any_names(states[0], states[0]);
        }
        let last_is_wild = match shape.steps.last() {
            Some(step @ PathStep::Name(_)) => !step.is_plain(),
            Some(PathStep::Deep) | None => false,
        };
        let (whole, below) = match reading {
            PathReading::Allows => (!shape.inside, shape.inside || !last_is_wild),
            _ => (true, true),
        };
        if whole {
            self.automaton.accept(matched);
        }
        if below {
            self.automaton.accept(beyond);
            if self.exact || !whole {
                self.any_names(matched, beyond);
                self.any_names(beyond, beyond);
            } else {
                self.automaton.accept_all(matched);
                self.automaton.accept_all(beyond);
            }
        }
        if reading != PathReading::MayLieBelow {
            return;
        }
        let deep = |step: &PathStep<'_>| *step == PathStep::Deep;
        let first_deep = shape.steps.iter().position(deep).unwrap_or(length);
        for state in &states[..length.min(first_deep + 1)] {
            self.automaton.accept(*state);
        }
        if first_deep < length {
            // After the first `**` everything may follow.
            self.automaton.skip(states[first_deep], matched);
        }
    }

    /// Writes any names from one state to another: one, or several where both are the same.
    fn any_names(&mut self, from: StateId, to: StateId) {
        let name = self.automaton.step(from, Symbol::but(&['/']));
        self.automaton.connect(name, Symbol::but(&['/']), name);
        self.automaton.connect(name, Symbol::Char('/'), to);
    }

    fn name(&mut self, from: StateId, tokens: &[NameToken<'_>], to: StateId) {
        if tokens.iter().all(|token| *token == NameToken::Many) {
            // A segment is never empty.
            return self.any_names(from, to);
        }
        let mut at = from;
        for token in tokens {
            at = match token {
                NameToken::Char(c) => self.automaton.step(at, Symbol::Char(*c)),
                NameToken::One => self.automaton.step(at, Symbol::but(&['/'])),
                NameToken::Many => self.automaton.repeat(at, Symbol::but(&['/'])),
                NameToken::Class { not, ranges } => self.automaton.step(at, of_class(*not, ranges)),
            };
        }
        self.automaton.connect(at, Symbol::Char('/'), to);
    }
}

/// Returns the characters of a class, without those that no name contains.
fn of_class(not: bool, ranges: &[(char, char)]) -> Symbol {
    let never = ['/', super::automaton::SEPARATOR];
    if not {
        let never = never.iter().map(|c| (*c, *c));
        return Symbol::Not(ranges.iter().copied().chain(never).collect());
    }
    let mut left: Vec<(char, char)> = ranges.to_vec();
    for c in never {
        left = left
            .into_iter()
            .flat_map(|(low, high)| {
                let before = char::from_u32(u32::from(c) - 1).map(|end| (low, high.min(end)));
                let after = char::from_u32(u32::from(c) + 1).map(|first| (low.max(first), high));
                [before, after].into_iter().flatten()
            })
            .filter(|(low, high)| low <= high)
            .collect();
    }
    Symbol::In(left.into())
}

/// The positions in a pattern: before each of its segments, after the last, and beyond.
struct Positions<'a> {
    pattern: &'a PathPattern,
    shape: &'a PathShape<'a>,
}

impl Positions<'_> {
    fn length(&self) -> usize {
        self.shape.steps.len()
    }

    fn only(&self, at: usize) -> Vec<bool> {
        (0..self.length() + 2).map(|own| own == at).collect()
    }

    fn start(&self) -> Vec<bool> {
        self.only(0)
    }

    fn matched(&self) -> Vec<bool> {
        self.only(self.length())
    }

    /// Returns the positions after these names.
    fn after(&self, names: &[&str]) -> Vec<bool> {
        let length = self.length();
        let deep = |at: usize| self.shape.steps.get(at) == Some(&PathStep::Deep);
        let close = |mut at: Vec<bool>| {
            for position in 0..length {
                if at[position] && deep(position) {
                    at[position + 1] = true;
                }
            }
            at
        };
        names.iter().fold(close(self.start()), |before, name| {
            let mut next = vec![false; length + 2];
            for at in (0..length).filter(|at| before[*at]) {
                next[at] |= deep(at) || (at == 0 && self.shape.start == PathStart::AnyDepth);
                next[at + 1] |= !deep(at) && self.pattern.step_matches(at, name);
            }
            next[length + 1] |= before[length] || before[length + 1];
            close(next)
        })
    }

    /// Returns the position after a folder and all above it, as `may_lie_below` compares them: a difference anywhere leaves none.
    fn walked(&self, names: &[&str]) -> Vec<bool> {
        for (at, name) in names.iter().enumerate() {
            match self.shape.steps.get(at) {
                None | Some(PathStep::Deep) => return self.matched(),
                Some(PathStep::Name(_)) if self.pattern.step_matches(at, name) => {}
                Some(PathStep::Name(_)) => return self.only(usize::MAX),
            }
        }
        self.only(names.len())
    }
}
