//! Decides whether every text of one automaton is one of several others, and returns a shortest text that is not.
//!
//! The texts of the left automaton are followed state by state, breadth first; beside each state stands the set of the states in which
//! the others then are (Wulf, Doyen, Henzinger and Raskin, "Antichains", CAV 2006): a set that includes one that was followed before from
//! the same state accepts more, and needs no second look.

use std::cell::Cell;

use hashbrown::HashMap;

use super::automaton::{Automaton, AutomatonState, StateId, Symbol};

/// Maximum number of pairs that are followed.
const MAX_PAIRS: usize = 10_000;
/// Maximum number of single steps for one answer, which bounds the time of patterns with very many stars.
const MAX_STEPS: usize = 4_000_000;
/// Maximum number of single steps for all answers of one comparison: below a second.
const MAX_EFFORT: usize = 20_000_000;

/// Whether all texts of one automaton are texts of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Inclusion {
    /// They are.
    Holds,
    /// This one is not.
    Fails(String),
    /// It would take too long to say.
    Undecided,
}

/// Number of single steps for which a rule counts when a call is compared with it.
const STEPS_OF_RULE: usize = 10;

/// The steps that the answers of one comparison may still take.
#[derive(Debug)]
pub(super) struct Effort(Cell<usize>);

impl Default for Effort {
    fn default() -> Self {
        Self(Cell::new(MAX_EFFORT))
    }
}

impl Effort {
    /// Counts that a call is compared with this many rules; `false` if no more may be.
    pub(super) fn allows_judging(&self, rules: usize) -> bool {
        self.allows(rules.saturating_mul(STEPS_OF_RULE))
    }

    /// Counts these steps; `false` if there are not so many left.
    pub(super) fn allows(&self, steps: usize) -> bool {
        let left = self.0.get().checked_sub(steps);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }
}

/// Restricts the texts that are looked for: a small deterministic automaton.
pub(super) trait Filter {
    /// Returns the state after a character; `None` if no text with it is wanted.
    fn step(&self, state: u8, c: char) -> Option<u8>;
    /// Whether a text may end in this state.
    fn accepts(&self, state: u8) -> bool;
}

/// Every text is wanted.
pub(super) struct AnyText;

impl Filter for AnyText {
    fn step(&self, state: u8, _: char) -> Option<u8> {
        Some(state)
    }

    fn accepts(&self, _: u8) -> bool {
        true
    }
}

/// A state of one of several automata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RightState {
    automaton: u8,
    state: StateId,
}

/// States of several automata at once, sorted.
type StateSet = Box<[RightState]>;

/// The pair before another, and the character that leads from it.
#[derive(Debug, Clone, Copy)]
struct PairOrigin {
    pair: usize,
    by: char,
}

struct Pair {
    left: StateId,
    filter: u8,
    right: StateSet,
    from: Option<PairOrigin>,
}

/// Follows the texts of `left` that `filter` wants, and returns whether `right` has all of them.
pub(super) fn includes(
    right: &[&Automaton],
    left: &Automaton,
    filter: &dyn Filter,
    effort: &Effort,
) -> Inclusion {
    let mut walk = InclusionWalk {
        left,
        right,
        filter,
        pairs: Vec::new(),
        seen: HashMap::new(),
        steps: 0,
        most: effort.0.get().min(MAX_STEPS),
    };
    let starts = (0..right.len()).filter_map(|at| {
        Some(RightState {
            automaton: u8::try_from(at).ok()?,
            state: 0,
        })
    });
    let start = walk.close(&starts.collect::<Vec<_>>());
    walk.enter(0, 0, &start, None);
    let answer = walk.run();
    effort.0.set(effort.0.get().saturating_sub(walk.steps));
    answer
}

struct InclusionWalk<'a> {
    left: &'a Automaton,
    right: &'a [&'a Automaton],
    filter: &'a dyn Filter,
    pairs: Vec<Pair>,
    /// The sets with which a state was followed.
    seen: HashMap<(StateId, u8), Vec<usize>>,
    steps: usize,
    /// Maximum number of steps.
    most: usize,
}

impl InclusionWalk<'_> {
    fn run(&mut self) -> Inclusion {
        let mut at = 0;
        while at < self.pairs.len() {
            if self.fails(at) {
                return Inclusion::Fails(self.text(at));
            }
            self.follow(at);
            if self.pairs.len() > MAX_PAIRS || self.steps > self.most {
                return Inclusion::Undecided;
            }
            at += 1;
        }
        Inclusion::Holds
    }

    fn right(&self, at: RightState) -> &AutomatonState {
        &self.right[usize::from(at.automaton)].states[at.state as usize]
    }

    fn fails(&self, at: usize) -> bool {
        let pair = &self.pairs[at];
        self.left.states[pair.left as usize].accepts
            && self.filter.accepts(pair.filter)
            && !pair.right.iter().any(|state| self.right(*state).accepts)
    }

    fn follow(&mut self, at: usize) {
        let left = self.left;
        let (state, set) = (self.pairs[at].left, self.pairs[at].right.clone());
        if set.iter().any(|state| self.right(*state).accepts_all) {
            return;
        }
        for (symbol, to) in &left.states[state as usize].steps {
            for c in self.characters(symbol, &set) {
                let Some(filter) = self.filter.step(self.pairs[at].filter, c) else {
                    continue;
                };
                let next = self.after(&set, c);
                self.enter(*to, filter, &next, Some(PairOrigin { pair: at, by: c }));
                if self.pairs.len() > MAX_PAIRS || self.steps > self.most {
                    return;
                }
            }
        }
    }

    /// Returns one character of the symbol for each way in which the steps of the set can tell its characters apart.
    fn characters(&mut self, symbol: &Symbol, set: &StateSet) -> Vec<char> {
        if let Symbol::Char(c) = symbol {
            return vec![*c];
        }
        let mut borders = vec![0, u32::from(char::MAX) + 1];
        symbol.borders(&mut borders);
        for state in set {
            let steps =
                &self.right[usize::from(state.automaton)].states[state.state as usize].steps;
            self.steps += steps.len();
            for (own, _) in steps {
                own.borders(&mut borders);
            }
        }
        borders.sort_unstable();
        borders.dedup();
        let between = borders
            .windows(2)
            .filter_map(|two| plainest(two[0], two[1]));
        let mut found: Vec<char> = between.filter(|c| symbol.contains(*c)).collect();
        // The plainest come first, so that of equally short examples the one found first reads best.
        found.sort_unstable_by_key(|c| (!c.is_ascii_alphanumeric(), !c.is_ascii_graphic(), *c));
        found
    }

    fn after(&mut self, set: &StateSet, c: char) -> StateSet {
        let mut next = Vec::new();
        for state in set {
            let steps =
                &self.right[usize::from(state.automaton)].states[state.state as usize].steps;
            self.steps += steps.len();
            let taken = steps.iter().filter(|(symbol, _)| symbol.contains(c));
            next.extend(taken.map(|(_, to)| RightState {
                state: *to,
                ..*state
            }));
        }
        self.close(&next)
    }

    /// Adds the states that are reached without a character.
    fn close(&mut self, states: &[RightState]) -> StateSet {
        let mut all = Vec::with_capacity(states.len());
        for one in states {
            let reached = self.right[usize::from(one.automaton)].reached(one.state);
            all.extend(reached.iter().map(|state| RightState {
                state: *state,
                ..*one
            }));
        }
        self.steps += all.len();
        all.sort_unstable();
        all.dedup();
        all.into_boxed_slice()
    }

    /// Adds the pairs of this left state, and of those that it reaches without a character, unless they were followed with fewer others.
    fn enter(&mut self, left: StateId, filter: u8, right: &StateSet, from: Option<PairOrigin>) {
        for state in self.left.reached(left) {
            let state = *state;
            let seen = self.seen.entry((state, filter)).or_default();
            self.steps += seen.len();
            let pairs = &self.pairs;
            if seen.iter().any(|at| is_subset(&pairs[*at].right, right)) {
                continue;
            }
            seen.push(self.pairs.len());
            self.pairs.push(Pair {
                left: state,
                filter,
                right: right.clone(),
                from,
            });
        }
    }

    fn text(&self, at: usize) -> String {
        let mut text = Vec::new();
        let mut pair = &self.pairs[at];
        while let Some(from) = pair.from {
            text.push(from.by);
            pair = &self.pairs[from.pair];
        }
        text.iter().rev().collect()
    }
}

/// Whether all states of one sorted set are in the other.
fn is_subset(small: &[RightState], large: &[RightState]) -> bool {
    let mut rest = large.iter();
    small.len() <= large.len() && small.iter().all(|one| rest.any(|other| other == one))
}

/// Returns the plainest character of a range without its end.
fn plainest(low: u32, end: u32) -> Option<char> {
    let within = |first: char, last: char| {
        let start = low.max(first.into());
        (start <= u32::from(last) && start < end).then_some(start)
    };
    let plain = [('a', 'z'), ('0', '9'), ('A', 'Z'), ('!', '~')];
    let found = plain.iter().find_map(|(first, last)| within(*first, *last));
    // No character is a surrogate.
    let other = || {
        if (0xd800..0xe000).contains(&low) {
            0xe000
        } else {
            low
        }
    };
    char::from_u32(found.unwrap_or_else(other)).filter(|c| u32::from(*c) < end)
}
