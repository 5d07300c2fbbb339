//! `MemoryPath`: a path that is `/memories` or below it, in normalized form.

use std::fmt;

use haft::error::ToolError;
use haft::memory::MAX_PATH;
use haft::text::clip;

/// The folder of all memory files.
const ROOT: &str = "/memories";
/// Maximum number of names below the root.
const MAX_DEPTH: usize = 8;
/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 128;
/// Sequences that another program might read as a separator, a parent or an end.
const FORBIDDEN_SEQUENCES: [&str; 6] = ["%2e", "%2f", "%5c", "%00", "%25", "\\"];

/// A path of the memory, with a single possible spelling.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MemoryPath(String);

impl MemoryPath {
    /// Parses a path as written by a model. The messages are those of the reference implementation.
    pub(crate) fn parse(text: &str) -> Result<Self, ToolError> {
        let shown = clip(text, MAX_NAME);
        let outside = format!("Path must start with {ROOT}, got: {shown}");
        let below = match text.strip_prefix(ROOT) {
            Some("") => return Ok(Self(ROOT.to_owned())),
            Some(rest) => rest.strip_prefix('/'),
            None => None,
        };
        let below = below.ok_or_else(|| ToolError::denied(outside))?;
        let lower = text.to_lowercase();
        let escapes = below.split('/').any(|name| matches!(name, "." | ".."));
        if escapes
            || text.contains('\0')
            || FORBIDDEN_SEQUENCES
                .iter()
                .any(|trick| lower.contains(trick))
        {
            let message = format!("Path {shown} would escape {ROOT} directory");
            return Err(ToolError::denied(message));
        }
        let below = below.strip_suffix('/').unwrap_or(below);
        if below.is_empty() {
            return Ok(Self(ROOT.to_owned()));
        }
        let names: Vec<&str> = below.split('/').collect();
        let fits = |name: &&str| !name.is_empty() && name.len() <= MAX_NAME;
        if names.len() > MAX_DEPTH || text.len() > MAX_PATH || !names.iter().all(fits) {
            let message = format!(
                "path {shown}: at most {MAX_DEPTH} names of 1 to {MAX_NAME} bytes below {ROOT}, {MAX_PATH} bytes in all"
            );
            return Err(ToolError::invalid_arguments(message));
        }
        if text.chars().any(char::is_control) {
            let message = "the path holds a control character";
            return Err(ToolError::invalid_arguments(message));
        }
        Ok(Self(format!("{ROOT}/{below}")))
    }

    /// Returns the path as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true for the root directory.
    pub(crate) fn is_root(&self) -> bool {
        self.0 == ROOT
    }

    /// Returns the prefix of all paths below this one.
    pub(crate) fn prefix(&self) -> String {
        format!("{}/", self.0)
    }

    /// Returns the parent directories, except the root.
    pub(crate) fn parents(&self) -> impl Iterator<Item = &str> {
        let cuts = self.0.match_indices('/').skip(2);
        cuts.map(|(at, _)| &self.0[..at])
    }
}

impl fmt::Display for MemoryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use haft::error::ErrorKind;

    use super::*;

    fn check(text: &str, expect: Result<&str, ErrorKind>) {
        let parsed = MemoryPath::parse(text);
        let got = parsed
            .as_ref()
            .map(MemoryPath::as_str)
            .map_err(ToolError::kind);
        assert_eq!(got, expect, "{text:?}");
    }

    #[test]
    fn a_path_is_below_the_root_in_one_spelling_or_refused() {
        check("/memories", Ok("/memories"));
        check("/memories/", Ok("/memories"));
        check("/memories/a.md", Ok("/memories/a.md"));
        check("/memories/a/b/", Ok("/memories/a/b"));
        check("/memories/wär/库.md", Ok("/memories/wär/库.md"));
        check("/memories/..a/...", Ok("/memories/..a/..."));
        check("/memories/100%", Ok("/memories/100%"));
        let denied = [
            "",
            "/",
            "memories/a",
            "/memoriesX",
            "/memory/a",
            "/etc/passwd",
            "/memories/..",
            "/memories/../etc/passwd",
            "/memories/a/../../b",
            "/memories/./a",
            "/memories/%2e%2e/a",
            "/memories/%2E%2E/a",
            "/memories/a%2fb",
            "/memories/%252e%252e",
            "/memories/a\\..\\b",
            "/memories/a\0b",
            "/memories/a%00",
            "//memories/a",
            " /memories/a",
        ];
        for text in denied {
            check(text, Err(ErrorKind::Denied));
        }
        let wrong = [
            "/memories//a".to_owned(),
            "/memories/a//".to_owned(),
            "/memories/a\nb".to_owned(),
            format!("/memories/{}", "x".repeat(MAX_NAME + 1)),
            format!("/memories{}", "/d".repeat(MAX_DEPTH + 1)),
            format!("/memories/{}", "xxxxxxxx/".repeat(100_000)),
        ];
        for text in wrong {
            check(&text, Err(ErrorKind::InvalidArguments));
        }
        let path = MemoryPath::parse("/memories/a/b/c").unwrap();
        let parents: Vec<_> = path.parents().collect();
        assert_eq!(parents, ["/memories/a", "/memories/a/b"]);
    }
}
