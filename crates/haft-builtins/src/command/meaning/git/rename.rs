//! Finds renamed files among those that a commit deletes and adds.

use std::collections::HashMap;

use super::entries::MODE_SUBMODULE;
use super::id::ObjectId;
use super::store::ObjectDatabase;
use super::tree::{TreeDifference, TreeFile};
use crate::command::meaning::budget::Budget;

/// Maximum number of pairs whose contents are compared.
const MAX_PAIRS: usize = 400;
/// Maximum size of a file whose content is compared, in bytes.
const MAX_COMPARED: u64 = 128 << 10;
/// Share of common lines from which on two files are one that was renamed, in percent: git's default.
const SIMILAR: usize = 50;

/// Joins each deleted file with the added one that it became.
pub(super) fn join_renames(
    store: &ObjectDatabase<'_>,
    mut all: Vec<TreeDifference>,
    budget: &mut Budget,
) -> Vec<TreeDifference> {
    let is_file = |file: &Option<TreeFile>| file.is_some_and(|(mode, _)| mode != MODE_SUBMODULE);
    let places = |of: &dyn Fn(&TreeDifference) -> bool| -> Vec<usize> {
        (0..all.len()).filter(|at| of(&all[*at])).collect()
    };
    let mut deleted = places(&|one| one.after.is_none() && is_file(&one.before));
    let mut added = places(&|one| one.before.is_none() && is_file(&one.after));
    let mut pairs = Vec::new();
    // First those with the same content.
    let mut by_id: HashMap<ObjectId, Vec<usize>> = HashMap::new();
    for at in added.iter().rev() {
        if let Some((_, id)) = all[*at].after {
            by_id.entry(id).or_default().push(*at);
        }
    }
    deleted.retain(|from| {
        let id = all[*from].before.map(|(_, id)| id);
        match id.and_then(|id| by_id.get_mut(&id)?.pop()) {
            Some(to) => pairs.push((*from, to)),
            None => return true,
        }
        false
    });
    added.retain(|at| !pairs.iter().any(|(_, to)| to == at));
    if deleted.len() * added.len() <= MAX_PAIRS {
        pairs.extend(similar_pairs(
            store,
            &side(&all, &deleted),
            &side(&all, &added),
            budget,
        ));
    }
    for (from, to) in &pairs {
        let (path, after) = (all[*to].path.clone(), all[*to].after);
        all[*from].to = Some(path);
        all[*from].after = after;
    }
    let mut gone: Vec<usize> = pairs.into_iter().map(|(_, to)| to).collect();
    gone.sort_unstable();
    for at in gone.into_iter().rev() {
        all.remove(at);
    }
    all
}

/// A file at a place in the list of differences.
type FilePosition = (usize, Option<TreeFile>);

fn side(all: &[TreeDifference], places: &[usize]) -> Vec<FilePosition> {
    let file = |at: &usize| (*at, all[*at].before.or(all[*at].after));
    places.iter().map(file).collect()
}

fn similar_pairs(
    store: &ObjectDatabase<'_>,
    deleted: &[FilePosition],
    added: &[FilePosition],
    budget: &mut Budget,
) -> Vec<(usize, usize)> {
    if deleted.is_empty() || added.is_empty() {
        return Vec::new();
    }
    let mut lines = |(at, file): &FilePosition| {
        let content = store
            .object(&file.as_ref()?.1, MAX_COMPARED)
            .ok()?
            .content?;
        let fits = budget.may_read(content.len());
        fits.then(|| (*at, count_lines(&content)))
    };
    let was: Vec<_> = deleted.iter().filter_map(&mut lines).collect();
    let is: Vec<_> = added.iter().filter_map(&mut lines).collect();
    let mut scored = Vec::new();
    for (from, was) in &was {
        for (to, is) in &is {
            let score = similarity(was, is);
            if score >= SIMILAR {
                scored.push((score, *from, *to));
            }
        }
    }
    scored.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (_, from, to) in scored {
        if !pairs.iter().any(|(a, b)| *a == from || *b == to) {
            pairs.push((from, to));
        }
    }
    pairs
}

/// Counts the bytes in each line, by the line's hash.
fn count_lines(content: &[u8]) -> HashMap<u64, usize> {
    use std::hash::{BuildHasher as _, RandomState};
    static HASHER: std::sync::LazyLock<RandomState> = std::sync::LazyLock::new(RandomState::new);
    let mut lines = HashMap::new();
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        *lines.entry(HASHER.hash_one(line)).or_default() += line.len();
    }
    lines
}

/// Returns the share of common bytes, in percent of the longer file.
fn similarity(was: &HashMap<u64, usize>, is: &HashMap<u64, usize>) -> usize {
    let common: usize = was
        .iter()
        .filter_map(|(line, bytes)| Some((*bytes).min(*is.get(line)?)))
        .sum();
    let whole = |lines: &HashMap<u64, usize>| lines.values().sum::<usize>();
    common * 100 / whole(was).max(whole(is)).max(1)
}
