//! Detects plain-text secrets in settings, by their names and shapes.

use haft::audit::redact::Redactor;

/// Parts of names that suggest a secret.
const SECRET_WORDS: [&str; 12] = [
    "apikey",
    "auth",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "key",
    "passphrase",
    "passwd",
    "password",
    "secret",
    "token",
];

/// Returns whether a value looks like a secret in plain text: by the name of its variable or header, or by its shape. A value that only
/// consists of references is not one.
pub fn is_secret(name: &str, value: &str) -> bool {
    let plain = without_references(value);
    // What remains of `Bearer ${env:X}`.
    let plain = plain.trim();
    let scheme = ["bearer", "basic", "token", ""];
    if scheme.contains(&plain.to_lowercase().as_str()) {
        return false;
    }
    is_shaped(plain) || names_secret(name) && plain.len() > 3 && !is_plain_word(plain)
}

/// Returns the value as screens show it: without what looks like a secret.
pub fn masked(name: &str, value: &str) -> String {
    let redacted = Redactor::default().redact(value);
    if redacted != value {
        return redacted.into_owned();
    }
    if is_secret(name, value) {
        return "[redacted]".to_owned();
    }
    value.to_owned()
}

/// Returns whether a text contains something shaped like a secret.
pub fn is_shaped(text: &str) -> bool {
    Redactor::default().redact(text) != text
}

fn names_secret(name: &str) -> bool {
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| {
        let word = word.to_lowercase();
        let ends = ["token", "secret", "password", "apikey"];
        SECRET_WORDS.contains(&word.as_str()) || ends.iter().any(|end| word.ends_with(end))
    })
}

/// Returns whether a value is a switch, a number or a path: `AUTH=true`, `KEY_FILE=/etc/key`.
fn is_plain_word(value: &str) -> bool {
    let value = value.to_lowercase();
    ["true", "false", "none", "null"].contains(&value.as_str())
        || value.bytes().all(|b| b.is_ascii_digit())
        || value.starts_with(['/', '~', '.'])
}

/// Returns the text without `${…}`.
fn without_references(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn a_secret_is_told_from_what_is_none() {
        for (name, value, expect) in [
            ("GITHUB_TOKEN", "abcdefgh", true),
            ("Authorization", "Bearer abcdefgh", true),
            ("X-Api-Key", "hush-hush", true),
            ("accessToken", "hush-hush", true),
            ("LOG", "sk-abcdefghijklmnopqrstuvwx1234567890", true),
            ("DATABASE_URL", "postgres://ann:hush@db/x", true),
            ("GITHUB_TOKEN", "${env:GITHUB_TOKEN}", false),
            ("Authorization", "Bearer ${env:X}", false),
            ("Authorization", "Bearer ${file:/a}", false),
            ("AUTH", "true", false),
            ("KEY_FILE", "/etc/key", false),
            ("TOKEN_LIMIT", "4096", false),
            ("LOG_LEVEL", "debug", false),
            ("KEYBOARD", "german", false),
            ("TOKEN", "", false),
        ] {
            assert_eq!(is_secret(name, value), expect, "{name}={value}");
        }
    }
}
