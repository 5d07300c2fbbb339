//! The tools of a scene.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft::result::{Content, ToolResult};
use haft::spec::{Risk, ToolSpec};
use haft::testing::TestTool;
use haft::tool::Tool;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Returns the spec that the tools of a scene share.
fn spec(name: &str, schema: Value) -> ToolSpec {
    ToolSpec {
        input_schema: Arc::new(schema),
        concurrency_safe: true,
        ..TestTool::echo(name)
    }
}

pub(crate) fn any(name: &str) -> ToolSpec {
    spec(name, json!({"type": "object"}))
}

pub(crate) fn tools(marks: &Arc<Mutex<Vec<String>>>) -> Vec<Arc<dyn Tool>> {
    let mut all = answering();
    all.extend(effective(marks));
    all
}

/// Returns tools that answer at once, and those that fail.
fn answering() -> Vec<Arc<dyn Tool>> {
    let needs_x = json!({
        "type": "object",
        "properties": {"x": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["x"],
        "additionalProperties": false,
    });
    vec![
        TestTool::of(any("echo")).arc(),
        TestTool::of(any("server.tool")).arc(),
        TestTool::of(spec("strict", needs_x)).arc(),
        TestTool::of(ToolSpec {
            risk: Risk::Critical,
            ..any("critical")
        })
        .arc(),
        TestTool::with_body(any("say"), |value, _| {
            let text = value["text"].as_str().unwrap_or_default().to_owned();
            Box::pin(async move { Ok(ToolResult::text(text)) })
        })
        .arc(),
        TestTool::with_body(any("fail"), |_, _| {
            Box::pin(async {
                Err(haft::ToolError::not_found("no such thing").with_advice("look elsewhere"))
            })
        })
        .arc(),
    ]
}

/// Returns tools that take time, return much, or leave marks.
fn effective(marks: &Arc<Mutex<Vec<String>>>) -> Vec<Arc<dyn Tool>> {
    let mark = Arc::clone(marks);
    let gate = Arc::new(tokio::sync::Barrier::new(3));
    vec![
        // Ends only when three calls of it are running.
        TestTool::with_body(any("together"), move |value, _| {
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                gate.wait().await;
                ToolResult::data(&value)
            })
        })
        .arc(),
        TestTool::with_body(any("sleep"), |value, _| {
            let seconds = value["s"].as_f64().unwrap_or(60.0);
            Box::pin(async move {
                // slow on purpose: as long as the script says.
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
                Ok(ToolResult::text("slept"))
            })
        })
        .arc(),
        TestTool::with_body(any("large"), |value, _| {
            let bytes = usize::try_from(value["bytes"].as_u64().unwrap_or(0)).unwrap();
            Box::pin(async move { Ok(ToolResult::text("0123456789abcde\n".repeat(bytes / 16))) })
        })
        .arc(),
        TestTool::with_body(any("count"), |value, _| {
            let length = value["text"].as_str().map(str::len);
            Box::pin(async move { ToolResult::data(&json!({"length": length})) })
        })
        .arc(),
        TestTool::with_body(any("picture"), |value, _| {
            let bytes = value["bytes"].as_str().unwrap_or("pixels").to_owned();
            Box::pin(async move {
                let image = Content::Image {
                    data: STANDARD.encode(bytes),
                    mime_type: "image/png".into(),
                };
                let sound = Content::Audio {
                    data: STANDARD.encode("la"),
                    mime_type: "audio/mpeg".into(),
                };
                Ok(ToolResult {
                    content: vec![Content::text("two"), image, sound],
                    ..ToolResult::default()
                })
            })
        })
        .arc(),
        TestTool::with_body(any("mark"), move |value, _| {
            let mark = Arc::clone(&mark);
            Box::pin(async move {
                mark.lock()
                    .push(value["text"].as_str().unwrap_or("?").to_owned());
                ToolResult::data(&value)
            })
        })
        .arc(),
    ]
}
