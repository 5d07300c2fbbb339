//! How harmful a command is, as far as its words show.

use haft_command::only_reads;
use haft_shell::{AsWord, Line, SimpleCommand, inner_command, is_too_long, join_words};
use serde_json::Value;

use crate::commands::removal::{RemovalContext, part_removes_critical, removes_critical};
use crate::places::PolicyContext;
use haft_files::paths::clean;
use haft_types::spec::Risk;

/// Returns the risk of a command: safe for the built-in read-only set, critical if it removes a critical path, otherwise high.
pub fn command_risk(argv: &[String]) -> Risk {
    if is_too_long(&join_words(argv)) {
        return risk(argv).max(Risk::High);
    }
    risk(argv)
}

/// Returns the risk of a command whose words are known before it runs.
fn risk(words: &[String]) -> Risk {
    let places = PolicyContext::default();
    if removes_critical(words, &RemovalContext::root(&places)) {
        Risk::Critical
    } else {
        risk_of_rest(words)
    }
}

/// Returns the risk of a command of a line.
pub(crate) fn part_risk(part: &SimpleCommand, line: &Line) -> Risk {
    let places = PolicyContext::default();
    if part_removes_critical(part, line, &RemovalContext::root(&places)) {
        Risk::Critical
    } else {
        risk_of_rest(&part.words)
    }
}

fn risk_of_rest<W: AsWord>(words: &[W]) -> Risk {
    if only_reads(inner_command(words)) {
        Risk::Safe
    } else {
        Risk::High
    }
}

/// Whether a file at this path, as written, discards its content. With `..` the text alone says little: links may lead elsewhere.
pub(crate) fn discards_content(path: &str) -> bool {
    clean(path) == "/dev/null" && !path.split('/').any(|part| part == "..")
}

/// Variables that do not affect which command runs: clause 6 of the shell rules.
const HARMLESS_VARIABLES: &[&str] = &["NODE_ENV", "NO_COLOR"];

/// Whether none of these variables affects which command runs.
pub(crate) fn are_harmless(variables: &[String]) -> bool {
    variables
        .iter()
        .all(|name| HARMLESS_VARIABLES.contains(&name.as_str()))
}

/// Whether a call sets variables (in its argument `env`) that could change which command runs.
pub(crate) fn sets_variables(arguments: &Value) -> bool {
    match arguments.get("env") {
        None | Some(Value::Null) => false,
        Some(Value::Object(variables)) => variables
            .keys()
            .any(|name| !HARMLESS_VARIABLES.contains(&name.as_str())),
        Some(_) => true,
    }
}
