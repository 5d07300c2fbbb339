//! Exact byte-pair encoding of one piece, from left to right, so that it can stop at a limit.
//!
//! A sequence of tokens is the result of the merges exactly if each adjacent pair is the result of the merges for the
//! pair alone. So the search takes the longest token that is compatible with the previous one, tries shorter ones if none is, and
//! backtracks if none is left (the method of the `bpe` crate, here without its automata).

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;

use crate::table::Table;

/// Number of tokens encoded past the limit before the first `limit` count as settled: a later byte can still change the end of
/// an encoding. The `bpe` crate, whose encoding this is, uses 10.
pub(super) const SETTLED: usize = 32;

/// The result of encoding a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoded {
    /// The whole piece in this many tokens.
    Whole(usize),
    /// The piece has more tokens; the first `limit` tokens end at this byte.
    Cut(usize),
}

/// Minimum length of a piece, in bytes, to check for repetition.
const LONG: usize = 256;
/// Number of backtracking steps in one piece after which its pairs are cached: ordinary texts never reach it.
const STEPS_BACK: usize = 64;
/// Minimum length of a token, in bytes, for which looking up a pair is cheaper than computing it.
const COSTLY: usize = 16;
/// Maximum number of cached pairs; the cache is cleared when full.
const PAIRS: usize = 1 << 16;
/// Number of cached positions, by their first byte.
const PLACES: usize = 1 << 4;

/// Cache for patterns that hostile pieces repeat endlessly.
#[derive(Default)]
struct Memory {
    /// By left token and first right token tried: the first of that token and its prefixes that is compatible with the left one.
    pairs: HashMap<(u32, u32), Option<u32>, RandomState>,
    /// A position in the piece and the longest token there.
    places: [Option<(Range<usize>, Option<u32>)>; PLACES],
}

/// Encodes pieces one after the other, reusing its buffers.
pub(super) struct Encoder<'a> {
    table: &'a Table,
    tokens: Vec<u32>,
    dead: Vec<u64>,
    memory: Option<Memory>,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(table: &'a Table) -> Self {
        Self {
            table,
            tokens: Vec::new(),
            dead: Vec::new(),
            memory: None,
        }
    }

    /// Encodes a piece up to `limit` tokens.
    pub(super) fn encode(&mut self, piece: &[u8], limit: usize) -> Encoded {
        let short = piece.len() <= self.table.most_bytes();
        if limit > 0 && short && self.table.find(piece).is_some() {
            return Encoded::Whole(1);
        }
        self.tokens.clear();
        self.dead.clear();
        self.dead.resize(piece.len() / 64 + 1, 0);
        // Cached positions belong to one piece.
        self.memory = (piece.len() >= LONG).then(Memory::default);
        let mut search = Search {
            encoder: self,
            piece,
            at: 0,
            steps_back: 0,
        };
        search.run(limit.saturating_add(SETTLED));
        let whole = search.at == piece.len();
        if whole && self.tokens.len() <= limit {
            return Encoded::Whole(self.tokens.len());
        }
        let lengths = self
            .tokens
            .iter()
            .take(limit)
            .map(|&id| self.table.token(id).len());
        Encoded::Cut(lengths.sum())
    }
}

struct Search<'e, 'a, 'p> {
    encoder: &'e mut Encoder<'a>,
    piece: &'p [u8],
    at: usize,
    steps_back: usize,
}

impl Search<'_, '_, '_> {
    fn run(&mut self, limit: usize) {
        let mut next = self.longest(0);
        while let Some(token) = next {
            if self.encoder.tokens.len() > limit {
                return;
            }
            next = self.step(token);
        }
    }

    /// Tries a token and its shorter prefixes; returns the next token to try.
    fn step(&mut self, token: u32) -> Option<u32> {
        let table = self.encoder.table;
        let last = self.encoder.tokens.last().copied();
        let mut next = Some(token);
        while let Some((token, known)) = next.and_then(|token| self.candidate(last, token)) {
            let end = self.at + table.token(token).len();
            let suits = |last| known || self.goes_with(last, token, end);
            if !self.is_dead(end) && last.is_none_or(suits) {
                self.encoder.tokens.push(token);
                self.at = end;
                return self.longest(end);
            }
            next = table.prefix(token);
        }
        if let Some(word) = self.encoder.dead.get_mut(self.at / 64) {
            *word |= 1 << (self.at % 64);
        }
        self.steps_back += 1;
        let last = self.encoder.tokens.pop()?;
        self.at -= table.token(last).len();
        Some(last)
    }

    /// Returns a token to try, and whether it is known to be compatible with the last one. If pairs are cached, this is the first of
    /// the token and its prefixes that is compatible.
    fn candidate(&mut self, last: Option<u32>, token: u32) -> Option<(u32, bool)> {
        let table = self.encoder.table;
        let often = self.steps_back >= STEPS_BACK || table.token(token).len() >= COSTLY;
        let memory = self.encoder.memory.as_mut().filter(|_| often);
        let (Some(last), Some(memory)) = (last, memory) else {
            return Some((token, false));
        };
        if let Some(&found) = memory.pairs.get(&(last, token)) {
            return found.map(|token| (token, true));
        }
        let mut found = Some(token);
        while let Some(right) = found {
            let end = self.at + table.token(right).len();
            if self.goes_with(last, right, end) {
                break;
            }
            found = table.prefix(right);
        }
        let pairs = &mut self.encoder.memory.as_mut()?.pairs;
        if pairs.len() >= PAIRS {
            pairs.clear();
        }
        pairs.insert((last, token), found);
        found.map(|token| (token, true))
    }

    /// Returns the longest token at a position, or that of a cached position with the same following bytes.
    fn longest(&mut self, at: usize) -> Option<u32> {
        let table = self.encoder.table;
        let rest = self.piece.get(at..)?;
        let Some(memory) = &mut self.encoder.memory else {
            return table.longest(rest);
        };
        let reach = table.reach(rest);
        let number = reach.first().map_or(0, |&byte| usize::from(byte) % PLACES);
        let place = memory.places.get_mut(number)?;
        if let Some((known, token)) = place
            && self.piece.get(known.clone()) == Some(reach)
        {
            return *token;
        }
        let token = table.longest(reach);
        *place = Some((at..at + reach.len(), token));
        token
    }

    fn is_dead(&self, at: usize) -> bool {
        self.encoder
            .dead
            .get(at / 64)
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Whether merging the bytes of both yields these two tokens: undoes the merges next to the boundary, latest first, and looks
    /// for a merge across it that would have come earlier.
    fn goes_with(&self, mut left: u32, mut right: u32, mut end: usize) -> bool {
        let table = self.encoder.table;
        let mut start = self.at - table.token(left).len();
        let mut limit = u32::MAX;
        loop {
            let both = self.piece.get(start..end).unwrap_or_default();
            let merged = Some(both)
                .filter(|both| both.len() <= table.most_bytes())
                .and_then(|both| table.find(both))
                .filter(|&id| table.split(id) == self.at - start);
            if merged.is_some_and(|id| id < limit) {
                return false;
            }
            let undo_left = |left: u32| {
                let split = table.split(left);
                (split > 0).then(|| (split, self.piece.get(start + split..self.at)))
            };
            let undo_right = |right: u32| {
                let split = table.split(right);
                (split > 0).then(|| (split, self.piece.get(self.at..self.at + split)))
            };
            let from_left = if left > right { undo_left(left) } else { None };
            if let Some((split, part)) = from_left {
                limit = left;
                start += split;
                let Some(id) = part.and_then(|part| table.find(part)) else {
                    return true;
                };
                left = id;
                continue;
            }
            if let Some((split, part)) = undo_right(right) {
                limit = right + 1;
                end = self.at + split;
                let Some(id) = part.and_then(|part| table.find(part)) else {
                    return true;
                };
                right = id;
                continue;
            }
            if left > right {
                return true;
            }
            let Some((split, part)) = undo_left(left) else {
                return true;
            };
            limit = left;
            start += split;
            let Some(id) = part.and_then(|part| table.find(part)) else {
                return true;
            };
            left = id;
        }
    }
}
