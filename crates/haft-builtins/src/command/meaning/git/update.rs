//! What the changed refs of a repository mean.

use std::rc::Rc;

use haft::approval::meaning::{Meaning, MeaningKind};

use super::commit::{
    MAX_DETAILED, commit_meaning, compare, list, merged, named, parts, quoted, subject,
};
use super::headers::Commit;
use super::history::{BranchCommits, CommitRange, exclusive, exit_of};
use super::id::ObjectId;
use super::refs::{RefUpdate, Refs, Target};
use super::store::ObjectDatabase;
use super::worktrees::CheckedOut;
use crate::command::meaning::budget::Budget;
use crate::command::meaning::words::{self, cited, count};

/// A line that git added to a log: what it was doing when it moved HEAD. Anything may be written there.
#[derive(Debug, Clone)]
pub(super) struct ReflogHint {
    pub(super) new: ObjectId,
    pub(super) text: String,
}

/// A HEAD before and after: the repository's, or a worktree's.
#[derive(Debug)]
pub(super) struct HeadUpdate {
    pub(super) before: Option<Target>,
    pub(super) after: Option<Target>,
    /// The worktree that has it, as the end of a sentence; `None` for the workspace's own.
    pub(super) place: Option<String>,
}

/// Everything that the changed refs are judged by.
pub(super) struct RefContext<'r, 's> {
    pub(super) store: &'r ObjectDatabase<'s>,
    pub(super) after: &'r Refs,
    pub(super) heads: &'r [HeadUpdate],
    /// What other worktrees have checked out.
    pub(super) elsewhere: &'r [CheckedOut],
    pub(super) hints: Vec<ReflogHint>,
    /// What was reachable before: all refs, HEADs and stashes.
    pub(super) roots_before: Vec<ObjectId>,
    /// The commits of branches afterwards.
    pub(super) branches_after: Vec<ObjectId>,
    /// What is reachable afterwards.
    pub(super) roots_after: Vec<ObjectId>,
    pub(super) budget: &'r mut Budget,
}

impl RefContext<'_, '_> {
    /// Returns the meanings of the changed refs and HEADs.
    pub(super) fn meanings(&mut self, updates: &[RefUpdate]) -> Vec<Meaning> {
        let mut found = Vec::new();
        let mut fetched = Vec::new();
        // What HEAD is on comes first.
        let (current, others): (Vec<_>, Vec<_>) =
            updates.iter().partition(|one| self.is_current(&one.name));
        for update in current.into_iter().chain(others) {
            let (folder, short) = split(&update.name);
            match folder {
                "heads" if renamed_to(update, updates).is_some() => {}
                "heads" => {
                    let mut meaning = self.branch(update, short, updates);
                    meaning.warnings.extend(self.checked_out(&update.name));
                    found.push(meaning);
                }
                "tags" => found.push(self.tag(update, short)),
                "remotes" => fetched.push(short.to_owned()),
                // Read from its log.
                "stash" => {}
                _ => found.push(self.other(update)),
            }
        }
        if !fetched.is_empty() {
            found.push(remote(&fetched));
        }
        let heads: Vec<Meaning> = self
            .heads
            .iter()
            .filter_map(|head| self.head(head))
            .collect();
        found.extend(heads);
        for head in self.heads {
            if let (Some(Target::Id(old)), Some(Target::Id(new))) = (&head.before, &head.after)
                && old != new
            {
                let meaning = self.moved("no branch", Some(*old), *new);
                found.push(at_place(meaning, head.place.as_deref()));
            }
        }
        found.sort_by_key(|meaning| rank(meaning.kind));
        found
    }

    /// Returns warnings about a changed branch that other worktrees have checked out: nothing updates their files.
    fn checked_out(&self, name: &str) -> Vec<String> {
        let places = self.elsewhere.iter().filter(|one| one.branch == name);
        let warning = |one: &CheckedOut| {
            let place = &one.place;
            format!(
                "{place} has it checked out: its files and index stay as they are, so that a commit there would take this back"
            )
        };
        places.map(warning).collect()
    }

    fn is_current(&self, name: &str) -> bool {
        let here = |head: &HeadUpdate| matches!(&head.after, Some(Target::Ref(to)) if to == name);
        self.heads.iter().any(here)
    }

    fn branch(&mut self, update: &RefUpdate, short: &str, all: &[RefUpdate]) -> Meaning {
        let name = name_of_ref(short);
        if let Some(to) = &update.leads_to {
            let to = name_of_ref(split(to).1);
            let title = format!("branch {name} becomes another name of {to}");
            let meaning = Meaning::new(MeaningKind::Branch, title);
            return match update.old {
                Some(old) => self.with_lost(meaning, &old),
                None => meaning,
            };
        }
        match (update.old, update.new) {
            (Some(old), None) => {
                let title = format!("delete branch {name}{}", self.was_at(&old));
                self.with_lost(Meaning::new(MeaningKind::Branch, title), &old)
            }
            (Some(old), Some(new)) => self.moved(&name, Some(old), new),
            (None, Some(new)) => {
                let from = all
                    .iter()
                    .find(|one| renamed_to(one, all).is_some_and(|to| to.name == update.name));
                if let Some(from) = from {
                    let from = name_of_ref(split(&from.name).1);
                    let title = format!("rename branch {from} to {name}");
                    return Meaning::new(MeaningKind::Branch, title);
                }
                let fresh = exclusive(self.store, &[new], &self.roots_before);
                if fresh.commits.is_empty() {
                    let at = self.name_of(&new);
                    return Meaning::new(MeaningKind::Branch, format!("new branch {name} at {at}"));
                }
                // The known commit that it was made from.
                let base = exit_of(self.store, new, &fresh.commits);
                let name = match base {
                    None if self.roots_before.is_empty() => name,
                    _ => format!("new branch {name}"),
                };
                self.moved(&name, base, new)
            }
            (None, None) => {
                let title = format!("branch {name} leads to another one");
                Meaning::new(MeaningKind::Branch, title)
            }
        }
    }

    /// Returns what it means that a branch moves.
    fn moved(&mut self, name: &str, old: Option<ObjectId>, new: ObjectId) -> Meaning {
        let Ok((tip, _)) = self.store.peel(&new) else {
            let mut meaning = Meaning::new(
                MeaningKind::Branch,
                format!("{name} moves to {}", new.short()),
            );
            meaning
                .warnings
                .push(format!("{} cannot be read", new.short()));
            return meaning;
        };
        let mut known = self.roots_before.clone();
        known.extend(old);
        let fresh = exclusive(self.store, &[new], &known);
        let removed = old.map_or_else(CommitRange::default, |old| {
            exclusive(self.store, &[old], &[new])
        });
        let incomplete = fresh.incomplete || removed.incomplete;
        let exchange = BranchCommits { fresh, removed };
        let mut meaning = if exchange.removed.commits.is_empty() {
            self.forward(name, old, &tip, &exchange.fresh)
        } else {
            self.replaced(name, old, &tip, &exchange)
        };
        if incomplete {
            let why = "the history cannot be read whole, so there may be more commits".to_owned();
            meaning.warnings.push(why);
        }
        meaning
    }

    /// A branch gets commits and loses none.
    fn forward(
        &mut self,
        name: &str,
        old: Option<ObjectId>,
        tip: &Rc<Commit>,
        fresh: &CommitRange,
    ) -> Meaning {
        // Anyone can write into git's log: the word needs an original.
        let is_copied = self.hint(&tip.id).contains("cherry-pick");
        let originals = is_copied.then(|| {
            let all = fresh.commits.iter();
            all.map(|copy| self.original(copy))
                .collect::<Option<Vec<_>>>()
        });
        let originals = originals.flatten();
        let follows = |commit: &Commit| old.is_none_or(|old| commit.parents.first() == Some(&old));
        match &fresh.commits[..] {
            [] => self.fast_forward(name, old, tip),
            [only] if only.parents.len() < 2 && follows(only) => {
                let original = originals.and_then(|all| all.into_iter().next());
                self.single(name, only, original.as_deref())
            }
            commits if tip.parents.len() > 1 && follows(tip) => self.merge(name, tip, commits),
            commits => {
                let (kind, word) = if originals.is_some() {
                    (MeaningKind::CherryPick, "cherry-pick ")
                } else {
                    (MeaningKind::Commit, "")
                };
                let title = format!("{word}{} on {name}", count(commits.len(), "commit"));
                let mut meaning = Meaning::new(kind, title);
                // What the commits one by one do not say: a line that a merge drops, a file of the eleventh commit.
                let is_chain = old.is_none() || exit_of(self.store, tip.id, commits) == old;
                if !is_chain || commits.len() > MAX_DETAILED {
                    let base = old.or_else(|| exit_of(self.store, tip.id, commits));
                    self.add_tips(&mut meaning, base, tip, commits);
                }
                self.several(meaning, commits)
            }
        }
    }

    /// A branch gets one commit: a new one, a copy of another, or one that takes another back.
    fn single(&mut self, name: &str, only: &Rc<Commit>, original: Option<&Commit>) -> Meaning {
        let first = match &only.parents[..] {
            [] if self.roots_before.is_empty() => " (its first)",
            [] => " (an orphan: it has no history)",
            _ => "",
        };
        let (kind, head) = match (original, self.reverted(only)) {
            (Some(_), _) => (
                MeaningKind::CherryPick,
                format!("cherry-pick {} on {name}{first}", subject(only)),
            ),
            (None, Ok(Some(was))) => (
                MeaningKind::Commit,
                format!("revert of {} on {name}", named(&was)),
            ),
            _ => (
                MeaningKind::Commit,
                format!("commit {} on {name}{first}", subject(only)),
            ),
        };
        let mut meaning = commit_meaning(self.store, kind, &head, only, self.budget);
        if let Some(original) = original {
            meaning.lines.push(self.copied(only, original));
        } else if let Err(why) = self.reverted(only) {
            meaning.warnings.push(why);
        }
        meaning
    }

    /// A branch moves to commits that are known already.
    fn fast_forward(&mut self, name: &str, old: Option<ObjectId>, tip: &Rc<Commit>) -> Meaning {
        let before = old.and_then(|old| self.store.peel(&old).ok());
        let tree = before.map(|(commit, _)| commit.tree);
        let compared = compare(self.store, tree.as_ref(), Some(&tip.tree), self.budget);
        let known: Vec<ObjectId> = old.into_iter().collect();
        let commits = exclusive(self.store, &[tip.id], &known).commits.len();
        let title = format!(
            "{name} moves forward to {}: {}, {}",
            named(tip),
            count(commits, "commit"),
            compared.shown.sum()
        );
        let mut meaning = Meaning::new(MeaningKind::Merge, title);
        compared.shown.fill(&mut meaning);
        meaning.warnings.extend(compared.failure);
        meaning
    }

    /// A branch gets a commit with several parents, the first of which it had.
    fn merge(&mut self, name: &str, tip: &Rc<Commit>, commits: &[Rc<Commit>]) -> Meaning {
        let others = tip.parents.len() - 1;
        let what = if others > 1 {
            format!(" of {others} branches")
        } else {
            String::new()
        };
        let head = format!("merge {}{what} on {name}", subject(tip));
        let kind = MeaningKind::Merge;
        let mut meaning = commit_meaning(self.store, kind, &head, tip, self.budget);
        let own = commits.iter().filter(|one| one.id != tip.id);
        let own: Vec<Rc<Commit>> = own.cloned().collect();
        if !own.is_empty() {
            let (parts, note) = parts(self.store, &own, self.budget);
            meaning.parts.extend(parts);
            meaning.lines.extend(note);
        }
        meaning.lines.extend(merged(self.store, tip));
        meaning
    }

    fn tag(&mut self, update: &RefUpdate, short: &str) -> Meaning {
        let name = name_of_ref(short);
        let kind = MeaningKind::Tag;
        match (update.old, update.new) {
            (old, Some(new)) => {
                let message = self.store.peel(&new).ok().and_then(|(_, message)| message);
                let at = self.name_of(&new);
                let title = match old {
                    Some(old) => format!("tag {name} moves from {} to {at}", self.name_of(&old)),
                    None => format!("tag {name} on {at}"),
                };
                let mut meaning = self.unseen(Meaning::new(kind, title), &new);
                let lines = message.iter().flat_map(|text| text.lines()).take(20);
                meaning.lines.extend(lines.map(|line| cited(line, 300)));
                if let Some(old) = old {
                    meaning
                        .warnings
                        .push("who has the tag already keeps the old one".to_owned());
                    return self.with_lost(meaning, &old);
                }
                meaning
            }
            (Some(old), None) => {
                let title = format!("delete tag {name}{}", self.was_at(&old));
                self.with_lost(Meaning::new(kind, title), &old)
            }
            (None, None) => Meaning::new(kind, format!("tag {name} leads to another ref")),
        }
    }

    fn other(&mut self, update: &RefUpdate) -> Meaning {
        let name = name_of_ref(&update.name);
        let title = match (update.old, update.new) {
            (_, Some(new)) => format!("{name} is at {}", self.name_of(&new)),
            (Some(old), None) => format!("delete {name}{}", self.was_at(&old)),
            (None, None) => format!("{name} leads to another ref"),
        };
        let mut meaning = Meaning::new(MeaningKind::Branch, title);
        if update.name.starts_with("refs/replace/") {
            let why = "git shows another object in place of the one that it names";
            meaning.warnings.push(why.to_owned());
        }
        match (update.old, update.new) {
            (Some(old), None) => self.with_lost(meaning, &old),
            (_, Some(new)) => self.unseen(meaning, &new),
            (None, None) => meaning,
        }
    }

    /// Returns what it means that HEAD names another branch or commit.
    fn head(&self, head: &HeadUpdate) -> Option<Meaning> {
        let (before, after) = match (&head.before, &head.after, &head.place) {
            (Some(was), None, Some(place)) => return Some(self.forgotten(was, place)),
            (None, Some(is), Some(place)) => {
                let title = format!("{place} is added, on {}", self.target_name(is));
                return Some(Meaning::new(MeaningKind::Checkout, title));
            }
            (before, after, _) => (before.as_ref()?, after.as_ref()?),
        };
        let words = |target: &Target| self.target_name(target);
        if before == after || matches!((before, after), (Target::Id(_), Target::Id(_))) {
            return None;
        }
        let unborn = match after {
            Target::Ref(_) if self.after.resolve(after).is_none() => ", which has no commit yet",
            _ => "",
        };
        let title = format!("switch from {} to {}{unborn}", words(before), words(after));
        let mut meaning = Meaning::new(MeaningKind::Checkout, title);
        if let Target::Id(id) = before {
            meaning = self.with_lost(meaning, id);
        }
        if let Target::Id(id) = after {
            let fresh = exclusive(self.store, &[*id], &self.roots_before).commits;
            if !fresh.is_empty() {
                let text = format!(
                    "{} on no branch: {}",
                    count(fresh.len(), "new commit"),
                    list(&fresh)
                );
                meaning.warnings.push(text);
            }
        }
        Some(at_place(meaning, head.place.as_deref()))
    }

    /// Returns what it means that the part of another worktree is gone.
    fn forgotten(&self, was: &Target, place: &str) -> Meaning {
        let title = format!("git forgets {place}, which is on {}", self.target_name(was));
        let mut meaning = Meaning::new(MeaningKind::Checkout, title);
        let why = "its files stay where they are and belong to no repository any more; what is staged there, or unfinished, is lost";
        meaning.warnings.push(why.to_owned());
        match was {
            Target::Id(id) => self.with_lost(meaning, id),
            Target::Ref(_) => meaning,
        }
    }

    fn target_name(&self, target: &Target) -> String {
        match target {
            Target::Ref(name) => name_of_ref(split(name).1),
            Target::Id(id) => format!("{} without a branch", self.name_of(id)),
        }
    }

    /// Adds a warning about the commits that no branch or tag leads to any more.
    pub(super) fn with_lost(&self, mut meaning: Meaning, old: &ObjectId) -> Meaning {
        let lost = exclusive(self.store, &[*old], &self.roots_after);
        if !lost.commits.is_empty() {
            let number = lost.commits.len();
            let more = if lost.incomplete { "at least " } else { "" };
            let verb = if number == 1 { "is" } else { "are" };
            meaning.warnings.push(format!(
                "{more}{} {verb} on no branch or tag any more: {}",
                count(number, "commit"),
                list(&lost.commits)
            ));
        } else if lost.incomplete {
            let why = "whether commits are lost cannot be told: the history cannot be read whole";
            meaning.warnings.push(why.to_owned());
        }
        meaning
    }

    fn was_at(&self, old: &ObjectId) -> String {
        format!(" (it was at {})", self.name_of(old))
    }

    pub(super) fn name_of(&self, id: &ObjectId) -> String {
        match self.store.peel(id) {
            Ok((commit, _)) => named(&commit),
            Err(_) => id.short(),
        }
    }

    /// Returns what git's log says about a new commit.
    fn hint(&self, id: &ObjectId) -> &str {
        let hint = self.hints.iter().find(|hint| hint.new == *id);
        hint.map_or("", |hint| &hint.text)
    }
}

/// Says in a title which worktree it is about, if not the workspace's own.
pub(super) fn at_place(mut meaning: Meaning, place: Option<&str>) -> Meaning {
    if let Some(place) = place {
        meaning.title = format!("{} (in {place})", meaning.title);
    }
    meaning
}

fn name_of_ref(name: &str) -> String {
    words::name(name.as_bytes())
}

/// Splits a ref's name into its folder and the rest.
fn split(name: &str) -> (&str, &str) {
    let rest = name.strip_prefix("refs/").unwrap_or(name);
    rest.split_once('/').unwrap_or((rest, rest))
}

/// Returns the new branch that a deleted one became.
fn renamed_to<'u>(update: &RefUpdate, all: &'u [RefUpdate]) -> Option<&'u RefUpdate> {
    let is_branch = |one: &&RefUpdate| split(&one.name).0 == "heads";
    let old = update.old.filter(|_| update.new.is_none())?;
    let deleted = all
        .iter()
        .filter(|one| one.new.is_none() && one.old == Some(old));
    let mut added = all
        .iter()
        .filter(is_branch)
        .filter(|one| one.old.is_none() && one.new == Some(old));
    let to = added.next()?;
    (added.next().is_none() && deleted.filter(is_branch).count() == 1).then_some(to)
}

/// Returns one line for all refs that mirror those of other repositories.
fn remote(names: &[String]) -> Meaning {
    const MAX_LISTED: usize = 10;
    let title = format!(
        "what is known of other repositories: {}",
        count(names.len(), "branch")
    );
    let mut meaning = Meaning::new(MeaningKind::Branch, title);
    meaning.lines = names
        .iter()
        .take(MAX_LISTED)
        .map(|name| quoted(name))
        .collect();
    if names.len() > MAX_LISTED {
        meaning
            .lines
            .push(format!("and {} more", names.len() - MAX_LISTED));
    }
    meaning
}

/// Orders the meanings: what adds commits first.
fn rank(kind: MeaningKind) -> u8 {
    match kind {
        MeaningKind::Commit
        | MeaningKind::Amend
        | MeaningKind::Merge
        | MeaningKind::Rebase
        | MeaningKind::CherryPick => 0,
        MeaningKind::Reset | MeaningKind::Stash => 1,
        MeaningKind::Tag => 2,
        MeaningKind::Checkout => 3,
        _ => 4,
    }
}
