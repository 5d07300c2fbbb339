//! Where two histories part: what a merge may take from one side is what that side has changed since.

use std::collections::{BinaryHeap, HashMap, HashSet};
use std::rc::Rc;

use super::super::headers::Commit;
use super::super::id::ObjectId;
use super::super::store::ObjectDatabase;
use super::Budget;

/// Maximum number of commits that are visited for one merge.
const MAX_VISITED: usize = 20_000;

/// How a commit is reachable, in bits.
const FROM_FIRST: u8 = 1;
const FROM_SECOND: u8 = 2;
const FROM_BOTH: u8 = FROM_FIRST | FROM_SECOND;
/// It is behind a common commit.
const BEHIND: u8 = 4;

/// Returns the last commits that are in both histories; `None` if that cannot be told. Compare `paint_down_to_common` in git's source:
/// where the times of commits are wrong, there may be earlier ones, too.
pub(super) fn merge_bases(
    store: &ObjectDatabase<'_>,
    first: ObjectId,
    second: ObjectId,
    budget: &Budget,
) -> Option<Vec<Rc<Commit>>> {
    let mut walk = CommonWalk {
        store,
        reached: HashMap::new(),
        queue: BinaryHeap::new(),
        open: HashSet::new(),
    };
    walk.reach(first, FROM_FIRST)?;
    walk.reach(second, FROM_SECOND)?;
    let (mut common, mut visited) = (Vec::new(), 0);
    while let Some((_, id)) = walk.queue.pop() {
        visited += 1;
        if visited > MAX_VISITED || budget.is_over() {
            return None;
        }
        let mut how = walk.reached.get(&id).copied()?;
        walk.open.remove(&id);
        let commit = store.commit(&id).ok()?;
        if how == FROM_BOTH {
            common.push(id);
            how |= BEHIND;
        }
        for parent in &commit.parents {
            walk.reach(*parent, how)?;
        }
        if walk.open.is_empty() {
            break;
        }
    }
    common.sort_unstable();
    common.dedup();
    common.retain(|id| walk.reached.get(id) == Some(&FROM_BOTH));
    common.iter().map(|id| store.commit(id).ok()).collect()
}

struct CommonWalk<'w, 's> {
    store: &'w ObjectDatabase<'s>,
    reached: HashMap<ObjectId, u8>,
    /// By the times of commits: the newest comes first.
    queue: BinaryHeap<(i64, ObjectId)>,
    /// The queued commits that are not behind a common one.
    open: HashSet<ObjectId>,
}

impl CommonWalk<'_, '_> {
    fn reach(&mut self, id: ObjectId, how: u8) -> Option<()> {
        let before = self.reached.get(&id).copied().unwrap_or(0);
        let after = before | how;
        if before == after {
            return Some(());
        }
        let commit = self.store.commit(&id).ok()?;
        self.reached.insert(id, after);
        self.queue.push((commit.time, id));
        if after & BEHIND == 0 {
            self.open.insert(id);
        } else {
            self.open.remove(&id);
        }
        Some(())
    }
}
