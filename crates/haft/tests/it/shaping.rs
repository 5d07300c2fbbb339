//! Large results: cut by tokens for a direct call, stored whole as an artifact, readable only by their run.

use std::sync::Arc;

use haft::artifact::memory::MemoryArtifacts;
use haft::artifact::{ArtifactRef, ArtifactStore};
use haft::spec::Overflow;
use haft::testing::TestTool;
use haft::{
    ErrorKind, Executor, Outcome, Policy, Session, ToolCall, ToolRegistry, ToolResult, ToolSpec,
};
use serde_json::{Value, json};

/// Returns a tool whose result has many lines of text and a large object.
fn big(overflow: Option<Overflow>) -> ToolRegistry {
    let spec = ToolSpec {
        overflow,
        inline_tokens: Some(300),
        ..TestTool::echo("big")
    };
    let registry = ToolRegistry::new();
    let body = TestTool::with_body(spec, |_, _| {
        Box::pin(async {
            let lines: Vec<String> = (0..5_000).map(|n| format!("line {n} of many")).collect();
            let rows: Vec<Value> = (0..2_000)
                .map(|n| json!({"row": n, "name": format!("name {n}")}))
                .collect();
            ToolResult::text(lines.join("\n"))
                .with_data(&json!({"total": 2000, "rows": rows, "why": "x".repeat(9_000)}))
        })
    });
    registry.add_all([body.arc()]).unwrap();
    registry
}

async fn call(
    overflow: Option<Overflow>,
    store: Option<Arc<MemoryArtifacts>>,
) -> (Session, Outcome) {
    let session = Session::new(big(overflow));
    let mut executor = Executor::new(Policy::workspace());
    if let Some(store) = store {
        executor = executor.with_artifacts(store);
    }
    let outcome = executor.execute(&session, ToolCall::new("big", "{}")).await;
    (session, outcome)
}

fn inline_bytes(outcome: &Outcome) -> usize {
    outcome.text().len() + outcome.data.as_ref().map_or(0, |raw| raw.get().len())
}

#[tokio::test]
async fn what_is_too_large_is_stored_whole_and_shown_in_shape() {
    let store = Arc::new(MemoryArtifacts::new());
    let (session, outcome) = call(None, Some(Arc::clone(&store))).await;
    assert!(outcome.is_ok());
    assert!(inline_bytes(&outcome) < 300 * 8);
    let data: Value = serde_json::from_str(outcome.data.as_ref().unwrap().get()).unwrap();
    assert_eq!(data["total"], 2000);
    assert!(data["rows"].is_array() || data["rows"].is_object());
    assert_eq!(outcome.artifacts.len(), 2);
    let text = outcome
        .artifacts
        .iter()
        .find(|a| a.media_type.starts_with("text/plain"))
        .unwrap();
    let reference = ArtifactRef::parse(&text.reference).unwrap();
    let whole = store
        .read(session.owner(), &reference, 0..u64::MAX)
        .await
        .unwrap();
    assert!(whole.ends_with(b"line 4999 of many") && whole.len() as u64 == text.bytes);
    let stranger = Session::new(ToolRegistry::new());
    let read = store.read(stranger.owner(), &reference, 0..10);
    assert!(read.await.is_err());
}

#[tokio::test]
async fn without_a_store_it_is_cut_and_says_so() {
    let (_, outcome) = call(None, None).await;
    assert!(outcome.is_ok() && outcome.artifacts.is_empty() && inline_bytes(&outcome) < 300 * 8);
    let (_, outcome) = call(Some(Overflow::Clip), Some(Arc::default())).await;
    assert!(outcome.is_ok() && outcome.artifacts.is_empty());
}

#[tokio::test]
async fn overflow_fail_is_an_error_that_keeps_the_result() {
    let (_, outcome) = call(Some(Overflow::Fail), Some(Arc::default())).await;
    assert_eq!(outcome.error.as_ref().unwrap().kind, ErrorKind::Failed);
    assert!(!outcome.artifacts.is_empty());
}

#[tokio::test]
async fn a_value_that_is_no_object_becomes_one() {
    let registry = ToolRegistry::new();
    let tool = TestTool::with_body(TestTool::echo("seven"), |_, _| {
        Box::pin(async { ToolResult::data(&7) })
    });
    registry.add_all([tool.arc()]).unwrap();
    let executor = Executor::new(Policy::workspace());
    let outcome = executor
        .execute(&Session::new(registry), ToolCall::new("seven", ""))
        .await;
    assert_eq!(outcome.data.unwrap().get(), r#"{"result":7}"#);
}

#[tokio::test]
async fn a_preview_keeps_to_the_types_that_an_output_schema_promises() {
    let schema = json!({"type": "object", "required": ["rows", "total"], "properties": {
        "total": {"type": "integer"},
        "rows": {"type": "array", "items": {"type": "object", "required": ["row"], "properties": {"row": {"type": "integer"}}}},
    }});
    let judge = jsonschema::validator_for(&schema).unwrap();
    let spec = ToolSpec {
        output_schema: Some(Arc::new(schema)),
        inline_tokens: Some(300),
        ..TestTool::echo("typed")
    };
    let tool = TestTool::with_body(spec, |_, _| {
        Box::pin(async {
            let rows: Vec<Value> = (0..3_000)
                .map(|n| json!({"row": n, "name": "x".repeat(40)}))
                .collect();
            ToolResult::data(&json!({"total": 3000, "rows": rows}))
        })
    });
    let registry = ToolRegistry::new();
    registry.add_all([tool.arc()]).unwrap();
    let executor =
        Executor::new(Policy::workspace()).with_artifacts(Arc::new(MemoryArtifacts::new()));
    let outcome = executor
        .execute(&Session::new(registry), ToolCall::new("typed", "{}"))
        .await;
    let data: Value = serde_json::from_str(outcome.data.as_ref().unwrap().get()).unwrap();
    assert!(judge.is_valid(&data), "{data}");
    assert!(data["rows"].as_array().unwrap().len() < 100 && outcome.artifacts.len() == 1);
    assert!(
        outcome.to_model().contains("read_artifact"),
        "{}",
        outcome.to_model()
    );
}
