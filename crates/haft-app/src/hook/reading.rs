//! `ToolInterpretation`: one tool that the name of an agent's tool may mean, with haft's name for it and the class whose rules apply.

use haft::spec::{ToolClass, ToolName};
use haft::text::hex;
use haft_hook::{Agent, CallAction};
use sha2::{Digest as _, Sha256};

use crate::problem::Problem;

/// Maximum length of a name that stays as it is, in bytes. The rest of what a tool's name may have is for the digest that tells it apart.
const LONGEST: usize = 96;

/// The name and the class of an agent's tool, in one reading of the agent's name for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolInterpretation {
    pub(super) name: ToolName,
    pub(super) class: Option<ToolClass>,
    /// Whether it belongs to an MCP server of the agent.
    of_server: bool,
    /// Whether haft runs its command in the jail, where the command is judged.
    pub(super) is_jailed: bool,
}

impl ToolInterpretation {
    /// Names a tool `AGENT.TOOL`, or `SERVER.TOOL` if it belongs to an MCP server: the name that the same tool has behind haft.
    pub(super) fn new(agent: Agent, tool: &str, actions: &[CallAction]) -> Result<Self, Problem> {
        let server = actions.iter().find_map(|action| match action {
            CallAction::Mcp { server, tool, .. } => Some((server.as_deref(), tool.as_str())),
            _ => None,
        });
        let (prefix, tool) = match server {
            // A server named like an agent must not pass for the agent.
            Some((Some(server), tool)) if Agent::from_name(server).is_none() => (server, tool),
            _ => (agent.name(), tool),
        };
        let class = actions.first().and_then(class);
        let name = to_tool_name(&format!("{prefix}.{tool}"));
        let name = ToolName::new(&name).map_err(|e| Problem::usage(e.to_string()))?;
        Ok(Self {
            name,
            class,
            of_server: server.is_some(),
            is_jailed: false,
        })
    }

    /// Names a tool `SERVER.TOOL` that may belong to this server.
    pub(super) fn of_server(
        agent: Agent,
        server: &str,
        tool: &str,
        actions: &[CallAction],
    ) -> Result<Self, Problem> {
        let prefix = match Agent::from_name(server) {
            // A server named like an agent must not pass for the agent.
            Some(_) => return Self::new(agent, tool, actions),
            None => server,
        };
        let name = to_tool_name(&format!("{prefix}.{tool}"));
        Ok(Self {
            name: ToolName::new(&name).map_err(|e| Problem::usage(e.to_string()))?,
            class: actions.first().and_then(class),
            of_server: true,
            is_jailed: false,
        })
    }

    /// Whether strangers may have written what the tool returns.
    pub(super) fn is_open_world(&self) -> bool {
        self.of_server || self.class == Some(ToolClass::WebFetch)
    }

    /// Returns the same tool for a call whose command haft runs in the jail.
    pub(super) fn into_jailed(self) -> Result<Self, Problem> {
        let name = to_tool_name(&format!("{}-jailed", self.name));
        Ok(Self {
            name: ToolName::new(&name).map_err(|e| Problem::usage(e.to_string()))?,
            is_jailed: true,
            ..self
        })
    }

    /// Returns the same tool under a name that also has its class, since another tool has this one.
    pub(super) fn with_class_in_name(&self) -> Result<Self, Problem> {
        let class = self.class.map_or("other", ToolClass::as_str);
        let name = to_tool_name(&format!("{}-{class}", self.name));
        Ok(Self {
            name: ToolName::new(&name).map_err(|e| Problem::usage(e.to_string()))?,
            ..self.clone()
        })
    }
}

/// The class of tools that do this, if there is one.
fn class(action: &CallAction) -> Option<ToolClass> {
    match action {
        CallAction::Command(_) => Some(ToolClass::Bash),
        CallAction::Read { .. } => Some(ToolClass::Read),
        CallAction::Edit { .. } => Some(ToolClass::Edit),
        CallAction::Fetch { .. } => Some(ToolClass::WebFetch),
        _ => None,
    }
}

/// Makes a name one that tools can have. A changed name ends with a digest of the original, so that no two become one.
fn to_tool_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.chars().all(fits) && name.len() <= LONGEST {
        return name.to_owned();
    }
    let digest = hex(&Sha256::digest(name.as_bytes()));
    let plain = name.chars().map(|c| if fits(c) { c } else { '_' });
    let plain: String = plain.take(LONGEST).collect();
    format!("{plain}-{}", digest.get(..8).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_agents_and_of_their_servers_are_named_apart() {
        let of = |server: &str, tool: &str| {
            [CallAction::Mcp {
                server: Some(server.to_owned()),
                tool: tool.to_owned(),
                arguments: None,
            }]
        };
        let long = "x".repeat(200);
        let rows = [
            ("Bash", vec![], "claude.Bash"),
            (
                "mcp__github__issue",
                of("github", "issue").to_vec(),
                "github.issue",
            ),
            (
                "mcp__claude__Bash",
                of("claude", "Bash").to_vec(),
                "claude.mcp__claude__Bash",
            ),
        ];
        for (tool, actions, name) in rows {
            let reading = ToolInterpretation::new(Agent::Claude, tool, &actions).unwrap();
            assert_eq!(reading.name.as_str(), name);
        }
        let names: Vec<String> = ["a b", "a/b", "a_b", &long, &format!("{long}y")]
            .iter()
            .map(|tool| {
                ToolInterpretation::new(Agent::Claude, tool, &[])
                    .unwrap()
                    .name
                    .to_string()
            })
            .collect();
        let mut apart = names.clone();
        apart.sort();
        apart.dedup();
        assert_eq!(apart.len(), names.len(), "{names:?}");
    }
}
