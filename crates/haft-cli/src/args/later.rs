//! What later releases bring: named when somebody asks for it today.

use std::ffi::OsString;

use haft_app::nearest::nearest;
use haft_app::problem::Problem;

/// Words and the release that brings them.
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

/// The clear refusal of something that a later release brings; `None` for what no release has.
pub(crate) fn refuse(words: &str) -> Option<Problem> {
    let (_, release) = LATER.iter().find(|(word, _)| *word == words)?;
    Some(
        Problem::usage(format!("`haft {words}` is not in this release")).advise(format!(
            "release {release} brings it; `haft --help` lists what there is"
        )),
    )
}

/// A word that is no command.
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

/// A word that is no `haft mcp` command.
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
