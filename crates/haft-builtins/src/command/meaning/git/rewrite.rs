//! Branches that lose commits and may get others instead: shown as one change from the old tip to the new one, since a line that a
//! rebase drops is seen in no single commit.

use std::collections::BTreeSet;
use std::rc::Rc;

use haft::approval::meaning::{Meaning, MeaningKind};

use super::commit::{MAX_DETAILED, commit_meaning, compare, list, list_of, named, parts, subject};
use super::headers::Commit;
use super::history::{BranchCommits, CommitRange, exclusive};
use super::id::ObjectId;
use super::tree::{TreeDifference, differences};
use super::update::RefContext;
use crate::command::meaning::words::{count, name};

/// Maximum number of commits that a line names.
const MAX_NAMED: usize = 20;
/// Maximum number of commits whose files are looked at to find those that come and go again.
const MAX_BETWEEN: usize = 1_000;

impl RefContext<'_, '_> {
    /// A branch loses commits, and may get others instead.
    pub(super) fn replaced(
        &mut self,
        name: &str,
        old: Option<ObjectId>,
        tip: &Rc<Commit>,
        exchange: &BranchCommits,
    ) -> Meaning {
        let BranchCommits { fresh, removed } = exchange;
        if let ([only], [was]) = (&fresh.commits[..], &removed.commits[..])
            && only.parents == was.parents
        {
            return self.amend(name, only, was);
        }
        if fresh.commits.is_empty() {
            return self.reset(name, old, tip, removed);
        }
        let base = fresh
            .commits
            .last()
            .and_then(|oldest| oldest.parents.first().copied());
        let onto = base.map_or_else(String::new, |base| format!(" on {}", self.name_of(&base)));
        let number = count(fresh.commits.len(), "commit");
        let title = format!("rebase {name}: {number} made anew{onto}; against the old tip");
        let mut meaning = Meaning::new(MeaningKind::Rebase, title);
        // Fewer are shown with their files.
        let between = match fresh.commits.len() {
            0..=MAX_DETAILED => &[],
            _ => &fresh.commits[..],
        };
        self.add_tips(&mut meaning, old, tip, between);
        let gone = list_of(&removed.commits, MAX_NAMED);
        meaning.lines.push(format!("no longer on {name}: {gone}"));
        meaning.warnings.extend(self.dropped(fresh, removed));
        self.several(meaning, &fresh.commits)
    }

    /// A commit takes the place of the last one.
    fn amend(&mut self, name: &str, only: &Rc<Commit>, was: &Commit) -> Meaning {
        let title = format!("amend {} on {name}", subject(only));
        let mut meaning = Meaning::new(MeaningKind::Amend, title);
        meaning.lines.push(format!("replaces {}", named(was)));
        self.add_tips(&mut meaning, Some(was.id), only, &[]);
        let head = named(only);
        let part = commit_meaning(self.store, MeaningKind::Commit, &head, only, self.budget);
        meaning.parts.push(part);
        meaning
    }

    /// A branch goes back.
    fn reset(
        &mut self,
        name: &str,
        old: Option<ObjectId>,
        tip: &Rc<Commit>,
        removed: &CommitRange,
    ) -> Meaning {
        let title = format!("reset {name} to {}", named(tip));
        let mut meaning = Meaning::new(MeaningKind::Reset, title);
        self.add_tips(&mut meaning, old, tip, &[]);
        let gone = count(removed.commits.len(), "commit");
        let which = list_of(&removed.commits, MAX_NAMED);
        meaning
            .lines
            .push(format!("{gone} no longer on {name}: {which}"));
        match removed.commits.first() {
            Some(newest) => self.with_lost(meaning, &newest.id),
            None => meaning,
        }
    }

    /// Returns a warning about lost commits without a new one of the same name.
    fn dropped(&self, fresh: &CommitRange, removed: &CommitRange) -> Option<String> {
        let same = |was: &Rc<Commit>, is: &Rc<Commit>| {
            was.subject() == is.subject() && was.author == is.author
        };
        let newest = removed.commits.first().map(|one| one.id);
        let newest: Vec<ObjectId> = newest.into_iter().collect();
        let lost = exclusive(self.store, &newest, &self.roots_after);
        let dropped = lost.commits.into_iter();
        let dropped: Vec<Rc<Commit>> = dropped
            .filter(|was| was.parents.len() < 2)
            .filter(|was| !fresh.commits.iter().any(|is| same(was, is)))
            .collect();
        (!dropped.is_empty()).then(|| {
            format!(
                "not among the new commits under its name: {}",
                list(&dropped)
            )
        })
    }

    /// Adds the files that differ between the old tip and the new one, and their sum to the title. `between` are the commits that lead to
    /// the new one.
    pub(super) fn add_tips(
        &mut self,
        meaning: &mut Meaning,
        old: Option<ObjectId>,
        tip: &Rc<Commit>,
        between: &[Rc<Commit>],
    ) {
        let was = old.map(|old| self.store.peel(&old)).transpose();
        let tree = match &was {
            Ok(was) => was.as_ref().map(|(commit, _)| commit.tree),
            Err(why) => {
                let why = format!("its files cannot be shown: {}", why.0);
                meaning.warnings.push(why);
                return;
            }
        };
        let from = match &was {
            Ok(Some((commit, _))) => named(commit),
            _ => "nothing".to_owned(),
        };
        let line = format!("the files are compared as a whole: {from} → {}", named(tip));
        meaning.lines.push(line);
        let compared = compare(self.store, tree.as_ref(), Some(&tip.tree), self.budget);
        if compared.failure.is_none() {
            let sum = compared.shown.sum();
            meaning.title = format!("{}: {sum}", meaning.title);
        }
        let shown = differences(self.store, tree.as_ref(), Some(&tip.tree)).unwrap_or_default();
        let shown: BTreeSet<Vec<u8>> = shown.into_iter().map(|one| one.path).collect();
        meaning
            .lines
            .extend(self.describe_transient_files(tip, &shown, between));
        compared.shown.fill(meaning);
        meaning.warnings.extend(compared.failure);
    }

    /// Returns a line on the files that only the commits in between change: they stay in the history.
    fn describe_transient_files(
        &self,
        tip: &Commit,
        shown: &BTreeSet<Vec<u8>>,
        between: &[Rc<Commit>],
    ) -> Option<String> {
        const MAX_PATHS: usize = 20;
        let mut others: BTreeSet<Vec<u8>> = BTreeSet::new();
        let is_at = |tip: &Commit, one: &TreeDifference| {
            let entry = self.store.lookup(&tip.tree, &one.path).ok().flatten();
            entry.map(|entry| (entry.mode, entry.id)) == one.after
        };
        for commit in between.iter().take(MAX_BETWEEN) {
            if self.budget.is_over() {
                break;
            }
            let parent = commit.parents.first().map(|id| self.store.commit(id));
            let Ok(parent) = parent.transpose() else {
                continue;
            };
            let tree = parent.map(|parent| parent.tree);
            let all = differences(self.store, tree.as_ref(), Some(&commit.tree));
            let all = all.unwrap_or_default().into_iter();
            let gone = all.filter(|one| !shown.contains(&one.path) && !is_at(tip, one));
            others.extend(gone.map(|one| one.path));
        }
        if others.is_empty() {
            return None;
        }
        let mut names: Vec<String> = others
            .iter()
            .take(MAX_PATHS)
            .map(|path| name(path))
            .collect();
        if others.len() > MAX_PATHS {
            names.push(format!("and {} more", others.len() - MAX_PATHS));
        }
        Some(format!(
            "files that only the commits in between change: {}",
            names.join(", ")
        ))
    }

    /// Adds the commits one by one.
    pub(super) fn several(&mut self, mut meaning: Meaning, commits: &[Rc<Commit>]) -> Meaning {
        let (parts, note) = parts(self.store, commits, self.budget);
        meaning.parts.extend(parts);
        meaning.lines.extend(note);
        meaning
    }

    /// Adds the new commits that a ref leads to and no branch does.
    pub(super) fn unseen(&mut self, meaning: Meaning, new: &ObjectId) -> Meaning {
        let mut known = self.roots_before.clone();
        known.extend(&self.branches_after);
        let fresh = exclusive(self.store, &[*new], &known).commits;
        if fresh.is_empty() {
            return meaning;
        }
        let mut meaning = meaning;
        let number = count(fresh.len(), "new commit");
        meaning.lines.push(format!("{number} on no branch"));
        self.several(meaning, &fresh)
    }
}
