//! Tools that take a while, and tools that change the lists.

use std::sync::Arc;
use std::time::Duration;

use haft::caller::LogLevel;
use haft::spec::NameError;
use haft::toolset::registry::ToolRegistry;
use haft::{CallContext, Tool, TypedTool, tool};

use super::asks::caller;
use super::shelf::Shelf;

/// Duration of a step, so that the notifications of two steps are not merged.
const STEP: Duration = Duration::from_millis(50);

/// Returns the tools.
pub(crate) fn tools(
    registry: &Arc<ToolRegistry>,
    shelf: &Arc<Shelf>,
) -> Result<Vec<Arc<dyn Tool>>, NameError> {
    let mut tools = vec![
        test_tool_with_logging {}.into_tool()?,
        test_logging_tool {}.into_tool()?,
        test_tool_with_progress {}.into_tool()?,
        test_reconnection {}.into_tool()?,
    ];
    let (registry, shelf) = (Arc::downgrade(registry), Arc::clone(shelf));
    let changes = Changes { registry, shelf };
    tools.extend(haft::tool::ToolGroup::into_tools(Arc::new(changes))?);
    Ok(tools)
}

async fn logged(context: &CallContext) -> haft::Result<String> {
    let caller = caller(context)?;
    let steps = [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ];
    for step in steps {
        caller.log(LogLevel::Info, Some("conformance"), step);
        tokio::time::sleep(STEP).await;
    }
    Ok("logged three times".to_owned())
}

/// Log three messages.
#[tool(concurrency_safe)]
async fn test_tool_with_logging(context: &CallContext) -> haft::Result<String> {
    logged(context).await
}

/// Log what is wanted.
#[tool(concurrency_safe)]
async fn test_logging_tool(context: &CallContext) -> haft::Result<String> {
    logged(context).await
}

/// Show progress in three steps.
#[tool(concurrency_safe)]
async fn test_tool_with_progress(context: &CallContext) -> haft::Result<String> {
    for done in [0, 50, 100] {
        context.progress().info(format!("{done}/100"));
        tokio::time::sleep(STEP).await;
    }
    Ok("showed three steps".to_owned())
}

/// Take long enough for a client to lose its connection.
#[tool(concurrency_safe)]
async fn test_reconnection() -> &'static str {
    tokio::time::sleep(2 * STEP).await;
    "the connection was lost and found"
}

/// Tools that change lists.
struct Changes {
    registry: std::sync::Weak<ToolRegistry>,
    shelf: Arc<Shelf>,
}

#[haft::tools]
impl Changes {
    /// Change the list of tools.
    #[tool(concurrency_safe)]
    fn test_trigger_tool_change(&self) -> haft::Result<String> {
        let registry = self.registry.upgrade();
        let registry = registry.ok_or_else(|| haft::ToolError::unavailable("the server ends"))?;
        if registry.remove("test_passing").is_empty() {
            let passing = test_passing {}.into_tool();
            let passing = passing.map_err(|e| haft::ToolError::failed(e.to_string()))?;
            let added = registry.upsert(passing);
            added.map_err(|e| haft::ToolError::failed(e.to_string()))?;
        }
        Ok("the tools changed".to_owned())
    }

    /// Change a resource.
    #[tool(concurrency_safe)]
    fn test_touch_resource(&self, uri: String) -> String {
        self.shelf.touch(&uri);
        format!("{uri} changed")
    }

    /// Change the list of prompts.
    #[tool(concurrency_safe)]
    fn test_trigger_prompt_change(&self) -> String {
        self.shelf.change_prompts();
        "the prompts changed".to_owned()
    }
}

/// Come and go.
#[tool(concurrency_safe)]
fn test_passing() -> &'static str {
    "here"
}
