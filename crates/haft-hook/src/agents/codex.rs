//! The Codex CLI.
//!
//! Its answers have Claude Code's form, but it reads them strictly: an unknown key, an empty reason or a bare allow before a tool fails the
//! hook, and the call runs. So an answer holds nothing that Codex does not know.

use std::time::Duration;

use crate::action::Action;
use crate::agent::Agent;
use crate::agents::claude::{Answer, Before, Permission};
use crate::decision::Decision;
use crate::envelope::Envelope;
use crate::error::ReadError;
use crate::event::{Dialect, Event, Kind};
use crate::input::Input;
use crate::limits::Limits;
use crate::mcp;
use crate::setup::{
    Condition, Entry, Format, Place, REPORT_SECONDS, Scope, SettingsFile, Setup, command_line,
    group,
};
use crate::shape::Shape;
use crate::tools;
use crate::verdict::Reply;
use serde_json::json;

pub(crate) const LIMITS: Limits = Limits {
    wait: Duration::from_secs(600),
    fails_open: true,
    failure: "the call runs when the hook crashes, is missing, is late or is not trusted, and no setting of Codex closes that",
    can_ask: false,
    can_rewrite: true,
    allow_skips_prompt: false,
    has_call_ids: true,
    reports_failures: false,
};

pub(crate) const GAPS: &[&str] = &[
    "Codex runs a hook only after it was reviewed in `/hooks`; one that is not trusted, or was changed since, is skipped without a word",
    "input for a command that already runs (`write_stdin`) never reaches a hook before it is sent",
    "tools called from Code Mode's `exec` and hosted tools such as web search reach no hook",
    "the event's folder is the one that a command names for itself (`workdir`), as tried with 0.169; older versions were reported to leave \
     that out",
    "on Windows the denial of `apply_patch` was reported not to be enforced",
    "`codex exec` was reported to skip trusted hooks of a project unless `--dangerously-bypass-hook-trust` is given",
];

/// The beginning of the description in a prompt about a host that a command wants to reach.
const NETWORK: &str = "network-access ";

/// Where haft is registered. Codex trusts a hook by its text and position, so the entries go after all others, and their text must not
/// change between versions of haft.
pub(crate) fn setup(program: &str) -> Setup {
    let command = command_line(program, Agent::Codex);
    let decides = json!({"type": "command", "command": command, "timeout": LIMITS.wait.as_secs()});
    let reports = json!({"type": "command", "command": command, "timeout": REPORT_SECONDS});
    let mut entries = vec![
        Entry::new("PreToolUse", group(&decides)),
        Entry::new("PermissionRequest", group(&decides)),
    ];
    for event in ["PostToolUse", "SessionStart"] {
        entries.push(Entry::new(event, group(&reports)));
    }
    // Codex cuts a longer time to this one, with a warning.
    let ends = json!({"type": "command", "command": command, "timeout": 3});
    entries.push(Entry::new("SessionEnd", group(&ends)));
    let file = |path, format| SettingsFile::shared(path, format, entries.clone());
    let json = || file(".codex/hooks.json", Format::Json);
    let toml = || file(".codex/config.toml", Format::Toml);
    let moved = |file: SettingsFile| file.moved_by("CODEX_HOME", ".codex");
    Setup::new(
        vec![
            Place::new(Scope::User, vec![moved(json())]).when(Condition::FileExists),
            Place::new(Scope::User, vec![moved(toml())]).when(Condition::HasHooks),
            Place::new(Scope::User, vec![moved(json())]),
            Place::new(Scope::Project, vec![json()]).when(Condition::FileExists),
            Place::new(Scope::Project, vec![toml()]).when(Condition::HasHooks),
            Place::new(Scope::Project, vec![json()]),
        ],
        &[
            "start Codex, enter `/hooks` and trust haft's hooks: until then Codex skips them without a word",
        ],
    )
}

/// Reads an event.
pub(crate) fn read(event: &Envelope<'_>) -> Result<Event, ReadError> {
    Shape::new(Agent::Codex, Dialect::Codex, actions).read(event)
}

/// States what a call of a tool would do.
fn actions(tool: &str, input: &Input<'_>, _: &Envelope<'_>) -> Vec<Action> {
    if let Some(name) = tool.strip_prefix("mcp__") {
        return mcp::double_underscore(name, None);
    }
    match tool {
        "Bash" | "shell" | "exec_command" | "local_shell" => shell(input),
        "apply_patch" | "Edit" | "Write" => tools::apply_patch(input),
        "write_stdin" => vec![Action::unknown_command(
            None,
            "it is input for a command that already runs",
        )],
        "view_image" => tools::read(input, &["path"]),
        "update_plan" => tools::note(input, &["plan"]),
        "request_user_input" => tools::note(input, &["questions"]),
        "request_permissions" | "spawn_agent" | "send_input" | "web_search" => tools::ungoverned(),
        _ => tools::unknown(),
    }
}

/// A tool that runs a command. In a prompt about the network, the host is judged, too. The model may have written the description, so it
/// only adds to what is judged.
fn shell(input: &Input<'_>) -> Vec<Action> {
    let mut actions = tools::command(input, &["command", "cmd"], &["workdir"]);
    let description = input.text("description").unwrap_or_default();
    let Some(host) = description.strip_prefix(NETWORK).map(str::trim) else {
        return actions;
    };
    let host = if host.contains("://") {
        host.to_owned()
    } else {
        format!("https://{host}/")
    };
    actions.push(Action::Fetch { url: host });
    actions
}

/// Returns the answer. Codex has no answer that asks its user: before a call a question becomes a denial; at Codex's
/// own prompt haft prints nothing, and Codex asks.
pub(crate) fn answer(event: &Event, decision: &Decision<'_>) -> Reply {
    if matches!(event.kind, Kind::Permission(_)) {
        return match decision {
            Decision::Allow(_) => Answer::reply(Permission::new("allow", None, None)),
            Decision::Deny(reason) => Answer::reply(Permission::new("deny", Some(reason), None)),
            Decision::Nothing | Decision::Ask(_) => Reply::silent(),
        };
    }
    match decision {
        // Codex fails a hook that allows without a change. No output is its allow.
        Decision::Nothing | Decision::Allow(None) => Reply::silent(),
        Decision::Allow(Some(input)) => Answer::reply(Before::new("allow", None, Some(input))),
        Decision::Ask(reason) | Decision::Deny(reason) => {
            Answer::reply(Before::new("deny", Some(reason), None))
        }
    }
}
