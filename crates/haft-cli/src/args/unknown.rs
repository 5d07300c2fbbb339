//! The error for a command that does not exist, with the one that was probably meant.

use std::ffi::OsString;

use haft_app::nearest::nearest;
use haft_app::problem::Problem;

/// The commands of `haft mcp`.
const MCP: [&str; 11] = [
    "list",
    "add",
    "remove",
    "import",
    "inspect",
    "pin",
    "snippet",
    "install",
    "uninstall",
    "login",
    "logout",
];

/// The commands of haft.
const COMMANDS: [&str; 23] = [
    "help",
    "version",
    "init",
    "serve",
    "console",
    "tools",
    "call",
    "chain",
    "run",
    "hook",
    "exec",
    "policy",
    "approvals",
    "runs",
    "artifacts",
    "skills",
    "memory",
    "config",
    "trust",
    "doctor",
    "mcp",
    "completions",
    "man",
];

/// Returns the error for an unknown command.
pub(crate) fn command(words: &[OsString]) -> Problem {
    let word = words
        .first()
        .map(|w| w.to_string_lossy())
        .unwrap_or_default();
    let problem = Problem::usage(format!("unknown command `{word}`"));
    match nearest(&word, &COMMANDS) {
        Some(near) => problem.advise(format!("did you mean `haft {near}`?")),
        None => problem.advise("`haft --help` lists the commands"),
    }
}

/// Returns the error for an unknown `haft mcp` command.
pub(crate) fn mcp_command(words: &[OsString]) -> Problem {
    let word = words
        .first()
        .map(|w| w.to_string_lossy())
        .unwrap_or_default();
    let problem = Problem::usage(format!("unknown command `mcp {word}`"));
    problem.advise(match nearest(&word, &MCP) {
        Some(near) => format!("did you mean `haft mcp {near}`?"),
        None => format!("there are {}", MCP.join(", ")),
    })
}
