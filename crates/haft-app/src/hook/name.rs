//! `Named`: what an agent's tool is called here, and whose rules speak of it.

use haft::spec::{ToolClass, ToolName};
use haft::text::hex;
use haft_hook::{Action, Agent};
use sha2::{Digest as _, Sha256};

use crate::problem::Problem;

/// Longest name that is kept as it is; the rest of a tool's name is for a mark that keeps it apart.
const LONGEST: usize = 96;

/// The name and the class of an agent's tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: ToolName,
    pub(super) class: Option<ToolClass>,
    /// It is of a server that the agent has.
    of_server: bool,
    /// Its command is run by haft, in the jail: it is judged there.
    pub(super) is_jailed: bool,
}

impl Named {
    /// `AGENT.TOOL`, or `SERVER.TOOL` for a tool of an MCP server: the name that the same tool has behind haft.
    pub(super) fn new(agent: Agent, tool: &str, actions: &[Action]) -> Result<Self, Problem> {
        let server = actions.iter().find_map(|action| match action {
            Action::Mcp { server, tool, .. } => Some((server.as_deref(), tool.as_str())),
            _ => None,
        });
        let (prefix, tool) = match server {
            // No server is taken for an agent.
            Some((Some(server), tool)) if Agent::from_name(server).is_none() => (server, tool),
            _ => (agent.name(), tool),
        };
        let class = actions.first().and_then(class);
        let name = plain(&format!("{prefix}.{tool}"));
        let name = ToolName::new(&name).map_err(|e| Problem::usage(e.to_string()))?;
        Ok(Self {
            name,
            class,
            of_server: server.is_some(),
            is_jailed: false,
        })
    }

    /// `SERVER.TOOL`, for a tool that may be one of this server.
    pub(super) fn of_server(
        agent: Agent,
        server: &str,
        tool: &str,
        actions: &[Action],
    ) -> Result<Self, Problem> {
        let prefix = match Agent::from_name(server) {
            // No server is taken for an agent.
            Some(_) => return Self::new(agent, tool, actions),
            None => server,
        };
        let name = plain(&format!("{prefix}.{tool}"));
        Ok(Self {
            name: ToolName::new(&name).map_err(|e| Problem::usage(e.to_string()))?,
            class: actions.first().and_then(class),
            of_server: true,
            is_jailed: false,
        })
    }

    /// Whether strangers may have written what it gives.
    pub(super) fn is_open_world(&self) -> bool {
        self.of_server || self.class == Some(ToolClass::WebFetch)
    }

    /// The same where haft runs its command in the jail.
    pub(super) fn jailed(self) -> Result<Self, Problem> {
        let name = plain(&format!("{}-jailed", self.name));
        Ok(Self {
            name: ToolName::new(&name).map_err(|e| Problem::usage(e.to_string()))?,
            is_jailed: true,
            ..self
        })
    }

    /// The same under a name of its own, where another tool has this one.
    pub(super) fn apart(&self) -> Result<Self, Problem> {
        let class = self.class.map_or("other", ToolClass::as_str);
        let name = plain(&format!("{}-{class}", self.name));
        Ok(Self {
            name: ToolName::new(&name).map_err(|e| Problem::usage(e.to_string()))?,
            ..self.clone()
        })
    }
}

/// The class of an action, where there is one.
fn class(action: &Action) -> Option<ToolClass> {
    match action {
        Action::Command(_) => Some(ToolClass::Bash),
        Action::Read { .. } => Some(ToolClass::Read),
        Action::Edit { .. } => Some(ToolClass::Edit),
        Action::Fetch { .. } => Some(ToolClass::WebFetch),
        _ => None,
    }
}

/// A name that tools can have. One that had to be changed ends with a digest of what it was, so that no two become one.
fn plain(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.chars().all(fits) && name.len() <= LONGEST {
        return name.to_owned();
    }
    let digest = hex(&Sha256::digest(name.as_bytes()));
    let kept = name.chars().map(|c| if fits(c) { c } else { '_' });
    let kept: String = kept.take(LONGEST).collect();
    format!("{kept}-{}", digest.get(..8).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_agents_and_of_their_servers_are_named_apart() {
        let of = |server: &str, tool: &str| {
            [Action::Mcp {
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
            let named = Named::new(Agent::Claude, tool, &actions).unwrap();
            assert_eq!(named.name.as_str(), name);
        }
        let names: Vec<String> = ["a b", "a/b", "a_b", &long, &format!("{long}y")]
            .iter()
            .map(|tool| {
                Named::new(Agent::Claude, tool, &[])
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
