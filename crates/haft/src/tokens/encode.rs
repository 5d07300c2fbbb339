//! Exact byte-pair encoding of one piece, from left to right, so that it can stop at a limit.
//!
//! A sequence of tokens is what the merges give exactly when each two neighbours are what the merges give for the
//! two alone. So the longest token that goes with the one before is taken, shorter ones are tried when none fits, and
//! the search steps back when there is none (the way of the `bpe` crate, here without its automata).

use foldhash::fast::RandomState;

use super::table::Table;

type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;

/// Tokens encoded past the limit before the first `limit` count as settled: a later byte can still change the end of
/// an encoding. The `bpe` crate, whose encoding this is, uses 10.
pub(super) const SETTLED: usize = 32;

/// What a piece comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoded {
    /// The whole piece in this many tokens.
    Whole(usize),
    /// The piece has more tokens; the first `limit` end at this byte.
    Cut(usize),
}

/// Pieces of fewer bytes have too little repetition for a memory of it to pay.
const LONG: usize = 256;
/// Most pairs remembered.
const MAX_PAIRS: usize = 1 << 16;

/// Encodes pieces one after the other, with the same buffers.
pub(super) struct Encoder<'a> {
    table: &'a Table,
    tokens: Vec<u32>,
    dead: Vec<u64>,
    pairs: HashMap<(u32, u32), bool>,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(table: &'a Table) -> Self {
        Self {
            table,
            tokens: Vec::new(),
            dead: Vec::new(),
            pairs: HashMap::default(),
        }
    }

    /// Encodes a piece up to `limit` tokens.
    pub(super) fn encode(&mut self, piece: &[u8], limit: usize) -> Encoded {
        if limit > 0 && self.table.find(piece).is_some() {
            return Encoded::Whole(1);
        }
        self.tokens.clear();
        self.dead.clear();
        self.dead.resize(piece.len() / 64 + 1, 0);
        let mut search = Search {
            encoder: self,
            piece,
            at: 0,
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
}

impl Search<'_, '_, '_> {
    fn run(&mut self, limit: usize) {
        let mut next = self.encoder.table.longest(self.piece);
        while let Some(token) = next {
            if self.encoder.tokens.len() > limit {
                return;
            }
            next = self.step(token);
        }
    }

    /// Tries a token and the shorter ones it begins with; gives the next to try.
    fn step(&mut self, mut token: u32) -> Option<u32> {
        let table = self.encoder.table;
        let last = self.encoder.tokens.last().copied();
        loop {
            let end = self.at + table.token(token).len();
            let alive = !self.is_dead(end);
            if alive && last.is_none_or(|last| self.remembered(last, token, end)) {
                self.encoder.tokens.push(token);
                self.at = end;
                return table.longest(self.piece.get(end..)?);
            }
            if let Some(shorter) = table.prefix(token) {
                token = shorter;
                continue;
            }
            if let Some(word) = self.encoder.dead.get_mut(self.at / 64) {
                *word |= 1 << (self.at % 64);
            }
            let last = self.encoder.tokens.pop()?;
            self.at -= table.token(last).len();
            return Some(last);
        }
    }

    /// [`Self::goes_with`], remembered for long pieces: hostile ones repeat.
    fn remembered(&mut self, left: u32, right: u32, end: usize) -> bool {
        if self.piece.len() < LONG {
            return self.goes_with(left, right, end);
        }
        if let Some(&known) = self.encoder.pairs.get(&(left, right)) {
            return known;
        }
        let found = self.goes_with(left, right, end);
        if self.encoder.pairs.len() >= MAX_PAIRS {
            self.encoder.pairs.clear();
        }
        self.encoder.pairs.insert((left, right), found);
        found
    }

    fn is_dead(&self, at: usize) -> bool {
        self.encoder
            .dead
            .get(at / 64)
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Whether merging the bytes of both gives these two: undoes the merges next to the seam, latest first, and looks
    /// for one across it that would have come earlier.
    fn goes_with(&self, mut left: u32, mut right: u32, mut end: usize) -> bool {
        let table = self.encoder.table;
        let mut start = self.at - table.token(left).len();
        let mut limit = u32::MAX;
        loop {
            let both = self.piece.get(start..end).unwrap_or_default();
            let merged = table
                .find(both)
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
