//! `Hit`, and `TopHits`: the best few of many hits, without sorting all of them.

use std::cmp::Ordering;

/// A document that matches a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Its number, as given to [`Index::new`](crate::Index::new).
    pub document: usize,
    /// How well it matches: above zero, comparable only within one result.
    pub score: f32,
}

/// Collects hits and returns the best few, in linear time and with memory for twice the limit.
///
/// ```
/// use haft_search::{Hit, TopHits};
///
/// let mut top = TopHits::new(2);
/// for (document, score) in [0.5, 2.0, 1.0].into_iter().enumerate() {
///     top.push(Hit { document, score });
/// }
/// let best: Vec<usize> = top.finish().iter().map(|hit| hit.document).collect();
/// assert_eq!(best, [1, 2]);
/// ```
#[derive(Debug)]
pub struct TopHits {
    limit: usize,
    /// Up to twice the limit, then reduced to the limit.
    kept: Vec<Hit>,
    /// The minimum score that can still be among the best.
    bar: f32,
}

impl TopHits {
    /// Creates a collector for the best `limit` hits.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            kept: Vec::with_capacity(limit.saturating_mul(2).min(1024)),
            bar: 0.0,
        }
    }

    /// Whether a score can still be among the best. Scores below zero never can.
    pub fn accepts(&self, score: f32) -> bool {
        self.limit > 0 && score >= self.bar
    }

    /// Adds a hit, if it can be among the best.
    pub fn push(&mut self, hit: Hit) {
        if !self.accepts(hit.score) {
            return;
        }
        self.kept.push(hit);
        if self.kept.len() >= self.limit.saturating_mul(2).max(16) {
            self.thin();
        }
    }

    /// Returns the best hits, best first, equal scores in the order of their document numbers.
    pub fn finish(mut self) -> Vec<Hit> {
        self.thin();
        self.kept.sort_unstable_by(order);
        self.kept
    }

    fn thin(&mut self) {
        if self.kept.len() <= self.limit || self.limit == 0 {
            return;
        }
        let (_, last, _) = self.kept.select_nth_unstable_by(self.limit - 1, order);
        self.bar = last.score;
        self.kept.truncate(self.limit);
    }
}

/// Orders hits best first, equal scores by their document numbers.
fn order(a: &Hit, b: &Hit) -> Ordering {
    b.score
        .total_cmp(&a.score)
        .then(a.document.cmp(&b.document))
}
