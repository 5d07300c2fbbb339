//! `#[tool]`: schema from arguments, description from the doc comment, results of any serialisable type.

use haft::{CallContext, Executor, Policy, Session, ToolCall, ToolError, ToolRegistry, tool};
use serde::Serialize;
use serde_json::json;

#[derive(Serialize)]
struct Weather {
    city: String,
    degrees: i64,
}

/// Look up the weather of a city.
///
/// Degrees are Celsius.
#[tool(title = "Weather", category = "web", idempotent, concurrency_safe)]
async fn get_weather(
    /// The city's name.
    city: String,
    plus: Option<i64>,
    context: &CallContext,
) -> Result<Weather, ToolError> {
    assert_eq!(context.origin().as_str(), "host");
    Ok(Weather {
        city,
        degrees: 20 + plus.unwrap_or(0),
    })
}

/// Says hello.
#[tool(name = "say.hello")]
async fn hello() -> Result<String, ToolError> {
    Ok("hello".to_owned())
}

#[tokio::test]
async fn a_function_becomes_a_tool_with_schema_and_result() {
    let tools = ToolRegistry::new()
        .with(get_weather)
        .unwrap()
        .with(hello)
        .unwrap();
    let session = Session::new(tools);
    let snapshot = session.tools();
    let spec = snapshot.entry("get_weather").unwrap().spec();
    assert_eq!(
        spec.description,
        "Look up the weather of a city.\n\nDegrees are Celsius."
    );
    assert_eq!(spec.title.as_deref(), Some("Weather"));
    assert!(spec.idempotent && spec.concurrency_safe);
    assert_eq!(
        spec.input_schema["properties"]["city"]["type"],
        json!("string")
    );
    assert_eq!(
        spec.input_schema["properties"]["city"]["description"],
        json!("The city's name.")
    );
    assert_eq!(spec.input_schema["required"], json!(["city"]));

    let executor = Executor::new(Policy::workspace());
    let outcome = executor
        .execute(&session, ToolCall::new("get_weather", r#"{"city":"Oslo"}"#))
        .await;
    assert_eq!(
        outcome.data.as_ref().unwrap().get(),
        r#"{"city":"Oslo","degrees":20}"#
    );
    let outcome = executor
        .execute(&session, ToolCall::new("say.hello", ""))
        .await;
    assert_eq!(outcome.text(), "hello");
}

#[test]
fn functions_are_collected_when_a_host_asks() {
    let names: Vec<_> = haft::tool::collected()
        .unwrap()
        .iter()
        .map(|t| t.spec().name.to_string())
        .collect();
    assert!(names.contains(&"get_weather".to_owned()) && names.contains(&"say.hello".to_owned()));
}
