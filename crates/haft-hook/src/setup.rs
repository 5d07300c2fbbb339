//! Where haft is registered with an agent, as data: whoever edits the files and whoever reads the events agree through it.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::agent::Agent;

/// How haft is registered with an agent.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Setup {
    /// The places, for each scope the one that is used first: the first of a scope whose [`Condition`] holds.
    pub places: Vec<Place>,
    /// What is left for the user to do or to know, a sentence each.
    pub steps: &'static [&'static str],
}

/// One place where haft can be registered: all of its files together.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Place {
    /// For whom it counts.
    pub scope: Scope,
    /// When it is the one to use.
    pub condition: Condition,
    /// Its files.
    pub files: Vec<SettingsFile>,
}

/// For whom a file counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The user, in every folder.
    User,
    /// Everyone who works in this project.
    Project,
    /// The user, in this project.
    Private,
}

/// When a place is used rather than the next one of its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Always.
    Always,
    /// Its file exists: the agent reads no other one then, or warns where there are two.
    FileExists,
    /// Its file exists and holds hooks already.
    HasHooks,
}

/// A file of an agent.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct SettingsFile {
    /// Its path below the user's home folder or the project.
    pub path: &'static str,
    /// The variable that moves it, if it is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_by: Option<MovedBy>,
    /// What is in it.
    pub content: Content,
}

/// A variable that names another folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MovedBy {
    /// Its name.
    pub variable: &'static str,
    /// The beginning of the path that its value takes the place of.
    pub replaces: &'static str,
}

/// What is in a file.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Settings that haft shares with the user and with others: entries are added behind those that are there.
    Shared {
        /// How it is written.
        format: Format,
        /// Members at the top that must be there, with the value that they get where they are missing.
        root: Vec<(&'static str, Value)>,
        /// What is added.
        entries: Vec<Entry>,
    },
    /// A file of haft's own, whole.
    Own {
        /// Its text.
        text: String,
        /// Whether the agent starts it as a program.
        executable: bool,
    },
}

/// How a file of settings is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// JSON; the agent refuses comments.
    Json,
    /// JSON in which comments may stand.
    Jsonc,
    /// TOML: a list of tables.
    Toml,
}

/// An entry for one event: an element of a list.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Entry {
    /// The event.
    pub event: &'static str,
    /// The keys that lead from the top to the list.
    pub keys: Vec<&'static str>,
    /// The element.
    pub value: Value,
}

/// The mark in files of haft's own that have room for one: what wrote them, and the version of what is in them.
pub const OWN_FILE: &str = "haft-hook 1";

/// The mark of any version.
const ANY_OWN_FILE: &str = "haft-hook ";

impl Setup {
    pub(crate) fn new(places: Vec<Place>, steps: &'static [&'static str]) -> Self {
        Self { places, steps }
    }
}

impl Place {
    pub(crate) fn new(scope: Scope, files: Vec<SettingsFile>) -> Self {
        Self {
            scope,
            condition: Condition::Always,
            files,
        }
    }

    pub(crate) fn when(mut self, condition: Condition) -> Self {
        self.condition = condition;
        self
    }
}

impl SettingsFile {
    pub(crate) fn new(path: &'static str, content: Content) -> Self {
        Self {
            path,
            moved_by: None,
            content,
        }
    }

    /// Settings that others share, with nothing of its own at the top.
    pub(crate) fn shared(path: &'static str, format: Format, entries: Vec<Entry>) -> Self {
        let root = Vec::new();
        Self::new(
            path,
            Content::Shared {
                format,
                root,
                entries,
            },
        )
    }

    pub(crate) fn moved_by(mut self, variable: &'static str, replaces: &'static str) -> Self {
        self.moved_by = Some(MovedBy { variable, replaces });
        self
    }
}

impl Entry {
    /// An entry below the key `hooks`.
    pub(crate) fn new(event: &'static str, value: Value) -> Self {
        Self {
            event,
            keys: vec!["hooks", event],
            value,
        }
    }

    /// An entry whose events stand at the top of their file.
    pub(crate) fn at_the_top(event: &'static str, value: Value) -> Self {
        Self {
            event,
            keys: vec![event],
            value,
        }
    }
}

/// A group with one handler in it, as Claude Code has them. No matcher: every agent takes that for all tools.
pub(crate) fn group(handler: &Value) -> Value {
    serde_json::json!({ "hooks": [handler] })
}

/// The entries of an agent that follows Claude Code and has no more to say: before a call, after it, and around a session. `entry` says where
/// the events stand.
pub(crate) fn plain_entries(
    agent: Agent,
    program: &str,
    entry: fn(&'static str, Value) -> Entry,
) -> Vec<Entry> {
    let command = command_line(program, agent);
    let events = [
        ("PreToolUse", agent.limits().wait.as_secs()),
        ("PostToolUse", REPORT_SECONDS),
        ("SessionStart", REPORT_SECONDS),
        ("SessionEnd", REPORT_SECONDS),
    ];
    let handler = |seconds| {
        group(&serde_json::json!({"type": "command", "command": command, "timeout": seconds}))
    };
    events
        .map(|(event, seconds)| entry(event, handler(seconds)))
        .to_vec()
}

/// How long an agent waits for a hook that decides nothing, in seconds.
pub(crate) const REPORT_SECONDS: u64 = 30;

/// The command line that runs haft's hook, for a shell to read.
pub(crate) fn command_line(program: &str, agent: Agent) -> String {
    format!("{} hook {}", quoted(program), agent.name())
}

/// A path as one word of a shell: the system's own.
fn quoted(program: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !program.is_empty() && program.chars().all(plain) {
        return program.to_owned();
    }
    if cfg!(windows) {
        return format!("\"{program}\"");
    }
    format!("'{}'", program.replace('\'', "'\\''"))
}

/// Whether an entry's handler runs haft's hook for this agent, wherever haft's program is. `handler` is what holds the command: an element
/// of a list of handlers, or of a list of groups of them.
///
/// ```
/// use haft_hook::{Agent, setup};
/// use serde_json::json;
///
/// let own = json!({"type": "command", "command": "'/opt/my tools/haft' hook codex", "timeout": 600});
/// assert!(setup::is_own(Agent::Codex, &own));
/// assert!(!setup::is_own(Agent::Claude, &own));
/// assert!(!setup::is_own(Agent::Codex, &json!({"command": "echo haft hook codex"})));
/// ```
pub fn is_own(agent: Agent, handler: &Value) -> bool {
    let text = |name: &str| handler.get(name).and_then(Value::as_str);
    if let Some(args) = handler.get("args").and_then(Value::as_array) {
        let program = text("exec").or_else(|| text("command"));
        let says = args
            .iter()
            .map(Value::as_str)
            .eq([Some("hook"), Some(agent.name())]);
        return says && program.is_some_and(is_program);
    }
    let mut lines = ["command", "bash", "powershell"]
        .iter()
        .filter_map(|name| text(name));
    lines.any(|line| runs_haft(agent, line))
}

/// Whether a line is haft's program, `hook` and the agent's name, and nothing else.
fn runs_haft(agent: Agent, line: &str) -> bool {
    let last = |line: &'_ str| {
        let (rest, word) = line.trim().rsplit_once(char::is_whitespace)?;
        Some((rest.trim_end().to_owned(), word.to_owned()))
    };
    let Some((rest, name)) = last(line) else {
        return false;
    };
    let Some((program, verb)) = last(&rest) else {
        return false;
    };
    let program = program.strip_prefix("& ").unwrap_or(&program).trim_start();
    let bare = program.trim_matches(['\'', '"']);
    let is_quoted = bare.len() < program.len();
    name == agent.name()
        && verb == "hook"
        && is_program(bare)
        && (is_quoted || !bare.contains(char::is_whitespace))
}

/// Whether a file that stands where haft would write one of its own ([`Content::Own`]) is haft's, of whatever version. Any other is the
/// user's, and is neither to be overwritten nor to be removed.
///
/// ```
/// use haft_hook::{Agent, setup};
///
/// assert!(setup::is_own_file(Agent::Cline, "#!/bin/sh\n# haft-hook 1\nexec haft hook cline\n"));
/// assert!(!setup::is_own_file(Agent::Cline, "#!/bin/sh\nexec my-hook\n"));
/// ```
pub fn is_own_file(agent: Agent, text: &str) -> bool {
    match serde_json::from_str::<Value>(text) {
        Ok(json) => {
            let is_manifest = json
                .get("description")
                .and_then(Value::as_str)
                .is_some_and(|description| description.starts_with(ANY_OWN_FILE));
            let mut handlers = Vec::new();
            collect_handlers(&json, &mut handlers);
            let own = !handlers.is_empty() && handlers.iter().all(|one| is_own(agent, one));
            own || (handlers.is_empty() && is_manifest)
        }
        Err(_) => text.lines().take(2).any(|line| {
            let comment = line.trim_start_matches(['/', '#', ' ']);
            comment.len() < line.len() && comment.starts_with(ANY_OWN_FILE)
        }),
    }
}

/// What holds a command, anywhere in a file. The depth is that of `serde_json`, which is bounded.
fn collect_handlers<'v>(value: &'v Value, handlers: &mut Vec<&'v Value>) {
    match value {
        Value::Object(members) => {
            let names = ["command", "bash", "powershell", "exec"];
            if names.iter().any(|name| members.contains_key(*name)) {
                handlers.push(value);
            }
            members
                .values()
                .for_each(|member| collect_handlers(member, handlers));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_handlers(item, handlers)),
        _ => {}
    }
}

/// Whether a path is one of haft's program.
fn is_program(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
    stem == Some("haft")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{command_line, is_own};
    use crate::agent::Agent;

    #[test]
    #[cfg(not(windows))]
    fn a_program_is_one_word_of_its_command_line() {
        for (program, expect) in [
            ("/usr/bin/haft", "/usr/bin/haft hook cursor"),
            ("/opt/my tools/haft", "'/opt/my tools/haft' hook cursor"),
            ("/o'p/haft", "'/o'\\''p/haft' hook cursor"),
            ("/a$(b)/haft", "'/a$(b)/haft' hook cursor"),
        ] {
            let line = command_line(program, Agent::Cursor);
            assert_eq!(line, expect);
            assert!(is_own(Agent::Cursor, &json!({ "command": line })), "{line}");
        }
    }

    #[test]
    fn only_handlers_that_run_haft_are_own() {
        for (handler, expect) in [
            (json!({"command": "haft hook claude"}), true),
            (json!({"command": "/x/haft.exe hook claude "}), true),
            (json!({"command": "haft", "args": ["hook", "claude"]}), true),
            (json!({"exec": "/x/haft", "args": ["hook", "claude"]}), true),
            (
                json!({"powershell": "& 'C:\\x\\haft.exe' hook claude"}),
                true,
            ),
            (json!({"command": "haft", "args": ["hook", "codex"]}), false),
            (
                json!({"command": "haft", "args": ["hook", "claude", "-v"]}),
                false,
            ),
            (json!({"command": "haft hook codex"}), false),
            (json!({"command": "true; haft hook claude"}), false),
            (json!({"command": "my-haft hook claude"}), false),
            (json!({"command": "sh haft hook claude"}), false),
            (json!({"command": "haft hookclaude"}), false),
            (json!({"command": 7}), false),
            (json!("haft hook claude"), false),
            (json!({}), false),
        ] {
            assert_eq!(is_own(Agent::Claude, &handler), expect, "{handler}");
        }
    }
}
