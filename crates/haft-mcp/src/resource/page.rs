//! Pages of the host's own tools (`ui://…`, MCP Apps), read as resources. They are in no list, since tools name them.

use std::sync::Arc;
use std::time::Duration;

use haft::spec::ToolUi;
use haft::toolset::ToolEntry;
use serde::Serialize;
use serde_json::Value;

use crate::run::ClientRun;
use crate::wire::RpcError;
use crate::wire::reply;

/// The protocol's media type of a page.
const PAGE_MEDIA_TYPE: &str = "text/html;profile=mcp-app";

/// Time limit for a tool to provide its page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageContents<'a> {
    uri: &'a str,
    mime_type: &'a str,
    text: &'a str,
    #[serde(rename = "_meta")]
    meta: PageMeta<'a>,
}

#[derive(Serialize)]
struct PageMeta<'a> {
    ui: UiResourceMeta<'a>,
}

/// What the page requests from the client that shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UiResourceMeta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    csp: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permissions: Option<&'a Value>,
    prefers_border: bool,
}

/// Returns this run's tool with a page at this URI. Excludes tools of a server behind haft: that server has the page.
pub(crate) fn of(run: &ClientRun, uri: &str) -> Option<Arc<ToolEntry>> {
    let tools = run.session.tools();
    let mut entries = tools.entries().iter();
    let names = |entry: &&Arc<ToolEntry>| {
        let ui = entry.spec().ui.as_ref();
        ui.is_some_and(|ui| ui.resource_uri == uri)
    };
    entries.find(names).cloned()
}

/// Writes `"contents":[…]`: the tool's page. As with a tool's description, nothing is judged or recorded: it is for a user to look at.
pub(crate) async fn write(out: &mut Vec<u8>, entry: &Arc<ToolEntry>) -> Result<(), RpcError> {
    let failed = |why: &str| RpcError::new(RpcError::INTERNAL, why.to_owned());
    // A tool that panics or hangs affects nothing else.
    let tool = Arc::clone(entry);
    let mut reading = tokio::spawn(async move { tool.page().await });
    let page = match tokio::time::timeout(PAGE_TIMEOUT, &mut reading).await {
        Ok(Ok(page)) => page.map_err(|error| failed(error.message()))?,
        Ok(Err(_)) => return Err(failed("the tool failed while it provided its page")),
        Err(_) => {
            reading.abort();
            return Err(failed("the tool did not provide its page within 10 s"));
        }
    };
    let none = ToolUi::default();
    let ui = entry.spec().ui.as_ref().unwrap_or(&none);
    let contents = PageContents {
        uri: &ui.resource_uri,
        mime_type: PAGE_MEDIA_TYPE,
        text: &page,
        meta: PageMeta {
            ui: UiResourceMeta {
                csp: ui.csp.as_ref(),
                permissions: ui.permissions.as_ref(),
                prefers_border: ui.prefers_border,
            },
        },
    };
    out.extend_from_slice(b"\"contents\":");
    reply::json(out, &[contents]);
    Ok(())
}
