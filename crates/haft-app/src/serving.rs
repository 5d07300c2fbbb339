//! What an application offers to callers, and the authorization server whose tokens it accepts.

use std::sync::Arc;

use haft::toolset::Toolset;
use haft::toolset::view::ReplaceableToolset;

use crate::app::App;
use crate::oauth::ResourceServer;
use crate::servers::Servers;

impl App {
    /// Returns the tools that callers see.
    pub fn tools(&self) -> &Arc<dyn Toolset> {
        &self.0.offered.tools
    }

    /// Returns every tool, on or off.
    pub fn all(&self) -> &Arc<ReplaceableToolset> {
        self.0.offered.inventory.every()
    }

    /// Returns the external MCP servers, as they are now.
    pub fn servers(&self) -> Arc<Servers> {
        Arc::clone(&self.0.offered.inventory.now().servers)
    }

    /// Returns the tools that MCP clients are served: those of a view, if one is named; `None` if the settings have no such view.
    pub fn served(&self, view: Option<&str>) -> Option<Arc<dyn Toolset>> {
        let served = &self.0.offered.served;
        let tools = match view {
            None => &served.whole,
            Some(name) => served.views.get(name)?,
        };
        Some(Arc::clone(tools) as _)
    }

    /// Returns the names of the views in the settings.
    pub fn views(&self) -> impl Iterator<Item = &str> {
        self.0.offered.served.views.keys().map(String::as_str)
    }

    /// Returns the authorization server whose access tokens are accepted, if the settings name one.
    pub fn oauth(&self) -> Option<&ResourceServer> {
        self.0.surroundings.oauth.as_ref()
    }
}
