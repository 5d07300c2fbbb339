//! Tools that take long enough to become tasks.

use std::sync::Arc;
use std::time::Duration;

use haft::caller::RequestKind;
use haft::spec::NameError;
use haft::{CallContext, Tool, ToolError, TypedTool, tool};
use serde_json::json;

use super::asks::{ask, caller, form};

/// Longer than a call may take before it becomes a task.
const LONG: Duration = Duration::from_millis(600);

/// The tool whose calls are tasks from the start.
pub(crate) const ONLY_TASK: &str = "failing_job";

/// Returns the tools.
pub(crate) fn tools() -> Result<Vec<Arc<dyn Tool>>, NameError> {
    Ok(vec![
        greet {}.into_tool()?,
        slow_compute {}.into_tool()?,
        failing_job {}.into_tool()?,
        protocol_error_job {}.into_tool()?,
        confirm_delete {}.into_tool()?,
        multi_input {}.into_tool()?,
        test_tool_with_task {}.into_tool()?,
    ])
}

/// Greet at once.
#[tool(concurrency_safe)]
fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

/// Compute for some seconds.
#[tool(concurrency_safe)]
async fn slow_compute(seconds: u64, label: Option<String>) -> String {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    format!(
        "computed {} for {seconds} s",
        label.as_deref().unwrap_or("something")
    )
}

/// Fail after a while.
#[tool(concurrency_safe)]
async fn failing_job() -> haft::Result<String> {
    tokio::time::sleep(LONG).await;
    Err(ToolError::failed("this job always fails"))
}

/// Need what no client of the suite can do.
#[tool(concurrency_safe)]
async fn protocol_error_job(context: &CallContext) -> haft::Result<String> {
    tokio::time::sleep(LONG).await;
    let params = json!({"mode": "url", "message": "Look there", "url": "http://127.0.0.1/"});
    let answer = ask(&caller(context)?, "look", RequestKind::Url, params).await?;
    Ok(answer.to_string())
}

async fn confirmed(context: &CallContext, name: &str, message: &str) -> haft::Result<bool> {
    let fields = json!({"confirm": {"type": "boolean"}});
    let answer = ask(
        &caller(context)?,
        name,
        RequestKind::Form,
        form(message, &fields),
    )
    .await?;
    Ok(answer["content"]["confirm"] == true)
}

/// Ask before a file is deleted.
#[tool(concurrency_safe)]
async fn confirm_delete(filename: String, context: &CallContext) -> haft::Result<String> {
    tokio::time::sleep(LONG).await;
    let yes = confirmed(context, "confirm", &format!("Delete {filename}?")).await?;
    Ok(format!(
        "{filename} {}",
        if yes { "is deleted" } else { "stays" }
    ))
}

/// Ask two things at once.
#[tool(concurrency_safe)]
async fn multi_input(context: &CallContext) -> haft::Result<String> {
    tokio::time::sleep(LONG).await;
    let (one, two) = tokio::join!(
        confirmed(context, "one", "The first?"),
        confirmed(context, "two", "The second?"),
    );
    Ok(format!("{} {}", one?, two?))
}

/// Ask for a name, and then work for a while.
#[tool(concurrency_safe)]
async fn test_tool_with_task(context: &CallContext) -> haft::Result<String> {
    let fields = json!({"name": {"type": "string"}});
    let question = form("What is your name?", &fields);
    let answer = ask(&caller(context)?, "user_name", RequestKind::Form, question).await?;
    tokio::time::sleep(LONG).await;
    Ok(format!(
        "worked for {}",
        answer["content"]["name"].as_str().unwrap_or("nobody")
    ))
}
