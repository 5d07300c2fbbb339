//! Applies hunks to a text: finds each place, then joins all lines again.

use crate::files::lines::{MAX_LINES, TextLine, join, split, usual};
use crate::files::patch::section::{Hunk, HunkLine, HunkLineKind};
use crate::files::patch::seek::{HashedText, MatchLevel};

/// Maximum number of notes per file.
const MAX_NOTES: usize = 20;
/// Maximum number of lines named in a message.
const MAX_NAMED: usize = 10;

/// A text with its hunks applied.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PatchedText {
    pub(super) text: Vec<u8>,
    pub(super) added: usize,
    pub(super) removed: usize,
    /// Notes on hunks that did not fit exactly.
    pub(super) notes: Vec<String>,
}

/// The reason why a hunk does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FitError {
    /// The file does not contain its lines.
    #[error("the hunk at line {line} of the patch does not fit: {why}")]
    Absent { line: usize, why: String },
    /// The file contains its lines more than once.
    #[error("the hunk at line {line} of the patch fits in {count} places, at lines {places}")]
    Ambiguous {
        line: usize,
        count: usize,
        places: String,
    },
    #[error("the file has more than {MAX_LINES} lines")]
    TooLong,
    #[error("the call was cancelled")]
    Stopped,
}

/// The place where a hunk applies.
struct HunkPosition<'h, 'a> {
    start: usize,
    level: MatchLevel,
    /// The hunk's lines, without final blank lines that the file does not have.
    ops: &'h [HunkLine<'a>],
}

/// Applies hunks, which are in the order of the text. Calls `stop` before each.
pub(super) fn fit(
    old: &[u8],
    hunks: &[Hunk<'_>],
    stop: &dyn Fn() -> bool,
) -> Result<PatchedText, FitError> {
    // A patch that shows a CR is meant literally; otherwise new lines end as the file's lines do.
    let shows_cr = |hunk: &Hunk<'_>| hunk.ops.iter().any(|op| op.text.ends_with('\r'));
    let lines = split(old, hunks.iter().any(shows_cr)).ok_or(FitError::TooLong)?;
    let usual = usual(&lines);
    let text = HashedText::new(&lines);
    let mut fitted = PatchedText::default();
    let mut new = Vec::with_capacity(lines.len());
    let mut open = old.last().is_some_and(|last| *last != b'\n');
    let (mut at, mut drift) = (0, 0);
    for hunk in hunks {
        if stop() {
            return Err(FitError::Stopped);
        }
        let spot = place(&text, hunk, at, drift)?;
        if let Some(stated) = hunk.stated {
            drift = distance(stated, spot.start);
        }
        fitted.note(hunk, &spot, drift);
        new.extend_from_slice(&lines[at..spot.start]);
        at = spot.start;
        for op in spot.ops {
            match op.kind {
                HunkLineKind::Keep => new.push(lines[at]),
                HunkLineKind::Remove => fitted.removed += 1,
                HunkLineKind::Add => {
                    fitted.added += 1;
                    let text = op.text.as_bytes();
                    new.push(TextLine { text, end: usual });
                }
            }
            at += usize::from(op.kind != HunkLineKind::Add);
        }
        if at == lines.len() && (hunk.old_open || hunk.new_open) {
            open = hunk.new_open;
        }
    }
    new.extend_from_slice(&lines[at..]);
    fitted.text = join(&new, usual, open);
    Ok(fitted)
}

impl PatchedText {
    fn note(&mut self, hunk: &Hunk<'_>, spot: &HunkPosition<'_, '_>, drift: isize) {
        let mut differences = Vec::new();
        if spot.level != MatchLevel::Exact {
            differences.push(format!("fits but for {}", spot.level.ignored_difference()));
        }
        if drift != 0 && hunk.stated.is_some() {
            differences.push(format!("was put {drift:+} lines from where it says"));
        }
        if !differences.is_empty() && self.notes.len() < MAX_NOTES {
            let (line, start) = (hunk.line, spot.start + 1);
            let differences = differences.join(" and ");
            self.notes.push(format!(
                "the hunk at line {line} of the patch {differences}, at line {start}"
            ));
        }
    }
}

/// Returns how far the second line is after the first.
fn distance(from: usize, to: usize) -> isize {
    let far = isize::try_from(to.abs_diff(from)).unwrap_or(isize::MAX);
    if to < from { -far } else { far }
}

/// Finds the place of a hunk, at or after line `from`.
fn place<'h, 'a>(
    text: &HashedText<'_>,
    hunk: &'h Hunk<'a>,
    from: usize,
    drift: isize,
) -> Result<HunkPosition<'h, 'a>, FitError> {
    let (start, sure) = after_anchors(text, hunk, from)?;
    let anchor = AnchorMatch { start, sure };
    let stated = hunk
        .stated
        .map(|stated| stated.saturating_add_signed(drift));
    let old: Vec<&[u8]> = hunk.before().map(|op| op.text.as_bytes()).collect();
    let spot = |start, level, ops| HunkPosition { start, level, ops };
    if old.is_empty() {
        let start = insertion(text, hunk, anchor, stated)?;
        return Ok(spot(start, MatchLevel::Exact, &hunk.ops[..]));
    }
    let ends = |at: usize| !hunk.at_end || at + old.len() == text.lines.len();
    if let Some(at) = stated.filter(|at| *at >= start && ends(*at) && text.is_at(&old, *at)) {
        return Ok(spot(at, MatchLevel::Exact, &hunk.ops[..]));
    }
    let (mut ops, mut pattern) = (&hunk.ops[..], &old[..]);
    let (mut level, mut found) = text.find(pattern, start);
    // A blank line before the next header may not belong to the hunk.
    while found.is_empty()
        && hunk.stated.is_none()
        && let [rest @ .., last] = ops
        && last.kind == HunkLineKind::Keep
        && last.text.is_empty()
        && pattern.len() > 1
    {
        (ops, pattern) = (rest, &pattern[..pattern.len() - 1]);
        (level, found) = text.find(pattern, start);
    }
    if hunk.at_end {
        found.retain(|at| at + pattern.len() == text.lines.len());
    }
    match (&found[..], stated) {
        ([], _) => Err(absent(text, hunk, &old, from)),
        ([one], _) => Ok(spot(*one, level, ops)),
        (many, Some(stated)) => {
            let far = |at: &usize| at.abs_diff(stated);
            let near = many.iter().map(far).min().unwrap_or(0);
            match many.iter().filter(|at| far(at) == near).collect::<Vec<_>>()[..] {
                [one] => Ok(spot(*one, level, ops)),
                _ => Err(ambiguous(hunk, many)),
            }
        }
        ([first, ..], None) if sure => Ok(spot(*first, level, ops)),
        (many, None) => Err(ambiguous(hunk, many)),
    }
}

/// Returns the line to search from, which is the last anchor, and whether the anchors are unambiguous.
fn after_anchors(
    text: &HashedText<'_>,
    hunk: &Hunk<'_>,
    from: usize,
) -> Result<(usize, bool), FitError> {
    let (mut at, mut sure) = (from, false);
    for (index, anchor) in hunk.anchors.iter().enumerate() {
        let after = if index == 0 { at } else { at + 1 };
        let found = text.anchor(anchor, after);
        let Some(first) = found.first() else {
            let anchor: String = anchor.chars().take(60).collect();
            return Err(FitError::Absent {
                line: hunk.line,
                why: format!("no line {anchor:?} from line {} on", after + 1),
            });
        };
        if index == 0 {
            sure = found.len() == 1;
        }
        at = *first;
    }
    Ok((at, sure))
}

/// The place that a hunk's anchors lead to.
#[derive(Clone, Copy)]
struct AnchorMatch {
    start: usize,
    /// True if the anchors match at only one place.
    sure: bool,
}

/// Returns where to insert lines without context: where the hunk says, after its anchor, or else at the end.
fn insertion(
    text: &HashedText<'_>,
    hunk: &Hunk<'_>,
    anchor: AnchorMatch,
    stated: Option<usize>,
) -> Result<usize, FitError> {
    let AnchorMatch { start, sure } = anchor;
    let end = text.lines.len();
    match (stated, hunk.anchors.first()) {
        (Some(stated), _) if stated >= start && stated <= end => Ok(stated),
        (Some(stated), _) => Err(FitError::Absent {
            line: hunk.line,
            why: format!(
                "it goes after line {stated}, but the file has lines {start} to {end} left"
            ),
        }),
        (None, Some(_)) if !hunk.at_end && sure => Ok(start + 1),
        (None, Some(anchor)) if !hunk.at_end => Err(ambiguous(hunk, &text.anchor(anchor, 0))),
        _ => Ok(end),
    }
}

fn ambiguous(hunk: &Hunk<'_>, places: &[usize]) -> FitError {
    let named = places.iter().take(MAX_NAMED).map(|at| (at + 1).to_string());
    let mut named = named.collect::<Vec<_>>().join(", ");
    if places.len() > MAX_NAMED {
        named.push_str(", …");
    }
    FitError::Ambiguous {
        line: hunk.line,
        count: places.len(),
        places: named,
    }
}

fn absent(text: &HashedText<'_>, hunk: &Hunk<'_>, old: &[&[u8]], from: usize) -> FitError {
    let why = if hunk.at_end {
        "its lines are not the file's last".to_owned()
    } else if let Some(earlier) = text.find(old, 0).1.first().filter(|_| from > 0) {
        format!(
            "its lines are at line {}, before where the hunk above it ends; hunks go in the file's order",
            earlier + 1
        )
    } else {
        match text.nearest(old) {
            Some((at, alike)) if alike < old.len() => {
                let wanted = hunk.before().nth(alike).map_or(hunk.line, |op| op.line);
                format!(
                    "nearest is line {}, but line {wanted} of the patch is not line {} of the file",
                    at + 1,
                    at + alike + 1
                )
            }
            _ => "its first line is not in the file".to_owned(),
        }
    };
    FitError::Absent {
        line: hunk.line,
        why,
    }
}
