//! URIs of servers' resources in haft, and names of their prompts: the server's own where that is unambiguous, otherwise with the
//! server's name in front. Both can be parsed back.

use crate::own::{ARTIFACTS as ARTIFACT, SKILLS};

/// Prefix of a URI that names its server: `mcp://SERVER/` and the server's own URI.
const SCHEME: &str = "mcp://";

/// Returns whether haft would read a URI as one of its own, so that it does not say which server it belongs to.
pub(crate) fn is_reserved(address: &str) -> bool {
    [SCHEME, ARTIFACT, SKILLS]
        .iter()
        .any(|own| starts_with(address, own))
}

fn starts_with(address: &str, scheme: &str) -> bool {
    let begin = address.as_bytes().get(..scheme.len());
    begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme.as_bytes()))
}

/// Returns the URI that names its server.
pub(crate) fn of_server(server: &str, address: &str) -> String {
    format!("{SCHEME}{server}/{address}")
}

/// Returns the server and its own URI, from a URI that names its server.
pub(crate) fn parts(address: &str) -> Option<(&str, &str)> {
    if !starts_with(address, SCHEME) {
        return None;
    }
    address.get(SCHEME.len()..)?.split_once('/')
}

/// Returns whether a URI may be an expansion of a template (RFC 6570): it contains the literal parts in order.
pub(crate) fn fits(template: &str, address: &str) -> bool {
    let mut literals = template.split('{');
    let Some(first) = literals.next() else {
        return false;
    };
    let Some(mut rest) = address.strip_prefix(first) else {
        return false;
    };
    let mut ends_in_variable = false;
    for part in literals {
        let Some((_, literal)) = part.split_once('}') else {
            return false;
        };
        ends_in_variable = literal.is_empty();
        match rest.find(literal) {
            Some(at) => rest = rest.get(at + literal.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    ends_in_variable || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::{fits, is_reserved, of_server, parts};

    #[test]
    fn an_address_that_names_its_server_is_read_back() {
        for address in ["file:///a b", "mcp://x/y", "skill://pdf/SKILL.md", "", "/"] {
            let whole = of_server("docs", address);
            assert_eq!(parts(&whole), Some(("docs", address)));
            assert!(is_reserved(&whole));
        }
        for other in ["file:///a", "mcp://docs", "mcp:", "xmcp://a/b"] {
            assert_eq!(parts(other), None, "{other}");
        }
        for (address, expect) in [
            ("skill://a/b", true),
            ("ARTIFACT://a/b", true),
            ("MCP://a/b", true),
            ("file:///skill://", false),
            ("é", false),
        ] {
            assert_eq!(is_reserved(address), expect, "{address}");
        }
    }

    #[test]
    fn an_address_fits_the_template_that_it_was_made_of() {
        for (template, address, expect) in [
            ("test://{id}/data", "test://12/data", true),
            ("test://{id}/data", "test://12/other", false),
            ("test://{id}/data", "test://12/data/more", false),
            ("file:///{+path}", "file:///a/b/c", true),
            ("a{?q}", "a?q=1", true),
            ("a", "a", true),
            ("a", "b", false),
            ("a{b", "ab", false),
            ("{a}-{b}", "x-y", true),
            ("{a}-{b}", "xy", false),
        ] {
            assert_eq!(fits(template, address), expect, "{template} {address}");
        }
    }
}
