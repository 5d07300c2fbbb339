//! `MemoryStore`: what agents keep beyond a run: written with its origin, accepted by a person, found again by words.

use serde::Serialize;

use crate::call::{Principal, RunId};
use crate::clock;
use crate::error::Failure;
use crate::future::BoxFuture;
use crate::opaque::opaque_debug;

pub mod candidate_file;
pub mod record;
pub mod run_texts;
pub mod words;

pub use record::{
    Draft, MAX_CONTENT, MAX_PATH, MAX_TAG, MAX_TAGS, MAX_TTL, MemoryId, Provenance, Record,
    Replaced, Scope, Shelf, State,
};

/// Most records of one principal, in whatever state.
pub const MAX_RECORDS: u64 = 100_000;
/// Most candidates of one principal that wait for a decision: a queue nobody could read is no review.
pub const MAX_CANDIDATES: u64 = 1_000;
/// Most earlier revisions of a record that are kept.
pub const MAX_REVISIONS: u64 = 32;
/// Longest query, in characters.
pub const MAX_QUERY: usize = 1_000;
/// Most records a search or list gives.
pub const MAX_LISTED: u32 = 10_000;

/// How what tools write comes into memory (`memory.write_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriteMode {
    /// It does not: there are no tools that write.
    Disabled,
    /// As a candidate, into the run's archive and a review queue; a person accepts it.
    Candidate,
    /// At once.
    External,
}

/// Who asks, and when: nothing of another principal's is seen, nothing expired by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// Whose memory it is.
    pub principal: Principal,
    /// Nanoseconds since 1970, UTC.
    pub at: i128,
}

impl Asker {
    /// This principal, now.
    pub fn now(principal: &Principal) -> Self {
        Self {
            principal: principal.clone(),
            at: clock::now(),
        }
    }
}

/// One change of the memory; several are made all or none.
#[derive(Debug, Clone)]
pub enum Step {
    /// Adds a record. The same content again on the same shelf gives the record that is there.
    Put(Draft),
    /// Changes a record that is still at this revision.
    Update {
        /// Which.
        id: MemoryId,
        /// The revision that was seen.
        revision: u64,
        /// What it becomes.
        change: Change,
    },
    /// Takes a record that is still at this revision away, with its history.
    Delete {
        /// Which.
        id: MemoryId,
        /// The revision that was seen.
        revision: u64,
    },
}

/// What a record becomes; what is not named stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Its text.
    pub content: Option<String>,
    /// Its tags.
    pub tags: Option<Vec<String>>,
    /// Its name in the file face.
    pub path: Option<String>,
    /// Who changes it, for the history.
    pub by: String,
}

/// Which records to list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// On these shelves; on all where empty.
    pub shelves: Vec<Shelf>,
    /// In this state.
    pub state: Option<State>,
    /// Written by this run.
    pub run: Option<RunId>,
    /// Only those with a name in the file face.
    pub files: bool,
    /// At most so many, the newest; at most [`MAX_LISTED`].
    pub limit: u32,
}

/// What to search for among accepted records.
#[derive(Debug, Clone)]
pub struct Query {
    /// Words, in no syntax: whatever stands in it is looked for.
    pub text: String,
    /// On these shelves; on all where empty.
    pub shelves: Vec<Shelf>,
    /// Written by this run.
    pub run: Option<RunId>,
    /// At most so many, the best; at most [`MAX_LISTED`].
    pub limit: u32,
}

/// A record that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// The record.
    #[serde(flatten)]
    pub record: Record,
    /// How well it fits; higher is better, and only comparable within one answer.
    pub score: f64,
}

/// One revision of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Revision {
    /// Its number, from 1.
    pub revision: u64,
    /// Since when, RFC 3339 UTC.
    pub since: String,
    /// Its state then.
    pub state: State,
    /// Its text then.
    pub content: String,
    /// Who made it so.
    pub by: String,
}

/// What a person decides about a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Taken in, or not.
    pub accept: bool,
    /// Who decides.
    pub by: String,
}

/// How many records a principal has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Waiting for a decision.
    pub candidate: u64,
    /// In use.
    pub accepted: u64,
    /// Turned down, not yet swept.
    pub rejected: u64,
}

/// Why the memory could not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// What was to be stored breaks a bound.
    #[error("{0}")]
    Invalid(String),
    /// No such record of this principal's.
    #[error("no memory {0}")]
    NotFound(MemoryId),
    /// It is not at the revision that was seen.
    #[error("memory {0} changed since it was read")]
    Changed(MemoryId),
    /// It is no candidate any more.
    #[error("memory {0} is {as_it_is} already", as_it_is = .1.as_str())]
    Decided(MemoryId, State),
    /// Another accepted record has this name.
    #[error("{0} exists already")]
    Exists(String),
    /// The principal's memory or queue is full.
    #[error("the memory holds {most} {what}, which is the most", most = .1, what = .0)]
    Full(&'static str, u64),
    /// The query holds no word.
    #[error("the query holds no word to look for")]
    NoWords,
    /// The store behind it failed.
    #[error("memory: {0}")]
    Store(#[source] Failure),
}

/// The future of a store's answer.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, MemoryError>>;

/// Keeps memories, each principal's apart. Several processes may use one at a time.
///
/// Content and query are never read as a language: any text is safe in both.
pub trait MemoryStore: Send + Sync {
    /// Makes all these changes or none; gives for each step the record, a deleted one as it was.
    fn apply<'a>(&'a self, asker: &'a Asker, steps: Vec<Step>) -> Answer<'a, Vec<Record>>;

    /// One record.
    fn get<'a>(&'a self, asker: &'a Asker, id: &'a MemoryId) -> Answer<'a, Option<Record>>;

    /// Records, the one changed last first.
    fn list<'a>(&'a self, asker: &'a Asker, filter: &'a Filter) -> Answer<'a, Vec<Record>>;

    /// Accepted records that hold the query's words: those that hold all of them first, then by rank, then the newest.
    fn search<'a>(&'a self, asker: &'a Asker, query: &'a Query) -> Answer<'a, Vec<Hit>>;

    /// A record's revisions, the oldest first, the present one last; at most [`MAX_REVISIONS`] earlier ones.
    fn history<'a>(&'a self, asker: &'a Asker, id: &'a MemoryId) -> Answer<'a, Vec<Revision>>;

    /// Accepts or rejects a candidate: once, and final. Accepting one that replaces or deletes a file needs that file
    /// to be as the candidate's writer saw it. A rejected one is kept for seven days.
    fn decide<'a>(
        &'a self,
        asker: &'a Asker,
        id: &'a MemoryId,
        decision: &'a Decision,
    ) -> Answer<'a, Record>;

    /// How many records there are.
    fn counts<'a>(&'a self, asker: &'a Asker) -> Answer<'a, Counts>;

    /// Takes away what has expired, of whoever it is; tells how much that was. Writing does it along the way.
    fn sweep(&self, at: i128) -> Answer<'_, u64>;

    /// Adds one record; [`Step::Put`] alone.
    fn put<'a>(&'a self, asker: &'a Asker, draft: Draft) -> Answer<'a, Record> {
        one(self.apply(asker, vec![Step::Put(draft)]))
    }

    /// Changes one record; [`Step::Update`] alone. Of several who saw the same revision exactly one succeeds.
    fn update<'a>(
        &'a self,
        asker: &'a Asker,
        id: MemoryId,
        revision: u64,
        change: Change,
    ) -> Answer<'a, Record> {
        let step = Step::Update {
            id,
            revision,
            change,
        };
        one(self.apply(asker, vec![step]))
    }

    /// Deletes one record; [`Step::Delete`] alone.
    fn delete<'a>(&'a self, asker: &'a Asker, id: MemoryId, revision: u64) -> Answer<'a, Record> {
        one(self.apply(asker, vec![Step::Delete { id, revision }]))
    }
}

opaque_debug!(MemoryStore);

/// The one record of a change of one step.
fn one(applied: Answer<'_, Vec<Record>>) -> Answer<'_, Record> {
    Box::pin(async move {
        let record = applied.await?.pop();
        record.ok_or_else(|| MemoryError::Store("a change without a record".into()))
    })
}
