//! `MemoryStore`: what agents remember beyond a run: recorded with its origin, accepted by the user, searched by words.

use serde::Serialize;

use crate::call::{Principal, RunId};
use crate::clock;
use crate::error::HostFailure;
use crate::future::BoxFuture;
use haft_types::opaque_debug;

pub mod candidate_file;
pub mod record;
pub mod run_texts;
pub mod words;

pub use record::{
    MAX_CONTENT, MAX_PATH, MAX_TAG, MAX_TAGS, MAX_TTL, MemoryDraft, MemoryId, MemoryRecord,
    MemoryScope, MemoryState, Provenance, ReplacedRecord, Shelf,
};

/// Maximum number of records per principal, in any state.
pub const MAX_RECORDS: u64 = 100_000;
/// Maximum number of pending candidates per principal: nobody could review a longer queue.
pub const MAX_CANDIDATES: u64 = 1_000;
/// Maximum number of earlier revisions stored per record.
pub const MAX_REVISIONS: u64 = 32;
/// Maximum length of a query, in characters.
pub const MAX_QUERY: usize = 1_000;
/// Maximum number of records in a search result or list.
pub const MAX_LISTED: u32 = 10_000;

/// How records that tools write enter memory (`memory.write_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryWriteMode {
    /// Not at all: there are no tools that write.
    Disabled,
    /// As candidates, in the run's archive and a review queue, until the user accepts them.
    Candidate,
    /// Immediately.
    External,
}

/// The principal of a request and its time: it sees no records of other principals, and none expired by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryAccess {
    /// The principal whose memory it is.
    pub principal: Principal,
    /// The time, in nanoseconds since 1970, UTC.
    pub at: i128,
}

impl MemoryAccess {
    /// Creates a request of this principal at the current time.
    pub fn now(principal: &Principal) -> Self {
        Self {
            principal: principal.clone(),
            at: clock::now(),
        }
    }
}

/// One change of the memory; a list of them is applied atomically.
#[derive(Debug, Clone)]
pub enum MemoryOperation {
    /// Adds a record. If the shelf already has the same content, the result is the existing record.
    Put(MemoryDraft),
    /// Changes a record if it is still at this revision.
    Update {
        /// The record.
        id: MemoryId,
        /// The revision that the caller read.
        revision: u64,
        /// The new values.
        change: MemoryUpdate,
    },
    /// Deletes a record, with its history, if it is still at this revision.
    Delete {
        /// The record.
        id: MemoryId,
        /// The revision that the caller read.
        revision: u64,
    },
}

/// New values of a record; `None` leaves a value unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryUpdate {
    /// Its text.
    pub content: Option<String>,
    /// Its tags.
    pub tags: Option<Vec<String>>,
    /// Its path as a file.
    pub path: Option<String>,
    /// Who changes it, for the history.
    pub by: String,
}

/// A selection of records to list.
#[derive(Debug, Clone, Default)]
pub struct MemoryFilter {
    /// Only on these shelves; on all if empty.
    pub shelves: Vec<Shelf>,
    /// Only in this state.
    pub state: Option<MemoryState>,
    /// Only written by this run.
    pub run: Option<RunId>,
    /// Only records with a path as a file.
    pub files: bool,
    /// Maximum number of records, newest first; at most [`MAX_LISTED`].
    pub limit: u32,
}

/// A search among accepted records.
#[derive(Debug, Clone)]
pub struct MemoryQuery {
    /// Words to search for; the text has no syntax.
    pub text: String,
    /// Only on these shelves; on all if empty.
    pub shelves: Vec<Shelf>,
    /// Only written by this run.
    pub run: Option<RunId>,
    /// Maximum number of records, best first; at most [`MAX_LISTED`].
    pub limit: u32,
}

/// A search result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryHit {
    /// The record.
    #[serde(flatten)]
    pub record: MemoryRecord,
    /// How well it matches; higher is better, comparable only within one result.
    pub score: f64,
}

/// One revision of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryRevision {
    /// Its number, from 1.
    pub revision: u64,
    /// When it was created, RFC 3339 UTC.
    pub since: String,
    /// Its state then.
    pub state: MemoryState,
    /// Its text then.
    pub content: String,
    /// Who made this revision: its writer, or who decided on the candidate.
    pub by: String,
}

/// A decision about a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateDecision {
    /// Whether to accept or reject it.
    pub accept: bool,
    /// Who decides.
    pub by: String,
}

/// A candidate, and the principal whose memory it would enter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PendingCandidate {
    /// The candidate.
    #[serde(flatten)]
    pub record: MemoryRecord,
    /// The principal.
    pub principal: Principal,
}

/// Numbers of a principal's records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MemoryCounts {
    /// Candidates, pending a decision.
    pub candidate: u64,
    /// Accepted records.
    pub accepted: u64,
    /// Rejected records, not yet swept.
    pub rejected: u64,
}

/// The reason why a memory operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The record to store exceeds a limit.
    #[error("{0}")]
    Invalid(String),
    /// The principal has no such record.
    #[error("no memory {0}")]
    NotFound(MemoryId),
    /// The record is no longer at the revision that the caller read.
    #[error("memory {0} changed since it was read")]
    Changed(MemoryId),
    /// The record is no longer a candidate.
    #[error("memory {0} is already {as_it_is}", as_it_is = .1.as_str())]
    Decided(MemoryId, MemoryState),
    /// Another accepted record has this path.
    #[error("{0} exists already")]
    Exists(String),
    /// The principal's memory or queue is full.
    #[error("the memory is full: it holds {most} {what}", most = .1, what = .0)]
    Full(&'static str, u64),
    /// The query has no words.
    #[error("the query contains no words to search for")]
    NoWords,
    /// The underlying store failed.
    #[error("memory: {0}")]
    Store(#[source] HostFailure),
}

/// The future of a store's result.
pub type MemoryFuture<'a, T> = BoxFuture<'a, Result<T, MemoryError>>;

/// Stores memories, separately for each principal. Several processes may use one at a time.
///
/// Content and queries have no syntax: any text is safe in both.
pub trait MemoryStore: Send + Sync {
    /// Applies all changes or none; returns the record of each step, or a deleted record as it was.
    fn apply<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        steps: Vec<MemoryOperation>,
    ) -> MemoryFuture<'a, Vec<MemoryRecord>>;

    /// Returns one record.
    fn get<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        id: &'a MemoryId,
    ) -> MemoryFuture<'a, Option<MemoryRecord>>;

    /// Returns records, most recently changed first.
    fn list<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        filter: &'a MemoryFilter,
    ) -> MemoryFuture<'a, Vec<MemoryRecord>>;

    /// Returns accepted records that contain words of the query: those with all of them first, then by rank, then newest first.
    fn search<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        query: &'a MemoryQuery,
    ) -> MemoryFuture<'a, Vec<MemoryHit>>;

    /// Returns the candidates of all principals of the asker's tenant, most recently changed first, at most [`MAX_LISTED`]: for the
    /// operator, who decides about them as about approvals. A store without it returns the asker's own.
    fn candidates<'a>(
        &'a self,
        asker: &'a MemoryAccess,
    ) -> MemoryFuture<'a, Vec<PendingCandidate>> {
        Box::pin(async move {
            let filter = MemoryFilter {
                state: Some(MemoryState::Candidate),
                limit: MAX_LISTED,
                ..MemoryFilter::default()
            };
            let own = self.list(asker, &filter).await?.into_iter();
            let principal = &asker.principal;
            let candidate = |record| PendingCandidate {
                record,
                principal: principal.clone(),
            };
            Ok(own.map(candidate).collect())
        })
    }

    /// Returns a record's revisions, oldest first, the current one last; at most [`MAX_REVISIONS`] earlier ones.
    fn history<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        id: &'a MemoryId,
    ) -> MemoryFuture<'a, Vec<MemoryRevision>>;

    /// Accepts or rejects a candidate, once and finally. To accept one that replaces or deletes a file, that file must still
    /// be as the candidate's writer saw it. A rejected candidate is stored for seven days.
    fn decide<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        id: &'a MemoryId,
        decision: &'a CandidateDecision,
    ) -> MemoryFuture<'a, MemoryRecord>;

    /// Returns the numbers of records.
    fn counts<'a>(&'a self, asker: &'a MemoryAccess) -> MemoryFuture<'a, MemoryCounts>;

    /// Removes expired records of all principals; returns their number. Writing also does this.
    fn sweep(&self, at: i128) -> MemoryFuture<'_, u64>;

    /// Adds one record; the same as a single [`MemoryOperation::Put`].
    fn put<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        draft: MemoryDraft,
    ) -> MemoryFuture<'a, MemoryRecord> {
        single_record(self.apply(asker, vec![MemoryOperation::Put(draft)]))
    }

    /// Changes one record; the same as a single [`MemoryOperation::Update`]. Of several callers with the same revision, exactly one succeeds.
    fn update<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        id: MemoryId,
        revision: u64,
        change: MemoryUpdate,
    ) -> MemoryFuture<'a, MemoryRecord> {
        let step = MemoryOperation::Update {
            id,
            revision,
            change,
        };
        single_record(self.apply(asker, vec![step]))
    }

    /// Deletes one record; the same as a single [`MemoryOperation::Delete`].
    fn delete<'a>(
        &'a self,
        asker: &'a MemoryAccess,
        id: MemoryId,
        revision: u64,
    ) -> MemoryFuture<'a, MemoryRecord> {
        single_record(self.apply(asker, vec![MemoryOperation::Delete { id, revision }]))
    }
}

opaque_debug!(MemoryStore);

/// Returns the record of a change with one step.
fn single_record(applied: MemoryFuture<'_, Vec<MemoryRecord>>) -> MemoryFuture<'_, MemoryRecord> {
    Box::pin(async move {
        let record = applied.await?.pop();
        record.ok_or_else(|| MemoryError::Store("a change without a record".into()))
    })
}
