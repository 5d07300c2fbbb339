//! A commit in the words of a request.

use haft::approval::meaning::{Meaning, MeaningKind};

use super::files::{FileList, show};
use super::headers::Commit;
use super::id::ObjectId;
use super::rename::join_renames;
use super::store::ObjectDatabase;
use super::tree::{TreeDifference, differences};
use crate::command::meaning::budget::Budget;
use crate::command::meaning::words::{self, cited, count};

/// Maximum number of characters of a message's first line in a title.
const MAX_SUBJECT: usize = 100;
/// Maximum number of lines of a message, and of characters of each.
const MAX_MESSAGE_LINES: usize = 40;
const MAX_LINE: usize = 300;
/// Maximum number of commits whose files are shown, and of those that are named.
pub(super) const MAX_DETAILED: usize = 10;
const MAX_NAMED: usize = 100;

/// Returns a commit's first line in quotes.
pub(super) fn subject(commit: &Commit) -> String {
    quoted(commit.subject())
}

/// Returns a text in quotes.
pub(super) fn quoted(text: &str) -> String {
    words::quoted(text, MAX_SUBJECT)
}

/// Returns a commit's short name and first line.
pub(super) fn named(commit: &Commit) -> String {
    format!("{} {}", commit.id.short(), subject(commit))
}

/// Names some commits.
pub(super) fn list(commits: &[std::rc::Rc<Commit>]) -> String {
    list_of(commits, 5)
}

/// Names at most `most` commits.
pub(super) fn list_of(commits: &[std::rc::Rc<Commit>], most: usize) -> String {
    let mut names: Vec<String> = commits.iter().take(most).map(|one| named(one)).collect();
    if commits.len() > most {
        names.push(format!("and {} more", commits.len() - most));
    }
    names.join(", ")
}

/// The trees of two commits, compared.
pub(super) struct CommitComparison {
    pub(super) shown: FileList,
    /// Why they cannot be compared.
    pub(super) failure: Option<String>,
}

/// Compares the trees of two commits; `None` is an empty tree.
pub(super) fn compare(
    store: &ObjectDatabase<'_>,
    before: Option<&ObjectId>,
    after: Option<&ObjectId>,
    budget: &mut Budget,
) -> CommitComparison {
    match differences(store, before, after) {
        Ok(all) => CommitComparison {
            shown: compare_files(store, all, budget),
            failure: None,
        },
        Err(why) => CommitComparison {
            shown: FileList::default(),
            failure: Some(format!("its files cannot be shown: {}", why.0)),
        },
    }
}

/// Reads the files that differ, renamed ones as one.
pub(super) fn compare_files(
    store: &ObjectDatabase<'_>,
    all: Vec<TreeDifference>,
    budget: &mut Budget,
) -> FileList {
    let all = join_renames(store, all, budget);
    show(store, &all, budget)
}

/// Returns the rest of a commit's message, its author, and its committer if that is somebody else.
fn message_lines(commit: &Commit) -> Vec<String> {
    let mut all = commit.message.lines();
    all.next();
    let mut lines: Vec<String> = all
        .by_ref()
        .take(MAX_MESSAGE_LINES)
        .map(|line| cited(line, MAX_LINE))
        .collect();
    let more = all.count();
    if more > 0 {
        lines.push(format!("and {} of the message", count(more, "more line")));
    }
    while lines.first().is_some_and(|line| line == ">") {
        lines.remove(0);
    }
    lines.push(format!("by {}", words::quoted(&commit.author, MAX_LINE)));
    if commit.committer != commit.author {
        let committer = words::quoted(&commit.committer, MAX_LINE);
        lines.push(format!("committed by {committer}"));
    }
    lines
}

/// Returns the meaning of a commit against its first parent. `head` is the beginning of the title.
pub(super) fn commit_meaning(
    store: &ObjectDatabase<'_>,
    kind: MeaningKind,
    head: &str,
    commit: &Commit,
    budget: &mut Budget,
) -> Meaning {
    let parent = commit.parents.first().map(|id| store.commit(id));
    let mut meaning = Meaning::new(kind, head);
    meaning.lines = message_lines(commit);
    let tree = match &parent {
        Some(Ok(parent)) => Some(parent.tree),
        None => None,
        Some(Err(why)) => {
            let why = format!("its files cannot be shown: {}", why.0);
            meaning.warnings.push(why);
            return meaning;
        }
    };
    let compared = compare(store, tree.as_ref(), Some(&commit.tree), budget);
    meaning.title = format!("{head}: {}", compared.shown.sum());
    if let Some(why) = compared.failure {
        head.clone_into(&mut meaning.title);
        meaning.warnings.push(why);
    }
    compared.shown.fill(&mut meaning);
    meaning
}

/// Returns a line on each commit that another one merges.
pub(super) fn merged(store: &ObjectDatabase<'_>, commit: &Commit) -> Vec<String> {
    let others = commit.parents.iter().skip(1);
    let line = |id: &ObjectId| match store.commit(id) {
        Ok(one) => format!("merges {}", named(&one)),
        Err(_) => format!("merges {}, which cannot be read", id.short()),
    };
    others.map(line).collect()
}

/// Returns a meaning for each commit, given the newest first: the oldest first, with files as long as they are few.
pub(super) fn parts(
    store: &ObjectDatabase<'_>,
    commits: &[std::rc::Rc<Commit>],
    budget: &mut Budget,
) -> (Vec<Meaning>, Option<String>) {
    let mut parts = Vec::new();
    for (at, commit) in commits.iter().rev().take(MAX_NAMED).enumerate() {
        let (kind, word) = match commit.parents.len() {
            0 | 1 => (MeaningKind::Commit, ""),
            _ => (MeaningKind::Merge, "merge "),
        };
        let head = format!("{} {word}{}", commit.id.short(), subject(commit));
        let mut part = if at < MAX_DETAILED && !budget.is_over() {
            commit_meaning(store, kind, &head, commit, budget)
        } else {
            Meaning::new(kind, head)
        };
        part.lines.extend(merged(store, commit));
        parts.push(part);
    }
    let more = commits.len().saturating_sub(MAX_NAMED);
    let note = if more > 0 {
        Some(format!("{} not named", count(more, "more commit")))
    } else if commits.len() > MAX_DETAILED {
        Some(format!(
            "the files of the first {MAX_DETAILED} commits are shown"
        ))
    } else {
        None
    };
    (parts, note)
}
