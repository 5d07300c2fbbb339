//! `HookLauncher`: the command `haft hook AGENT` that agents run, and how it is recognized in settings.

use std::ffi::OsStr;
use std::path::Path;

use haft_shell::{join_words, plain_words};
use serde_json::Value;

use haft_hook::Agent;

use crate::programs;

/// The program's name.
const NAME: &str = "haft";

/// The members of an entry that hold a command line or a program.
const COMMANDS: [&str; 3] = ["command", "bash", "exec"];

/// How agents start haft.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookLauncher {
    /// Its name if it is on `PATH`, else its full path.
    pub name: String,
    /// Its full path.
    pub path: String,
    /// Options after `hook AGENT`, such as `--home`.
    pub options: Vec<String>,
}

impl HookLauncher {
    /// Returns the program as an agent is to name it.
    pub(crate) fn name_for(&self, agent: Agent) -> &str {
        if programs::hooks(agent).starts_by_path {
            &self.path
        } else {
            &self.name
        }
    }

    /// Returns the options as the end of a command line.
    pub(crate) fn tail(&self) -> String {
        if self.options.is_empty() {
            return String::new();
        }
        format!(" {}", join_words(&self.options))
    }
}

/// Returns the words of the command in an entry, which is a command line or a program with `args`. `None` if the line is more than words.
pub(crate) fn words_of(entry: &Value) -> Option<Vec<String>> {
    let mut members = COMMANDS.iter().filter_map(|name| entry.get(name));
    let command = members.next()?.as_str()?;
    let Some(args) = entry.get("args").and_then(Value::as_array) else {
        return plain_words(command);
    };
    let mut words = vec![command.to_owned()];
    for arg in args {
        words.push(arg.as_str()?.to_owned());
    }
    Some(words)
}

/// Whether these words start `haft hook AGENT`, wherever the program is.
pub(crate) fn starts_hook(words: &[String], agent: Agent) -> bool {
    let [program, hook, name, ..] = words else {
        return false;
    };
    let program = Path::new(program).file_name().and_then(OsStr::to_str);
    program == Some(NAME) && hook == "hook" && name == agent.name()
}

/// Whether an entry starts `haft hook AGENT`.
pub(crate) fn is_ours(entry: &Value, agent: Agent) -> bool {
    words_of(entry).is_some_and(|words| starts_hook(&words, agent))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_ours;
    use haft_hook::Agent;

    #[test]
    fn an_entry_is_ours_by_its_command_in_every_form() {
        let rows = [
            (json!({"command": "haft hook claude"}), true),
            (
                json!({"command": "/opt/a/haft hook claude --home /x"}),
                true,
            ),
            (json!({"command": "'/opt/my apps/haft' hook claude"}), true),
            (json!({"command": "haft", "args": ["hook", "claude"]}), true),
            (json!({"exec": "/b/haft", "args": ["hook", "claude"]}), true),
            (json!({"bash": "haft hook claude"}), true),
            (json!({"command": "haft hook codex"}), false),
            (json!({"command": "haft serve claude"}), false),
            (json!({"command": "haft hook"}), false),
            (json!({"command": "half hook claude"}), false),
            (json!({"command": "haft-old hook claude"}), false),
            (json!({"command": "haft hook claude || true"}), false),
            (json!({"command": "haft", "args": ["hook", 3]}), false),
            (json!({"command": ["haft", "hook", "claude"]}), false),
            (json!({"type": "http", "url": "haft hook claude"}), false),
            (json!("haft hook claude"), false),
        ];
        for (entry, expected) in rows {
            assert_eq!(is_ours(&entry, Agent::Claude), expected, "{entry}");
        }
    }
}
