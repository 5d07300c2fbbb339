//! Bytes that no agent would send: nothing panics, nothing unknown passes as harmless, and the agent can read every reply.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use haft_hook::{
    Agent, CallAction, HookEvent, HookEventKind, HookReply, HookVerdict, MAX_EVENT, MAX_REASON,
    ReadError, read, refusal, reply, rewrite_line,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Tools of all agents that have effects: whatever its input, a tool of this name is never a note.
const ACTING: [&str; 34] = [
    "Bash",
    "PowerShell",
    "Monitor",
    "Read",
    "Glob",
    "Grep",
    "Write",
    "Edit",
    "NotebookEdit",
    "WebFetch",
    "Agent",
    "apply_patch",
    "write_stdin",
    "Shell",
    "Delete",
    "run_shell_command",
    "read_file",
    "read_many_files",
    "replace",
    "web_fetch",
    "bash",
    "view",
    "str_replace_editor",
    "run_commands",
    "read_files",
    "use_mcp_tool",
    "exec",
    "write",
    "webfetch",
    "developer__shell",
    "Execute",
    "FetchUrl",
    "shell_command",
    "mcp__a__b",
];

/// Member names that the readers look for, so that random input contains them.
const NAMES: [&str; 24] = [
    "command",
    "commands",
    "cmd",
    "cwd",
    "workdir",
    "file_path",
    "path",
    "pattern",
    "glob",
    "include",
    "url",
    "prompt",
    "todos",
    "questions",
    "patch",
    "input",
    "files",
    "ws",
    "allowedPrompts",
    "server_name",
    "tool_name",
    "description",
    "source",
    "dir_path",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        Just(json!("*** Begin Patch\n*** Delete File: x\n")),
        Just(json!("[\"a\",\"b\"]")),
        Just(json!("{\"a\":1}")),
        Just(json!("network-access x")),
        Just(json!("{a/b,../c}*")),
        Just(json!("(https://x,)")),
        Just(json!("://")),
    ];
    let name = prop_oneof![
        4 => prop::sample::select(&NAMES[..]).prop_map(str::to_owned),
        1 => ".{0,6}",
    ];
    leaf.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Returns an event before a tool in the format of an agent and of every agent that it may be mistaken for.
fn before(agent: Agent, tool: &str, input: &Value) -> Value {
    match agent {
        Agent::Copilot => {
            json!({"sessionId": "s", "timestamp": 1, "toolName": tool, "toolArgs": input})
        }
        Agent::Cline => {
            json!({"clineVersion": "4", "hookName": "PreToolUse", "preToolUse": {"toolName": tool, "parameters": input}})
        }
        Agent::Windsurf => json!({"agent_action_name": format!("pre_{tool}"), "tool_info": input}),
        Agent::Goose => json!({"event": "PreToolUse", "tool_name": tool, "tool_input": input}),
        Agent::Gemini => {
            json!({"hook_event_name": "BeforeTool", "tool_name": tool, "tool_input": input})
        }
        _ => json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input}),
    }
}

fn verdicts() -> Vec<HookVerdict> {
    let long = "\u{1b}\u{0}ä\n".repeat(10_000);
    let mut verdicts = vec![HookVerdict::NoOpinion, HookVerdict::Allow { input: None }];
    for reason in [String::new(), "no".to_owned(), long] {
        verdicts.push(HookVerdict::Ask {
            reason: reason.clone(),
        });
        verdicts.push(HookVerdict::Deny { reason });
    }
    for input in ["{}", r#"{"command":"true"}"#, "[]", "\"x\""] {
        let input = serde_json::from_str(input).unwrap();
        verdicts.push(HookVerdict::Allow { input: Some(input) });
    }
    verdicts
}

/// Checks that a reply is empty or one object, with non-empty reasons of limited length, and exits with 0 or 2.
fn check_reply(reply: &HookReply) {
    assert!(matches!(reply.exit, 0 | 2), "{reply:?}");
    assert!(
        reply.exit == 0 || !reply.stderr.trim().is_empty(),
        "{reply:?}"
    );
    assert!(reply.stderr.len() <= MAX_REASON);
    if !reply.stdout.is_empty() {
        let object: Map<String, Value> = serde_json::from_str(&reply.stdout).unwrap();
        check_texts(&Value::Object(object));
    }
}

fn check_texts(value: &Value) {
    match value {
        Value::String(text) => {
            assert!(!text.trim().is_empty() && text.len() <= MAX_REASON);
            let odd = text
                .chars()
                .find(|c| c.is_control() && !"\n\t".contains(*c));
            assert_eq!(odd, None);
        }
        Value::Object(members) => members
            .iter()
            // Excludes values that come from the verdict, not from this crate.
            .filter(|(name, _)| {
                ![
                    "updatedInput",
                    "updated_input",
                    "tool_input",
                    "modifiedArgs",
                    "overrideInput",
                    "input",
                ]
                .contains(&name.as_str())
            })
            .for_each(|(_, member)| check_texts(member)),
        Value::Array(items) => items.iter().for_each(check_texts),
        _ => {}
    }
}

/// Returns whether the agent lets the call run.
fn lets_run(event: &HookEvent, reply: &HookReply) -> bool {
    let answer: Value = serde_json::from_str(&reply.stdout).unwrap_or_default();
    let denies = [
        &answer["hookSpecificOutput"]["permissionDecision"],
        &answer["hookSpecificOutput"]["decision"]["behavior"],
        &answer["permission"],
        &answer["decision"],
        &answer["permissionDecision"],
        &answer["behavior"],
    ];
    let denies = denies
        .iter()
        .any(|word| *word == "deny" || *word == "block");
    assert!(event.call().is_some());
    !denies && reply.exit != 2 && answer["cancel"] != true
}

fn check_event(event: &HookEvent) {
    if let Some(call) = event.call() {
        assert!(!call.actions.is_empty(), "{call:?}");
    }
    let _ = rewrite_line(event, "true");
    for verdict in verdicts() {
        let reply = reply(event, &verdict);
        check_reply(&reply);
        if event.call().is_none() {
            continue;
        }
        match &verdict {
            HookVerdict::Deny { .. } => assert!(!lets_run(event, &reply), "{reply:?}"),
            // A call that may only run with another input never runs with its own.
            HookVerdict::Allow { input: Some(input) } if lets_run(event, &reply) => {
                assert!(reply.stdout.contains(input.get()), "{event:?} {reply:?}");
            }
            _ => {}
        }
    }
}

fn is_note(event: &HookEvent) -> bool {
    let actions = event.call().map(|call| call.actions.as_slice());
    let mut actions = actions.unwrap_or_default().iter();
    actions.any(|action| matches!(action, CallAction::Note))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64), text in r#"[{}\[\]",:a-z_\\0-9 ]{0,64}"#) {
        for agent in Agent::ALL {
            for bytes in [bytes.as_slice(), text.as_bytes()] {
                match read(agent, bytes) {
                    Ok(event) => check_event(&event),
                    Err(error) => check_reply(&refusal(agent, &error.to_string())),
                }
            }
        }
    }

    #[test]
    fn any_json_as_an_event_is_read_or_refused(members in any_json(), name in "[A-Za-z_]{1,20}") {
        for agent in Agent::ALL {
            let mut event = before(agent, &name, &members);
            if let (Value::Object(event), Value::Object(members)) = (&mut event, members.clone()) {
                event.extend(members);
            }
            match read(agent, event.to_string().as_bytes()) {
                Ok(event) => {
                    check_event(&event);
                    prop_assert!(!is_note(&event), "{event:?}");
                }
                Err(error) => check_reply(&refusal(agent, &error.to_string())),
            }
        }
    }

    #[test]
    fn a_tool_that_acts_is_never_a_note(input in any_json(), tool in prop::sample::select(&ACTING[..])) {
        for agent in Agent::ALL {
            let event = read(agent, before(agent, tool, &input).to_string().as_bytes()).unwrap();
            check_event(&event);
            prop_assert!(!is_note(&event), "{event:?}");
            prop_assert!(matches!(event.kind, HookEventKind::Before(_)));
        }
    }

    #[test]
    fn a_tool_that_is_not_known_is_other(input in any_json(), tool in "[xyz][xyz0-9]{3,12}") {
        for agent in Agent::ALL {
            let event = read(agent, before(agent, &tool, &input).to_string().as_bytes()).unwrap();
            let actions = &event.call().unwrap().actions;
            prop_assert!(matches!(&actions[..], [CallAction::Other { .. }]), "{agent}: {actions:?}");
        }
    }
}

#[test]
fn what_is_no_event_is_named() {
    let big = vec![b' '; MAX_EVENT + 1];
    let rows: [(&[u8], &str); 8] = [
        (&big, "more than the 16777216 that haft reads"),
        (b"{\"a\":\"\xff\"}", "not UTF-8 (byte 6)"),
        (b"\xff\xfe{\x00", "not UTF-8 (byte 0)"),
        (b"", "not a JSON object"),
        (b"{}{}", "not a JSON object"),
        (b"null", "not a JSON object"),
        (
            br#"{"a":1,"a":2}"#,
            "`a` in a form that haft refuses: it appears twice",
        ),
        (
            br#"{"a":1,"\u0061":2}"#,
            "`a` in a form that haft refuses: it appears twice",
        ),
    ];
    for agent in Agent::ALL {
        for (bytes, expect) in rows {
            let error = read(agent, bytes).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        }
    }
}

#[test]
fn a_result_that_no_strict_reader_takes_still_closes_its_call() {
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    for result in [r#""half \ud800""#, r#"{"a":1,"a":2}"#, "1e999", &deep] {
        let text = format!(
            r#"{{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_use_id":"t","tool_input":{{"a":1,"a":2}},"tool_response":{result}}}"#
        );
        let event = read(Agent::Claude, text.as_bytes()).unwrap();
        let HookEventKind::After(report) = &event.kind else {
            panic!("{event:?}")
        };
        assert_eq!(report.id.as_deref(), Some("t"));
        assert_eq!(report.result.as_deref().unwrap().get(), result);
        assert!(report.input.is_none());
    }
}

#[test]
fn an_input_is_kept_byte_for_byte() {
    let input =
        r#"{ "command" : "ls" , "n": 1.0e+02, "big":12345678901234567890123, "caf\u00e9": "\/" }"#;
    let text =
        format!(r#"{{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input": {input} }}"#);
    let event = read(Agent::Claude, text.as_bytes()).unwrap();
    assert_eq!(event.call().unwrap().input.get(), input);
    let other = rewrite_line(&event, "a \"b\"").unwrap();
    assert_eq!(other.get(), input.replace(r#""ls""#, r#""a \"b\"""#));
    let allow = HookVerdict::Allow {
        input: Some(other.clone()),
    };
    assert!(reply(&event, &allow).stdout.contains(other.get()));
}

#[test]
fn a_deep_input_is_refused() {
    let text = format!(
        r#"{{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let error = read(Agent::Claude, text.as_bytes()).unwrap_err();
    assert!(matches!(error, ReadError::Ambiguous { .. }), "{error}");
}
