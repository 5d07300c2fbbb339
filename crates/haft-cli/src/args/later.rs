//! Commands of later releases, named in the error if a user tries one today.

use std::ffi::OsString;

use haft_app::nearest::nearest;
use haft_app::problem::Problem;

/// Commands and the release that will have them.
const LATER: [(&str, &str); 4] = [
    (
        "tools --dialect openai-chat",
        "0.5 (models and the agent loop)",
    ),
    (
        "tools --dialect openai-responses",
        "0.5 (models and the agent loop)",
    ),
    (
        "tools --dialect anthropic",
        "0.5 (models and the agent loop)",
    ),
    ("tools --dialect gemini", "0.5 (models and the agent loop)"),
];

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

/// The commands of this release.
const NOW: [&str; 23] = [
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

/// Returns the error for a command of a later release; `None` if no release has it.
pub(crate) fn refuse(words: &str) -> Option<Problem> {
    let (_, release) = LATER.iter().find(|(word, _)| *word == words)?;
    Some(
        Problem::usage(format!("`haft {words}` is not in this release")).advise(format!(
            "release {release} brings it; `haft --help` lists what there is"
        )),
    )
}

/// Returns the error for an unknown command.
pub(crate) fn unknown_command(words: &[OsString]) -> Problem {
    let word = words
        .first()
        .map(|w| w.to_string_lossy())
        .unwrap_or_default();
    refuse(&word).unwrap_or_else(|| {
        let problem = Problem::usage(format!("unknown command `{word}`"));
        match nearest(&word, &NOW) {
            Some(near) => problem.advise(format!("did you mean `haft {near}`?")),
            None => problem.advise("`haft --help` lists the commands"),
        }
    })
}

/// Returns the error for an unknown `haft mcp` command.
pub(crate) fn unknown_mcp(words: &[OsString]) -> Problem {
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
