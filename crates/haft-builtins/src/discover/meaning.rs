//! `SemanticSearch`: finds tools by meaning as well as words: embeddings, cached by spec hash, fused with BM25 by rank.
//!
//! Keeps off the hot path: vectors of tools are computed in the background, that of a query has a short deadline, and without
//! either, words alone decide.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Release};
use std::time::Duration;

use haft::error::HostFailure;
use haft::future::BoxFuture;
use haft::spec::ToolSpec;
use haft::toolset::search::{SearchHit, category_of, is_findable};
use haft::toolset::{ToolEntry, ToolsetSnapshot};
use haft_search::{Hit, NAMED, TopHits, clip};
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

/// Maximum time for a query's vector.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time for a batch of tools' vectors.
const BATCH_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of texts embedded per request.
const BATCH_SIZE: usize = 64;
/// Time without requests after a failure.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);
/// Number of hits of each ranking that are fused.
const FUSION_DEPTH: usize = 50;
/// Dampens the first ranks (Cormack, Clarke and Buettcher 2009).
const RANK_DAMPING: f32 = 60.0;
/// Maximum number of floats stored: 128 MiB of them.
const MAX_FLOATS: usize = 32 << 20;
/// Maximum length of one vector.
const MAX_LENGTH: usize = 16 * 1024;
/// Maximum bytes of a text that are embedded.
const MAX_TEXT: usize = 4 * 1024;

/// The reason why texts have no vectors.
#[derive(Debug, thiserror::Error)]
#[error("embed texts: {0}")]
pub struct EmbedError(#[source] pub HostFailure);

/// Computes a vector for each text; texts with similar meanings get similar vectors.
pub trait Embedder: Send + Sync + fmt::Debug {
    /// Returns one vector per text, in order, all of the same length.
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, EmbedError>>;
}

/// Finds tools by meaning and words.
#[derive(Debug)]
pub struct SemanticSearch {
    embedder: Arc<dyn Embedder>,
    vectors: Mutex<Vectors>,
    /// True while tools' vectors are being computed.
    busy: AtomicBool,
    /// True once the failure has been reported.
    failure_reported: AtomicBool,
}

/// Marks that vectors are being computed, until it is dropped: also when the task panics or is cancelled.
struct EmbeddingGuard(Arc<SemanticSearch>);

impl Drop for EmbeddingGuard {
    fn drop(&mut self) {
        self.0.busy.store(false, Release);
    }
}

/// Vectors of length one, by spec hash.
#[derive(Debug, Default)]
struct Vectors {
    known: HashMap<String, Box<[f32]>>,
    /// The length of every vector, once one is known.
    length: usize,
    rest_until: Option<Instant>,
}

/// The result of a search.
#[derive(Debug)]
pub struct RankedTools<'a> {
    /// The tools, best first.
    pub found: Vec<SearchHit<'a>>,
    /// Why meaning was not used; reported once until it works again.
    pub notice: Option<String>,
}

impl SemanticSearch {
    /// Creates a search with vectors from this embedder.
    pub fn new(embedder: Arc<dyn Embedder>) -> Arc<Self> {
        Arc::new(Self {
            embedder,
            vectors: Mutex::default(),
            busy: AtomicBool::new(false),
            failure_reported: AtomicBool::new(false),
        })
    }

    /// Returns the tools that fit a query best by words and, as far as there are vectors, by meaning.
    pub async fn search<'a>(
        self: &Arc<Self>,
        tools: &'a Arc<ToolsetSnapshot>,
        query: &str,
        category: Option<&str>,
        limit: usize,
    ) -> RankedTools<'a> {
        let mut words = tools.search(query, category, limit.max(FUSION_DEPTH));
        self.prepare(tools);
        let (found, notice) = match self.vector(query).await {
            Ok(None) => (words, None),
            Ok(Some(vector)) => {
                self.failure_reported.store(false, Release);
                let near = self.near(tools, &vector, category);
                (fuse_rankings(words, near, limit), None)
            }
            Err(error) => {
                words.truncate(limit);
                (words, self.failure_message(&error))
            }
        };
        let mut ranked = RankedTools { found, notice };
        ranked.found.truncate(limit);
        ranked
    }

    /// Returns the number of tools that have a vector.
    pub fn known(&self) -> usize {
        self.lock_vectors().known.len()
    }

    /// Computes the missing vectors of these tools in the background.
    pub fn prepare(self: &Arc<Self>, tools: &Arc<ToolsetSnapshot>) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let missing = {
            let vectors = self.lock_vectors();
            !vectors.is_paused() && vectors.missing(tools).next().is_some()
        };
        if !missing || self.busy.swap(true, AcqRel) {
            return;
        }
        let (meaning, tools) = (Arc::clone(self), Arc::clone(tools));
        let work = EmbeddingGuard(meaning);
        runtime.spawn(async move {
            if let Err(error) = work.0.embed_missing(&tools).await {
                work.0.lock_vectors().rest_until = Some(Instant::now() + FAILURE_PAUSE);
                work.0.failure_message(&error);
            }
        });
    }

    async fn embed_missing(&self, tools: &ToolsetSnapshot) -> Result<(), EmbedError> {
        self.lock_vectors().make_room(tools);
        loop {
            let batch: Vec<Arc<ToolEntry>> = {
                let vectors = self.lock_vectors();
                if vectors.is_full() {
                    return Ok(());
                }
                vectors.missing(tools).take(BATCH_SIZE).cloned().collect()
            };
            if batch.is_empty() {
                return Ok(());
            }
            let texts: Vec<String> = batch.iter().map(|entry| text_of(entry.spec())).collect();
            let made = self.ask(texts, BATCH_TIMEOUT).await?;
            let mut vectors = self.lock_vectors();
            for (entry, vector) in batch.iter().zip(made) {
                vectors.keep(entry.spec_hash(), vector)?;
            }
        }
    }

    /// Returns the query's vector, or `None` if no tool has one to compare it with.
    async fn vector(&self, query: &str) -> Result<Option<Box<[f32]>>, EmbedError> {
        {
            let vectors = self.lock_vectors();
            if vectors.known.is_empty() || vectors.is_paused() {
                return Ok(None);
            }
        }
        let text = clip(query, MAX_TEXT).to_owned();
        let made = self.ask(vec![text], QUERY_TIMEOUT).await?;
        let vector = made.into_iter().next().unwrap_or_default();
        if vector.len() == self.lock_vectors().length {
            return Ok(Some(vector));
        }
        Err(EmbedError("the query's vector has another length".into()))
    }

    /// Returns normalized vectors of these texts, within the deadline.
    async fn ask(
        &self,
        texts: Vec<String>,
        patience: Duration,
    ) -> Result<Vec<Box<[f32]>>, EmbedError> {
        let count = texts.len();
        let made = match timeout(patience, self.embedder.embed(texts)).await {
            Ok(made) => made,
            Err(_) => Err(EmbedError(
                format!("no answer within {} s", patience.as_secs()).into(),
            )),
        };
        let made = made.and_then(|made| {
            if made.len() != count {
                let message = format!("{} vectors for {count} texts", made.len());
                return Err(EmbedError(message.into()));
            }
            made.into_iter().map(normalize).collect()
        });
        if made.is_err() {
            self.lock_vectors().rest_until = Some(Instant::now() + FAILURE_PAUSE);
        }
        made
    }

    /// Returns the tools with the nearest vectors, nearest first.
    fn near<'a>(
        &self,
        tools: &'a ToolsetSnapshot,
        query: &[f32],
        category: Option<&str>,
    ) -> Vec<SearchHit<'a>> {
        let vectors = self.lock_vectors();
        let mut top = TopHits::new(FUSION_DEPTH);
        for (document, entry) in tools.entries().iter().enumerate() {
            if !is_findable(entry.spec()) || category.is_some_and(|c| category_of(entry) != c) {
                continue;
            }
            if let Some(vector) = vectors.known.get(entry.spec_hash()) {
                let score = dot(query, vector);
                top.push(Hit { document, score });
            }
        }
        let hits = top.finish().into_iter();
        hits.filter_map(|hit| {
            let (entry, score) = (tools.entries().get(hit.document)?, hit.score);
            Some(SearchHit { entry, score })
        })
        .collect()
    }

    /// Returns the message of a failure, the first time only.
    fn failure_message(&self, error: &EmbedError) -> Option<String> {
        if self.failure_reported.swap(true, AcqRel) {
            return None;
        }
        tracing::warn!(%error, "tools are found by words alone");
        Some(format!("found by words alone: {error}"))
    }

    fn lock_vectors(&self) -> MutexGuard<'_, Vectors> {
        self.vectors.lock()
    }
}

impl Vectors {
    fn missing<'a>(
        &'a self,
        tools: &'a ToolsetSnapshot,
    ) -> impl Iterator<Item = &'a Arc<ToolEntry>> {
        tools
            .findable()
            .filter(|entry| !self.known.contains_key(entry.spec_hash()))
    }

    fn is_paused(&self) -> bool {
        self.rest_until.is_some_and(|until| Instant::now() < until)
    }

    fn is_full(&self) -> bool {
        (self.known.len() + BATCH_SIZE) * self.length > MAX_FLOATS
    }

    /// If there is no room left, drops the vectors that these tools do not need.
    fn make_room(&mut self, tools: &ToolsetSnapshot) {
        if self.is_full() {
            let needed: HashSet<&str> = tools.findable().map(|entry| entry.spec_hash()).collect();
            self.known.retain(|hash, _| needed.contains(hash.as_str()));
        }
    }

    fn keep(&mut self, hash: &str, vector: Box<[f32]>) -> Result<(), EmbedError> {
        if self.known.is_empty() {
            self.length = vector.len();
        }
        if vector.len() != self.length {
            let message = format!("vectors of {} and of {}", self.length, vector.len());
            return Err(EmbedError(message.into()));
        }
        self.known.insert(hash.to_owned(), vector);
        Ok(())
    }
}

/// Returns the text of a tool to embed.
fn text_of(spec: &ToolSpec) -> String {
    let text = format!("{}: {}", spec.name, spec.description);
    clip(&text, MAX_TEXT).to_owned()
}

/// Normalizes a vector, so that the product of two is their cosine.
fn normalize(vector: Vec<f32>) -> Result<Box<[f32]>, EmbedError> {
    let length = dot(&vector, &vector).sqrt();
    let usable = !vector.is_empty() && vector.len() <= MAX_LENGTH && length.is_normal();
    if !usable {
        let message = format!(
            "a vector of {} numbers that cannot be normalized",
            vector.len()
        );
        return Err(EmbedError(message.into()));
    }
    Ok(vector.into_iter().map(|x| x / length).collect())
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    // Eight parallel sums, so that the compiler can vectorize each step.
    let mut sums = [0.0_f32; 8];
    let (left, right) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = std::iter::zip(left.remainder(), right.remainder())
        .map(|(x, y)| x * y)
        .sum();
    for (x, y) in std::iter::zip(left, right) {
        for (sum, (x, y)) in std::iter::zip(&mut sums, std::iter::zip(x, y)) {
            *sum += x * y;
        }
    }
    rest + sums.iter().sum::<f32>()
}

/// Fuses both rankings by reciprocal rank; tools named in the query stay first.
fn fuse_rankings<'a>(
    words: Vec<SearchHit<'a>>,
    near: Vec<SearchHit<'a>>,
    limit: usize,
) -> Vec<SearchHit<'a>> {
    let mut all: Vec<SearchHit<'a>> = Vec::with_capacity(words.len() + near.len());
    let mut rank = 0.0;
    for found in words {
        rank += 1.0;
        let named = if found.score >= NAMED {
            found.score
        } else {
            0.0
        };
        all.push(SearchHit {
            score: named + 1.0 / (RANK_DAMPING + rank),
            ..found
        });
    }
    rank = 0.0;
    for found in near {
        rank += 1.0;
        let share = 1.0 / (RANK_DAMPING + rank);
        match all
            .iter_mut()
            .find(|known| Arc::ptr_eq(known.entry, found.entry))
        {
            Some(known) => known.score += share,
            None => all.push(SearchHit {
                score: share,
                ..found
            }),
        }
    }
    all.sort_by(|a, b| match b.score.total_cmp(&a.score) {
        Ordering::Equal => a.entry.spec().name.cmp(&b.entry.spec().name),
        other => other,
    });
    all.truncate(limit);
    all
}
