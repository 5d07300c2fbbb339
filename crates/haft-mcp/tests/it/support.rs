//! Small tools and clients for both transports.

pub(crate) mod front;
pub(crate) mod http_client;
pub(crate) mod line_client;
pub(crate) mod small_tools;
pub(crate) mod strange;

use std::sync::Arc;

use haft_mcp::server::{McpServer, ServerInfo, ServerLimits};

use self::small_tools::SmallOpener;

/// `_meta` of a stateless request.
pub(crate) const ENVELOPE: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Returns a handshake with this version.
pub(crate) fn initialize(version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    )
}

/// Returns a stateless request; `more` are further params, with a leading comma.
pub(crate) fn modern(id: &str, method: &str, more: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{ENVELOPE}{more}}}}}"#)
}

/// Returns a call in the form of the handshake era.
pub(crate) fn call(id: &str, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// Returns a server over small tools, all of which may run.
pub(crate) fn server(limits: ServerLimits) -> (McpServer, Arc<SmallOpener>) {
    let opener = Arc::new(SmallOpener::new(haft::Policy::trusted(), true));
    (serving(limits, &opener), opener)
}

/// Returns a server with this opener.
pub(crate) fn serving(limits: ServerLimits, opener: &Arc<SmallOpener>) -> McpServer {
    let info = ServerInfo {
        name: "haft".into(),
        title: "haft".into(),
        version: "0.0.0".into(),
        instructions: Some("Use the tools.".into()),
    };
    McpServer::new(&info, limits, Arc::clone(opener) as _)
}

/// Waits until the condition holds; the test runner stops a test that waits in vain.
pub(crate) fn until(what: impl Fn() -> bool) {
    while !what() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// The same, without blocking the other tasks.
pub(crate) async fn until_async(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}
