//! haft recognises every registration that it writes for an agent, and the registration names events that this crate reads.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::collections::BTreeSet;

use haft_hook::{Agent, gaps};
use haft_setup::programs::registrations;
use haft_setup::registration::{
    AgentFile, AgentFileContent, PlaceCondition, RegistrationScope, is_own, is_own_file,
};
use serde_json::Value;

const PROGRAM: &str = "/opt/my tools/haft";

fn files(agent: Agent) -> Vec<AgentFile> {
    let places = registrations(agent, PROGRAM).places;
    places.into_iter().flat_map(|place| place.files).collect()
}

/// Returns the handlers of an entry: itself, or those of its group.
fn handlers(entry: &Value) -> Vec<&Value> {
    match entry.get("hooks").and_then(Value::as_array) {
        Some(list) => list.iter().collect(),
        None => vec![entry],
    }
}

#[test]
fn what_is_written_is_recognised_as_own_by_its_agent_alone() {
    for agent in Agent::ALL {
        for file in files(agent) {
            match &file.content {
                AgentFileContent::Own { text, .. } => {
                    assert!(is_own_file(agent, text), "{agent}: {}", file.path);
                }
                AgentFileContent::Shared { entries, .. } => {
                    for entry in entries {
                        for handler in handlers(&entry.value) {
                            let owners = Agent::ALL.into_iter().filter(|one| is_own(*one, handler));
                            assert_eq!(owners.collect::<Vec<_>>(), [agent], "{handler}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn files_of_others_are_not_own() {
    for (agent, text) in [
        (Agent::Copilot, r#"{"version":1,"hooks":{}}"#),
        (
            Agent::Copilot,
            r#"{"hooks":{"preToolUse":[{"bash":"haft hook copilot"},{"bash":"other"}]}}"#,
        ),
        (Agent::Goose, r#"{"name":"haft","description":"mine"}"#),
        (Agent::Cline, "#!/bin/sh\nexec haft hook cline\n"),
        (Agent::OpenCode, "export const Haft = async () => ({});\n"),
        (Agent::OpenCode, "haft-hook 1\n"),
        (Agent::OpenCode, ""),
    ] {
        assert!(!is_own_file(agent, text), "{agent}: {text}");
    }
}

/// Returns a handler's time limit in seconds, by the name and unit that its agent uses.
fn seconds(agent: Agent, handler: &Value) -> Option<u64> {
    let number = |name: &str| handler.get(name).and_then(Value::as_u64);
    match agent {
        Agent::Gemini => number("timeout").map(|milliseconds| milliseconds / 1000),
        Agent::Copilot => number("timeoutSec"),
        _ => number("timeout"),
    }
}

/// Returns every list of handlers in an agent's files, with its event.
fn lists(agent: Agent) -> Vec<(String, Value)> {
    let mut lists = Vec::new();
    for file in files(agent) {
        match file.content {
            AgentFileContent::Shared { entries, .. } => {
                for entry in entries {
                    lists.push((entry.event.to_owned(), entry.value));
                }
            }
            AgentFileContent::Own { text, .. } => {
                let Ok(json) = serde_json::from_str::<Value>(&text) else {
                    continue;
                };
                for (event, list) in json
                    .get("hooks")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flatten()
                {
                    for entry in list.as_array().unwrap() {
                        lists.push((event.clone(), entry.clone()));
                    }
                }
            }
        }
    }
    lists
}

#[test]
fn the_hook_that_decides_waits_as_long_as_the_limits_say_and_fails_closed_where_that_is_possible() {
    let closes = [
        (Agent::Claude, "onFailure", Value::from("block")),
        (Agent::Cursor, "failClosed", Value::from(true)),
        (Agent::Goose, "on_failure", Value::from("block")),
    ];
    let deciding = [
        "PreToolUse",
        "preToolUse",
        "BeforeTool",
        "PermissionRequest",
    ];
    let mut seen = BTreeSet::new();
    for agent in Agent::ALL {
        for (event, entry) in lists(agent) {
            for handler in handlers(&entry) {
                let decides = deciding.contains(&event.as_str());
                let limit = seconds(agent, handler);
                if !decides {
                    assert!(limit.is_none_or(|limit| limit <= 60), "{agent} {event}");
                    continue;
                }
                seen.insert(agent);
                assert_eq!(
                    limit,
                    Some(agent.limits().wait.as_secs()),
                    "{agent} {event}"
                );
                for (closing, name, value) in &closes {
                    let expect = (*closing == agent).then_some(value);
                    assert_eq!(handler.get(name), expect, "{agent} {event} {name}");
                }
            }
        }
    }
    assert_eq!(seen.len(), 8, "{seen:?}");
}

#[test]
fn each_scope_ends_with_a_place_that_always_counts() {
    for agent in Agent::ALL {
        let places = registrations(agent, PROGRAM).places;
        for scope in [
            RegistrationScope::User,
            RegistrationScope::Project,
            RegistrationScope::Private,
        ] {
            let mut own = places.iter().filter(|place| place.scope == scope);
            let Some(last) = own.next_back() else {
                assert_eq!(scope, RegistrationScope::Private, "{agent}");
                continue;
            };
            assert_eq!(last.condition, PlaceCondition::Always, "{agent}");
            assert!(
                own.all(|place| place.condition != PlaceCondition::Always),
                "{agent}"
            );
        }
        assert!(!gaps(agent).is_empty(), "{agent}");
    }
}

/// Codex trusts a handler by its text and position: if a release of haft writes another one, every user must trust it anew.
#[test]
fn the_entries_of_codex_stay_as_they_are() {
    let entries: Vec<String> = lists(Agent::Codex)
        .iter()
        .map(|(event, entry)| format!("{event} {entry}"))
        .collect();
    let line = "'/opt/my tools/haft' hook codex";
    let expect = [
        ("PreToolUse", 600),
        ("PermissionRequest", 600),
        ("PostToolUse", 30),
        ("SessionStart", 30),
        ("SessionEnd", 3),
    ]
    .map(|(event, timeout)| {
        format!(
            r#"{event} {{"hooks":[{{"command":"{line}","timeout":{timeout},"type":"command"}}]}}"#
        )
    });
    assert_eq!(entries.len(), 6 * expect.len());
    for chunk in entries.chunks(expect.len()) {
        assert_eq!(chunk, expect);
    }
}
