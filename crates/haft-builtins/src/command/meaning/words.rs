//! Words of titles and lines: texts of files made harmless, counts, sizes.

use haft::text::visible;

/// Returns at most `most` characters of a text on one line. Characters that a terminal obeys, or that reorder a line, are escaped.
pub(in crate::command) fn one_line(text: &str, most: usize) -> String {
    visible::line(&haft::text::clip(text, most))
}

/// Returns a path or a name on one line, in quotes if it could be taken for a part of a sentence.
pub(super) fn name(bytes: &[u8]) -> String {
    const MAX_NAME: usize = 200;
    if let Ok(text) = std::str::from_utf8(bytes) {
        return visible::short_path(text, MAX_NAME);
    }
    let shown = visible::path_of_bytes(bytes.get(..MAX_NAME).unwrap_or(bytes));
    let cut = if bytes.len() > MAX_NAME { "…" } else { "" };
    format!("{shown}{cut}")
}

/// Returns a text of somebody else in quotes, on one line. A quote inside is escaped, so that nothing in it reads as haft's own words.
pub(super) fn quoted(text: &str, most: usize) -> String {
    let mut escaped = String::new();
    let mut rest = text;
    while let Some(at) = rest
        .find(['\'', '\\'])
        .filter(|_| escaped.len() <= most * 4)
    {
        let (before, after) = rest.split_at(at);
        escaped.push_str(before);
        escaped.push('\\');
        escaped.push_str(&after[..1]);
        rest = &after[1..];
    }
    escaped.push_str(rest);
    format!("'{}'", one_line(&escaped, most))
}

/// Marks a line that somebody else wrote, such as one of a commit's message.
pub(super) fn cited(line: &str, most: usize) -> String {
    format!("> {}", one_line(line, most)).trim_end().to_owned()
}

/// Returns a count with its noun: "1 file", "3 files".
pub(super) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => format!("{number} {noun}es"),
        _ if noun.ends_with("ry") => format!("{number} {}ies", &noun[..noun.len() - 1]),
        _ => format!("{number} {noun}s"),
    }
}

/// Returns a size for people: "512 bytes", "3.4 MB".
pub(in crate::command) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::{cited, count, name, one_line, size};

    #[test]
    fn a_text_stays_on_its_line_and_in_its_direction() {
        let line = one_line("a\nb\u{1b}[31m\u{202e}c", 20);
        assert_eq!(line, "a\\nb\\x1b[31m\\u{202e}c");
        assert_eq!(one_line("long text", 4), "long…");
        assert_eq!(name(b"src/my file.rs"), "'src/my file.rs'");
        assert_eq!(name(b"a, b: c"), "'a, b: c'");
        assert_eq!(name(b"it's"), "$'it\\'s'");
        assert_eq!(cited("", 10), ">");
        assert_eq!(count(1, "entry"), "1 entry");
        assert_eq!(count(2, "entry"), "2 entries");
        assert_eq!(count(2, "branch"), "2 branches");
        assert_eq!(size(12_345_678), "12.3 MB");
    }
}
