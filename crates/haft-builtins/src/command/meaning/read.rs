//! Reads what a change set amounts to.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use haft::approval::meaning::{Meaning, MeaningKind};

use super::budget::Budget;
use super::git::{find_repositories, read_repository};
use super::sides::ChangeSides;
use super::worktree::files;

/// Maximum time for reading one change set.
const MAX_TIME: Duration = Duration::from_secs(3);

/// How to read a change set.
#[derive(Debug, Clone, Copy)]
pub struct ReadOptions {
    /// Maximum time. What is not read by then is not explained.
    pub time: Duration,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { time: MAX_TIME }
    }
}

/// Returns what the selected changes amount to. What it does not explain are ordinary files.
pub fn read(
    sides: &ChangeSides<'_>,
    options: ReadOptions,
    select: &dyn Fn(&Path) -> bool,
) -> Vec<Meaning> {
    let mut budget = Budget::new(options.time);
    let mut found = Vec::new();
    for repository in find_repositories(sides) {
        found.extend(read_repository(sides, &repository, select, &mut budget));
    }
    let covered: HashSet<&str> = found
        .iter()
        .flat_map(|meaning| &meaning.covers)
        .map(String::as_str)
        .collect();
    let is_left = |path: &Path| select(path) && !covered.contains(&*path.to_string_lossy());
    let single = files(sides, &is_left, &mut budget);
    found.extend(single);
    // A stable sort: what git keeps for itself comes last.
    found.sort_by_key(|meaning| meaning.kind == MeaningKind::GitInternals);
    found
}
