//! `permissions` of Claude Code: converts its rules about tools of MCP servers to rules of haft.

use std::path::Path;

use serde_json::Value;

use crate::imported_rules::ImportedRules;

/// Reads `permissions`.
pub(crate) fn read(permissions: &Value, file: &Path, to_name: fn(&str) -> String) -> ImportedRules {
    let mut rules = ImportedRules::default();
    let mut others = Vec::new();
    for name in ["allow", "ask", "deny"] {
        let list = permissions.get(name).and_then(Value::as_array);
        for rule in list.into_iter().flatten().filter_map(Value::as_str) {
            match of_server(rule, to_name) {
                Some(own) => match name {
                    "allow" => rules.allow.push(own),
                    "ask" => rules.ask.push(own),
                    _ => rules.deny.push(own),
                },
                None => others.push(format!("{name} {rule}")),
            }
        }
    }
    let shown = file.display();
    if !others.is_empty() {
        rules.not_carried.push(format!(
            "{shown}: rules about the client's own tools: {}; haft's rules have the same form",
            shorten_list(&others)
        ));
    }
    for key in [
        "defaultMode",
        "additionalDirectories",
        "disableBypassPermissionsMode",
    ] {
        if permissions.get(key).is_some() {
            rules
                .not_carried
                .push(format!("{shown}: permissions.{key}"));
        }
    }
    rules
}

fn shorten_list(items: &[String]) -> String {
    const MAX_SHOWN: usize = 10;
    let mut text = items
        .iter()
        .take(MAX_SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if items.len() > MAX_SHOWN {
        text = format!("{text} and {} more", items.len() - MAX_SHOWN);
    }
    text
}

/// Converts `mcp__server__tool`, `mcp__server__*` or `mcp__server` to a rule of haft.
fn of_server(rule: &str, to_name: fn(&str) -> String) -> Option<String> {
    let rest = rule.strip_prefix("mcp__")?;
    let (server, tool) = rest.split_once("__").unwrap_or((rest, "*"));
    let server = to_name(server);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*');
    let is_rule = !server.is_empty() && !tool.is_empty() && tool.chars().all(is_plain);
    is_rule.then(|| format!("{server}.{tool}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::read;
    use crate::edit::toml;

    #[test]
    fn rules_about_servers_are_carried_over_and_the_others_are_named() {
        let rules = read(
            &json!({
                "allow": ["mcp__github__get_issue", "mcp__docs", "Bash(npm test:*)", "mcp__a b__c"],
                "ask": ["mcp__github__*"],
                "deny": ["mcp__github__delete_repo", "Read(./.env)"],
                "defaultMode": "acceptEdits",
            }),
            Path::new("/s.json"),
            |name| name.replace(' ', "-"),
        );
        assert_eq!(rules.allow, ["github.get_issue", "docs.*", "a-b.c"]);
        assert_eq!(rules.ask, ["github.*"]);
        assert_eq!(rules.deny, ["github.delete_repo"]);
        let named = rules.not_carried.join("\n");
        for word in ["allow Bash(npm test:*)", "deny Read(./.env)", "defaultMode"] {
            assert!(named.contains(word), "{named}");
        }
        let text = rules.text();
        assert!(text.contains("ask = [\"github.*\"]"), "{text}");
        assert!(toml::parse(&text).is_ok());
    }
}
