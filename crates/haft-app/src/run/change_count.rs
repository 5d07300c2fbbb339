//! How much a run changed: files, and lines of text added and removed.

use haft::audit::index::ChangeCount;
use haft::call::RunId;
use haft::change::ChangeLog;
use haft::change::net::net_changes;
use haft::workspace::Workspace;

use crate::change_texts::{ChangeTexts, ReportLimits};

/// Maximum size of a log from which a run's changes are counted file by file, in bytes: some 40,000 changes.
const MAX_FOLDED: u64 = 8 << 20;

/// Counts what a run changed; returns `None` if it changed nothing or its log cannot be read. Of very many changes only the paths are
/// counted, also those that are as they were by now: holding all of them would take much memory.
pub(crate) fn changes(workspace: &Workspace, log: &ChangeLog, run: &RunId) -> Option<ChangeCount> {
    if log.bytes(run) > MAX_FOLDED {
        return Some(ChangeCount {
            files: log.count_paths(run).ok()?,
            ..ChangeCount::default()
        });
    }
    let sets = log.read(run).ok()?;
    let nets = net_changes(&sets);
    if nets.is_empty() {
        return None;
    }
    let limits = ReportLimits::COUNTED;
    let mut texts = ChangeTexts::new(workspace, log, run, &limits);
    let mut count = ChangeCount {
        files: nets.len() as u64,
        ..ChangeCount::default()
    };
    for net in nets.iter().take(limits.most_files()) {
        let diff = texts.report(net).diff.unwrap_or_default();
        // The first two lines name the file.
        for line in diff.lines().skip(2) {
            match line.as_bytes().first() {
                Some(b'+') => count.added += 1,
                Some(b'-') => count.removed += 1,
                _ => {}
            }
        }
    }
    Some(count)
}
