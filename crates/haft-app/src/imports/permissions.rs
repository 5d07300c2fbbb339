//! `permissions` of Claude Code: converts its rules about tools of MCP servers to rules of haft.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::imports::{ImportCandidate, to_valid_name};

/// Rules about tools of servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImportedRules {
    /// Calls that may run.
    pub allow: Vec<String>,
    /// Calls that need approval.
    pub ask: Vec<String>,
    /// Calls that never run.
    pub deny: Vec<String>,
    /// What is not imported.
    pub not_carried: Vec<String>,
}

impl ImportedRules {
    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.ask.is_empty() && self.deny.is_empty()
    }

    pub(super) fn add(&mut self, more: Self) {
        let join = |list: &mut Vec<String>, more: Vec<String>| {
            for item in more {
                if !list.contains(&item) {
                    list.push(item);
                }
            }
        };
        join(&mut self.allow, more.allow);
        join(&mut self.ask, more.ask);
        join(&mut self.deny, more.deny);
        join(&mut self.not_carried, more.not_carried);
    }

    /// Renames the servers to their names in haft.
    pub(super) fn rename(&mut self, servers: &[ImportCandidate]) {
        let taken = servers.iter().filter(|candidate| candidate.is_taken());
        let names: BTreeMap<String, String> = taken
            .filter_map(|candidate| {
                let server = candidate.server.as_ref()?;
                Some((to_valid_name(&candidate.original), server.name.clone()))
            })
            .collect();
        for list in [&mut self.allow, &mut self.ask, &mut self.deny] {
            for rule in list.iter_mut() {
                if let Some((server, tool)) = rule.split_once('.')
                    && let Some(now) = names.get(server)
                {
                    *rule = format!("{now}.{tool}");
                }
            }
        }
    }

    /// Returns the rules as text for haft's settings.
    pub fn text(&self) -> String {
        let mut out = String::from("[policy]\n");
        for (name, list) in [
            ("allow", &self.allow),
            ("ask", &self.ask),
            ("deny", &self.deny),
        ] {
            if !list.is_empty() {
                let items = toml::Value::from(list.clone());
                // Writing to a `String` cannot fail.
                let _ = writeln!(out, "{name} = {items}");
            }
        }
        out
    }
}

/// Reads `permissions`.
pub(super) fn read(permissions: &Value, file: &Path) -> ImportedRules {
    let mut rules = ImportedRules::default();
    let mut others = Vec::new();
    for name in ["allow", "ask", "deny"] {
        let list = permissions.get(name).and_then(Value::as_array);
        for rule in list.into_iter().flatten().filter_map(Value::as_str) {
            match of_server(rule) {
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
fn of_server(rule: &str) -> Option<String> {
    let rest = rule.strip_prefix("mcp__")?;
    let (server, tool) = rest.split_once("__").unwrap_or((rest, "*"));
    let server = to_valid_name(server);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*');
    let is_rule = !server.is_empty() && !tool.is_empty() && tool.chars().all(is_plain);
    is_rule.then(|| format!("{server}.{tool}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::read;

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
        assert!(crate::config::document::parse("x", &text).is_ok());
    }
}
