//! The ways in which programs read one and the same text as a path.
//!
//! A model writes `.env\n` or `file:///etc/passwd`. Some tools take that for the name of a file, others trim it or decode it first. Which
//! one the agent's tool does is not known, so each reading counts.

use url::Url;

/// Returns the path as written, trimmed, and decoded from a `file:` URL, each once.
pub(super) fn readings(path: &str) -> Vec<String> {
    let mut all = vec![path.to_owned()];
    let trimmed = path.trim_matches(is_blank);
    let unquoted = trimmed.trim_matches(|c| is_blank(c) || matches!(c, '"' | '\'' | '`'));
    let trimmed = [trimmed, unquoted].into_iter().flat_map(|text| {
        let decoded = is_file_url(text).then(|| {
            // A path as programs cut it out of a URL, without decoding.
            let rest = text.get("file:".len()..).unwrap_or_default();
            let rest = rest.strip_prefix("//").unwrap_or(rest);
            [Some(rest.to_owned()), file_path(text)]
        });
        let decoded = decoded.into_iter().flatten().flatten();
        std::iter::once(text.to_owned()).chain(decoded)
    });
    for one in trimmed {
        if !one.is_empty() && !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

/// Returns the path that a `file:` URL names on this machine.
pub(super) fn file_path(url: &str) -> Option<String> {
    let path = Url::parse(url).ok()?.to_file_path().ok()?;
    path.to_str().map(str::to_owned)
}

fn is_file_url(text: &str) -> bool {
    text.get(.."file:".len())
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

/// Returns true for what trimming removes, in whatever language the tool is written.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '\u{200b}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::readings;

    #[test]
    fn a_path_is_read_in_every_way() {
        for (path, more) in [
            ("src/a b.rs", &[][..]),
            (".env ", &[".env"]),
            ("\u{feff}.env\r\n", &[".env"]),
            ("\".env\"", &[".env"]),
            ("file:///ws/%2eenv", &["/ws/%2eenv", "/ws/.env"]),
            ("FILE:/ws/.env#x", &["/ws/.env#x", "/ws/.env"]),
            (
                " file://localhost/ws/a ",
                &["file://localhost/ws/a", "localhost/ws/a", "/ws/a"],
            ),
            (" ", &[]),
        ] {
            let mut expect = vec![path];
            expect.extend(more);
            assert_eq!(readings(path), expect, "{path:?}");
        }
    }
}
