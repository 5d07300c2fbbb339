//! Pages of tools (MCP Apps): named in the list, read as resources without a call.

use haft::context::CallContext;
use haft::spec::{ToolPage, ToolUi};
use haft::tool::{Depth, Intent, TypedTool, collected};
use haft::{JsonSchema, ToolError, ToolResult, ToolSpec, tool};
use haft_mcp::server::ServerLimits;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::initialize;
use crate::support::line_client::LineClient;

/// Shows a map.
#[tool(name = "show.map", page = "pages/map.html")]
fn show_map() -> String {
    "a map".to_owned()
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "haft::schemars")]
struct Nothing {}

/// A tool whose page asks for something, and one whose page is too large.
struct Paged<const TOO_LARGE: bool>;

impl<const TOO_LARGE: bool> TypedTool for Paged<TOO_LARGE> {
    const NAME: &'static str = if TOO_LARGE { "large" } else { "chart" };
    const DESCRIPTION: &'static str = "Has a page.";
    type Input = Nothing;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let ui = ToolUi {
            csp: Some(json!({"resourceDomains": ["https://cdn.example"]})),
            permissions: Some(json!({"clipboardWrite": {}})),
            prefers_border: true,
            ..ToolUi::of(&spec.name)
        };
        ToolSpec {
            ui: Some(ui),
            ..spec
        }
    }

    fn intent(&self, _: &Nothing, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    fn page(&self) -> Option<ToolPage> {
        let size = if TOO_LARGE { 2 << 20 } else { 10 };
        Some(ToolPage::html("x".repeat(size)))
    }

    async fn run(&self, _: Nothing, _: &CallContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text("a chart"))
    }
}

fn ask(client: &mut LineClient, method: &str, params: &Value) -> Value {
    client.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string())
}

#[test]
fn a_tool_names_its_page_and_the_page_is_read_without_a_call() {
    let mut client = LineClient::start(ServerLimits::default());
    client.opener.add_tools(collected().unwrap());
    client.opener.add_tools([
        Paged::<false>.into_tool().unwrap(),
        Paged::<true>.into_tool().unwrap(),
    ]);
    client.ask(&initialize("2025-11-25"));
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let listed = ask(&mut client, "tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    for (name, uri) in [
        ("show.map", "ui://haft/show.map"),
        ("chart", "ui://haft/chart"),
    ] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        assert_eq!(tool["_meta"], json!({"ui": {"resourceUri": uri}}));
    }
    let map = include_str!("pages/map.html");
    for (uri, text, ui) in [
        ("ui://haft/show.map", map, json!({"prefersBorder": false})),
        (
            "ui://haft/chart",
            "xxxxxxxxxx",
            json!({"csp": {"resourceDomains": ["https://cdn.example"]}, "permissions": {"clipboardWrite": {}}, "prefersBorder": true}),
        ),
    ] {
        let read = ask(&mut client, "resources/read", &json!({"uri": uri}));
        let expect = json!([{
            "uri": uri, "mimeType": "text/html;profile=mcp-app", "text": text, "_meta": {"ui": ui},
        }]);
        assert_eq!(read["result"]["contents"], expect, "{read}");
    }
    for (uri, words) in [
        ("ui://haft/large", "larger than 1 MiB"),
        ("ui://haft/none", "no resource"),
    ] {
        let read = ask(&mut client, "resources/read", &json!({"uri": uri}));
        let message = read["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{uri}: {read}");
    }
    assert_eq!(client.opener.calls(), []);
}
