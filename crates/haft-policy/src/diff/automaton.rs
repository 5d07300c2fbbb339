//! `Automaton`: the texts that patterns match, as a nondeterministic automaton over characters.

use std::cell::OnceCell;

use hashbrown::HashSet;

/// Separates the parts of an encoded effect. No command line, path, host or name contains it.
pub(super) const SEPARATOR: char = '\u{10ffff}';

/// The characters of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Symbol {
    /// This one.
    Char(char),
    /// One of these ranges, with both ends.
    In(Box<[(char, char)]>),
    /// None of these ranges.
    Not(Box<[(char, char)]>),
}

impl Symbol {
    /// Any character of an effect's part.
    pub(super) fn any() -> Self {
        Self::but(&[])
    }

    /// Any character of an effect's part except these.
    pub(super) fn but(others: &[char]) -> Self {
        let all = others.iter().chain([&SEPARATOR]);
        Self::Not(all.map(|c| (*c, *c)).collect())
    }

    pub(super) fn contains(&self, c: char) -> bool {
        let among = |ranges: &[(char, char)]| ranges.iter().any(|(a, b)| (*a..=*b).contains(&c));
        match self {
            Self::Char(own) => *own == c,
            Self::In(ranges) => among(ranges),
            Self::Not(ranges) => !among(ranges),
        }
    }

    /// Returns the code points at which the answer of [`contains`](Self::contains) may change.
    pub(super) fn borders(&self, borders: &mut Vec<u32>) {
        let one = |(low, high): (char, char)| [u32::from(low), u32::from(high) + 1];
        match self {
            Self::Char(c) => borders.extend(one((*c, *c))),
            Self::In(ranges) | Self::Not(ranges) => {
                borders.extend(ranges.iter().copied().flat_map(one));
            }
        }
    }
}

/// A state's number.
pub(super) type StateId = u32;

/// One state.
#[derive(Debug, Default)]
pub(super) struct AutomatonState {
    /// States that are reached without a character.
    pub(super) skips: Vec<StateId>,
    /// States that are reached by one.
    pub(super) steps: Vec<(Symbol, StateId)>,
    /// Whether a text may end here.
    pub(super) accepts: bool,
    /// Whether every text may follow.
    pub(super) accepts_all: bool,
    /// The states that are reached from here without a character, computed on first use.
    reached: OnceCell<Box<[StateId]>>,
}

/// The texts that patterns match. State 0 is the start.
#[derive(Debug)]
pub(super) struct Automaton {
    pub(super) states: Vec<AutomatonState>,
}

impl Automaton {
    /// Creates an automaton that accepts nothing.
    pub(super) fn new() -> Self {
        Self {
            states: vec![AutomatonState::default()],
        }
    }

    /// Creates an automaton that accepts these texts.
    pub(super) fn of_texts(texts: &[String]) -> Self {
        let mut automaton = Self::new();
        for text in texts {
            let end = automaton.text(0, text);
            automaton.accept(end);
        }
        automaton
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// Adds a state that nothing leads to.
    pub(super) fn add(&mut self) -> StateId {
        self.states.push(AutomatonState::default());
        StateId::try_from(self.states.len() - 1).unwrap_or(StateId::MAX)
    }

    /// Returns the states that a walk is in where it is in this one: those reached without a character that lead or accept anything.
    /// The automaton must not change any more.
    pub(super) fn reached(&self, state: StateId) -> &[StateId] {
        let reach = || {
            let mut reached = vec![state];
            let mut known: HashSet<StateId> = HashSet::from_iter([state]);
            let mut at = 0;
            while let Some(state) = reached.get(at) {
                for to in &self.states[*state as usize].skips {
                    if known.insert(*to) {
                        reached.push(*to);
                    }
                }
                at += 1;
            }
            reached.retain(|state| {
                let state = &self.states[*state as usize];
                state.accepts || !state.steps.is_empty()
            });
            reached.into_boxed_slice()
        };
        self.states[state as usize].reached.get_or_init(reach)
    }

    fn at(&mut self, state: StateId) -> &mut AutomatonState {
        &mut self.states[state as usize]
    }

    /// Lets a state be reached from another without a character.
    pub(super) fn skip(&mut self, from: StateId, to: StateId) {
        self.at(from).skips.push(to);
    }

    /// Lets a state be reached from another by a character.
    pub(super) fn connect(&mut self, from: StateId, symbol: Symbol, to: StateId) {
        self.at(from).steps.push((symbol, to));
    }

    /// Adds a state that is reached by a character.
    pub(super) fn step(&mut self, from: StateId, symbol: Symbol) -> StateId {
        let to = self.add();
        self.connect(from, symbol, to);
        to
    }

    /// Adds a state that is reached by any number of these characters.
    pub(super) fn repeat(&mut self, from: StateId, symbol: Symbol) -> StateId {
        let to = self.add();
        self.skip(from, to);
        self.connect(to, symbol, to);
        to
    }

    /// Adds the states of a literal text.
    pub(super) fn text(&mut self, from: StateId, text: &str) -> StateId {
        text.chars()
            .fold(from, |at, c| self.step(at, Symbol::Char(c)))
    }

    /// Lets a text end in this state.
    pub(super) fn accept(&mut self, state: StateId) {
        self.at(state).accepts = true;
    }

    /// Accepts every text that gets to this state, whatever follows.
    pub(super) fn accept_all(&mut self, state: StateId) {
        let any = Symbol::Not(Box::default());
        let all = self.add();
        self.connect(all, any, all);
        self.at(all).accepts = true;
        self.at(all).accepts_all = true;
        self.skip(state, all);
    }
}
