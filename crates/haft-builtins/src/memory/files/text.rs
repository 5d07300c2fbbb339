//! Texts of the file interface, word for word those of the reference implementation, because models were trained on them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Number of directory levels shown.
const LISTED_LEVELS: usize = 2;
/// Number of lines shown before and after a change.
const CONTEXT_LINES: usize = 2;

/// Formats lines with line numbers, starting at `first` (counted from 1).
pub(super) fn number_lines(lines: &[&str], first: usize) -> String {
    let numbered = lines
        .iter()
        .enumerate()
        .map(|(n, line)| format!("{:>6}\t{line}", first + n));
    numbered.collect::<Vec<_>>().join("\n")
}

/// Formats the lines around one (counted from 0).
pub(super) fn snippet(content: &str, changed: usize) -> String {
    let lines: Vec<&str> = content.split('\n').collect();
    let start = changed.saturating_sub(CONTEXT_LINES).min(lines.len());
    let end = (changed + CONTEXT_LINES + 1).min(lines.len());
    number_lines(&lines[start..end], start + 1)
}

/// Formats a directory: its files two levels deep with their sizes, without hidden ones.
pub(super) fn listing<'a>(dir: &str, files: impl Iterator<Item = (&'a str, usize)>) -> String {
    let mut total = 0;
    let mut shown: BTreeMap<Vec<&str>, (usize, bool)> = BTreeMap::new();
    for (below, bytes) in files {
        total += bytes;
        let names: Vec<&str> = below.split('/').collect();
        for depth in 1..=names.len().min(LISTED_LEVELS) {
            let entry = shown.entry(names[..depth].to_vec()).or_default();
            entry.0 += bytes;
            entry.1 = depth < names.len();
        }
    }
    let mut out = format!(
        "Here're the files and directories up to 2 levels deep in {dir}, excluding hidden items:\n{}\t{dir}",
        size(total)
    );
    for (names, (bytes, is_dir)) in shown {
        if names.iter().any(|name| name.starts_with('.')) {
            continue;
        }
        let end = if is_dir { "/" } else { "" };
        // Writing to a `String` cannot fail.
        let _ = write!(out, "\n{}\t{dir}/{}{end}", size(bytes), names.join("/"));
    }
    out
}

/// Formats a size as the reference implementation does: `0B`, `512B`, `1.5K`.
fn size(bytes: usize) -> String {
    const UNITS: [&str; 4] = ["B", "K", "M", "G"];
    let mut unit = 0;
    let mut whole = 1_usize;
    while unit + 1 < UNITS.len() && bytes / whole >= 1024 {
        unit += 1;
        whole *= 1024;
    }
    if bytes.is_multiple_of(whole) {
        return format!("{}{}", bytes / whole, UNITS[unit]);
    }
    let tenths = (bytes * 10 + whole / 2) / whole;
    format!("{}.{}{}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_the_reference_does() {
        let rows = [
            (0, "0B"),
            (1, "1B"),
            (1023, "1023B"),
            (1024, "1K"),
            (1536, "1.5K"),
            (16_384, "16K"),
            (1 << 20, "1M"),
            (1 << 30, "1G"),
        ];
        for (bytes, expect) in rows {
            assert_eq!(size(bytes), expect);
        }
    }

    #[test]
    fn a_directory_is_listed_two_levels_deep() {
        let files = [
            ("a.md", 10),
            ("b/c.md", 20),
            ("b/d/e.md", 30),
            (".hidden", 1),
            ("b/.x", 2),
        ];
        let expect = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n\
            63B\t/memories\n10B\t/memories/a.md\n52B\t/memories/b/\n20B\t/memories/b/c.md\n30B\t/memories/b/d/";
        assert_eq!(listing("/memories", files.into_iter()), expect);
        let empty = listing("/memories", std::iter::empty());
        assert!(empty.ends_with("\n0B\t/memories"), "{empty}");
    }
}
