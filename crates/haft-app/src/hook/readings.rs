//! `ToolInterpretations`: every tool that the name of an agent's tool may mean. Agents write a server and its tool as one name (`mcp__S__T`, `S_T`),
//! or leave the server out, so one name can mean several tools. Each of them is judged, and the strictest verdict holds.

use haft::policy::Policy;
use haft_hook::{Agent, CallAction};

use crate::hook::reading::ToolInterpretation;
use crate::problem::Problem;

/// Maximum number of places at which a name may be split. A name with more is denied.
const MOST_SPLITS: usize = 64;
/// Maximum number of servers named in rules, any of which a tool without a server may belong to.
const MOST_SERVERS: usize = 1_000;
/// What agents put between a server and its tool.
const BETWEEN: [&str; 6] = ["__", "_", "-", ".", "/", ":"];
/// What agents put before the name of a server's tool.
const BEFORE: [&str; 3] = ["mcp__", "mcp_", "MCP:"];

/// The tools that a name may mean.
#[derive(Debug)]
pub(super) struct ToolInterpretations {
    /// The reading whose name the call gets where all are judged alike.
    pub(super) first: ToolInterpretation,
    pub(super) others: Vec<ToolInterpretation>,
}

impl ToolInterpretations {
    /// The readings of a name that means one tool.
    pub(super) fn only(first: ToolInterpretation) -> Self {
        Self {
            first,
            others: Vec::new(),
        }
    }
}

/// Returns every tool that a name may mean.
///
/// # Errors
/// The name can be read in too many ways, or a tool cannot have it.
pub(super) fn readings(
    agent: Agent,
    tool: &str,
    actions: &[CallAction],
    policy: &Policy,
) -> Result<ToolInterpretations, Problem> {
    let mut all = ToolInterpretations::only(ToolInterpretation::new(agent, tool, actions)?);
    let mut add = |server: &str, tool: &str| -> Result<(), Problem> {
        let reading = ToolInterpretation::of_server(agent, server, tool, actions)?;
        if reading != all.first && !all.others.contains(&reading) {
            all.others.push(reading);
        }
        Ok(())
    };
    for action in actions {
        match action {
            CallAction::Mcp {
                server: Some(server),
                tool,
                ..
            } => add(server, tool)?,
            CallAction::Mcp {
                server: None, tool, ..
            } => {
                for server in servers(policy)? {
                    add(&server, tool)?;
                }
                split(tool)?
                    .iter()
                    .try_for_each(|one| add(one.server, one.tool))?;
            }
            // A tool that haft does not know may belong to a server.
            CallAction::Other { .. } => {
                split(tool)?
                    .iter()
                    .try_for_each(|one| add(one.server, one.tool))?;
            }
            _ => {}
        }
    }
    Ok(all)
}

/// One way to split a name into a server and its tool.
struct NameSplit<'n> {
    server: &'n str,
    tool: &'n str,
}

fn split(name: &str) -> Result<Vec<NameSplit<'_>>, Problem> {
    let without = BEFORE.iter().filter_map(|before| name.strip_prefix(before));
    let mut all = Vec::new();
    for name in [name].into_iter().chain(without) {
        for between in BETWEEN {
            let places = name.match_indices(between).take(MOST_SPLITS + 1);
            let places: Vec<usize> = places.map(|(at, _)| at).collect();
            if places.len() > MOST_SPLITS {
                let what =
                    "the tool's name can be read in too many ways, so the call cannot be judged";
                return Err(Problem::failed(what));
            }
            for at in places {
                let (server, tool) = (&name[..at], &name[at + between.len()..]);
                if !server.is_empty() && !tool.is_empty() {
                    all.push(NameSplit { server, tool });
                }
            }
        }
    }
    Ok(all)
}

/// The servers that rules name. A pattern becomes a name that it matches.
fn servers(policy: &Policy) -> Result<Vec<String>, Problem> {
    let rules = policy.view().rules.into_iter();
    let servers = rules.filter_map(|rule| {
        let selector = rule.rule.split('(').next()?;
        let (server, _) = selector.trim().split_once('.')?;
        let server = server.replace('*', "").replace('?', "x");
        (!server.is_empty()).then_some(server)
    });
    let mut servers: Vec<String> = servers.collect();
    servers.sort_unstable();
    servers.dedup();
    if servers.len() > MOST_SERVERS {
        let what = format!(
            "the agent does not say which server this tool belongs to, and rules name more than {MOST_SERVERS} servers, so the call cannot be judged"
        );
        return Err(Problem::failed(what).advise("name fewer servers in rules"));
    }
    Ok(servers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(agent: Agent, tool: &str, actions: &[CallAction], policy: &Policy) -> Vec<String> {
        let all = readings(agent, tool, actions, policy).unwrap();
        let all = [all.first].into_iter().chain(all.others);
        all.map(|one| one.name.to_string()).collect()
    }

    fn of(server: Option<&str>, tool: &str) -> CallAction {
        CallAction::Mcp {
            server: server.map(str::to_owned),
            tool: tool.to_owned(),
            arguments: None,
        }
    }

    #[test]
    fn each_tool_that_a_name_may_mean_is_among_its_readings() {
        let policy = Policy::builder(haft::policy::Profile::Workspace)
            .deny("github.delete_repo")
            .deny("git*.read")
            .build()
            .unwrap();
        let own = of(Some("github"), "issue");
        assert_eq!(
            names(Agent::Claude, "mcp__github__issue", &[own], &policy),
            ["github.issue"]
        );
        let two = [of(Some("a"), "b__c"), of(Some("a__b"), "c")];
        assert_eq!(
            names(Agent::Claude, "mcp__a__b__c", &two, &policy),
            ["a.b__c", "a__b.c"]
        );
        let open = names(
            Agent::Cursor,
            "MCP:delete_repo",
            &[of(None, "delete_repo")],
            &policy,
        );
        assert!(open[0].starts_with("cursor.MCP_delete_repo-"), "{open:?}");
        for name in ["git.delete_repo", "github.delete_repo"] {
            assert!(open.iter().any(|open| open == name), "{name}: {open:?}");
        }
        let unknown = CallAction::Other { why: "unknown" };
        let joined = names(
            Agent::OpenCode,
            "my_github_delete_repo",
            &[unknown],
            &policy,
        );
        for name in ["my_github.delete_repo", "my.github_delete_repo"] {
            assert!(joined.iter().any(|joined| joined == name), "{joined:?}");
        }
        assert_eq!(joined[0], "opencode.my_github_delete_repo");
    }

    #[test]
    fn a_name_that_can_be_read_in_too_many_ways_is_refused() {
        let unknown = CallAction::Other { why: "unknown" };
        let name = "a_".repeat(MOST_SPLITS + 2);
        let policy = Policy::workspace();
        assert!(readings(Agent::OpenCode, &name, &[unknown], &policy).is_err());
    }
}
