//! `ChangeOutcomes`: decides each change of a command from the policy's verdicts, and groups changes that only make sense together.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft::change::EntryState;
use haft::change::collect::{ChangeList, ViewChange};
use haft::permission::Verdict;
use haft::policy::EffectVerdict;

use crate::command::changes::OnPartial;
use crate::command::changes::fate_table::{Fate, FateTable};

/// Why a change is not applied if another one of its repository must not be.
pub(super) const SAME_REPOSITORY: &str = "other changes of the same repository must not be applied";

/// The fates of a set of changes.
pub(super) struct ChangeOutcomes<'a> {
    changes: &'a Arc<ChangeList>,
    fates: Vec<Fate>,
}

impl<'a> ChangeOutcomes<'a> {
    /// Creates the fates from the policy's verdicts. If `reviews`, allowed changes are asked about too.
    pub(super) fn new(
        changes: &'a Arc<ChangeList>,
        verdicts: impl Iterator<Item = EffectVerdict>,
        reviews: bool,
    ) -> Self {
        let each = changes.iter().zip(verdicts);
        Self {
            changes,
            fates: each
                .map(|(change, verdict)| fate(&change, verdict, reviews))
                .collect(),
        }
    }

    /// Refuses all changes below a folder for a reason other than the policy.
    pub(super) fn refuse_below(&mut self, folder: &Path, why: &str) {
        for (path, fate) in self.changes.paths().zip(&mut self.fates) {
            if path.starts_with(folder) {
                *fate = Fate::Refused(why.to_owned());
            }
        }
    }

    /// Returns whether the user decides about any of the changes.
    pub(super) fn has_asked(&self) -> bool {
        self.fates.contains(&Fate::Asked)
    }

    /// Asks about allowed changes that are selected.
    pub(super) fn ask_about(&mut self, mut select: impl FnMut(&ViewChange<'_>) -> bool) {
        for (change, fate) in self.changes.iter().zip(&mut self.fates) {
            if *fate == Fate::Allowed && select(&change) {
                *fate = Fate::Asked;
            }
        }
    }

    /// Makes a single decision for changes that only make sense together. `repository` returns the repository that a path belongs to.
    pub(super) fn decide_jointly(
        mut self,
        on_partial: OnPartial,
        repository: impl FnMut(&Path) -> Option<PathBuf>,
    ) -> FateTable {
        self.join_moves();
        self.join_repositories(repository);
        self.join_deleted_folders();
        self.join_folders();
        if on_partial == OnPartial::Discard {
            self.join(
                |_| Some(Path::new("")),
                "other changes of the command must not be applied",
            );
        }
        FateTable::new(Arc::clone(self.changes), self.fates)
    }

    /// Joins what takes a content away with where the command put it: until that is applied, the content would be nowhere.
    fn join_moves(&mut self) {
        let content = |state: &Option<EntryState>| match state {
            Some(EntryState::File { sha256, bytes, .. }) if *bytes > 0 => Some((*bytes, *sha256)),
            _ => None,
        };
        let mut places: HashMap<_, Fate> = HashMap::new();
        for (change, fate) in self.changes.iter().zip(&self.fates) {
            let put = content(&change.after)
                .filter(|_| content(&change.after) != content(&change.before));
            let Some(put) = put else {
                continue;
            };
            let known = places.entry(put).or_insert_with(|| fate.clone());
            // One place is enough.
            if *fate == Fate::Allowed {
                *known = Fate::Allowed;
            }
        }
        for (change, fate) in self.changes.iter().zip(&mut self.fates) {
            let taken = content(&change.before)
                .filter(|_| content(&change.after) != content(&change.before));
            if let Some(place) = taken.and_then(|taken| places.get(&taken)) {
                *fate = stricter(fate, place, "where the command moved it to is not applied");
            }
        }
    }

    /// Joins changes of the same repository: half of them would break it, and half of a new one would stay after a refusal.
    fn join_repositories(&mut self, repository: impl FnMut(&Path) -> Option<PathBuf>) {
        self.join(repository, SAME_REPOSITORY);
    }

    /// Joins the changes of a deleted folder: half of a deletion would later look like another program's change.
    fn join_deleted_folders(&mut self) {
        let is_deleted = |change: &ViewChange<'_>| {
            matches!(change.before, Some(EntryState::Folder { .. }))
                && !matches!(change.after, Some(EntryState::Folder { .. }))
        };
        let deleted = self.changes.iter().filter(is_deleted);
        let deleted: HashSet<&Path> = deleted.map(|change| change.path).collect();
        self.join(
            |path| {
                path.ancestors()
                    .filter(|path| deleted.contains(path))
                    .last()
            },
            "other changes in the same deleted folder must not be applied",
        );
    }

    /// Gives all changes of a group the strictest fate in it.
    fn join<G: Ord>(&mut self, mut group: impl FnMut(&'a Path) -> Option<G>, why: &str) {
        // A group is found once for each path, and held once: as a number beside the path.
        let mut numbers: BTreeMap<G, usize> = BTreeMap::new();
        let groups = self.changes.paths().map(|path| {
            let next = numbers.len();
            Some(*numbers.entry(group(path)?).or_insert(next))
        });
        let groups: Vec<Option<usize>> = groups.collect();
        let mut strictest = vec![Fate::Allowed; numbers.len()];
        for (group, fate) in groups.iter().zip(&self.fates) {
            if let Some(all) = group.and_then(|group| strictest.get_mut(group)) {
                *all = stricter(all, fate, why);
            }
        }
        for (group, fate) in groups.iter().zip(&mut self.fates) {
            if let Some(all) = group.and_then(|group| strictest.get(group)) {
                *fate = stricter(fate, all, why);
            }
        }
    }

    /// Joins what is created in a new folder with that folder, and a deleted folder with its contents, which are deleted first.
    /// The changes are sorted by path.
    fn join_folders(&mut self) {
        let changes = self.changes;
        let above = |change: &ViewChange<'_>| changes.position(change.path.parent()?);
        let was_folder = |at: usize| {
            let before = changes.get(at).and_then(|change| change.before);
            matches!(before, Some(EntryState::Folder { .. }))
        };
        for (place, change) in self.changes.iter().enumerate() {
            if change.after.is_some()
                && let Some(folder) = above(&change)
                && !was_folder(folder)
            {
                let fate = self.fates[folder].clone();
                self.fates[place] = stricter(
                    &self.fates[place],
                    &fate,
                    "the folder above it is not applied",
                );
            }
        }
        for (place, change) in self.changes.iter().enumerate().rev() {
            if change.after.is_none()
                && let Some(folder) = above(&change)
            {
                let fate = self.fates[place].clone();
                self.fates[folder] = stricter(
                    &self.fates[folder],
                    &fate,
                    "it holds something that is not deleted",
                );
            }
        }
    }
}

/// Returns the fate of one change according to the policy.
fn fate(change: &ViewChange<'_>, verdict: EffectVerdict, reviews: bool) -> Fate {
    match (change.conflict, verdict.verdict) {
        (_, Verdict::Deny) => Fate::Refused(verdict.reason),
        (Some(why), _) => Fate::Conflict(why.to_owned()),
        (None, Verdict::Ask) => Fate::Asked,
        (None, Verdict::Allow) if reviews => Fate::Asked,
        (None, Verdict::Allow) => Fate::Allowed,
    }
}

/// Returns `own`, or the fate that follows from `other` if that is stricter.
fn stricter(own: &Fate, other: &Fate, why: &str) -> Fate {
    match (own, other) {
        (Fate::Allowed, Fate::Asked) => Fate::Asked,
        (Fate::Allowed | Fate::Asked, Fate::Refused(_) | Fate::Conflict(_)) => {
            Fate::Refused(why.to_owned())
        }
        _ => own.clone(),
    }
}
