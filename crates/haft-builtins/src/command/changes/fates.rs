//! What becomes of each change of a command: the verdicts of the policy, and which changes only make sense together.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use haft::change::collect::ViewChange;
use haft::change::{PathText, State};
use haft::permission::Verdict;
use haft::policy::EffectVerdict;

use crate::command::changes::OnPartial;
use crate::command::changes::note::Fate;

/// The fates of some changes, as the policy says.
pub(super) struct Fates<'a> {
    changes: &'a [ViewChange],
    fates: Vec<Fate>,
}

impl<'a> Fates<'a> {
    /// The fates by what the policy says of each change; all are asked about where a person `reviews` all.
    pub(super) fn new(
        changes: &'a [ViewChange],
        said: impl Iterator<Item = EffectVerdict>,
        reviews: bool,
    ) -> Self {
        let each = changes.iter().zip(said);
        Self {
            changes,
            fates: each
                .map(|(change, said)| fate(change, said, reviews))
                .collect(),
        }
    }

    /// Refuses all changes below a folder for another reason than the policy's.
    pub(super) fn refuse_below(&mut self, folder: &Path, why: &str) {
        for (change, fate) in self.changes.iter().zip(&mut self.fates) {
            if change.path.starts_with(folder) {
                *fate = Fate::Refused(why.to_owned());
            }
        }
    }

    /// Makes one decision of what only makes sense together.
    pub(super) fn together(mut self, on_partial: OnPartial) -> BTreeMap<PathText, Fate> {
        self.join_repositories();
        self.join_deleted_folders();
        self.join_folders();
        if on_partial == OnPartial::Discard {
            self.join(
                |_| Some(PathBuf::new()),
                "other changes of the command must not be applied",
            );
        }
        let paths = self
            .changes
            .iter()
            .map(|change| PathText(change.path.clone()));
        paths.zip(self.fates).collect()
    }

    /// Half of a change to a repository breaks it.
    fn join_repositories(&mut self) {
        let repository = |path: &Path| {
            let is_git = |name: &&Path| {
                name.file_name()
                    .is_some_and(|name| name.eq_ignore_ascii_case(".git"))
            };
            path.ancestors().find(is_git).map(Path::to_path_buf)
        };
        self.join(
            repository,
            "other changes of the same repository must not be applied",
        );
    }

    /// A folder is deleted whole or not at all: half of it applied would be taken for another program's change later.
    fn join_deleted_folders(&mut self) {
        let is_deleted = |change: &&ViewChange| {
            matches!(change.before, Some(State::Folder { .. }))
                && !matches!(change.after, Some(State::Folder { .. }))
        };
        let deleted: Vec<PathBuf> = self
            .changes
            .iter()
            .filter(is_deleted)
            .map(|change| change.path.clone())
            .collect();
        let deleted: HashSet<&Path> = deleted.iter().map(PathBuf::as_path).collect();
        let outermost = |path: &Path| {
            let above = path.ancestors().filter(|path| deleted.contains(path));
            above.last().map(Path::to_path_buf)
        };
        self.join(
            outermost,
            "other changes in the same deleted folder must not be applied",
        );
    }

    /// Gives all changes of a group the strictest fate in it.
    fn join(&mut self, group: impl Fn(&Path) -> Option<PathBuf>, why: &str) {
        let groups: Vec<_> = self
            .changes
            .iter()
            .map(|change| group(&change.path))
            .collect();
        let mut strictest: BTreeMap<&Path, Fate> = BTreeMap::new();
        for (group, fate) in groups.iter().zip(&self.fates) {
            if let Some(group) = group {
                let all = strictest.entry(group).or_insert(Fate::Allowed);
                *all = stricter(all, fate, why);
            }
        }
        for (group, fate) in groups.iter().zip(&mut self.fates) {
            if let Some(all) = group.as_ref().and_then(|group| strictest.get(&**group)) {
                *fate = stricter(fate, all, why);
            }
        }
    }

    /// What is made in a new folder goes with the folder, and a folder is not deleted before what it holds. The changes
    /// are sorted by path.
    fn join_folders(&mut self) {
        let at: BTreeMap<&Path, usize> = self
            .changes
            .iter()
            .enumerate()
            .map(|(at, change)| (&*change.path, at))
            .collect();
        let above =
            |change: &ViewChange| change.path.parent().and_then(|path| at.get(path).copied());
        for (place, change) in self.changes.iter().enumerate() {
            if change.after.is_some()
                && let Some(folder) = above(change)
                && !matches!(self.changes[folder].before, Some(State::Folder { .. }))
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
                && let Some(folder) = above(change)
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

/// The fate of one change, as the policy says.
fn fate(change: &ViewChange, said: EffectVerdict, reviews: bool) -> Fate {
    match (change.conflict, said.verdict) {
        (_, Verdict::Deny) => Fate::Refused(said.reason),
        (Some(why), _) => Fate::Conflict(why.to_owned()),
        (None, Verdict::Ask) => Fate::Asked,
        (None, Verdict::Allow) if reviews => Fate::Asked,
        (None, Verdict::Allow) => Fate::Allowed,
    }
}

/// A fate, or what follows from that of another change where that is stricter.
fn stricter(own: &Fate, other: &Fate, why: &str) -> Fate {
    match (own, other) {
        (Fate::Allowed, Fate::Asked) => Fate::Asked,
        (Fate::Allowed | Fate::Asked, Fate::Refused(_) | Fate::Conflict(_)) => {
            Fate::Refused(why.to_owned())
        }
        _ => own.clone(),
    }
}
