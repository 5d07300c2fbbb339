//! Provider-defined tools that haft runs: the calls that they become, and the items in the answers.
use haft::future::BoxFuture;
use haft::result::{Content, ToolResult};
use haft::spec::Declaration;
use haft::testing::TestTool;
use haft::{Executor, Policy, Risk, Session, ToolError, ToolRegistry, ToolSpec};
use haft_agent::testing::{ScriptedModel, function_call};
use haft_agent::{Agent, AgentOptions, ProviderTool};
use haft_wire::{Call, CallKind, Dialect, StopReason, ToolOutput, TurnItem};
use serde_json::{Value, json};

use crate::support::{Log, last_answers, text};

/// Tools with haft's names that record their arguments. `run_command` fails like the real one if the command is `false`.
fn session(log: &Log) -> Session {
    let registry = ToolRegistry::new();
    let names = [
        "apply_patch",
        "run_command",
        "read_file",
        "list_files",
        "write_file",
        "edit_file",
        "memory",
        "browser",
    ];
    for name in names {
        let log = log.clone();
        let body = move |arguments: Value, _| {
            log.note(format!("{name} {arguments}"));
            Box::pin(async move { answer(name, &arguments) }) as BoxFuture<'static, _>
        };
        let tool = TestTool::with_body(TestTool::echo(name), body).arc();
        registry.add_all([tool]).unwrap();
    }
    Session::new(registry)
}

fn answer(name: &str, arguments: &Value) -> Result<ToolResult, ToolError> {
    let fails = |text: &str| Err(ToolError::failed(text));
    match name {
        "run_command" if arguments["command"] == "false" => {
            let data = json!({"exit_code": 3, "stdout": "out", "stderr": "err"});
            let result = ToolResult::text("out").with_data(&data)?;
            Ok(result.with_error(ToolError::failed("exit code 3 after 0.1 s")))
        }
        "run_command" => {
            ToolResult::data(&json!({"exit_code": 0, "stdout": "done\n", "stderr": ""}))
        }
        "read_file" if arguments["path"] == "folder" => fails("it is a folder"),
        "read_file" => Ok(ToolResult::text("one\ntwo")),
        "list_files" => Ok(ToolResult::text("folder/a")),
        "apply_patch" if arguments["patch"].to_string().contains("gone") => fails("no such file"),
        "browser" if arguments["action"] == "click" => fails("nothing is there"),
        _ => Ok(ToolResult::text("ok")),
    }
}

fn item(kind: &str, item: &Value) -> Call {
    Call {
        id: "call-1".to_owned(),
        item: Some("item-1".to_owned()),
        kind: CallKind::Provider(kind.to_owned()),
        ..function_call("", kind, &item.to_string())
    }
}

async fn run(dialect: Dialect, session: Session, calls: Vec<Call>) -> Vec<ToolOutput> {
    let items = calls.into_iter().map(TurnItem::Call).collect();
    let model = ScriptedModel::new()
        .in_dialect(dialect)
        .replies(items, StopReason::Calls)
        .says("ok");
    let executor = Executor::new(Policy::workspace());
    let mut agent = Agent::new(model.clone(), executor, session).with_options(AgentOptions {
        provided: ProviderTool::ALL.to_vec(),
        ..AgentOptions::default()
    });
    agent.run("go").await.unwrap();
    last_answers(&model)
}

/// The item's type, the item, the calls that it becomes, and its answer.
type ItemRow = (&'static str, Value, Vec<String>, Value);

#[expect(clippy::too_many_lines, reason = "it is a table")]
fn items() -> Vec<ItemRow> {
    vec![
        (
            "apply_patch_call",
            json!({"call_id": "c", "operation": {"type": "create_file", "path": "a", "diff": "+x"}}),
            vec![format!(
                "apply_patch {}",
                json!({"patch": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n"})
            )],
            json!({"type": "apply_patch_call_output", "call_id": "c", "status": "completed"}),
        ),
        (
            "apply_patch_call",
            json!({"call_id": "c", "operation": {"type": "delete_file", "path": "gone"}}),
            vec![format!(
                "apply_patch {}",
                json!({"patch": "*** Begin Patch\n*** Delete File: gone\n*** End Patch\n"})
            )],
            json!({"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "failed: no such file"}),
        ),
        (
            "shell_call",
            json!({"call_id": "c", "action": {"commands": ["false", "ls"], "timeout_ms": 1500, "max_output_length": 4}}),
            vec![
                format!(
                    "run_command {}",
                    json!({"command": "false", "timeout_s": 2})
                ),
                format!("run_command {}", json!({"command": "ls", "timeout_s": 2})),
            ],
            json!({"type": "shell_call_output", "call_id": "c", "max_output_length": 4, "output": [
                {"stdout": "out", "stderr": "err", "outcome": {"type": "exit", "exit_code": 3}},
                {"stdout": "done…", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
            ]}),
        ),
        (
            "shell_call",
            json!({"call_id": "c", "action": {"commands": []}}),
            vec![],
            json!({"type": "shell_call_output", "call_id": "c", "output": [
                {"stdout": "", "stderr": "invalid_arguments: the call names no commands", "outcome": {"type": "exit", "exit_code": 1}},
            ]}),
        ),
        (
            "local_shell_call",
            json!({"id": "item-1", "call_id": "c", "action": {
                "type": "exec", "command": ["ls", "-l"], "env": {"A": "b"}, "working_directory": "src", "timeout_ms": 999_999_999,
            }}),
            vec![format!(
                "run_command {}",
                json!({"argv": ["ls", "-l"], "cwd": "src", "env": {"A": "b"}, "timeout_s": 600})
            )],
            json!({"type": "local_shell_call_output", "id": "item-1",
                "output": json!({"stdout": "done\n", "stderr": "", "exit_code": 0}).to_string()}),
        ),
        (
            "local_shell_call",
            json!({"id": "item-1", "action": {"type": "exec", "command": ["ls"], "user": "root"}}),
            vec![],
            json!({"type": "local_shell_call_output", "id": "item-1",
                "output": "invalid_arguments: commands run as the user of haft; leave `user` out"}),
        ),
    ]
}

#[tokio::test]
async fn calls_of_responses_become_calls_of_haft_and_are_answered_with_their_items() {
    for (kind, call, ran, expect) in items() {
        let log = Log::default();
        let calls = vec![item(kind, &call)];
        let answers = run(Dialect::OpenAiResponses, session(&log), calls).await;
        assert_eq!(log.words(), ran, "{call}");
        let item: Value = serde_json::from_str(answers[0].item.as_ref().unwrap().get()).unwrap();
        assert_eq!(item, expect, "{call}");
    }
}

#[tokio::test]
async fn an_item_that_nothing_answers_or_that_is_not_json_gets_an_answer_of_its_sort() {
    let mut broken = item("shell_call", &json!({}));
    broken.arguments = "{\"action\":".to_owned();
    let unknown = Call {
        id: "call-2".to_owned(),
        ..item("sculpt_call", &json!({}))
    };
    let computer = Call {
        id: "call-3".to_owned(),
        ..item(
            "computer_call",
            &json!({"call_id": "call-3", "action": {"type": "wait"}}),
        )
    };
    let calls = vec![broken, unknown, computer];
    let answers = run(Dialect::OpenAiResponses, session(&Log::default()), calls).await;
    let types: Vec<Option<String>> = answers
        .iter()
        .map(|answer| {
            let item: Value = serde_json::from_str(answer.item.as_ref()?.get()).ok()?;
            Some(item["type"].as_str()?.to_owned())
        })
        .collect();
    assert_eq!(types[0].as_deref(), Some("shell_call_output"));
    assert_eq!(types[1], None);
    assert!(text(&answers[1]).contains("nothing in this run answers"));
    assert_eq!(types[2].as_deref(), Some("computer_call_output"));
    assert!(text(&answers[2]).contains("no tool \"computer\""));
    assert!(answers.iter().all(|answer| answer.is_error));
}

/// The tool, its input, the calls that it becomes, and a text in its answer.
type CallRow = (&'static str, Value, Vec<String>, &'static str);

fn edits() -> Vec<CallRow> {
    let editor = "str_replace_based_edit_tool";
    vec![
        (
            editor,
            json!({"command": "view", "path": "a", "view_range": [4, 5]}),
            vec![format!(
                "read_file {}",
                json!({"path": "a", "start_line": 4, "max_lines": 2})
            )],
            "     4\tone\n     5\ttwo\n",
        ),
        (
            editor,
            json!({"command": "view", "path": "folder"}),
            vec![
                format!(
                    "read_file {}",
                    json!({"path": "folder", "start_line": 1, "max_lines": 2000})
                ),
                format!("list_files {}", json!({"path": "folder", "depth": 2})),
            ],
            "folder/a",
        ),
        (
            editor,
            json!({"command": "create", "path": "a", "file_text": "x"}),
            vec![format!(
                "write_file {}",
                json!({"path": "a", "content": "x"})
            )],
            "ok",
        ),
        (
            editor,
            json!({"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"}),
            vec![format!(
                "edit_file {}",
                json!({"path": "a", "edits": [{"find": "x", "replace": "y"}]})
            )],
            "ok",
        ),
        (
            editor,
            json!({"command": "insert", "path": "a", "insert_line": 0, "insert_text": "x"}),
            vec![format!(
                "edit_file {}",
                json!({"path": "a", "edits": [{"start_line": 1, "end_line": 0, "replace": "x\n"}]})
            )],
            "ok",
        ),
        (
            editor,
            json!({"command": "undo_edit", "path": "a"}),
            vec![],
            "no command \"undo_edit\"",
        ),
        (editor, json!({"command": "view"}), vec![], "needs \"path\""),
    ]
}

fn others() -> Vec<CallRow> {
    vec![
        (
            "bash",
            json!({"command": "ls"}),
            vec![format!("run_command {}", json!({"command": "ls"}))],
            "done",
        ),
        (
            "bash",
            json!({"restart": true}),
            vec![],
            "Nothing to restart",
        ),
        ("bash", json!({}), vec![], "invalid_arguments: "),
        (
            "memory",
            json!({"command": "view", "path": "/memories"}),
            vec![format!(
                "memory {}",
                json!({"command": "view", "path": "/memories"})
            )],
            "ok",
        ),
    ]
}

#[tokio::test]
async fn calls_of_anthropics_tools_become_calls_of_haft() {
    for (name, input, ran, expect) in edits().into_iter().chain(others()) {
        let log = Log::default();
        let calls = vec![function_call("a", name, &input.to_string())];
        let answers = run(Dialect::Anthropic, session(&log), calls).await;
        assert_eq!(log.words(), ran, "{name} {input}");
        let read = text(&answers[0]);
        assert!(read.contains(expect), "{name} {input}: {read}");
        assert!(answers[0].item.is_none());
    }
}

#[tokio::test]
async fn members_of_a_toolset_end_with_the_first_that_fails() {
    let log = Log::default();
    let call = |id: &str, name: &str, toolset: &str| Call {
        toolset: Some(toolset.to_owned()),
        ..function_call(id, name, r#"{"x":1}"#)
    };
    let calls = vec![
        call("a", "scroll", "browser"),
        call("b", "click", "browser"),
        call("c", "scroll", "browser"),
        function_call("d", "bash", r#"{"command":"ls"}"#),
    ];
    let answers = run(Dialect::Anthropic, session(&log), calls).await;
    let told: Vec<String> = answers.iter().map(text).collect();
    assert_eq!(told[0], "ok");
    assert_eq!(told[1], "failed: nothing is there");
    assert_eq!(
        told[2],
        "Not executed: an earlier computer action in this turn failed."
    );
    let call = |action: &str| format!("browser {}", json!({"action": action, "input": {"x": 1}}));
    let ran = [
        call("scroll"),
        call("click"),
        format!("run_command {}", json!({"command": "ls"})),
    ];
    assert_eq!(log.words(), ran);
    assert_eq!(answers[2].call.toolset.as_deref(), Some("browser"));
    let failed: Vec<bool> = answers.iter().map(|answer| answer.is_error).collect();
    assert_eq!(failed, [false, true, true, false]);
}

#[tokio::test]
async fn safety_checks_of_a_computer_call_are_seen_by_a_person_or_it_is_not_run() {
    for (risk, approve, runs) in [
        (Risk::Safe, true, false),
        (Risk::High, false, false),
        (Risk::High, true, true),
    ] {
        let log = Log::default();
        let seen = log.clone();
        let body = move |_: Value, _| {
            seen.note("computer");
            let picture = Content::Image {
                data: "AAAA".to_owned(),
                mime_type: "image/png".to_owned(),
            };
            let result = ToolResult {
                content: vec![picture],
                ..ToolResult::default()
            };
            Box::pin(async move { Ok(result) }) as BoxFuture<'static, _>
        };
        let spec = ToolSpec {
            risk,
            ..TestTool::echo("computer")
        };
        let registry = ToolRegistry::new();
        registry
            .add_all([TestTool::with_body(spec, body).arc()])
            .unwrap();
        let checks = json!([{"id": "s1", "code": "malicious_instructions", "message": "m"}]);
        let call = json!({"call_id": "call-1", "actions": [{"type": "click"}], "pending_safety_checks": checks});
        let model = ScriptedModel::new()
            .in_dialect(Dialect::OpenAiResponses)
            .replies(
                vec![TurnItem::Call(item("computer_call", &call))],
                StopReason::Calls,
            )
            .says("ok");
        let mut executor = Executor::new(Policy::workspace());
        if approve {
            executor = executor.with_approver(haft::AutoApprove::up_to(Risk::High));
        }
        let mut agent = Agent::new(model.clone(), executor, Session::new(registry)).with_options(
            AgentOptions {
                provided: vec![ProviderTool::Computer],
                ..AgentOptions::default()
            },
        );
        agent.run("go").await.unwrap();
        assert_eq!(log.words().len(), usize::from(runs), "{risk:?} {approve}");
        let answers = last_answers(&model);
        let item: Value = serde_json::from_str(answers[0].item.as_ref().unwrap().get()).unwrap();
        let acknowledged = item.get("acknowledged_safety_checks");
        assert_eq!(acknowledged, runs.then_some(&checks));
        if runs {
            assert_eq!(item["output"]["image_url"], "data:image/png;base64,AAAA");
        }
    }
}

#[tokio::test]
async fn a_tool_of_the_session_answers_the_items_that_it_names_and_a_hosted_one_none() {
    let log = Log::default();
    let declared = |kind: &str| Declaration::Provider {
        specs: [("openai-responses".to_owned(), json!({"type": "sculpt"}))].into(),
        call_types: vec![kind.to_owned()],
    };
    let seen = log.clone();
    let body = move |arguments: Value, _| {
        seen.note(format!("sculpt {arguments}"));
        Box::pin(async { ToolResult::data(&json!({"type": "sculpt_call_output"})) })
            as BoxFuture<'static, _>
    };
    let spec = ToolSpec {
        declaration: declared("sculpt_call"),
        ..TestTool::echo("sculpt")
    };
    let registry = ToolRegistry::new();
    registry
        .add_all([TestTool::with_body(spec, body).arc()])
        .unwrap();
    let hosted = ToolSpec {
        declaration: declared("paint_call"),
        ..TestTool::echo("paint")
    };
    registry.add_hosted(hosted).unwrap();
    let calls = vec![
        item("sculpt_call", &json!({"n": 1})),
        Call {
            id: "call-2".to_owned(),
            ..item("paint_call", &json!({}))
        },
        function_call("call-3", "paint", "{}"),
    ];
    let answers = run(Dialect::OpenAiResponses, Session::new(registry), calls).await;
    assert_eq!(log.words(), [r#"sculpt {"n":1}"#]);
    assert_eq!(
        answers[0].item.as_ref().unwrap().get(),
        r#"{"type":"sculpt_call_output"}"#
    );
    assert!(text(&answers[1]).contains("nothing in this run answers"));
    assert!(text(&answers[2]).contains("is run by the provider, not here"));
}
