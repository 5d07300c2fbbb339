//! `Top`: the best few of many hits, without sorting the many.

use std::cmp::Ordering;

use crate::toolset::search::Hit;

/// Keeps the best of the hits it is shown.
#[derive(Debug)]
pub(super) struct Top {
    limit: usize,
    /// Up to twice the limit, then thinned out.
    kept: Vec<Hit>,
    /// No hit below it can be among the best.
    bar: f32,
}

impl Top {
    /// The best `limit`.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            kept: Vec::with_capacity(limit.saturating_mul(2).min(1024)),
            bar: 0.0,
        }
    }

    /// Whether a score could be among the best still.
    pub(super) fn could_take(&self, score: f32) -> bool {
        self.limit > 0 && score >= self.bar
    }

    /// Takes a hit into account.
    pub(super) fn take(&mut self, hit: Hit) {
        self.kept.push(hit);
        if self.kept.len() >= self.limit.saturating_mul(2).max(16) {
            self.thin();
        }
    }

    /// The best, best first.
    pub(super) fn finish(mut self) -> Vec<Hit> {
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

/// Best first; equal ones in the order of their numbers.
fn order(a: &Hit, b: &Hit) -> Ordering {
    b.score
        .total_cmp(&a.score)
        .then(a.document.cmp(&b.document))
}
