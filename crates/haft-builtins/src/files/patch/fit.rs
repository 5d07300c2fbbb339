//! Applies hunks to a text: finds each place, then joins all lines again.

use std::borrow::Cow;

use crate::files::lines::{MAX_LINES, TextLine, join, split, usual};
use crate::files::patch::claimed::{ClaimedLines, LineOverlap};
use crate::files::patch::indent::added_lines;
use crate::files::patch::section::{Hunk, HunkLength, HunkLine, HunkLineKind};
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
    /// Another hunk already changes its lines.
    #[error(
        "the hunks at lines {first} and {line} of the patch overlap, at line {place} of the file"
    )]
    Overlap {
        line: usize,
        first: usize,
        place: usize,
    },
    #[error("the file has more than {MAX_LINES} lines")]
    TooLong,
    #[error("the call was cancelled")]
    Stopped,
}

/// The place where a hunk applies.
struct HunkPosition<'h, 'a> {
    hunk: &'h Hunk<'a>,
    start: usize,
    /// One past the last line that the hunk shows.
    end: usize,
    level: MatchLevel,
    /// The hunk's lines, without final blank lines that the file does not have.
    ops: &'h [HunkLine<'a>],
}

/// Where a hunk is searched.
#[derive(Clone, Copy)]
struct HunkSearch<'s> {
    /// The first line to consider.
    from: usize,
    /// How far the hunk before was from where it says.
    drift: isize,
    /// The lines of the hunks that have a place.
    claimed: &'s ClaimedLines,
}

/// Applies hunks, which may be in any order. Calls `stop` before each.
pub(super) fn fit(
    old: &[u8],
    hunks: &[Hunk<'_>],
    stop: &dyn Fn() -> bool,
) -> Result<PatchedText, FitError> {
    // A patch that shows a CR is meant literally; otherwise new lines end as the file's lines do.
    let shows_cr = |hunk: &Hunk<'_>| hunk.ops.iter().any(|op| op.text.ends_with('\r'));
    let lines = split(old, hunks.iter().any(shows_cr)).ok_or(FitError::TooLong)?;
    let text = HashedText::new(&lines);
    let mut fitted = PatchedText::default();
    let mut placed = Vec::with_capacity(hunks.len());
    let (mut from, mut drift, mut claimed) = (0, 0, ClaimedLines::default());
    for hunk in hunks {
        if stop() {
            return Err(FitError::Stopped);
        }
        let search = HunkSearch {
            from,
            drift,
            claimed: &claimed,
        };
        let spot = place_anywhere(&text, hunk, search)?;
        if let Some(stated) = hunk.stated {
            drift = distance(stated, spot.start);
        }
        fitted.note(hunk, &spot, drift);
        from = spot.end;
        claimed.claim(spot.start, spot.end, hunk.line);
        placed.push(spot);
    }
    placed.sort_by_key(|spot| (spot.start, spot.end));
    fitted.apply(old, &lines, &placed);
    Ok(fitted)
}

impl PatchedText {
    /// Joins the lines of the text and of the hunks, which are in the text's order.
    fn apply(&mut self, old: &[u8], lines: &[TextLine<'_>], placed: &[HunkPosition<'_, '_>]) {
        let usual = usual(lines);
        let added = placed.iter().map(|spot| match spot.level {
            MatchLevel::Exact | MatchLevel::Trailing => spot.added_as_written(),
            MatchLevel::Outer | MatchLevel::Marks => added_lines(spot.ops, &lines[spot.start..]),
        });
        let added: Vec<Vec<Cow<'_, [u8]>>> = added.collect();
        let mut new = Vec::with_capacity(lines.len());
        let mut open = old.last().is_some_and(|last| *last != b'\n');
        let mut at = 0;
        for (spot, added) in placed.iter().zip(&added) {
            new.extend_from_slice(&lines[at..spot.start]);
            at = spot.start;
            let mut added = added.iter();
            for op in spot.ops {
                match op.kind {
                    HunkLineKind::Keep => new.push(lines[at]),
                    HunkLineKind::Remove => self.removed += 1,
                    HunkLineKind::Add => {
                        self.added += 1;
                        let text = added.next().map_or(&b""[..], |text| text);
                        new.push(TextLine { text, end: usual });
                    }
                }
                at += usize::from(op.kind != HunkLineKind::Add);
            }
            let hunk = spot.hunk;
            if at == lines.len() && (hunk.old_open || hunk.new_open) {
                open = hunk.new_open;
            }
        }
        new.extend_from_slice(&lines[at..]);
        self.text = join(&new, usual, open);
    }

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

impl<'h, 'a> HunkPosition<'h, 'a> {
    fn new(hunk: &'h Hunk<'a>, start: usize, level: MatchLevel, ops: &'h [HunkLine<'a>]) -> Self {
        let shown = ops.iter().filter(|op| op.kind != HunkLineKind::Add).count();
        Self {
            hunk,
            start,
            end: start + shown,
            level,
            ops,
        }
    }

    fn added_as_written(&self) -> Vec<Cow<'a, [u8]>> {
        let added = self.ops.iter().filter(|op| op.kind == HunkLineKind::Add);
        added.map(|op| Cow::Borrowed(op.text.as_bytes())).collect()
    }
}

fn overlap(hunk: &Hunk<'_>, other: LineOverlap) -> FitError {
    FitError::Overlap {
        line: hunk.line,
        first: other.first,
        place: other.place,
    }
}

/// Finds the place of a hunk: below the one before it in the patch, else anywhere.
fn place_anywhere<'h, 'a>(
    text: &HashedText<'_>,
    hunk: &'h Hunk<'a>,
    search: HunkSearch<'_>,
) -> Result<HunkPosition<'h, 'a>, FitError> {
    let old: Vec<&[u8]> = hunk.before().map(|op| op.text.as_bytes()).collect();
    let stated = stated_place(text, hunk, &old, search);
    if let Some(at) = stated.filter(|_| hunk.anchors.is_empty()) {
        return Ok(HunkPosition::new(hunk, at, MatchLevel::Exact, &hunk.ops));
    }
    let below = place(text, hunk, &old, search);
    let exact = |spot: &HunkPosition<'_, '_>| spot.level == MatchLevel::Exact;
    if search.from == 0 || below.as_ref().is_ok_and(exact) {
        return below;
    }
    let anywhere = place(text, hunk, &old, HunkSearch { from: 0, ..search });
    match (below, anywhere) {
        // Which of the two is meant is not certain.
        (Ok(below), Ok(other)) if other.level < below.level => {
            Err(ambiguous(hunk, &[other.start, below.start]))
        }
        (Err(FitError::Absent { .. } | FitError::Overlap { .. }), anywhere) => anywhere,
        (below, _) => below,
    }
}

/// Returns the line that a hunk states, if it has the hunk's lines exactly and no other hunk has them.
fn stated_place(
    text: &HashedText<'_>,
    hunk: &Hunk<'_>,
    old: &[&[u8]],
    search: HunkSearch<'_>,
) -> Option<usize> {
    let at = hunk.stated?.saturating_add_signed(search.drift);
    let ends = || !hunk.at_end || at + old.len() == text.lines.len();
    let fits = !old.is_empty() && text.is_at(old, at) && ends();
    let free = || search.claimed.overlap(at, at + old.len()).is_none();
    (fits && free()).then_some(at)
}

/// Finds the place of a hunk with these old lines, at or after the line that the search begins at.
fn place<'h, 'a>(
    text: &HashedText<'_>,
    hunk: &'h Hunk<'a>,
    old: &[&'a [u8]],
    search: HunkSearch<'_>,
) -> Result<HunkPosition<'h, 'a>, FitError> {
    let (start, sure) = after_anchors(text, hunk, search.from)?;
    let anchor = AnchorMatch { start, sure };
    let stated = hunk
        .stated
        .map(|stated| stated.saturating_add_signed(search.drift));
    let spot = |start, level, ops| HunkPosition::new(hunk, start, level, ops);
    if old.is_empty() {
        let start = insertion(text, hunk, anchor, stated)?;
        return match search.claimed.overlap(start, start) {
            Some(other) => Err(overlap(hunk, other)),
            None => Ok(spot(start, MatchLevel::Exact, &hunk.ops[..])),
        };
    }
    if let Some(at) = stated_place(text, hunk, old, search).filter(|at| *at >= start) {
        return Ok(spot(at, MatchLevel::Exact, &hunk.ops[..]));
    }
    let (ops, pattern, (level, mut found)) = find(text, hunk, old, start);
    if hunk.at_end {
        found.retain(|at| at + pattern.len() == text.lines.len());
    }
    let taken = found.first().copied();
    found.retain(|at| search.claimed.overlap(*at, at + pattern.len()).is_none());
    match (&found[..], stated) {
        ([], _) => {
            let other = taken.and_then(|at| search.claimed.overlap(at, at + pattern.len()));
            Err(other.map_or_else(|| absent(text, hunk, old), |other| overlap(hunk, other)))
        }
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

/// The lines of a hunk, those that the file must have, and the places that have them.
type FoundLines<'f, 'h, 'a> = (&'h [HunkLine<'a>], &'f [&'a [u8]], (MatchLevel, Vec<usize>));

/// Finds a hunk's lines from a line on, without blank lines at its end if the file has none there.
fn find<'f, 'h, 'a>(
    text: &HashedText<'_>,
    hunk: &'h Hunk<'a>,
    old: &'f [&'a [u8]],
    start: usize,
) -> FoundLines<'f, 'h, 'a> {
    let (mut ops, mut pattern) = (&hunk.ops[..], old);
    let mut found = text.find(pattern, start);
    // A blank line before the next header may not belong to the hunk.
    while found.1.is_empty()
        && hunk.length == HunkLength::Unstated
        && let [rest @ .., last] = ops
        && last.kind == HunkLineKind::Keep
        && last.text.is_empty()
        && pattern.len() > 1
    {
        (ops, pattern) = (rest, &pattern[..pattern.len() - 1]);
        found = text.find(pattern, start);
    }
    (ops, pattern, found)
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
        let found = anchor_places(text, anchor, after);
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

/// Returns the lines that an anchor names, also one that is closed as in `@@ LINE @@`.
fn anchor_places(text: &HashedText<'_>, anchor: &str, from: usize) -> Vec<usize> {
    let found = text.anchor(anchor, from);
    match anchor.trim_end().strip_suffix("@@") {
        Some(bare) if found.is_empty() => text.anchor(bare.trim_end(), from),
        _ => found,
    }
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
        (None, Some(anchor)) if !hunk.at_end => {
            Err(ambiguous(hunk, &anchor_places(text, anchor, 0)))
        }
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

fn absent(text: &HashedText<'_>, hunk: &Hunk<'_>, old: &[&[u8]]) -> FitError {
    let why = if hunk.at_end {
        "its lines are not the file's last".to_owned()
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
