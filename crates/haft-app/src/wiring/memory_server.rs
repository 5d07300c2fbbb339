//! Memory in an MCP server (`memory.provider = "mcp:NAME"`): the server's tools that the memory tools stand for.

use haft_builtins::memory::server::{MemoryServer, ServerTool, TextArgument};

use crate::config::{Settings, typed};
use crate::problem::Problem;

/// The prefix of a provider that is a server.
const SERVER_PREFIX: &str = "mcp:";

/// The tool of the reference server that takes entities instead of a text.
const CREATE_TOOL: &str = "create_entities";

/// The settings with rules of the policy.
const RULES: [&str; 3] = ["policy.allow", "policy.ask", "policy.deny"];

/// The tools that stand for others: a rule about them would never apply.
const STAND_INS: [&str; 2] = ["recall_memory", "write_memory"];

/// Returns the server that a provider names, if it names one.
pub(crate) fn name(provider: &str) -> Option<&str> {
    provider.strip_prefix(SERVER_PREFIX)
}

/// Builds the server memory that the settings describe.
pub(crate) fn build(settings: &Settings, server: &str) -> Result<MemoryServer, Problem> {
    let named = |key: &str| settings.entry(&["mcp", "servers", server, key]).is_some();
    if !named("command") && !named("url") {
        let message = format!("`memory.provider`: settings have no MCP server `{server}`");
        let problem = Problem::settings(message).advise(format!(
            "add it (`haft mcp add {server} …`), or write memory.provider = \"local\""
        ));
        return Err(settings.at_setting(problem, "memory.provider"));
    }
    let mode = settings.get(typed::MEMORY_WRITE_MODE);
    if mode == "candidate" {
        let problem = Problem::settings(format!(
            "`memory.write_mode = \"candidate\"` needs memory.provider = \"local\": haft itself stores the candidates, and `{server}` has none"
        ));
        let problem = problem.advise("write memory.write_mode = \"external\": each write is then a call of the server's tool, which is asked about unless a rule allows it; or \"disabled\"");
        return Err(settings.at_setting(problem, "memory.write_mode"));
    }
    let prefix = settings.entry(&["mcp", "servers", server, "prefix"]);
    let prefix = prefix.and_then(|entry| entry.value.as_str());
    let prefix = prefix.map_or_else(|| format!("{server}."), str::to_owned);
    let tool = |key: &str| -> Result<ServerTool, Problem> {
        let own = settings.get(match key {
            "recall" => typed::MEMORY_RECALL_TOOL,
            _ => typed::MEMORY_WRITE_TOOL,
        });
        let argument = format!("memory.{key}.argument");
        let argument = match settings.text(&argument) {
            Some(name) => TextArgument::Named(name.to_owned()),
            None if key == "recall" => TextArgument::Named("query".to_owned()),
            None if own == CREATE_TOOL => TextArgument::Entity,
            None => {
                let problem = Problem::settings(format!(
                    "`memory.write.tool = \"{own}\"` needs `{argument}`: the argument of that tool that is the text"
                ));
                let problem =
                    problem.advise(format!("`haft tools {prefix}{own}` shows what it takes"));
                return Err(settings.at_setting(problem, "memory.write.tool"));
            }
        };
        Ok(ServerTool {
            name: format!("{prefix}{own}"),
            argument,
        })
    };
    let (recall, write) = (tool("recall")?, tool("write")?);
    check_rules(settings, &recall, &write)?;
    Ok(MemoryServer {
        recall,
        write: (mode == "external").then_some(write),
        redactor: settings.redactor.clone(),
    })
}

/// Refuses a rule about a tool that stands for another: it would seem to apply but never does.
fn check_rules(
    settings: &Settings,
    recall: &ServerTool,
    write: &ServerTool,
) -> Result<(), Problem> {
    for key in RULES {
        for (rule, source) in settings.items(key) {
            let rule = rule.as_str().unwrap_or_default();
            let about = STAND_INS.iter().position(|tool| {
                let rest = rule.strip_prefix(tool);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['(', '{', ' ']))
            });
            let Some(nth) = about else { continue };
            let (own, other) = (STAND_INS[nth], [recall, write][nth]);
            let problem = Problem::settings(format!(
                "`{rule}` in `{key}` matches no call: with `memory.provider` a call of `{own}` is a call of `{}`",
                other.name
            ));
            let problem = problem.advise(format!("write a rule for `{}`", other.name));
            return Err(match &source.place {
                Some(place) => problem.at(place.clone()),
                None => problem,
            });
        }
    }
    Ok(())
}

/// Describes it for `haft doctor`.
pub(crate) fn describe(settings: &Settings, server: &str) -> String {
    match build(settings, server) {
        Ok(memory) => {
            let write = memory
                .write
                .map_or_else(String::new, |write| format!(", {}", write.name));
            format!(
                "the MCP server {server} keeps it ({}{write})",
                memory.recall.name
            )
        }
        Err(problem) => problem.to_string(),
    }
}
