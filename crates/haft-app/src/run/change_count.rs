//! How much a run changed: files, and lines of text added and removed.

use haft::audit::index::ChangeCount;
use haft::call::RunId;
use haft::change::ChangeLog;
use haft::change::net::net_changes;
use haft::workspace::Workspace;

use crate::change_texts::{ReportLimits, Texts};

/// Counts what a run changed; returns `None` if it changed nothing or its log cannot be read.
pub(crate) fn changes(workspace: &Workspace, log: &ChangeLog, run: &RunId) -> Option<ChangeCount> {
    let sets = log.read(run).ok()?;
    let nets = net_changes(&sets);
    if nets.is_empty() {
        return None;
    }
    let limits = ReportLimits::COUNTED;
    let mut texts = Texts::new(workspace, log, run, &limits);
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
