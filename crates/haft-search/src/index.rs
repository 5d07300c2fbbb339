//! `Index`: postings with each term's precomputed share of a document's score, so that a query only adds numbers.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::document::Document;
use crate::labels::{self, Labels};
use crate::top::{Hit, TopHits};
use crate::words;

/// BM25's saturation of repeated terms (Robertson and Zaragoza 2009, the usual value).
const K1: f32 = 1.2;
/// BM25's weight of a document's length (same source).
const B: f32 = 0.75;
/// Maximum number of bytes read from a query.
const MAX_QUERY: usize = 8 * 1024;
/// Maximum number of distinct terms looked up per query.
const MAX_TERMS: usize = 256;
/// The score added for an alias equal to the query; an equal name adds twice as much, or three times in the same case.
/// Words alone score less.
pub const NAMED: f32 = 1_000.0;

/// A document that contains a term, and what the term adds to its score.
#[derive(Debug, Clone, Copy)]
struct Posting {
    document: u32,
    share: f32,
}

/// The start and end of a term's postings in the common array.
type PostingRange = (u32, u32);

/// An inverted index over documents; the crate's page has an example.
#[derive(Debug, Default)]
pub struct Index {
    terms: HashMap<Box<str>, PostingRange, RandomState>,
    postings: Box<[Posting]>,
    labels: Labels,
    /// The highest document number plus one.
    size: usize,
}

impl Index {
    /// Builds an index over documents with numbers chosen by the caller; a search uses memory in proportion to the highest number.
    pub fn new<'a>(documents: impl IntoIterator<Item = (usize, Document<'a>)>) -> Self {
        let mut build = IndexBuilder::default();
        for (number, document) in documents {
            // No catalog has more than 2^32 entries.
            if let Ok(number) = u32::try_from(number) {
                build.add(number, &document);
            }
        }
        build.finish()
    }

    /// Returns the documents that match best, best first, equal scores in the order of their numbers: at most `limit`, and only those
    /// that `keep` accepts.
    ///
    /// A document whose name equals the query, ignoring case, comes first; then one with such an alias. At most 8 KiB of a query and 256
    /// distinct terms are read.
    pub fn search(&self, query: &str, limit: usize, keep: impl Fn(usize) -> bool) -> Vec<Hit> {
        let mut scores = vec![0.0_f32; self.size];
        let mut touched: Vec<u32> = Vec::with_capacity(256);
        let mut add = |document: u32, share: f32| {
            if let Some(score) = scores.get_mut(document as usize) {
                if *score == 0.0 {
                    touched.push(document);
                }
                *score += share;
            }
        };
        for (list, times) in self.lists(query) {
            for posting in list {
                add(posting.document, posting.share * times);
            }
        }
        for (document, closeness) in self.labels.fitting(query) {
            add(document, NAMED * closeness);
        }
        let mut top = TopHits::new(limit);
        for document in touched {
            let hit = Hit {
                document: document as usize,
                score: scores.get(document as usize).copied().unwrap_or_default(),
            };
            if top.accepts(hit.score) && keep(hit.document) {
                top.push(hit);
            }
        }
        top.finish()
    }

    /// Returns the postings of each distinct term of a query, and how often the query contains it.
    fn lists(&self, query: &str) -> Vec<(&[Posting], f32)> {
        let mut found: Vec<(PostingRange, f32)> = Vec::with_capacity(16);
        words::terms(words::clip(query, MAX_QUERY), |term| {
            let Some(range) = self.terms.get(term) else {
                return;
            };
            if let Some((_, times)) = found.iter_mut().find(|(known, _)| known == range) {
                *times += 1.0;
            } else if found.len() < MAX_TERMS {
                found.push((*range, 1.0));
            }
        });
        found
            .into_iter()
            .map(|((from, to), times)| {
                let list = self.postings.get(from as usize..to as usize);
                (list.unwrap_or_default(), times)
            })
            .collect()
    }

    /// Returns the approximate memory use of the index in bytes.
    pub fn bytes(&self) -> usize {
        let terms: usize = self.terms.keys().map(|term| term.len()).sum();
        let slot = size_of::<(Box<str>, PostingRange)>() + 1;
        terms + self.terms.capacity() * slot + size_of_val(&*self.postings) + self.labels.bytes()
    }
}

/// An index under construction.
#[derive(Debug, Default)]
struct IndexBuilder {
    terms: HashMap<Box<str>, u32, RandomState>,
    /// The documents of each term, with the number of occurrences.
    lists: Vec<Vec<(u32, u32)>>,
    /// The number of terms of each document.
    lengths: Vec<(u32, u32)>,
    labels: labels::LabelsBuilder,
    size: usize,
    /// A reused buffer for the terms of one document.
    scratch: Vec<u32>,
}

impl IndexBuilder {
    fn add(&mut self, number: u32, document: &Document<'_>) {
        self.size = self.size.max(number as usize + 1);
        self.labels.add(number, document);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        document.terms(|term| {
            let known = self.terms.get(term).copied();
            let id = known.unwrap_or_else(|| {
                let next = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
                self.terms.insert(term.into(), next);
                self.lists.push(Vec::new());
                next
            });
            scratch.push(id);
        });
        let length = u32::try_from(scratch.len()).unwrap_or(u32::MAX);
        self.lengths.push((number, length));
        scratch.sort_unstable();
        for same in scratch.chunk_by(|a, b| a == b) {
            let times = u32::try_from(same.len()).unwrap_or(u32::MAX);
            if let Some(list) = same.first().and_then(|id| self.lists.get_mut(*id as usize)) {
                list.push((number, times));
            }
        }
        self.scratch = scratch;
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of terms and documents are far below what a float holds exactly"
    )]
    fn finish(self) -> Index {
        let documents = self.lengths.len() as f32;
        let all: f32 = self.lengths.iter().map(|(_, length)| *length as f32).sum();
        let average = (all / documents.max(1.0)).max(1.0);
        let mut lengths = vec![0.0_f32; self.size];
        for (number, length) in self.lengths {
            if let Some(slot) = lengths.get_mut(number as usize) {
                *slot = length as f32;
            }
        }
        let total = self.lists.iter().map(Vec::len).sum();
        let mut postings = Vec::with_capacity(total);
        let mut ranges = Vec::with_capacity(self.lists.len());
        for list in &self.lists {
            let having = list.len() as f32;
            let rarity = (1.0 + (documents - having + 0.5) / (having + 0.5)).ln();
            let from = postings.len();
            postings.extend(list.iter().map(|&(document, times)| {
                let length = lengths.get(document as usize).copied().unwrap_or_default();
                let times = times as f32;
                let damped = times + K1 * (1.0 - B + B * length / average);
                let share = rarity * times * (K1 + 1.0) / damped;
                Posting { document, share }
            }));
            ranges.push(narrow(from, postings.len()));
        }
        let place = |id: u32| ranges.get(id as usize).copied().unwrap_or_default();
        Index {
            terms: self
                .terms
                .into_iter()
                .map(|(term, id)| (term, place(id)))
                .collect(),
            postings: postings.into_boxed_slice(),
            labels: self.labels.finish(),
            size: self.size,
        }
    }
}

/// Converts a range to the index's form.
fn narrow(from: usize, to: usize) -> PostingRange {
    let narrow = |place| u32::try_from(place).unwrap_or(u32::MAX);
    (narrow(from), narrow(to))
}

#[cfg(test)]
mod tests;
