//! `Inventory`: the current tools and external servers, for components that outlive a change of them.

use std::sync::{Arc, Weak};

use haft::toolset::registry::ToolRegistry;
use haft::toolset::view::ReplaceableToolset;
use haft_mcp::upstream::Upstream;
use parking_lot::{Mutex, RwLock};

use crate::notices::Notices;
use crate::servers::Servers;
use crate::wiring::parts::ToolCatalogue;

/// Every tool, on or off, and the external MCP servers.
#[derive(Debug)]
pub(crate) struct Inventory {
    /// All tools except those of servers.
    own: ToolCatalogue,
    now: RwLock<Arc<ServerTools>>,
    /// The tools of the stock in force.
    every: Arc<ReplaceableToolset>,
    /// The tools by which clients reach what its servers offer besides tools.
    internal: Arc<ReplaceableToolset>,
    /// Connections of earlier stocks that may still have running calls.
    retiring: Mutex<Vec<Weak<Upstream>>>,
}

/// The servers of some settings, and every tool, including theirs.
#[derive(Debug)]
pub(crate) struct ServerTools {
    pub(crate) all: ToolCatalogue,
    pub(crate) servers: Arc<Servers>,
    /// A line for each server and each of their tools that is not offered.
    notes: Vec<String>,
}

impl ServerTools {
    fn new(own: &ToolCatalogue, servers: Servers) -> Self {
        let (remote, mut notes) = servers.tools();
        let mut all = own.clone();
        if !remote.is_empty() {
            all.registry = Arc::new(ToolRegistry::clone(&own.registry));
        }
        for tool in remote {
            notes.extend(all.add_remote(tool));
        }
        Self {
            all,
            servers: Arc::new(servers),
            notes,
        }
    }

    /// Reports the notes that the previous stock did not have.
    fn report_new_notes(&self, before: &[String], notices: &Notices) {
        for note in self.notes.iter().filter(|note| !before.contains(note)) {
            notices.warn(note);
        }
    }
}

impl Inventory {
    /// Creates the inventory of these tools and servers.
    pub(crate) fn new(own: ToolCatalogue, servers: Servers, notices: &Notices) -> Self {
        let stock = ServerTools::new(&own, servers);
        stock.report_new_notes(&[], notices);
        let every = ReplaceableToolset::new(Arc::clone(&stock.all.registry) as _);
        let internal = ReplaceableToolset::new(stock.servers.internal_tools());
        Self {
            own,
            now: RwLock::new(Arc::new(stock)),
            every: Arc::new(every),
            internal: Arc::new(internal),
            retiring: Mutex::default(),
        }
    }

    /// Returns the stock in force.
    pub(crate) fn now(&self) -> Arc<ServerTools> {
        Arc::clone(&self.now.read())
    }

    /// Returns every tool, live.
    pub(crate) fn every(&self) -> &Arc<ReplaceableToolset> {
        &self.every
    }

    /// Returns the tools by which clients reach what servers offer besides tools, live.
    pub(crate) fn internal(&self) -> &Arc<ReplaceableToolset> {
        &self.internal
    }

    /// Returns the stock with other servers.
    pub(crate) fn with(&self, servers: Servers) -> ServerTools {
        ServerTools::new(&self.own, servers)
    }

    /// Puts another stock in force, and ends the connections that are not in it. Needs a tokio runtime.
    pub(crate) fn replace(&self, stock: ServerTools, notices: &Notices) {
        self.every.replace(Arc::clone(&stock.all.registry) as _);
        self.internal.replace(stock.servers.internal_tools());
        let stock = Arc::new(stock);
        let before = std::mem::replace(&mut *self.now.write(), Arc::clone(&stock));
        stock.report_new_notes(&before.notes, notices);
        let mut retiring = self.retiring.lock();
        retiring.retain(|old| old.strong_count() > 0);
        retiring.extend(before.servers.retire_without(&stock.servers));
    }

    /// Closes all connections.
    pub(crate) async fn close(&self) {
        let retiring = std::mem::take(&mut *self.retiring.lock());
        for old in retiring.iter().filter_map(Weak::upgrade) {
            old.close().await;
        }
        self.now().servers.close().await;
    }
}
