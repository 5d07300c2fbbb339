//! `UnsavedContents`: what a command removes or overwrites and haft cannot save for an undo. Nothing of that is applied unasked.

use std::collections::{HashMap, HashSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use haft::approval::meaning::{Meaning, MeaningKind};
use haft::change::EntryState;
use haft::change::collect::{ChangeList, ViewChange};
use haft::change::log::MAX_FILE_BYTES;
use haft::change::net::ChangeKind;
use haft::text::visible::short_path;
use haft::workspace::Workspace;

use crate::command::meaning::size;

/// Maximum number of files that a request names; the others are counted.
const MAX_LISTED: usize = 20;
/// Maximum length of a path in a request, in bytes.
const MAX_PATH: usize = 300;

/// The folder that cargo tags. Other tools tag caches of small files only.
const TAGGED: &str = "target";
/// The file that says of a folder that its content can be made again, and its signature (<https://bford.info/cachedir/>).
const TAG: &str = "CACHEDIR.TAG";
const TAG_SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// The changes whose earlier content is not saved.
#[derive(Debug, Default)]
pub(super) struct UnsavedContents {
    /// Their numbers.
    numbers: HashSet<usize>,
}

impl UnsavedContents {
    /// Finds them among the changes of a command. `room` is the number of bytes that can be saved for the run. What cargo has made in a
    /// folder that it tagged as made again at will is none of them: every build replaces large files there.
    pub(super) fn find(changes: &ChangeList, room: u64, workspace: &Workspace) -> Self {
        let (mut left, mut tags) = (room, CacheTags::new(workspace));
        let mut numbers = HashSet::new();
        for (at, change) in changes.iter().enumerate() {
            let Some(bytes) = lost_bytes(&change) else {
                continue;
            };
            let rest = left.checked_sub(bytes).filter(|_| bytes <= MAX_FILE_BYTES);
            if let Some(rest) = rest {
                left = rest;
            } else if !tags.cover(change.path) {
                numbers.insert(at);
            }
        }
        Self { numbers }
    }

    /// Returns whether the change with this number is one of them.
    pub(super) fn holds(&self, at: usize) -> bool {
        self.numbers.contains(&at)
    }

    /// Returns whether the change of a path is one of them.
    pub(super) fn holds_path(&self, changes: &ChangeList, path: &Path) -> bool {
        !self.numbers.is_empty() && changes.position(path).is_some_and(|at| self.holds(at))
    }

    /// Returns what a request says of those that are asked about.
    pub(super) fn meaning(&self, changes: &ChangeList, asked: &[usize]) -> Option<Meaning> {
        let lost: Vec<ViewChange<'_>> = asked
            .iter()
            .filter(|at| self.holds(**at))
            .filter_map(|at| changes.get(*at))
            .collect();
        let bytes: u64 = lost.iter().filter_map(lost_bytes).sum();
        let title = match lost.len() {
            0 => return None,
            1 => format!("cannot be undone: 1 file of {}", size(bytes)),
            count => format!(
                "cannot be undone: {count} files of {} together",
                size(bytes)
            ),
        };
        let is_large = |change: &ViewChange<'_>| lost_bytes(change) > Some(MAX_FILE_BYTES);
        let mut meaning = Meaning::new(MeaningKind::GitInternals, title);
        let why = if lost.iter().any(is_large) {
            "haft saves files up to 64 MiB: nothing restores what is larger"
        } else {
            "haft saves 1 GiB of files for a run, and there is no room left: nothing restores these"
        };
        meaning.warnings.push(why.to_owned());
        let line = |change: &ViewChange<'_>| {
            let what = match change.after {
                None => "deleted",
                Some(_) => "overwritten",
            };
            let path = short_path(&change.path.to_string_lossy(), MAX_PATH);
            let bytes = size(lost_bytes(change).unwrap_or_default());
            format!("{path}, {bytes}: {what}")
        };
        meaning.lines = lost.iter().take(MAX_LISTED).map(line).collect();
        if lost.len() > MAX_LISTED {
            let more = lost.len() - MAX_LISTED;
            meaning.lines.push(format!("and {more} more"));
        }
        Some(meaning)
    }
}

/// Returns the size of the file whose content a change takes away; `None` if it takes away none.
fn lost_bytes(change: &ViewChange<'_>) -> Option<u64> {
    match &change.before {
        Some(EntryState::File { bytes, .. }) if change.action != ChangeKind::Chmod => Some(*bytes),
        _ => None,
    }
}

/// The tags of folders whose content can be made again.
struct CacheTags<'a> {
    workspace: &'a Workspace,
    /// When the tag of a folder last changed, of those that have one.
    since: HashMap<PathBuf, Option<i128>>,
}

impl<'a> CacheTags<'a> {
    fn new(workspace: &'a Workspace) -> Self {
        let since = HashMap::new();
        Self { workspace, since }
    }

    /// Returns whether a file lies in a tagged folder, and is no older than the tag: a command cannot tag a folder to have what is in it
    /// removed.
    fn cover(&mut self, path: &Path) -> bool {
        let is_tagged_name = |folder: &&Path| folder.file_name().is_some_and(|name| name == TAGGED);
        let Some(folder) = path.ancestors().skip(1).find(is_tagged_name) else {
            return false;
        };
        let workspace = self.workspace;
        let known = self.since.entry(folder.to_owned());
        let since = *known.or_insert_with(|| tagged_since(workspace, folder));
        let file = || Some(workspace.open_file(path).ok()?.stamp.changed_at());
        since.is_some_and(|since| file().is_some_and(|changed| changed >= since))
    }
}

fn tagged_since(workspace: &Workspace, folder: &Path) -> Option<i128> {
    let open = workspace.open_file(&folder.join(TAG)).ok()?;
    let mut start = Vec::with_capacity(TAG_SIGNATURE.len());
    let bytes = TAG_SIGNATURE.len() as u64;
    open.file.take(bytes).read_to_end(&mut start).ok()?;
    (start == TAG_SIGNATURE).then(|| open.stamp.changed_at())
}
