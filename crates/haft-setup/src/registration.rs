//! `Setup`: where haft is registered with an agent, as data, so that the editor of the files and the reader of the events agree.

use std::path::Path;

use haft_hook::Agent;
use serde::Serialize;
use serde_json::Value;

/// How haft is registered with an agent.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Setup {
    /// The places, best first. Of each scope, the first place whose [`PlaceCondition`] holds is used.
    pub places: Vec<RegistrationPlace>,
    /// What the user still has to do or know, one sentence each.
    pub steps: &'static [&'static str],
}

/// A place where haft can be registered, with all of its files.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RegistrationPlace {
    /// The users that it counts for.
    pub scope: RegistrationScope,
    /// When it is used.
    pub condition: PlaceCondition,
    /// Its files.
    pub files: Vec<AgentFile>,
}

/// The users that a file counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RegistrationScope {
    /// The user, in every folder.
    User,
    /// All users of this project.
    Project,
    /// The user, in this project.
    Private,
}

/// When a place is used rather than the next one of its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaceCondition {
    /// Always.
    Always,
    /// Its file exists: the agent then reads no other file, or warns about two.
    FileExists,
    /// Its file exists and holds hooks already.
    HasHooks,
}

/// A file of an agent.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct AgentFile {
    /// Its path below the user's home folder or the project.
    pub path: &'static str,
    /// The variable that moves it if set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_by: Option<FolderVariable>,
    /// What haft writes into it.
    pub content: AgentFileContent,
}

/// A variable that names another folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FolderVariable {
    /// Its name, such as `CODEX_HOME`.
    pub variable: &'static str,
    /// The beginning of the path that its value replaces.
    pub replaces: &'static str,
}

/// The content of a file.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentFileContent {
    /// Settings that haft shares with the user and other programs. haft adds its entries after the existing ones.
    Shared {
        /// The file's format.
        format: SettingsFormat,
        /// Members that must be at the top, with the value that haft adds if they are missing.
        root: Vec<(&'static str, Value)>,
        /// The entries that haft adds.
        entries: Vec<HookEntry>,
    },
    /// A file that belongs to haft as a whole.
    Own {
        /// Its whole text.
        text: String,
        /// Whether the agent starts it as a program.
        executable: bool,
    },
}

/// The format of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingsFormat {
    /// JSON. The agent refuses comments.
    Json,
    /// JSON with comments.
    Jsonc,
    /// TOML, with lists of tables.
    Toml,
}

/// An entry for one event, which is an element of a list.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct HookEntry {
    /// The agent's name for the event.
    pub event: &'static str,
    /// The keys that lead from the top to the list.
    pub keys: Vec<&'static str>,
    /// The element to add to the list.
    pub value: Value,
}

/// The mark in haft's own files, where the format allows one: the program that wrote them and the version of their content.
pub const OWN_FILE: &str = "haft-hook 1";

/// The mark of any version.
const ANY_OWN_FILE: &str = "haft-hook ";

impl Setup {
    pub(crate) fn new(places: Vec<RegistrationPlace>, steps: &'static [&'static str]) -> Self {
        Self { places, steps }
    }
}

impl RegistrationPlace {
    pub(crate) fn new(scope: RegistrationScope, files: Vec<AgentFile>) -> Self {
        Self {
            scope,
            condition: PlaceCondition::Always,
            files,
        }
    }

    pub(crate) fn when(mut self, condition: PlaceCondition) -> Self {
        self.condition = condition;
        self
    }
}

impl AgentFile {
    pub(crate) fn new(path: &'static str, content: AgentFileContent) -> Self {
        Self {
            path,
            moved_by: None,
            content,
        }
    }

    /// Shared settings that need no members at the top.
    pub(crate) fn shared(
        path: &'static str,
        format: SettingsFormat,
        entries: Vec<HookEntry>,
    ) -> Self {
        let root = Vec::new();
        Self::new(
            path,
            AgentFileContent::Shared {
                format,
                root,
                entries,
            },
        )
    }

    pub(crate) fn moved_by(mut self, variable: &'static str, replaces: &'static str) -> Self {
        self.moved_by = Some(FolderVariable { variable, replaces });
        self
    }
}

impl HookEntry {
    /// An entry below the key `hooks`.
    pub(crate) fn new(event: &'static str, value: Value) -> Self {
        Self {
            event,
            keys: vec!["hooks", event],
            value,
        }
    }

    /// An entry in a file whose events are at the top.
    pub(crate) fn at_the_top(event: &'static str, value: Value) -> Self {
        Self {
            event,
            keys: vec![event],
            value,
        }
    }
}

/// A group with one handler, as in Claude Code's settings. It has no matcher, which to every agent means all tools.
pub(crate) fn group(handler: &Value) -> Value {
    serde_json::json!({ "hooks": [handler] })
}

/// The file of an agent that follows Claude Code and needs nothing else: haft is asked before and after a call, and at the start and end of
/// a session. `entry` puts an event where the agent looks for it.
pub(crate) fn plain_file(
    agent: Agent,
    program: &str,
    path: &'static str,
    entry: fn(&'static str, Value) -> HookEntry,
) -> AgentFile {
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
    let entries = events.map(|(event, seconds)| entry(event, handler(seconds)));
    AgentFile::shared(path, SettingsFormat::Json, entries.to_vec())
}

/// How long an agent waits for a hook that only reports, in seconds.
pub(crate) const REPORT_SECONDS: u64 = 30;

/// Returns the command line that runs haft's hook, for a shell.
pub(crate) fn command_line(program: &str, agent: Agent) -> String {
    format!("{} hook {}", quote(program), agent.name())
}

/// Quotes a path as one word for the system's shell.
fn quote(program: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !program.is_empty() && program.chars().all(plain) {
        return program.to_owned();
    }
    if cfg!(windows) {
        return format!("\"{program}\"");
    }
    format!("'{}'", program.replace('\'', "'\\''"))
}

/// Whether a handler runs haft's hook for this agent, wherever haft's program is. `handler` is the object with the command: an element of a
/// list of handlers.
///
/// ```
/// use haft_hook::Agent;
/// use haft_setup::registration;
/// use serde_json::json;
///
/// let own = json!({"type": "command", "command": "'/opt/my tools/haft' hook codex", "timeout": 600});
/// assert!(registration::is_own(Agent::Codex, &own));
/// assert!(!registration::is_own(Agent::Claude, &own));
/// assert!(!registration::is_own(Agent::Codex, &json!({"command": "echo haft hook codex"})));
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

/// Whether a command line consists of haft's program, `hook` and the agent's name, and nothing else.
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

/// Whether a file in the place of one of haft's own ([`AgentFileContent::Own`]) was written by any version of haft. Any other file is the user's and
/// must not be overwritten or removed.
///
/// ```
/// use haft_hook::Agent;
/// use haft_setup::registration;
///
/// assert!(registration::is_own_file(Agent::Cline, "#!/bin/sh\n# haft-hook 1\nexec haft hook cline\n"));
/// assert!(!registration::is_own_file(Agent::Cline, "#!/bin/sh\nexec my-hook\n"));
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

/// Collects every object with a command, at any depth. `serde_json` limits the depth.
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

/// Whether a path names haft's program.
fn is_program(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
    stem == Some("haft")
}

#[cfg(test)]
mod tests {
    use haft_hook::Agent;
    use serde_json::json;

    use super::{command_line, is_own};

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
