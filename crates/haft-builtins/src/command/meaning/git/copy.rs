//! Commits that say they are copies of others, or take others back: whether they are.

use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use super::commit::named;
use super::headers::Commit;
use super::id::ObjectId;
use super::store::{ObjectDatabase, ObjectError};
use super::tree::{TreeDifference, differences};
use super::update::RefContext;

/// Maximum number of commits among which the original is looked for.
const MAX_VISITED: usize = 5_000;

impl RefContext<'_, '_> {
    /// Returns the known commit of which a new one is a copy: both are by the same author at the same second, with the same
    /// first line or the same changes.
    pub(super) fn original(&self, copy: &Commit) -> Option<Rc<Commit>> {
        let roots = self.roots_before.iter();
        let mut left: VecDeque<ObjectId> = roots
            .filter_map(|id| Some(self.store.peel(id).ok()?.0.id))
            .collect();
        let mut seen: HashSet<ObjectId> = left.iter().copied().collect();
        while let Some(id) = left.pop_front() {
            let Ok(commit) = self.store.commit(&id) else {
                continue;
            };
            let is_same = commit.author == copy.author && commit.written == copy.written;
            // Several may be made within one second.
            let is_copy = || {
                commit.subject() == copy.subject()
                    || changes(self.store, &commit) == changes(self.store, copy)
            };
            if is_same && commit.id != copy.id && commit.parents.len() < 2 && is_copy() {
                return Some(commit);
            }
            if seen.len() >= MAX_VISITED || self.budget.is_over() {
                continue;
            }
            let parents = commit.parents.iter().filter(|parent| seen.insert(**parent));
            left.extend(parents);
        }
        None
    }

    /// Returns a line on a copy: what it is a copy of, and whether it changes the same.
    pub(super) fn copied(&self, copy: &Commit, original: &Commit) -> String {
        let same = match (changes(self.store, copy), changes(self.store, original)) {
            (Ok(is), Ok(was)) => is == was,
            _ => false,
        };
        let how = if same { "" } else { ", with other changes" };
        format!("a copy of {}{how}", named(original))
    }

    /// Returns the commit that another one takes back exactly; the error is a warning that it does not.
    pub(super) fn reverted(&self, commit: &Commit) -> Result<Option<Rc<Commit>>, String> {
        const MARK: &str = "This reverts commit ";
        let Some((_, rest)) = commit.message.split_once(MARK) else {
            return Ok(None);
        };
        let id = rest
            .get(..40)
            .and_then(|hex| ObjectId::from_hex(hex.as_bytes()));
        let Some(Ok(was)) = id.map(|id| self.store.commit(&id)) else {
            return Err(
                "it says that it reverts a commit, which is not in the repository".to_owned(),
            );
        };
        let turned = |all: Vec<TreeDifference>| -> Vec<TreeDifference> {
            let turn = |one: TreeDifference| TreeDifference {
                before: one.after,
                after: one.before,
                ..one
            };
            all.into_iter().map(turn).collect()
        };
        match (changes(self.store, commit), changes(self.store, &was)) {
            (Ok(is), Ok(done)) if turned(is.clone()) == done => Ok(Some(was)),
            _ => Err(format!(
                "it says that it reverts {}, but it does not change just that",
                named(&was)
            )),
        }
    }
}

/// Returns what a commit changes against its first parent.
fn changes(
    store: &ObjectDatabase<'_>,
    commit: &Commit,
) -> Result<Vec<TreeDifference>, ObjectError> {
    let parent = commit.parents.first().map(|id| store.commit(id));
    let tree = parent.transpose()?.map(|parent| parent.tree);
    differences(store, tree.as_ref(), Some(&commit.tree))
}
