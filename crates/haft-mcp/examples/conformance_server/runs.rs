//! `Runs`: a governed run for each client, over the suite's tools.

use std::sync::Arc;

use haft::error::HostFailure;
use haft::executor::Executor;
use haft::future::BoxFuture;
use haft::progress::Pace;
use haft::session::Session;
use haft::toolset::registry::ToolRegistry;
use haft::{CancellationToken, Policy};
use haft_mcp::offer::Offer;
use haft_mcp::opener::{ClientInfo, OpenError, RunFactory};

use super::shelf::Shelf;
use super::{asks, contents, schemas, tasks, works};

/// The runs of all clients: one set of tools, one shelf.
#[derive(Debug)]
pub(crate) struct Runs {
    executor: Executor,
    tools: Arc<ToolRegistry>,
    shelf: Arc<Shelf>,
}

impl Runs {
    pub(crate) fn new() -> Result<Self, super::Failure> {
        let tools = Arc::new(ToolRegistry::new());
        let shelf = Arc::new(Shelf::new());
        tools.add_all(contents::tools()?)?;
        tools.add_all(asks::tools()?)?;
        tools.add_all(schemas::tools()?)?;
        tools.add_all(tasks::tools()?)?;
        tools.add_all(works::tools(&tools, &shelf)?)?;
        let internal = ToolRegistry::new();
        internal.add_all(Shelf::tools()?)?;
        let executor = Executor::new(Policy::trusted()).with_internal_tools(Arc::new(internal));
        Ok(Self {
            executor,
            tools,
            shelf,
        })
    }
}

impl RunFactory for Runs {
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<(Executor, Session), OpenError>> {
        Box::pin(async move {
            let mut session = Session::builder(Arc::clone(&self.tools) as _)
                .with_entry_point("mcp")
                .with_client(Some(client.name))
                .with_cancellation(&CancellationToken::new());
            if let Some(principal) = client.principal {
                session = session.with_principal(principal);
            }
            let session = session.build().map_err(|e| OpenError(HostFailure::of(e)))?;
            Ok((self.executor.clone(), session))
        })
    }

    fn start<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<(), OpenError>> {
        Box::pin(async move {
            let opened = self.executor.open(session);
            opened.map_err(|e| OpenError(HostFailure::of(e)))
        })
    }

    /// Each progress event is a separate notification.
    fn pace(&self) -> Pace {
        Pace {
            gather: std::time::Duration::ZERO,
            ..Pace::default()
        }
    }

    fn is_only_task(&self, tool: &str) -> bool {
        tool == tasks::ONLY_TASK
    }

    fn offer(&self) -> Option<Arc<dyn Offer>> {
        Some(Arc::clone(&self.shelf) as _)
    }

    fn release(&self, session: &Session) {
        session.cancel();
    }
}
