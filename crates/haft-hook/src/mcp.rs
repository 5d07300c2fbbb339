//! Tool names that hold the name of an MCP server.

use serde_json::value::RawValue;

use crate::action::CallAction;

/// Maximum number of ways to read one name. A name with more is not read.
const MAX_READINGS: usize = 8;

/// Maximum length of a name that is read, in bytes. Names of servers and tools have at most a few hundred.
const MAX_NAME: usize = 1024;

/// Returns the actions of a tool called `mcp__SERVER__TOOL`; `None` if it has another name.
pub(crate) fn named(tool: &str, server: Option<&str>) -> Option<Vec<CallAction>> {
    let name = tool.strip_prefix("mcp__")?;
    Some(double_underscore(name, server))
}

/// Returns the actions of a tool called `SERVER__TOOL`. If the name can be read in several ways, there is an action for each.
///
/// `server` is the server's name if the agent says it. Only the reading that fits it counts then.
pub(crate) fn double_underscore(name: &str, server: Option<&str>) -> Vec<CallAction> {
    if name.len() > MAX_NAME {
        return vec![CallAction::other("its name is too long")];
    }
    if let Some(server) = server
        && let Some(tool) = name
            .strip_prefix(&*plain(server))
            .and_then(|rest| rest.strip_prefix("__"))
            .filter(|tool| !tool.is_empty())
    {
        return vec![tool_of(Some(server), tool)];
    }
    let mut actions = Vec::new();
    for (at, _) in name.char_indices() {
        let Some(tool) = name[at..].strip_prefix("__") else {
            continue;
        };
        if at > 0 && !tool.is_empty() {
            actions.push(tool_of(Some(&name[..at]), tool));
        }
        if actions.len() > MAX_READINGS {
            return vec![CallAction::other("its name can be read in too many ways")];
        }
    }
    if actions.is_empty() {
        return vec![CallAction::other("its name holds no server and tool")];
    }
    actions
}

/// A call of a server's tool whose arguments are the whole input.
pub(crate) fn tool_of(server: Option<&str>, tool: &str) -> CallAction {
    CallAction::Mcp {
        server: server.map(str::to_owned),
        tool: tool.to_owned(),
        arguments: None,
    }
}

/// A call of a server's tool with its own arguments.
pub(crate) fn tool_with(server: Option<String>, tool: String, arguments: &str) -> CallAction {
    CallAction::Mcp {
        server,
        tool,
        arguments: Some(RawValue::from_string(arguments.to_owned()).unwrap_or_default()),
    }
}

/// Returns a server's name as tool names hold it: letters, digits, `_` and `-`.
fn plain(server: &str) -> String {
    let stays = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    server
        .chars()
        .map(|c| if stays(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::double_underscore;

    #[test]
    fn every_reading_of_a_name_is_judged_unless_the_server_is_known() {
        let rows = [
            ("a__b", None, "a.b"),
            ("a__b__c", None, "a.b__c a__b.c"),
            ("a__b__c", Some("a__b"), "a__b.c"),
            ("my_s__t", Some("my s"), "my s.t"),
            // The agent says another server than the name: the name counts.
            ("a__b", Some("c"), "a.b"),
            ("a___b", None, "a._b a_.b"),
            ("__b", None, "-"),
            ("a__", None, "-"),
            ("ab", None, "-"),
            ("a__b__c__d__e__f__g__h__i__j__k", None, "-"),
        ];
        for (name, server, expect) in rows {
            let actions = double_underscore(name, server);
            let words: Vec<String> = actions
                .iter()
                .map(|action| match action {
                    crate::CallAction::Mcp { server, tool, .. } => {
                        format!("{}.{tool}", server.as_deref().unwrap_or_default())
                    }
                    _ => "-".to_owned(),
                })
                .collect();
            assert_eq!(words.join(" "), expect, "{name}");
        }
    }
}
