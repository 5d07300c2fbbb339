//! Names of servers' tools in haft: `server.tool`.

use haft::spec::{NameError, ToolName};
use haft::text::hex;
use sha2::{Digest, Sha256};

/// Maximum length of a server's name.
pub const MAX_SERVER_NAME: usize = 48;

/// Bytes of the digest in a name that had to be changed.
const DIGEST_BYTES: usize = 5;
/// Maximum length of a tool's name (the guidance of MCP 2025-11-25).
const MAX_NAME: usize = 128;

/// Returns whether a server may have this name: 1 to 48 of `a-z A-Z 0-9 _ -`. No dot, since the server's name ends at the first one.
pub fn is_server_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    (1..=MAX_SERVER_NAME).contains(&name.len()) && name.bytes().all(plain)
}

/// Returns the name in haft of a server's tool. In a name that haft does not support, invalid characters are replaced and a
/// digest of the whole name is added, so that two tools of a server never share a name.
///
/// # Errors
/// The server's name is invalid.
pub fn tool_name(server: &str, tool: &str) -> Result<ToolName, NameError> {
    if !is_server_name(server) {
        return ToolName::new(&format!("{server}\n"));
    }
    named(&format!("{server}."), tool)
}

/// Returns the name with another prefix, or with none.
pub(crate) fn named(prefix: &str, tool: &str) -> Result<ToolName, NameError> {
    let whole = format!("{prefix}{tool}");
    if let Ok(name) = ToolName::new(&whole)
        && !tool.is_empty()
    {
        return Ok(name);
    }
    let digest = hex(&Sha256::digest(tool.as_bytes())[..DIGEST_BYTES]);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let legal_part: String = tool
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    let room = MAX_NAME.saturating_sub(prefix.len() + digest.len() + 1);
    let legal_part = &legal_part[..legal_part.len().min(room)];
    ToolName::new(&format!("{prefix}{legal_part}-{digest}"))
}

#[cfg(test)]
mod tests {
    use super::{is_server_name, tool_name};

    #[test]
    fn every_tool_of_a_server_has_a_name_of_its_own() {
        let long = "x".repeat(300);
        let names = [
            "read",
            "a.b",
            "a b",
            "a_b",
            "a/b",
            "ä",
            "",
            "..",
            &long,
            &long[1..],
        ];
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            let known = tool_name("docs", name).unwrap();
            assert!(known.as_str().starts_with("docs."), "{known}");
            assert!(seen.insert(known.to_string()), "{name:?} as {known}");
        }
        assert_eq!(tool_name("docs", "read").unwrap().as_str(), "docs.read");
        for wrong in ["", "a.b", "a b", "ä", &"x".repeat(49)] {
            assert!(
                !is_server_name(wrong) && tool_name(wrong, "x").is_err(),
                "{wrong}"
            );
        }
    }
}
