//! `Challenge`: the header `WWW-Authenticate` of a refusal (RFC 9110, 11.6; RFC 6750, 3; RFC 9728, 5).

use std::borrow::Cow;

/// A challenge of the `Bearer` scheme.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// The URL of the server's metadata.
    pub(super) resource_metadata: Option<String>,
    /// The scopes that a token needs.
    pub(super) scope: Option<String>,
    /// Why the last token was insufficient.
    pub(super) error: Option<String>,
}

impl Challenge {
    /// Reads the first challenge of the scheme; ignores unknown parameters.
    pub(super) fn read(header: &str) -> Self {
        let mut found = Self::default();
        let Some(mut rest) = after_scheme(header) else {
            return found;
        };
        while let Some((name, value, more)) = parameter(rest) {
            let slot = match name.to_ascii_lowercase().as_str() {
                "resource_metadata" => Some(&mut found.resource_metadata),
                "scope" => Some(&mut found.scope),
                "error" => Some(&mut found.error),
                _ => None,
            };
            if let Some(slot) = slot
                && slot.is_none()
            {
                *slot = Some(value.into_owned());
            }
            rest = more;
        }
        found
    }
}

/// Returns what follows the word `Bearer` where it begins a challenge.
fn after_scheme(header: &str) -> Option<&str> {
    const SCHEME: &str = "bearer";
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, char) in header.char_indices() {
        let was_escaped = std::mem::take(&mut is_escaped);
        match char {
            '\\' if is_quoted && !was_escaped => is_escaped = true,
            '"' if !was_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        let (before, word) = (header[..at].trim_end(), &header[at..]);
        let begins = !is_quoted && (before.is_empty() || before.ends_with(','));
        let named = word.get(..SCHEME.len()).filter(|_| begins);
        if named.is_some_and(|named| named.eq_ignore_ascii_case(SCHEME)) {
            let rest = &word[SCHEME.len()..];
            if rest.is_empty() || rest.starts_with([' ', ',']) {
                return Some(rest);
            }
        }
    }
    None
}

/// Returns a parameter, its value, and the rest; `None` where another challenge begins.
fn parameter(text: &str) -> Option<(&str, Cow<'_, str>, &str)> {
    let text = text.trim_start_matches([' ', '\t', ',']);
    let (name, rest) = text.split_once('=')?;
    let name = name.trim();
    if name.is_empty() || name.contains([' ', ',', '"']) {
        return None;
    }
    let rest = rest.trim_start();
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find([',', ' ']).unwrap_or(rest.len());
        return Some((name, rest[..end].into(), &rest[end..]));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((name, value.into(), &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            char => value.push(char),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Challenge;

    #[test]
    fn a_challenge_is_read_whatever_stands_around_it() {
        let read = |header: &str| {
            let Challenge {
                resource_metadata,
                scope,
                error,
            } = Challenge::read(header);
            [resource_metadata, scope, error]
                .map(Option::unwrap_or_default)
                .join("|")
        };
        for (header, expect) in [
            ("Bearer", "||"),
            ("", "||"),
            ("Basic realm=\"a\"", "||"),
            (
                r#"Bearer resource_metadata="https://a.example/m""#,
                "https://a.example/m||",
            ),
            (
                r#"bearer  Scope="a b" , ERROR=insufficient_scope"#,
                "|a b|insufficient_scope",
            ),
            (
                r#"Basic realm="x, Bearer scope=\"no\"", Bearer scope="yes""#,
                "|yes|",
            ),
            (
                r#"Bearer scope="say \"hi\"", scope="other""#,
                "|say \"hi\"|",
            ),
            (
                r#"Bearer error="invalid_token", Basic realm="b""#,
                "||invalid_token",
            ),
            (r#"Bearer scope="open"#, "||"),
            ("Bearers scope=a", "||"),
        ] {
            assert_eq!(read(header), expect, "{header}");
        }
    }
}
