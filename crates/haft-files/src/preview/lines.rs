//! Changed lines: where two texts differ, line by line, in a time that grows with their length and not with their difference.

use std::collections::HashMap;
use std::ops::Range;

/// Maximum product of two lengths, in lines, that is compared exactly.
const MAX_EXACT: usize = 1 << 14;
/// How often a stretch without common lines in a row is split further.
const MAX_DEPTH: u32 = 12;

/// Lines that change together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) before: Range<usize>,
    pub(super) after: Range<usize>,
}

/// Splits a text into lines that keep their ends.
pub(super) fn split(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Returns the regions in which two texts differ, in order. Lines that are unique in both texts are compared first, so the same two texts
/// always have the same regions.
pub(super) fn regions(before: &[&[u8]], after: &[&[u8]]) -> Vec<Region> {
    let mut found = Vec::new();
    let mut todo = vec![(0..before.len(), 0..after.len(), 0)];
    while let Some((was, is, depth)) = todo.pop() {
        let (was, is) = trim(before, after, was, is);
        let (old, new) = (&before[was.clone()], &after[is.clone()]);
        if old.is_empty() || new.is_empty() {
            if old.len() + new.len() > 0 {
                found.push(Region {
                    before: was,
                    after: is,
                });
            }
        } else if old.len().saturating_mul(new.len()) <= MAX_EXACT {
            exact(old, new, &mut |old, new| {
                found.push(Region {
                    before: was.start + old.start..was.start + old.end,
                    after: is.start + new.start..is.start + new.end,
                });
            });
        } else {
            let anchors = if depth < MAX_DEPTH {
                anchors(old, new)
            } else {
                Vec::new()
            };
            if anchors.is_empty() {
                found.push(Region {
                    before: was,
                    after: is,
                });
                continue;
            }
            let (mut old_at, mut new_at) = (was.start, is.start);
            for (old, new) in anchors {
                todo.push((old_at..was.start + old, new_at..is.start + new, depth + 1));
                (old_at, new_at) = (was.start + old + 1, is.start + new + 1);
            }
            todo.push((old_at..was.end, new_at..is.end, depth + 1));
        }
    }
    found.sort_by_key(|region| (region.before.start, region.after.start));
    found
}

/// Leaves out the lines that both have at the start and at the end.
fn trim(
    before: &[&[u8]],
    after: &[&[u8]],
    mut was: Range<usize>,
    mut is: Range<usize>,
) -> (Range<usize>, Range<usize>) {
    while !was.is_empty() && !is.is_empty() && before[was.start] == after[is.start] {
        (was.start, is.start) = (was.start + 1, is.start + 1);
    }
    while !was.is_empty() && !is.is_empty() && before[was.end - 1] == after[is.end - 1] {
        (was.end, is.end) = (was.end - 1, is.end - 1);
    }
    (was, is)
}

/// Returns the lines that occur once in both texts, as far as they are in the same order in both.
fn anchors(old: &[&[u8]], new: &[&[u8]]) -> Vec<(usize, usize)> {
    let mut counts: HashMap<&[u8], [(usize, usize); 2]> = HashMap::new();
    for (side, lines) in [old, new].into_iter().enumerate() {
        for (at, line) in lines.iter().enumerate() {
            let count = &mut counts.entry(line).or_default()[side];
            *count = (count.0 + 1, at);
        }
    }
    let unique = old.iter().enumerate().filter_map(|(at, line)| {
        let [was, is] = counts.get(line)?;
        (was.0 == 1 && is.0 == 1).then_some((at, is.1))
    });
    longest_rising(&unique.collect::<Vec<_>>())
}

/// Returns the longest subsequence whose second numbers rise.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length, the pair with the smallest second number that ends such a subsequence.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < pair.1);
        previous.push(length.checked_sub(1).map(|below| ends[below]));
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut chain = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(at) = next {
        chain.push(pairs[at]);
        next = previous[at];
    }
    chain.reverse();
    chain
}

/// Reports the differences of two short texts by their longest common subsequence of lines.
fn exact(old: &[&[u8]], new: &[&[u8]], found: &mut dyn FnMut(Range<usize>, Range<usize>)) {
    let width = new.len() + 1;
    // The length of the longest common subsequence of what follows two places.
    let mut common = vec![0_u16; (old.len() + 1) * width];
    for was in (0..old.len()).rev() {
        for is in (0..new.len()).rev() {
            common[was * width + is] = if old[was] == new[is] {
                common[(was + 1) * width + is + 1] + 1
            } else {
                common[(was + 1) * width + is].max(common[was * width + is + 1])
            };
        }
    }
    let (mut was, mut is) = (0, 0);
    let (mut old_from, mut new_from) = (0, 0);
    while was < old.len() && is < new.len() {
        if old[was] == new[is] {
            if was > old_from || is > new_from {
                found(old_from..was, new_from..is);
            }
            (was, is) = (was + 1, is + 1);
            (old_from, new_from) = (was, is);
        } else if common[(was + 1) * width + is] >= common[was * width + is + 1] {
            was += 1;
        } else {
            is += 1;
        }
    }
    if old_from < old.len() || new_from < new.len() {
        found(old_from..old.len(), new_from..new.len());
    }
}

#[cfg(test)]
mod tests {
    use super::{regions, split};

    /// Applies the regions to the old text.
    fn rebuild(before: &[&[u8]], after: &[&[u8]]) -> (Vec<u8>, usize) {
        let (mut out, mut at, mut changed) = (Vec::new(), 0, 0);
        for region in regions(before, after) {
            out.extend_from_slice(&before[at..region.before.start].concat());
            out.extend_from_slice(&after[region.after.clone()].concat());
            at = region.before.end;
            changed += region.before.len() + region.after.len();
        }
        out.extend_from_slice(&before[at..].concat());
        (out, changed)
    }

    #[test]
    fn regions_turn_one_text_into_the_other_and_are_small() {
        let long = |changed: &[usize]| {
            let line = |nth: usize| {
                if changed.contains(&nth) {
                    format!("changed {nth}\n")
                } else if nth.is_multiple_of(3) {
                    "}\n".to_owned()
                } else {
                    format!("line {nth}\n")
                }
            };
            (0..5_000).map(line).collect::<String>()
        };
        let rows: [(String, String, usize); 8] = [
            (String::new(), String::new(), 0),
            ("a\nb\nc\n".into(), "a\nB\nc\n".into(), 2),
            ("a\n".into(), "a".into(), 2),
            (String::new(), "a\nb\n".into(), 2),
            ("a\nb\n".into(), String::new(), 2),
            (long(&[]), long(&[7, 2_500, 4_999]), 6),
            (long(&[]), format!("new\n{}", long(&[])), 1),
            ("x\n".repeat(9_000), "y\n".repeat(9_000), 18_000),
        ];
        for (before, after, most) in rows {
            let (was, is) = (split(before.as_bytes()), split(after.as_bytes()));
            let (rebuilt, changed) = rebuild(&was, &is);
            assert!(rebuilt == after.as_bytes(), "{before:.40?}");
            assert_eq!(changed, most, "{before:.40?} {after:.40?}");
        }
    }

    #[test]
    fn any_two_texts_rebuild() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let mut text = |most: u64| -> String {
                let lines = random(most);
                let lines = (0..lines).map(|_| random(40).to_string());
                lines.map(|line| line + "\n").collect()
            };
            let (before, after) = (text(400), text(400));
            let (was, is) = (split(before.as_bytes()), split(after.as_bytes()));
            assert!(rebuild(&was, &is).0 == after.as_bytes());
        }
    }
}
