//! Counts the lines that differ between two texts.

use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// Maximum time for one file. After it, the rest counts as changed.
const MAX_TIME: Duration = Duration::from_millis(100);

/// The number of added and removed lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LineCount {
    pub(super) added: usize,
    pub(super) removed: usize,
}

/// Counts the lines that differ.
pub(super) fn count_lines(before: &[u8], after: &[u8]) -> LineCount {
    let lines = |text| -> Vec<&[u8]> { <[u8]>::split_inclusive(text, |b| *b == b'\n').collect() };
    let (before, after) = (lines(before), lines(after));
    let deadline = Some(Instant::now() + MAX_TIME);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &before, &after, deadline);
    let mut count = LineCount::default();
    for op in ops {
        if !matches!(op, DiffOp::Equal { .. }) {
            count.removed += op.old_range().len();
            count.added += op.new_range().len();
        }
    }
    count
}
