//! Finds the declared tool that a scenario means, whatever wire name its client chose.

use crate::conversation::RequestTool;

/// Returns the tool for this name: the one with this name, with or without its namespace; else the one whose name is the same when
/// dots, dashes and underscores are considered equal; else the one whose name was cut and ends in eight digits of a hash.
///
/// ```text
/// docs.search   docs.search · docs__search · docs_search · docs-search · docs__search_1a2b3c4d
/// ```
pub(crate) fn find<'t>(tools: &'t [RequestTool], name: &str) -> Option<&'t RequestTool> {
    let plain = plain(name);
    tools
        .iter()
        .find(|tool| full(tool) == name || tool.name == name)
        .or_else(|| tools.iter().find(|tool| self::plain(&full(tool)) == plain))
        .or_else(|| tools.iter().find(|tool| is_cut(&full(tool), &plain)))
}

fn full(tool: &RequestTool) -> String {
    match &tool.namespace {
        Some(namespace) => format!("{namespace}.{}", tool.name),
        None => tool.name.clone(),
    }
}

/// Returns the name with each run of other characters replaced by one `_`.
fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            plain.push(c);
        } else if !plain.ends_with('_') {
            plain.push('_');
        }
    }
    plain
}

/// Returns whether a wire name is the beginning of this one, followed by eight digits of a hash.
fn is_cut(wire: &str, whole: &str) -> bool {
    let Some((head, tail)) = wire.rsplit_once('_') else {
        return false;
    };
    let digits = tail.len() == 8 && tail.bytes().all(|b| b.is_ascii_hexdigit());
    digits && !head.is_empty() && whole.starts_with(plain(head).trim_end_matches('_'))
}

#[cfg(test)]
mod tests {
    use crate::conversation::ToolKind;

    use super::*;

    #[test]
    fn a_tool_is_found_by_every_spelling_of_its_name() {
        let tool = |name: &str| RequestTool::new(name, ToolKind::Function);
        let long = "x.".repeat(60);
        let rows = [
            (vec!["read_file", "docs__search"], "docs.search", Some(1)),
            (vec!["docs_search"], "docs.search", Some(0)),
            (vec!["docs-search"], "docs.search", Some(0)),
            (vec!["docs__search", "docs.search"], "docs.search", Some(1)),
            (vec!["docs__search_1a2b3c4d"], "docs.search", Some(0)),
            (vec!["docs__search_1a2b3c4d"], "docs.seek", None),
            (vec!["a__b", "a__b_01234567"], "a__b", Some(0)),
            (vec!["x__x__x_01234567"], long.as_str(), Some(0)),
            (vec!["other"], "docs.search", None),
            (vec!["_7zip"], "7zip", None),
        ];
        for (names, name, expect) in rows {
            let tools: Vec<RequestTool> = names.iter().map(|name| tool(name)).collect();
            let found = find(&tools, name).map(|tool| tool.name.as_str());
            assert_eq!(
                found,
                expect.map(|at: usize| names[at]),
                "{name} in {names:?}"
            );
        }
    }

    #[test]
    fn a_tool_is_found_within_its_namespace() {
        let inner = RequestTool {
            namespace: Some("docs".to_owned()),
            ..RequestTool::new("search", ToolKind::Function)
        };
        let tools = [RequestTool::new("search_all", ToolKind::Function), inner];
        let found = find(&tools, "docs.search").and_then(|tool| tool.namespace.as_deref());
        assert_eq!(found, Some("docs"));
    }
}
