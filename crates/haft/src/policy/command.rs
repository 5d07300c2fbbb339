//! What a command does, as far as its words tell: how harmful it is.

use haft_shell::{AsWord, inner_command, is_too_long, join_words};
use serde_json::Value;

use super::paths::clean;
use super::places::Places;
use super::readers::only_reads;
use super::removal::{Ground, removes_critical};
use crate::spec::Risk;

/// How harmful a command is: the built-in read-only set is safe, removing a critical path is critical, all else is high.
pub fn command_risk(argv: &[String]) -> Risk {
    if is_too_long(&join_words(argv)) {
        return risk(argv).max(Risk::High);
    }
    risk(argv)
}

/// The same of words some of which may only be known at run time.
pub(crate) fn risk<W: AsWord>(words: &[W]) -> Risk {
    if removes_critical(words, &Ground::root(&Places::default())) {
        Risk::Critical
    } else if only_reads(inner_command(words)) {
        Risk::Safe
    } else {
        Risk::High
    }
}

/// Does a file of this path, as it is written, keep nothing? By its text alone `..` says little: links may lead elsewhere.
pub(crate) fn keeps_nothing(path: &str) -> bool {
    clean(path) == "/dev/null" && !path.split('/').any(|part| part == "..")
}

/// Variables that change nothing about which command runs: clause 6 of the shell rules.
const HARMLESS_VARIABLES: &[&str] = &["NODE_ENV", "NO_COLOR"];

/// Do these variables change nothing about which command runs?
pub(crate) fn harmless(variables: &[String]) -> bool {
    variables
        .iter()
        .all(|name| HARMLESS_VARIABLES.contains(&name.as_str()))
}

/// Does a call set variables (its argument `env`) that could make its command another one?
pub(crate) fn sets_variables(arguments: &Value) -> bool {
    match arguments.get("env") {
        None | Some(Value::Null) => false,
        Some(Value::Object(variables)) => variables
            .keys()
            .any(|name| !HARMLESS_VARIABLES.contains(&name.as_str())),
        Some(_) => true,
    }
}
