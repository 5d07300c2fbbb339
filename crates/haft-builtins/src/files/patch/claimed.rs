//! `ClaimedLines`: the lines of a text that hunks have already, so that no two of them overlap.

use std::collections::BTreeMap;

/// The lines that hunks with a place have; each with its line in the patch.
#[derive(Debug, Default)]
pub(super) struct ClaimedLines {
    /// The first line of a hunk, and one past its last.
    ranges: BTreeMap<usize, (usize, usize)>,
    /// The line that a hunk without lines of the text is inserted at.
    inserted: BTreeMap<usize, usize>,
}

/// A hunk that has some of the same lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineOverlap {
    /// The line in the patch where the other hunk begins.
    pub(super) first: usize,
    /// The number of a line that both have, counted from 1.
    pub(super) place: usize,
}

impl ClaimedLines {
    /// Gives these lines to the hunk at this line of the patch.
    pub(super) fn claim(&mut self, start: usize, end: usize, line: usize) {
        if start == end {
            self.inserted.insert(start, line);
        } else {
            self.ranges.insert(start, (end, line));
        }
    }

    /// Returns a hunk that has some of these lines; for an insertion, the hunk that it would be within.
    pub(super) fn overlap(&self, start: usize, end: usize) -> Option<LineOverlap> {
        let before = self.ranges.range(..end).next_back();
        if let Some((other, (other_end, line))) = before
            && *other_end > start
        {
            return Some(LineOverlap {
                first: *line,
                place: start.max(*other) + 1,
            });
        }
        let within = start.saturating_add(1)..end.max(start.saturating_add(1));
        let (place, line) = self.inserted.range(within).next()?;
        Some(LineOverlap {
            first: *line,
            place: place + 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ClaimedLines;

    #[test]
    fn lines_belong_to_one_hunk() {
        let mut claimed = ClaimedLines::default();
        claimed.claim(2, 5, 10);
        claimed.claim(8, 8, 20);
        for (start, end, expect) in [
            (0, 2, None),
            (0, 3, Some((10, 3))),
            (4, 6, Some((10, 5))),
            (0, 9, Some((10, 3))),
            (5, 8, None),
            (8, 9, None),
            (7, 9, Some((20, 9))),
            (2, 2, None),
            (3, 3, Some((10, 4))),
            (5, 5, None),
            (8, 8, None),
        ] {
            let found = claimed.overlap(start, end);
            assert_eq!(found.map(|o| (o.first, o.place)), expect, "{start}-{end}");
        }
    }
}
