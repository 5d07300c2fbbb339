//! Walks the history: which commits are reachable from some and not from others.

use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::rc::Rc;

use super::headers::Commit;
use super::id::ObjectId;
use super::store::ObjectDatabase;

/// Maximum number of commits that one walk visits.
const MAX_VISITED: usize = 20_000;
/// Number of commits to look at after the last one that is of interest, since the times of commits may be wrong.
const MORE: usize = 50;

/// Commits that were found, the newest first.
#[derive(Debug, Default)]
pub(super) struct CommitRange {
    pub(super) commits: Vec<Rc<Commit>>,
    /// True if the history goes on beyond what was visited or can be read.
    pub(super) incomplete: bool,
}

/// The commits that a branch gets, and those that it loses.
pub(super) struct BranchCommits {
    pub(super) fresh: CommitRange,
    pub(super) removed: CommitRange,
}

/// Returns the first commit outside `fresh` on the way from a tip over first parents; `None` if the way ends inside.
pub(super) fn exit_of(
    store: &ObjectDatabase<'_>,
    tip: ObjectId,
    fresh: &[Rc<Commit>],
) -> Option<ObjectId> {
    let inside: BTreeSet<ObjectId> = fresh.iter().map(|commit| commit.id).collect();
    let mut at = tip;
    while inside.contains(&at) {
        at = *store.commit(&at).ok()?.parents.first()?;
    }
    Some(at)
}

/// Returns the commits that are reachable from `from` and not from `not`.
pub(super) fn exclusive(
    store: &ObjectDatabase<'_>,
    from: &[ObjectId],
    not: &[ObjectId],
) -> CommitRange {
    let mut walk = CommitWalk {
        store,
        excluded: HashMap::new(),
        queue: BinaryHeap::new(),
        wanted: HashSet::new(),
        found: CommitRange::default(),
    };
    for id in not {
        // A ref may lead to a tag, or to something else than a commit.
        if let Ok((commit, _)) = store.peel(id) {
            walk.reach(commit.id, true);
        }
    }
    for id in from {
        match store.peel(id) {
            Ok((commit, _)) => walk.reach(commit.id, false),
            Err(_) => walk.found.incomplete = true,
        }
    }
    walk.run()
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueuedCommit {
    time: i64,
    id: ObjectId,
}

struct CommitWalk<'w, 's> {
    store: &'w ObjectDatabase<'s>,
    /// Whether a commit is excluded.
    excluded: HashMap<ObjectId, bool>,
    queue: BinaryHeap<QueuedCommit>,
    /// The queued commits that are not excluded.
    wanted: HashSet<ObjectId>,
    found: CommitRange,
}

impl CommitWalk<'_, '_> {
    fn reach(&mut self, id: ObjectId, excluded: bool) {
        match self.excluded.get(&id) {
            None => {}
            // Visiting it again excludes its ancestors.
            Some(false) if excluded => {}
            Some(_) => return,
        }
        let Ok(commit) = self.store.commit(&id) else {
            return;
        };
        self.excluded.insert(id, excluded);
        self.queue.push(QueuedCommit {
            time: commit.time,
            id,
        });
        if excluded {
            self.wanted.remove(&id);
        } else {
            self.wanted.insert(id);
        }
    }

    fn run(mut self) -> CommitRange {
        let (mut visited, mut more, mut candidates) = (0, 0, Vec::new());
        let (mut done, mut without_parent) = (HashSet::new(), Vec::new());
        while let Some(QueuedCommit { id, .. }) = self.queue.pop() {
            visited += 1;
            if visited > MAX_VISITED {
                self.found.incomplete = true;
                break;
            }
            let excluded = self.excluded.get(&id).copied().unwrap_or(true);
            if !done.insert((id, excluded)) {
                continue;
            }
            more = if self.wanted.is_empty() { more + 1 } else { 0 };
            if more > MORE {
                break;
            }
            if !excluded {
                self.wanted.remove(&id);
                candidates.push(id);
            }
            let Ok(commit) = self.store.commit(&id) else {
                continue;
            };
            for parent in &commit.parents {
                self.reach(*parent, excluded);
                if !self.excluded.contains_key(parent) {
                    without_parent.push(id);
                }
            }
        }
        let excluded = &self.excluded;
        candidates.retain(|id| excluded.get(id) == Some(&false));
        // A shallow or partial clone has no more.
        self.found.incomplete |= without_parent
            .iter()
            .any(|id| excluded.get(id) == Some(&false));
        let commits = candidates
            .iter()
            .filter_map(|id| self.store.commit(id).ok());
        self.found.commits = commits.collect();
        self.found
    }
}
