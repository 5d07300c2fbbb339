//! Tests of the policy: in each scene, a call is judged under a few rules.

mod dead;
mod denials;
mod examples;
mod expose;
mod file_rules;
mod guards;
mod instead;
mod lines;
mod network;
mod patterns;
mod profiles;
mod properties;
mod proposals;
mod readers;
mod removal;
mod repositories;
mod requests;
mod restriction;
mod rules;
mod secret_lists;
mod secrets;
mod second_reading;
mod shell_data;
mod shell_rules;
mod speech;
mod uses;
mod wrappers;

use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::Policy;
use crate::builder::PolicyBuilder;
use crate::commands::parts::CommandLine;
use crate::commands::parts::RedirectTarget;
use crate::commands::parts::line_risk;
use crate::judged_call::JudgedCall;
use crate::profile::Profile;
use crate::rules::RuleSet;
use crate::ruling::Ruling;
use crate::run_history::RunHistory;
use haft_types::permission::{Effect, PathClaim, Permission, Verdict};
use haft_types::spec::{Risk, ToolClass, ToolName, ToolSpec};

const WORKSPACE: &str = "/home/dev/app";
const HOME: &str = "/home/dev";
/// The digest of the arguments that the permissions do not state, in every scene.
pub(crate) const UNSTATED: &str = "rest";

/// Tools with a class, as the standard tools declare it.
pub(crate) const CLASSES: [(&str, ToolClass); 11] = [
    ("read_file", ToolClass::Read),
    ("list_files", ToolClass::Read),
    ("grep_files", ToolClass::Read),
    ("write_file", ToolClass::Edit),
    ("edit_file", ToolClass::Edit),
    ("apply_patch", ToolClass::Edit),
    ("move_file", ToolClass::Edit),
    ("delete_file", ToolClass::Edit),
    ("run_command", ToolClass::Bash),
    ("kill_command", ToolClass::Bash),
    ("fetch_url", ToolClass::WebFetch),
];

/// Tools that declare that they affect nothing outside the run.
const STAYS: [&str; 5] = [
    "load_skill",
    "list_skills",
    "tool_search",
    "read_artifact",
    "todo_write",
];

/// Rules by list, in one layer named `test`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lists<'a> {
    pub(crate) deny: &'a [&'a str],
    pub(crate) ask: &'a [&'a str],
    pub(crate) allow: &'a [&'a str],
}

impl Lists<'_> {
    pub(crate) fn set(self) -> RuleSet {
        let texts = |list: &[&str]| list.iter().map(|rule| (*rule).into()).collect();
        RuleSet {
            allow: texts(self.allow),
            ask: texts(self.ask),
            deny: texts(self.deny),
        }
        .in_layer("test")
    }
}

/// The history of a run that has done nothing.
pub(crate) static NO_RUN: LazyLock<RunHistory> = LazyLock::new(RunHistory::none);

/// A call to judge.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) spec: ToolSpec,
    pub(crate) arguments: String,
    pub(crate) permissions: Vec<Permission>,
}

impl Scene {
    pub(crate) fn call(&self) -> JudgedCall<'_> {
        JudgedCall {
            unstated: Some(UNSTATED),
            ..JudgedCall::new(&self.spec, &self.arguments, &self.permissions, &NO_RUN)
        }
    }
}

pub(crate) fn builder(profile: Profile, rules: RuleSet) -> PolicyBuilder {
    Policy::builder(profile)
        .classes(CLASSES)
        .workspace_root(Path::new(WORKSPACE))
        .home(Path::new(HOME))
        .rules(rules)
}

pub(crate) fn policy(profile: Profile, lists: Lists<'_>) -> Policy {
    builder(profile, lists.set())
        .build()
        .expect("the rules are fine")
}

pub(crate) fn judge(lists: Lists<'_>, scene: &Scene) -> Ruling {
    policy(Profile::Workspace, lists).judge(&scene.call())
}

/// Creates a call of a tool with these arguments and effects.
pub(crate) fn tool(
    name: &str,
    risk: Risk,
    arguments: &Value,
    permissions: Vec<Permission>,
) -> Scene {
    let mut spec = ToolSpec::new(ToolName::new(name).unwrap(), "", json!({"type": "object"}));
    spec.risk = risk;
    let declared = CLASSES.iter().find(|(tool, _)| *tool == name);
    spec.class = declared.map(|(_, class)| *class);
    spec.stays_in_run = STAYS.contains(&name);
    spec.source = if name.contains('.') {
        "mcp:server"
    } else {
        "builtin"
    }
    .into();
    Scene {
        spec,
        arguments: arguments.to_string(),
        permissions,
    }
}

pub(crate) fn read(path: &str) -> Scene {
    let permission = Permission::read(PathClaim::plain(path));
    tool(
        "read_file",
        Risk::Safe,
        &json!({"path": path}),
        vec![permission],
    )
}

pub(crate) fn write(path: &str) -> Scene {
    let permission = Permission::write(PathClaim::plain(path));
    tool(
        "write_file",
        Risk::High,
        &json!({"path": path}),
        vec![permission],
    )
}

pub(crate) fn linked(path: &str, target: &str) -> PathClaim {
    PathClaim {
        path: path.into(),
        target: Some(target.into()),
    }
}

/// Creates a call of `run_command` with the effects it states.
pub(crate) fn run(line: &str) -> Scene {
    let read = CommandLine::new(line);
    let claim = |target: &RedirectTarget| {
        let path = if target.known {
            haft_files::paths::clean(&target.path)
        } else {
            target.path.clone()
        };
        PathClaim::plain(path)
    };
    let writes: Vec<_> = read
        .writes
        .iter()
        .map(claim)
        .map(Permission::write)
        .collect();
    let reads: Vec<_> = read.reads.iter().map(claim).map(Permission::read).collect();
    let permissions = read.runs(true, false).chain(writes).chain(reads).collect();
    tool(
        "run_command",
        Risk::Safe,
        &json!({"command": line}),
        permissions,
    )
}

pub(crate) fn fetch(host: &str) -> Scene {
    let url = format!("https://{host}/x");
    let name = match host.rsplit_once(':') {
        Some((name, _)) if !name.contains(':') || name.ends_with(']') => name,
        _ => host,
    };
    let permission = Permission {
        effect: Effect::connect(url.clone(), name.to_ascii_lowercase()),
        risk: Risk::High,
    };
    tool(
        "fetch_url",
        Risk::High,
        &json!({"url": url}),
        vec![permission],
    )
}

/// Creates a call of a server's tool, without effects of its own.
pub(crate) fn served(name: &str, arguments: &Value) -> Scene {
    tool(name, Risk::High, arguments, Vec::new())
}

pub(crate) const ALLOW: Verdict = Verdict::Allow;
pub(crate) const ASK: Verdict = Verdict::Ask;
pub(crate) const DENY: Verdict = Verdict::Deny;
