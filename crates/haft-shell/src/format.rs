//! The format of `printf`: which conversions it has.

/// Returns the letter of each conversion: `s` and `d` for `%s %-5.2d%%`, with `*` for each width that an argument gives, `T` for
/// `%(…)T`, and a NUL for a conversion that the format ends in. `%%` is none.
///
/// ```
/// use haft_shell::conversions;
///
/// assert_eq!(conversions("%s is %5.1f%%\n"), "sf");
/// assert_eq!(conversions("x%n"), "n");
/// ```
pub fn conversions(format: &str) -> String {
    let mut found = String::new();
    let mut rest = format;
    while let Some((_, behind)) = rest.split_once('%') {
        if let Some(behind) = behind.strip_prefix('%') {
            rest = behind;
            continue;
        }
        let flags = |c: char| c.is_ascii_digit() || "#'-+ .*".contains(c);
        let end = behind.find(|c| !flags(c)).unwrap_or(behind.len());
        found.extend(behind[..end].chars().filter(|c| *c == '*'));
        let behind = behind[end..].trim_start_matches(['h', 'j', 'l', 'L', 't', 'z']);
        let behind = match behind
            .strip_prefix('(')
            .and_then(|time| time.split_once(')'))
        {
            Some((_, behind)) => behind,
            None => behind,
        };
        found.push(behind.chars().next().unwrap_or('\0'));
        rest = behind
            .get(behind.chars().next().map_or(0, char::len_utf8)..)
            .unwrap_or("");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::conversions;

    #[test]
    fn every_conversion_is_found() {
        for (format, expect) in [
            ("", ""),
            ("plain %% text", ""),
            ("%s %-5.2d%%", "sd"),
            ("%*.*f", "**f"),
            ("%ln%5n", "nn"),
            ("%(%F)T%n", "Tn"),
            ("%ü%n", "ün"),
            ("100%", "\0"),
        ] {
            assert_eq!(conversions(format), expect, "{format}");
        }
    }
}
