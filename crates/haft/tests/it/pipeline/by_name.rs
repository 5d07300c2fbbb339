//! The rows through `call_tool`: a call that names another tool counts as a call of that tool.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use haft::audit::EventKind;
use haft::toolset::lazy::{CALL_TOOL, LazyListing};
use haft::toolset::view::ToolsetExt as _;
use haft::{Status, ToolCall};

use super::{Came, RAN, Row, expected, row, rows, scene_of};

/// Makes the same call through `call_tool`, in a session that lists no tools.
async fn by_name(row: &Row) -> Came {
    let scene = scene_of(row, |tools| {
        Arc::new(tools.lazily(LazyListing::default()).unwrap())
    });
    let arguments = format!(
        r#"{{"tool":"{}", "arguments" : {} }}"#,
        row.tool, row.arguments
    );
    let call = ToolCall::new(CALL_TOOL, arguments);
    let outcome = scene.executor.execute(&scene.session, call).await;
    // Arguments that no object can hold name no tool.
    let is_sound = haft::json::scan::scan_object(row.arguments).is_ok();
    let named = if is_sound { row.tool } else { CALL_TOOL };
    assert_eq!(outcome.tool, named, "{}", row.name);
    let ran = scene.ran.load(Ordering::SeqCst);
    (outcome.status, scene.audit.words(), ran)
}

#[tokio::test]
async fn every_row_holds_for_a_call_by_call_tool() {
    for row in rows() {
        if row.tool == "deferred" {
            // With few tools, each of them can be called without being expanded.
            continue;
        }
        assert_eq!(by_name(&row).await, expected(&row), "{}", row.name);
    }
}

/// The arguments of `call_tool`, and the tool, status and arguments of the resulting call.
const NAMED: [(&str, &str, Status, &str); 12] = [
    (
        r#"{"tool":"safe","arguments":{"b":12345678901234567890123,"a":[1, 2]}}"#,
        "safe",
        Status::Ok,
        r#"{"b":12345678901234567890123,"a":[1, 2]}"#,
    ),
    (
        r#"{"arguments":{"a":"\u00e9"},"tool":"s\u0061fe"}"#,
        "safe",
        Status::Ok,
        r#"{"a":"\u00e9"}"#,
    ),
    (
        r#"{"tool":"safe","arguments":"{\"a\": 1}"}"#,
        "safe",
        Status::Ok,
        r#"{"a": 1}"#,
    ),
    (r#"{"tool":"safe"}"#, "safe", Status::Ok, "{}"),
    (
        r#"{"tool":"high","arguments":{}}"#,
        "high",
        Status::Denied,
        "{}",
    ),
    (
        r#"{"tool":"saef","arguments":{}}"#,
        "saef",
        Status::Error,
        "{}",
    ),
    (
        r#"{"tool":"hidden","arguments":{}}"#,
        "hidden",
        Status::Error,
        "{}",
    ),
    (
        r#"{"tool":"call_tool","arguments":{"tool":"safe"}}"#,
        CALL_TOOL,
        Status::Error,
        r#"{"tool":"call_tool","arguments":{"tool":"safe"}}"#,
    ),
    (
        r#"{"tool":"safe","arguments":{"a":1,"a":2}}"#,
        CALL_TOOL,
        Status::Error,
        r#"{"tool":"safe","arguments":{"a":1,"a":2}}"#,
    ),
    (
        r#"{"tool":"safe","tool":"high"}"#,
        CALL_TOOL,
        Status::Error,
        r#"{"tool":"safe","tool":"high"}"#,
    ),
    (
        r#"{"tool":"safe","more":1}"#,
        CALL_TOOL,
        Status::Error,
        r#"{"tool":"safe","more":1}"#,
    ),
    (
        r#"{"arguments":{}}"#,
        CALL_TOOL,
        Status::Error,
        r#"{"arguments":{}}"#,
    ),
];

#[tokio::test]
async fn a_call_by_call_tool_is_one_of_the_tool_that_it_names_byte_for_byte() {
    let policy = haft::policy::RuleSet {
        deny: vec!["high".into()],
        ..haft::policy::RuleSet::default()
    };
    let policy = haft::Policy::workspace().with_rules(policy).unwrap();
    let row = row("named", policy, "safe", Status::Ok, RAN);
    for (written, tool, status, arguments) in NAMED {
        let scene = scene_of(&row, |tools| {
            Arc::new(tools.lazily(LazyListing::default()).unwrap())
        });
        let call = ToolCall::new(CALL_TOOL, written).with_id("mine");
        let outcome = scene.executor.execute(&scene.session, call).await;
        assert_eq!(
            (outcome.tool.as_str(), outcome.status),
            (tool, status),
            "{written}"
        );
        assert_eq!(outcome.call.as_str(), "mine", "{written}");
        if let Some(error) = &outcome.error {
            let near = error.advice.as_deref().unwrap_or_default();
            assert!(
                tool != "saef" || near.contains("did you mean safe"),
                "{written}: {near}"
            );
            assert!(
                tool != CALL_TOOL || error.kind == haft::ErrorKind::InvalidArguments,
                "{written}"
            );
        }
        let ended = scene
            .audit
            .events()
            .into_iter()
            .rev()
            .find_map(|event| match event.what {
                EventKind::CallEnded(record, _) => Some(record),
                _ => None,
            });
        let last = ended.unwrap();
        assert_eq!(
            (last.tool.as_str(), &*last.arguments),
            (tool, arguments),
            "{written}"
        );
    }
}
