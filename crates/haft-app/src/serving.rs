//! What callers of an application are offered, and who may come with tokens of an authorization server.

use std::sync::Arc;

use haft::toolset::Toolset;
use haft::toolset::view::Replaceable;

use crate::app::App;
use crate::oauth::ResourceServer;
use crate::servers::Servers;

impl App {
    /// The tools callers see.
    pub fn tools(&self) -> &Arc<dyn Toolset> {
        &self.0.tools
    }

    /// Every tool, on or off.
    pub fn all(&self) -> &Arc<Replaceable> {
        self.0.inventory.every()
    }

    /// The MCP servers of settings, as they are now.
    pub fn servers(&self) -> Arc<Servers> {
        Arc::clone(&self.0.inventory.now().servers)
    }

    /// The tools that MCP clients are served: those of a view, where one is named; none where settings know no such view.
    pub fn served(&self, view: Option<&str>) -> Option<Arc<dyn Toolset>> {
        let served = &self.0.served;
        let tools = match view {
            None => &served.whole,
            Some(name) => served.views.get(name)?,
        };
        Some(Arc::clone(tools) as _)
    }

    /// The names of the views of settings.
    pub fn views(&self) -> impl Iterator<Item = &str> {
        self.0.served.views.keys().map(String::as_str)
    }

    /// The authorization server whose access tokens count, where settings name one.
    pub fn oauth(&self) -> Option<&ResourceServer> {
        self.0.oauth.as_ref()
    }
}
